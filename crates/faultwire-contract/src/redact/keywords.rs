//! Every keyword leads somewhere: a line of the corpus in which its rule finds something near it.

use serde::Deserialize;

use super::rule::{Position, RuleKind};
use super::view::View;
use super::{SHARED, strip};

#[derive(Deserialize)]
struct Leak {
    text: String,
}

#[test]
fn every_keyword_has_a_line_in_the_corpus() {
    let lines = include_str!("../../tests/data/leaks.jsonl").lines();
    let leaks: Vec<Leak> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut idle = Vec::new();
    for rule in SHARED.iter().filter(|rule| rule.kind == RuleKind::Credential) {
        let mut near = Vec::new();
        for text in leaks.iter().map(|leak| strip(&leak.text)) {
            for view in [Some(View::plain(&text)), View::decoded(&text)].into_iter().flatten() {
                let mut findings = Vec::new();
                let place = Position { text: &text, view: &view, caller: None };
                rule.find(&place, &mut findings);
                let stretch = |(from, to, _): (usize, usize, &str)| {
                    let from = text.floor_char_boundary(from.saturating_sub(240));
                    text[from..text.ceil_char_boundary(to + 240)].to_lowercase()
                };
                near.extend(findings.into_iter().map(stretch));
            }
        }
        let unmet = |keyword: &&String| {
            let keyword = keyword.to_lowercase();
            !near.iter().any(|text| text.contains(&keyword))
        };
        idle.extend(rule.keywords.iter().filter(unmet).map(|k| format!("{}: {k}", rule.name)));
    }
    assert!(idle.is_empty(), "keywords without a line in leaks.jsonl:\n{}", idle.join("\n"));
}
