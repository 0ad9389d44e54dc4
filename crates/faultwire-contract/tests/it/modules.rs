//! No cycle among the modules of any crate: each can be read after those that it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::{root, rust_files};

/// Which module uses which, and in which file.
type Edges = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// The module at the top of a crate that a file belongs to.
fn module(file: &Path) -> String {
    let first = file.iter().next().unwrap_or_default().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The names after `crate::`, also those of a list in braces.
fn used(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for after in source.split("crate::").skip(1) {
        let word = |text: &str| -> String {
            text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        match after.strip_prefix('{').and_then(|list| list.split_once('}')) {
            Some((list, _)) => names.extend(list.split(',').map(|name| word(name.trim()))),
            None => drop(names.insert(word(after))),
        }
    }
    names
}

fn edges(sources: &[(PathBuf, String)]) -> Edges {
    let modules: BTreeSet<String> = sources.iter().map(|(file, _)| module(file)).collect();
    let mut edges = Edges::new();
    for (file, source) in sources {
        let from = module(file);
        if matches!(from.as_str(), "lib" | "main") {
            continue;
        }
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code = lines.collect::<Vec<_>>().join("\n");
        for to in used(&code).into_iter().filter(|to| *to != from && modules.contains(to)) {
            edges.entry(from.clone()).or_default().entry(to).or_insert_with(|| file.clone());
        }
    }
    edges
}

/// A cycle, as the modules on it; the first one again at its end.
fn cycle(edges: &Edges) -> Option<Vec<String>> {
    fn visit(
        edges: &Edges,
        at: &String,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|module| module == at) {
            return Some([&path[start..], std::slice::from_ref(at)].concat());
        }
        if !done.insert(at.clone()) {
            return None;
        }
        path.push(at.clone());
        let mut next = edges.get(at).into_iter().flat_map(BTreeMap::keys);
        let found = next.find_map(|to| visit(edges, to, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    edges.keys().find_map(|from| visit(edges, from, &mut Vec::new(), &mut done))
}

/// The cycle in words: each edge, and the file that makes it.
fn told(edges: &Edges, cycle: &[String]) -> String {
    let edge = |pair: &[String]| {
        let file = &edges[&pair[0]][&pair[1]];
        format!("{} uses {} in {}", pair[0], pair[1], file.display())
    };
    cycle.windows(2).map(edge).collect::<Vec<_>>().join("; ")
}

#[test]
fn no_crate_has_a_cycle_of_modules() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path().join("src");
        let mut files = Vec::new();
        rust_files(&folder, &mut files);
        let sources: Vec<(PathBuf, String)> = files
            .iter()
            .map(|file| (file.strip_prefix(&folder).unwrap(), file))
            .filter(|(name, _)| !name.ends_with("tests.rs") && !name.iter().any(|p| p == "tests"))
            .map(|(name, file)| (name.to_owned(), fs::read_to_string(file).unwrap()))
            .collect();
        assert!(!sources.is_empty(), "{}", folder.display());
        let edges = edges(&sources);
        let cycle = cycle(&edges);
        assert!(cycle.is_none(), "{}: {}", folder.display(), told(&edges, &cycle.unwrap()));
    }
}

#[test]
fn a_cycle_is_found_and_named() {
    let sources = [
        ("a.rs", "use crate::b::X;\n"),
        ("b/deep.rs", "fn f() { crate::c::g() }\n"),
        ("c.rs", "use crate::{d, a};\n"),
        ("d.rs", "// use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
        ("lib.rs", "use crate::a;\n"),
    ];
    let sources = sources.map(|(file, source)| (PathBuf::from(file), source.to_owned()));
    let found = edges(&sources);
    let path = cycle(&found).expect("there is one");
    assert_eq!(told(&found, &path), "a uses b in a.rs; b uses c in b/deep.rs; c uses a in c.rs");
    let without: Vec<_> = sources.into_iter().filter(|(file, _)| !file.ends_with("c.rs")).collect();
    assert!(cycle(&edges(&without)).is_none());
}
