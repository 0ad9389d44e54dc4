//! Links in the documents lead to files and headings that exist.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents at the root and in `docs`.
fn documents() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    entries
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .collect()
}

/// The lines of a document that are not in blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence && !line.starts_with("    ")
    })
}

/// The targets of a document's links, without those on the web.
fn links(text: &str) -> Vec<&str> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .filter(|target| !target.contains("://"))
        .collect()
}

/// What leads to a document's headings, as forges and mdBook make it of their words.
fn anchors(text: &str) -> HashSet<String> {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

/// The links of a document that lead nowhere.
fn broken(document: &Path, text: &str) -> Vec<String> {
    let leads_somewhere = |link: &&str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = document.with_file_name(file);
        let there = match file {
            "" => text.to_owned(),
            _ => fs::read_to_string(&target).unwrap_or_default(),
        };
        (file.is_empty() || target.exists())
            && (anchor.is_empty() || anchors(&there).contains(anchor))
    };
    links(text).into_iter().filter(|link| !leads_somewhere(link)).map(str::to_owned).collect()
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let mut checked = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        assert_eq!(broken(&document, &text), [""; 0], "{}", document.display());
        if !links(&text).is_empty() {
            checked.push(document.file_name().unwrap().to_owned());
        }
    }
    for expected in ["README.md", "clauses.md", "glossary.md"] {
        assert!(checked.iter().any(|name| name == expected), "{expected}: {checked:?}");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(broken(&root().join("docs/page.md"), text), expected, "{text}");
    };
    check(
        "[a](wrap.md), [b](../README.md#try-it), [c](https://example.com/x) and [d](../contracts/)",
        &[],
    );
    check("## One *or* `two`?\n[a](#one-or-two)", &[]);
    check("[a](wrapped.md) [b](wrap.md)", &["wrapped.md"]);
    check("[a](wrap.md#no-such-heading)", &["wrap.md#no-such-heading"]);
    check("[a](#nowhere)", &["#nowhere"]);
    check("```\n# nowhere\n[a](wrapped.md)\n```\n[a](#nowhere)", &["#nowhere"]);
    check("[a](../contracts/#x)", &["../contracts/#x"]);
}

/// Each term has a definition, one example, and says where it is treated.
#[test]
fn the_glossary_has_an_example_and_a_link_for_each_term() {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let terms: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert!(terms.len() > 40, "{}", terms.len());
    for term in &terms {
        assert_eq!(term.matches("Example: ").count(), 1, "{term}");
        assert!(!links(term).is_empty(), "{term}");
    }
    let names: Vec<String> =
        terms.iter().map(|t| t.lines().next().unwrap().to_lowercase()).collect();
    assert!(names.is_sorted(), "the terms are not in order: {names:?}");
}
