//! The envelope shapes: surfaces, profiles, the success template, default values.

use super::policy::Retry;
use crate::code::Code;
use crate::contract::{Profile, SurfaceSpec};
use crate::mistake::nearest;
use crate::retry::RetryClass;
use crate::section::{At, Section, Text};
use crate::template::slot::Slot;
use crate::template::{Defaults, Template};

/// What fills a slot that has nothing.
pub(super) fn defaults(root: &Section<'_>) -> Defaults {
    let mut defaults = Defaults::new();
    let Some(section) = root.section("defaults") else {
        return defaults;
    };
    let known: Vec<&str> = Slot::ALL.iter().filter(|s| !s.is_always()).map(|s| s.name()).collect();
    section.allow(&known);
    for slot in Slot::ALL.iter().filter(|slot| section.has(slot.name())) {
        match section.scalar(slot.name()) {
            Some(value) if slot.takes(&value) => {
                defaults.insert(slot.name(), value);
            }
            Some(value) => {
                let what = format!("the default of \"${}\" cannot be {value}", slot.name());
                section.note(what, "set a value of the slot's type, or remove the default");
            }
            None => {}
        }
    }
    defaults
}

pub(super) struct Reader<'a> {
    pub profiles: &'a [String],
    pub defaults: &'a Defaults,
}

type Surfaces = (Option<SurfaceSpec>, Option<SurfaceSpec>, Option<Vec<Template>>);

impl Reader<'_> {
    pub(super) fn read(&self, root: &Section<'_>) -> Surfaces {
        let success = root.section("success").and_then(|section| {
            section.allow(&["template"]);
            let templates = self.templates(&section, &[Slot::Data])?;
            let known = |slot: &Slot| *slot == Slot::Data || slot.name().starts_with("meta.");
            for slot in templates.iter().flat_map(Template::slots).filter(|slot| !known(slot)) {
                let what = format!("the success template shows \"${}\"", slot.name());
                section.note(what, "a success only has \"$data\" and \"$meta.…\"");
            }
            Some(templates)
        });
        let help = "give [surface.mcp] a template of the envelope";
        let Some(section) = root.need_section("surface", help) else {
            return (None, None, success);
        };
        section.allow(&["mcp", "http"]);
        let mcp = section.need_section("mcp", help).and_then(|s| self.surface(&s));
        let http = section.section("http").and_then(|s| self.surface(&s));
        (mcp, http, success)
    }

    fn surface(&self, section: &Section<'_>) -> Option<SurfaceSpec> {
        section.allow(&["template", "content_type", "schema_id", "schema_title"]);
        let own = |key| section.text(key).map(|t| t.value.to_owned());
        Some(SurfaceSpec {
            content_type: own("content_type").unwrap_or_else(|| "application/json".to_owned()),
            schema_id: own("schema_id"),
            schema_title: own("schema_title"),
            templates: self.templates(section, &[Slot::Code])?,
        })
    }

    /// One template for all profiles, or a table with one for each.
    fn templates(&self, section: &Section<'_>, must_use: &[Slot]) -> Option<Vec<Template>> {
        if !section.has("template") {
            let what = format!("{} has no \"template\"", section.name);
            section.note(what, "write the envelope as JSON, with \"$slot\" strings");
            return None;
        }
        match section.text_or_section("template")? {
            Ok(text) => {
                let template = self.template(section, &text, must_use)?;
                Some(vec![template; self.profiles.len()])
            }
            Err(each) => {
                let names: Vec<&str> = self.profiles.iter().map(String::as_str).collect();
                each.allow(&names);
                let help = "give every profile its template";
                let one =
                    |name: &&str| self.template(&each, &each.need_text(name, help)?, must_use);
                names.iter().map(one).collect()
            }
        }
    }

    fn template(
        &self,
        section: &Section<'_>,
        text: &Text<'_>,
        must_use: &[Slot],
    ) -> Option<Template> {
        let template = match Template::compile(text.value, self.defaults) {
            Ok(template) => template,
            Err(e) => {
                section.log.note(&text.at, e.to_string(), e.help());
                return None;
            }
        };
        for slot in must_use.iter().filter(|slot| !template.uses(**slot)) {
            let what = format!("the template has no \"${}\"", slot.name());
            section.log.note(&text.at, what, "add it, so that the envelope can be read back");
        }
        Some(template)
    }
}

/// The profile that a table names, or the default one.
pub(super) fn profile(section: &Section<'_>, profiles: &[String]) -> Option<Profile> {
    let Some(word) = section.text("profile") else {
        return Some(Profile::default());
    };
    let found = profiles.iter().position(|p| p == word.value).map(Profile);
    if found.is_none() {
        let help = match nearest(word.value, profiles.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("use one of {}", profiles.join(", ")),
        };
        section.log.note(&word.at, format!("unknown profile {:?}", word.value), help);
    }
    found
}

/// A template that shows a fact needs every row to have it.
pub(super) fn check_facts(
    root: &Section<'_>,
    specs: [Option<&SurfaceSpec>; 2],
    codes: &[Code],
    places: &[At],
    retry: &Retry,
) {
    let templates = || specs.into_iter().flatten().flat_map(|spec| &spec.templates);
    if templates().any(|t| t.uses(Slot::ProblemType)) {
        for (code, at) in codes.iter().zip(places).filter(|(c, _)| c.problem_type.is_none()) {
            let what =
                format!("code {:?} has no \"type\", but a template shows \"$type\"", code.id);
            root.log.note(at, what, "give the URI of the problem type (RFC 9457)");
        }
    }
    if !templates().all(|t| t.uses(Slot::RetryKind)) {
        for (code, at) in codes.iter().zip(places).filter(|(c, _)| c.retry.len() > 1) {
            let what = format!(
                "code {:?} lists several retry classes, but a template has no \"$retry.kind\"",
                code.id
            );
            root.log.note(
                at,
                what,
                "show it in every template, so that the retry class can be read back",
            );
        }
    }
    if templates().any(|t| t.uses(Slot::RetryKind)) {
        let listed = |class| codes.iter().any(|c| c.retry.contains(&class));
        for class in RetryClass::ALL.into_iter().filter(|c| listed(*c) && !retry.named.contains(c))
        {
            let what = format!(
                "a template shows \"$retry.kind\", but [retry.kinds] has no {:?}",
                class.name()
            );
            root.log.note(&retry.at, what, "give the contract's own word for that class");
        }
    }
}
