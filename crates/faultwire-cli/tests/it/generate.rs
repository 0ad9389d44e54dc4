//! `contract generate`: a module of typed codes for another language. What compilers make of the
//! modules is tested with the packages that they are for.

use std::fs;
use std::process::Command;

use faultwire_contract::{BUILTINS, Code};

use crate::support::{Dir, faultwire};

const LANGUAGES: [(&str, &str); 2] = [("typescript", "ts"), ("python", "py")];

/// The lines of a constructor, from its name on.
fn constructor<'a>(module: &'a str, code: &Code) -> &'a str {
    let made = [format!("(contract, {:?}", code.id), format!("contract,\n        {:?},", code.id)];
    let end = made.iter().find_map(|made| module.find(made));
    let end = end.unwrap_or_else(|| panic!("no constructor of {}", code.id));
    let start = module[..end].rfind("\ndef ").or_else(|| module[..end].rfind("\nexport function "));
    &module[start.unwrap()..end]
}

#[test]
fn t4_each_code_has_a_constructor_that_takes_what_its_row_allows() {
    for known in &BUILTINS {
        for (language, _) in LANGUAGES {
            let module =
                faultwire(&["contract", "generate", language, "-c", known.name], "").fine();
            assert!(module.contains(&format!("Contract.builtin({:?})", known.name)), "{language}");
            for code in known.contract().codes() {
                let place = format!("{language} {} {}", known.name, code.id);
                let made = constructor(&module, code);
                let delay = code.retry.iter().any(|class| class.takes_delay());
                let is_there = made.contains("& Delay") || made.contains("retry_after_ms: int");
                assert_eq!(is_there, delay, "{place}: {made}");
                let keeps = made.contains("& Data") || made.contains(" data: Any");
                assert_eq!(keeps, code.keeps_data, "{place}: {made}");
                assert!(module.contains(&serde_json::to_string(&code.action).unwrap()), "{place}");
            }
        }
    }
}

#[test]
fn a_module_is_checked_against_its_contract() {
    let dir = Dir::new();
    for (language, extension) in LANGUAGES {
        let file = dir.join(&format!("errors.{extension}"));
        let generate = ["contract", "generate", language, "-c", "workrail", "-o", &file];
        assert_eq!(faultwire(&generate, "").fine(), format!("Wrote {file}\n"));
        let check = [&generate[..], &["--check"]].concat();
        assert_eq!(faultwire(&check, "").fine(), format!("{file} is current\n"));
        let module = fs::read_to_string(&file).unwrap();
        fs::write(&file, module.replacen("TIMEOUT", "TIME_OUT", 1)).unwrap();
        let found = faultwire(&check, "");
        assert_eq!(found.code, 1, "{}", found.err);
        let told = found.out;
        let expected = "differs from the contract\nRun `faultwire contract generate";
        assert!(told.contains(expected), "{told}");
        let json = faultwire(&[&check[..], &["--json"]].concat(), "");
        assert!(json.out.contains(r#""current":false"#), "{}", json.out);
        fs::remove_file(&file).unwrap();
        faultwire(&check, "").refused();
    }
}

/// Text of a contract that could end a literal, a comment or a docstring.
#[test]
fn a_contract_in_a_file_is_part_of_the_module_whatever_it_says() {
    let dir = Dir::new();
    let file = dir.join("port.toml");
    let hostile = r#"` ${x} \\ \" ''' */ # \u00e9 \U0001F6A2"#;
    let toml = faultwire(&["contract", "new", "port", "--output", "-"], "").fine();
    let toml = toml.replacen("\nmeaning = \"", &format!("\nmeaning = \"{hostile} "), 3);
    assert!(toml.contains("${x}"));
    fs::write(&file, &toml).unwrap();
    let module = dir.join("errors.py");
    faultwire(&["contract", "generate", "python", "-c", &file, "-o", &module], "").fine();
    // Python reads the text of the file out of the module again, and the docstrings end.
    let program = r#"
import ast, sys
tree = ast.parse(open(sys.argv[1], encoding="utf-8").read())
parse = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "parse")
assert parse.args[0].value == "port.toml"
assert parse.args[1].value == open(sys.argv[2], encoding="utf-8").read()
assert sum(isinstance(n, ast.FunctionDef) for n in tree.body) == 16
"#;
    let read = Command::new("python3").args(["-c", program, &module, &file]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let module = dir.join("errors.mjs");
    faultwire(&["contract", "generate", "typescript", "-c", &file, "-o", &module], "").fine();
    // A literal of TypeScript is one of JavaScript.
    let program = r#"
const fs = require("fs"), [, module, file] = process.argv;
const text = fs.readFileSync(module, "utf8");
const start = text.indexOf("Contract.parse(") + "Contract.parse(".length;
const [name, toml] = eval("[" + text.slice(start, text.indexOf(");\n\n/**", start)) + "]");
if (name !== "port.toml" || toml !== fs.readFileSync(file, "utf8")) process.exit(1);
"#;
    let read = Command::new("node").args(["-e", program, &module, &file]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn two_codes_of_one_name_are_refused() {
    let dir = Dir::new();
    let file = dir.join("port.toml");
    let toml = faultwire(&["contract", "new", "port", "--output", "-"], "").fine();
    let pattern = toml.lines().find(|line| line.starts_with("code_pattern")).unwrap();
    let toml = toml.replace(pattern, "code_pattern = '^[A-Za-z_]+$'");
    let toml = toml.replace("\"busy\"", "\"Not_found\"");
    fs::write(&file, toml).unwrap();
    let told = faultwire(&["contract", "generate", "python", "-c", &file], "").refused();
    assert!(told.contains("would both be named not_found"), "{told}");
}

#[test]
fn the_modules_of_the_packages_are_current() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bindings");
    for known in &BUILTINS {
        let name = known.name;
        let module = name.replace('-', "_");
        let typescript = format!("{root}/node/ts/contracts/{name}.ts");
        let python = format!("{root}/python/python/faultwire/{module}.py");
        for (language, import, file) in
            [("typescript", "../index.js", typescript), ("python", "faultwire", python)]
        {
            let generate = ["contract", "generate", language, "-c", name, "--import", import];
            let checked = faultwire(&[&generate[..], &["-o", &file, "--check"]].concat(), "");
            assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
        }
    }
}
