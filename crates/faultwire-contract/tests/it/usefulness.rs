//! Is the agent better off? Every case of `corpus/useful` through the default contract: whether the
//! failure is seen, its code, its retry answer, the facts that must be readable, the secrets that
//! must not (U1–U5, S2). `cargo nextest run -p faultwire-contract -E 'test(usefulness)' --no-capture`
//! prints the figures, `FAULTWIRE_MISSES=1` the cases behind them, but for servers that are set aside;
//! `FAULTWIRE_FIGURES=FILE` writes what `docs/usefulness.md` shows of them.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a person asks for figures")]

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use faultwire_contract::{
    CallContext, Caller, Contract, DEFAULT, Fault, Masks, Profile, ResultOptions, Surface, builtin,
    classify_call,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::STAMP;

#[derive(Deserialize)]
struct File {
    server: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    tool: Option<String>,
    arguments: Option<Value>,
    #[serde(rename = "outputSchema")]
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Annotations,
    reply: Value,
    want: Want,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint")]
    read_only_hint: Option<bool>,
}

#[derive(Deserialize)]
struct Want {
    failure: bool,
    codes: Vec<String>,
    retryable: bool,
    facts: Vec<String>,
    secrets: Vec<String>,
}

impl Case {
    /// Whether the server calls it a success.
    fn is_soft(&self) -> bool {
        let result = self.reply.get("result");
        result.is_some_and(|result| result.get("isError") != Some(&Value::Bool(true)))
    }
}

/// Right answers of all.
#[derive(Clone, Copy, Default)]
struct Share(usize, usize);

impl Share {
    fn count(&mut self, right: bool) {
        self.0 += usize::from(right);
        self.1 += 1;
    }

    /// Per mille; all of none is all.
    fn of_thousand(self) -> usize {
        (self.0 * 1000).checked_div(self.1).unwrap_or(1000)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = self.of_thousand();
        write!(f, "{:>3}.{} % ({} of {})", share / 10, share % 10, self.0, self.1)
    }
}

#[derive(Default)]
struct Figures {
    seen: Share,
    /// Successes that pass untouched.
    untouched: Share,
    /// Failures that the server calls a success, and that are told as failures.
    soft: Share,
    code: Share,
    retry: Share,
    facts: Share,
    secrets: Share,
}

impl Figures {
    fn print(&self) {
        let rows = [
            ("failure or success", self.seen),
            ("successes untouched", self.untouched),
            ("soft failures seen", self.soft),
            ("code", self.code),
            ("retryable", self.retry),
            ("facts readable", self.facts),
            ("secrets out", self.secrets),
        ];
        for (row, share) in rows {
            println!("  {row:<21}{share}");
        }
    }

    fn add(&mut self, contract: &Arc<Contract>, server: &str, case: &Case, shows: bool) {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "result": case.reply.get("result"),
                           "error": case.reply.get("error") });
        let line: serde_json::Map<String, Value> =
            line.as_object().unwrap().clone().into_iter().filter(|(_, v)| !v.is_null()).collect();
        let line = Value::Object(line).to_string();
        let params = json!({ "name": case.tool, "arguments": case.arguments }).to_string();
        let context = CallContext {
            params: Some(&params),
            tool: case.tool.as_deref(),
            has_output_schema: case.output_schema.is_some(),
            read_only: case.annotations.read_only_hint,
            ..CallContext::default()
        };
        let failure = classify_call(contract, line.as_bytes(), &context).failure();
        let want = &case.want;
        let miss = |what: &str, told: &str| {
            if shows {
                println!("{what}: {server} {}: {told}", case.id);
            }
        };
        self.seen.count(failure.is_some() == want.failure);
        if !want.failure {
            self.untouched.count(failure.is_none());
        } else if case.is_soft() {
            self.soft.count(failure.is_some());
        }
        let Some(failure) = failure else {
            if want.failure {
                miss("unseen", &line);
            }
            return;
        };
        if !want.failure {
            return miss("a success called a failure", &line);
        }
        let caller = Caller::new(Masks::LOCAL).sent_raw(params.as_str());
        let fault = Fault::for_caller(contract, failure.report, &STAMP, &caller).unwrap();
        let envelope = fault.envelope(Surface::Mcp, Profile::default());
        let told = String::from_utf8(envelope).unwrap();
        let is_right = want.codes.contains(&fault.code().id);
        self.code.count(is_right);
        if !is_right {
            miss(&format!("not {:?}", want.codes), &told);
        }
        let retryable = fault.retry().is_retryable();
        self.retry.count(retryable == want.retryable);
        if retryable != want.retryable {
            miss(&format!("retryable must be {}", want.retryable), &told);
        }
        let result = fault.call_tool_result(Profile::default(), ResultOptions::default());
        let mut texts = String::new();
        readable(&serde_json::from_slice(&result).unwrap(), &mut texts);
        let has_facts = want.facts.iter().all(|fact| texts.contains(fact.as_str()));
        self.facts.count(has_facts);
        if !has_facts {
            miss(&format!("hides {:?}", want.facts), &told);
        }
        for secret in &want.secrets {
            let is_out = !texts.contains(secret.as_str());
            self.secrets.count(is_out);
            if !is_out {
                miss(&format!("shows {secret:?}"), &told);
            }
        }
    }
}

