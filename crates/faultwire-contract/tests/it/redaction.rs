//! What must not reach a client does not, and everything else stays.

use faultwire_contract::Redactor;
use serde::Deserialize;

#[derive(Deserialize)]
struct Leak {
    name: String,
    text: String,
    secrets: Vec<String>,
}

#[derive(Deserialize)]
struct Keep {
    name: String,
    text: String,
}

fn lines<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn no_secret_survives() {
    let redactor = Redactor::default();
    let mut failed = String::new();
    let leaks: Vec<Leak> = lines(include_str!("../data/leaks.jsonl"));
    assert!(leaks.len() > 200);
    for leak in &leaks {
        let safe = redactor.redact(&leak.text);
        for secret in leak.secrets.iter().filter(|s| safe.contains(s.as_str())) {
            failed += &format!("{}: {secret:?} survives in {safe:?}\n", leak.name);
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn ordinary_text_stays() {
    let redactor = Redactor::default();
    let mut failed = String::new();
    let keeps: Vec<Keep> = lines(include_str!("../data/keeps.jsonl"));
    assert!(keeps.len() > 150);
    for keep in &keeps {
        let safe = redactor.redact(&keep.text);
        if safe != keep.text {
            failed += &format!("{}: {:?}\n     became {safe:?}\n", keep.name, keep.text);
        }
    }
    assert!(failed.is_empty(), "{failed}");
}
