//! `[tool_failure]`: what the `_meta` of a failed tool's result contains.

use crate::section::Section;
use crate::tool_failure_policy::{FailureClass, ToolFailurePolicy};

pub(super) fn tool_failure(root: &Section<'_>, categories: &[String]) -> Option<ToolFailurePolicy> {
    let section = root.section("tool_failure")?;
    section.allow(&["class", "maybe_executed"]);
    let help = "give each category a class: [tool_failure.class] category = \"capability\"";
    let classes = section.need_section("class", help)?;
    let known: Vec<&str> = categories.iter().map(String::as_str).collect();
    classes.allow(&known);
    let row = |category: &String| Some((category.clone(), class(&classes, category)?));
    Some(ToolFailurePolicy {
        classes: categories.iter().filter_map(row).collect(),
        maybe_executed: section
            .has("maybe_executed")
            .then(|| section.need_text("maybe_executed", "write one sentence, or remove the key"))
            .flatten()
            .map(|text| text.value.to_owned()),
    })
}

fn class(classes: &Section<'_>, category: &str) -> Option<FailureClass> {
    let help = format!("write {}", names().join(", ").replace(", governance", " or governance"));
    let word = classes.need_text(category, &help)?;
    let class = FailureClass::from_name(word.value);
    if class.is_none() {
        let what =
            format!("{category:?} of {} has the unknown class {:?}", classes.name, word.value);
        classes.log.note(&word.at, what, help);
    }
    class
}

fn names() -> [&'static str; 3] {
    FailureClass::ALL.map(FailureClass::name)
}