/// All texts of a value, as a person reads them.
fn readable(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(all) => all.iter().for_each(|one| readable(one, out)),
        Value::Object(all) => all.iter().for_each(|(name, one)| {
            out.push_str(name);
            out.push('\n');
            readable(one, out);
        }),
        other => out.push_str(&format!("{other}\n")),
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/useful")
}

fn files() -> Vec<(String, File)> {
    files_in(&corpus())
}

fn files_in(folder: &Path) -> Vec<(String, File)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_server = path.file_name().is_some_and(|name| name != "comparison.json");
        if is_server && path.extension().is_some_and(|e| e == "json") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let file = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            files.push((name, file));
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files
}

/// Per mille of failures and successes told apart, successes untouched, codes, retry answers, facts
/// and secrets out: servers, made cases, and both again that are not looked at. They only rise.
const MORE_FLOORS: [[usize; 6]; 3] = [
    [988, 1000, 977, 987, 1000, 1000],
    [992, 1000, 974, 991, 999, 1000],
    [973, 950, 975, 990, 1000, 1000],
];

#[test]
fn u1_u5_further_servers_and_made_cases_are_told_apart() {
    let contract = builtin(DEFAULT).unwrap();
    let shows = std::env::var_os("FAULTWIRE_MISSES").is_some();
    let mut low = String::new();
    for (part, floors) in ["servers", "made", "aside"].iter().zip(MORE_FLOORS) {
        let mut figures = Figures::default();
        let shows = shows && *part != "aside";
        for (_, file) in files_in(&corpus().join("../more").join(part)) {
            file.cases.iter().for_each(|case| figures.add(&contract, &file.server, case, shows));
        }
        println!("more {part}");
        figures.print();
        let Figures { seen, untouched, code, retry, facts, secrets, .. } = figures;
        for (share, floor) in [seen, untouched, code, retry, facts, secrets].into_iter().zip(floors)
        {
            if share.of_thousand() < floor {
                low += &format!("{part}: {share} is less than {floor} per mille\n");
            }
        }
    }
    assert!(low.is_empty(), "{low}");
}

#[test]
fn usefulness_of_the_default_contract() {
    let contract = builtin(DEFAULT).unwrap();
    let held_out = fs::read_to_string(corpus().join("held-out.txt")).unwrap();
    let held_out: HashSet<&str> = held_out.lines().collect();
    let shows = std::env::var_os("FAULTWIRE_MISSES").is_some();
    let mut figures = [Figures::default(), Figures::default()];
    for (name, file) in files() {
        let aside = held_out.contains(name.as_str());
        for case in &file.cases {
            figures[usize::from(aside)].add(&contract, &file.server, case, shows && !aside);
        }
    }
    for (which, figures) in ["tuned", "set aside"].iter().zip(&figures) {
        println!("{which} servers");
        figures.print();
    }
    let shares = page_shares(&figures, &held_out);
    if let Some(path) = std::env::var_os("FAULTWIRE_FIGURES") {
        fs::write(path, page_figures(&shares).to_string()).unwrap();
    }
    // What holds today; it only rises. Of the failures that are seen, then of all.
    for (figures, floors) in figures.iter().zip(SEEN_FLOORS) {
        let shares = [figures.seen, figures.code, figures.retry, figures.facts];
        for (share, floor) in shares.into_iter().zip(floors) {
            assert!(share.of_thousand() >= floor, "{share} is less than {floor} per mille");
        }
    }
    for (shares, floors) in shares.iter().zip(FLOORS) {
        for (share, floor) in shares.iter().zip(floors) {
            assert!(share.of_thousand() >= floor, "{share} is less than {floor} per mille");
        }
    }
    assert_page_is_current(&shares);
}

/// Per mille of failures and successes told apart, and of the failures that are seen the codes,
/// retry answers and facts: tuned servers, servers set aside.
const SEEN_FLOORS: [[usize; 4]; 2] = [[997, 996, 999, 999], [988, 955, 995, 998]];

/// Per mille of all failures, in the order of [`COLUMNS`]: tuned servers, servers set aside.
const FLOORS: [[usize; 5]; 2] = [[997, 993, 995, 999, 1000], [988, 940, 980, 998, 1000]];

/// The columns of a table of `docs/usefulness.md`.
const COLUMNS: [&str; 5] = ["seen", "code", "retry", "facts", "secrets"];

/// The figures as the page has them: of all failures, so that every row has the same total. A
/// failure that is not seen has no code; its facts are readable, because it passes unchanged.
fn page_shares(figures: &[Figures; 2], held_out: &HashSet<&str>) -> [[Share; 5]; 2] {
    let mut totals = [[0; 3]; 2];
    for (name, file) in files() {
        let [cases, failures, secrets] = &mut totals[usize::from(held_out.contains(name.as_str()))];
        *cases += file.cases.len();
        for want in file.cases.iter().map(|case| &case.want).filter(|want| want.failure) {
            *failures += 1;
            *secrets += want.secrets.len();
        }
    }
    [0, 1].map(|part| {
        let (own, [cases, failures, secrets]) = (&figures[part], totals[part]);
        let unseen = failures - own.code.1;
        [
            Share(own.seen.0, cases),
            Share(own.code.0, failures),
            Share(own.retry.0, failures),
            Share(own.facts.0 + unseen, failures),
            Share(own.secrets.0, secrets),
        ]
    })
}

/// What `scripts/compare-useful --docs` reads.
fn page_figures(shares: &[[Share; 5]; 2]) -> Value {
    let part = |of: &[Share; 5]| -> Value {
        COLUMNS.iter().zip(of).map(|(name, share)| (name.to_string(), json!(share.0))).collect()
    };
    json!({ "tuned": part(&shares[0]), "aside": part(&shares[1]) })
}

fn assert_page_is_current(shares: &[[Share; 5]; 2]) {
    let page = fs::read_to_string(corpus().join("../../docs/usefulness.md")).unwrap();
    let shown: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| **Faultwire**")).collect();
    let measured = shares.map(|part| {
        let cells = part.map(|share| {
            let share = share.of_thousand();
            format!("{}.{} %", share / 10, share % 10)
        });
        format!("| **Faultwire** | {} |", cells.join(" | "))
    });
    assert_eq!(shown, measured, "docs/usefulness.md is old: run scripts/compare-useful --docs");
}

#[test]
fn the_corpus_is_labelled_as_it_says() {
    let codes: Vec<String> =
        builtin(DEFAULT).unwrap().codes().iter().map(|code| code.id.clone()).collect();
    let (mut failures, mut servers) = (0, 0);
    for (name, file) in files() {
        servers += 1;
        let mut ids = HashSet::new();
        for case in &file.cases {
            let (id, want) = (&case.id, &case.want);
            assert!(ids.insert(id), "{name}: {id} twice");
            failures += usize::from(want.failure);
            assert_eq!(want.failure, !want.codes.is_empty(), "{name} {id}");
            assert!(want.codes.iter().all(|code| codes.contains(code)), "{name} {id}");
            let mut texts = String::new();
            readable(&case.reply, &mut texts);
            // A text that is JSON is read, too.
            let plain = texts.replace("\\\"", "\"").replace("\\\\", "\\").replace("\\n", "\n");
            for fact in want.facts.iter().chain(&want.secrets) {
                let is_there = texts.contains(fact.as_str()) || plain.contains(fact.as_str());
                assert!(is_there, "{name} {id}: {fact}");
            }
        }
    }
    assert!(failures >= 600 && servers >= 20, "{failures} failures of {servers} servers");
}
