//! The file as a whole: its tables in the order they depend on each other.

use super::conditions::conditions;
use super::head::{Head, is_version, well_formed};
use super::{code, next, policy, rule, surface, tool_failure};
use crate::code::Code;
use crate::contract::{Contract, Example, Index, Release};
use crate::mistake::{Mistakes, nearest};
use crate::redact::Redactor;
use crate::report::Report;
use crate::section::{Section, Text, read_file};
use crate::session::{Reports, SessionRules};

const TABLES: &[&str] = &[
    "contract",
    "surface",
    "success",
    "defaults",
    "text",
    "stack",
    "session",
    "retry",
    "alert",
    "conditions",
    "next",
    "tool_failure",
    "code",
    "rule",
    "redact",
    "release",
    "test",
];

impl Contract {
    /// Loads a contract from the text of its file. `file` is only the name that mistakes carry.
    ///
    /// ```
    /// let mistakes = faultwire_contract::Contract::load("my.toml", "[contract]\nname = 'x'").unwrap_err();
    /// assert!(mistakes.to_string().contains("my.toml:1:2: [contract] has no \"version\""));
    /// ```
    pub fn load(file: &str, text: &str) -> Result<Self, Mistakes> {
        contract(file, text)
    }
}

pub(crate) fn contract(file: &str, text: &str) -> Result<Contract, Mistakes> {
    let help = "a contract is a TOML file; copy an example from contracts/";
    read_file(file, text, help, |root| read(root, Source::Anybody))
}

/// The same for a file that is part of the build.
pub(crate) fn built_in(file: &str, text: &str) -> Result<Contract, Mistakes> {
    read_file(file, text, "this file is part of the build", |root| read(root, Source::Build))
}

/// Whose a contract file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Build,
    Anybody,
}

/// `None` when something was so wrong that the rest makes no sense; the log says what.
fn read(root: &Section<'_>, source: Source) -> Option<Contract> {
    root.allow(TABLES);
    let head = root.need_section("contract", "begin with [contract], a name and a version");
    let head = head.as_ref().map(|section| (section, Head::read(section)));
    let levels = policy::levels(root);
    let text = policy::text(root);
    let redactor = redactor(root);
    let retry = policy::retry(root);

    let categories = head.as_ref().map(|(_, h)| h.categories.as_slice()).unwrap_or_default();
    let pattern = head.as_ref().and_then(|(_, h)| h.code_pattern.as_ref());
    let checks = (source == Source::Anybody).then_some(&redactor);
    let rows = code::Rows { categories, pattern, levels: &levels, text: &text, redactor: checks };
    let (codes, places) = rows.read(root);
    let index: Index = codes.iter().enumerate().map(|(i, c)| (c.id.clone(), i)).collect();
    let known = Known { index: &index, codes: &codes };

    let conditions = conditions(root, &known);
    let rules = rule::contract_rules(root, &known);
    let profiles = head.as_ref().map(|(_, h)| h.profiles.clone()).unwrap_or_default();
    let defaults = surface::defaults(root);
    let surfaces = surface::Reader { profiles: &profiles, defaults: &defaults };
    let (mcp, http, success) = surfaces.read(root);
    surface::check_facts(root, [mcp.as_ref(), http.as_ref()], &codes, &places, &retry);
    let next = next::next(root);
    let releases = releases(root, &known);
    let examples = examples(root, &known, &profiles);

    let (section, head) = head?;
    let fallback = section.need_text("fallback", "name the code for failures without a better one");
    let fallback = fallback.and_then(|id| known.living(section, &id, "\"fallback\""));
    let invariant = section.text("invariant");
    let invariant = invariant.and_then(|id| known.living(section, &id, "\"invariant\""));
    let session = session(root, &head.categories);
    let tool_failure = tool_failure::tool_failure(root, &head.categories);
    Some(Contract {
        name: head.name?,
        version: head.version?,
        title: head.title?,
        frozen: head.frozen,
        requires: head.requires,
        categories: head.categories,
        profiles: head.profiles,
        text,
        retry: retry.policy,
        levels,
        releases,
        examples,
        stack: policy::stack(root),
        session,
        tool_failure,
        fallback: fallback?,
        invariant: invariant.or(fallback)?,
        conditions: conditions?,
        next,
        mcp: mcp?,
        http,
        success,
        codes,
        index,
        defaults,
        rules,
        redactor,
    })
}

/// The codes of the file, to look names up in.
pub(super) struct Known<'a> {
    index: &'a Index,
    codes: &'a [Code],
}

impl Known<'_> {
    /// The index of a code that is not retired; otherwise a mistake is noted.
    pub(super) fn living(
        &self,
        section: &Section<'_>,
        id: &Text<'_>,
        whose: &str,
    ) -> Option<usize> {
        let i = self.registered(section, id, whose)?;
        if let Some(retired) = &self.codes[i].retired {
            let what = format!("{whose} names {:?}, which is retired", id.value);
            section.log.note(&id.at, what, format!("use its successor {:?}", retired.successor));
        }
        Some(i)
    }

    /// The index of a code, retired or not; if it does not exist, a mistake is noted.
    fn registered(&self, section: &Section<'_>, id: &Text<'_>, whose: &str) -> Option<usize> {
        let Some(&i) = self.index.get(id.value) else {
            let help = match nearest(id.value, self.codes.iter().map(|c| c.id.as_str())) {
                Some(near) => format!("did you mean {near:?}?"),
                None => "use a code that has a [[code]] row".to_owned(),
            };
            let what =
                format!("{whose} names {:?}, which is not a code of this contract", id.value);
            section.log.note(&id.at, what, help);
            return None;
        };
        Some(i)
    }
}

pub(super) fn owned(texts: &[Text<'_>]) -> Vec<String> {
    texts.iter().map(|t| t.value.to_owned()).collect()
}

fn session(root: &Section<'_>, categories: &[String]) -> Option<SessionRules> {
    let section = root.section("session")?;
    section.allow(&[
        "begin",
        "end",
        "lock_categories",
        "while_locked",
        "reading_while_locked",
        "reports",
    ]);
    let begin = section.need_text("begin", "name the tool that begins a session")?;
    let lock_categories = section.texts("lock_categories").unwrap_or_default();
    for category in &lock_categories {
        if !categories.iter().any(|known| known == category.value) {
            let help = match nearest(category.value, categories.iter().map(String::as_str)) {
                Some(near) => format!("did you mean {near:?}?"),
                None => "use categories of this contract".to_owned(),
            };
            let what = format!("{:?} is not a category of this contract", category.value);
            section.log.note(&category.at, what, help);
        }
    }
    let reports = section.section("reports").and_then(|reports| {
        reports.allow(&["tools", "argument", "under"]);
        let argument = reports.need_text("argument", "name the argument that has the path");
        let under = reports.need_text("under", "name the directory, with a / at the end");
        let (argument, under) = (argument?, under?);
        if !under.value.ends_with('/') {
            reports.log.note(
                &under.at,
                "the directory does not end with /",
                "write it like docs/reports/",
            );
        }
        Some(Reports {
            tools: owned(&reports.texts("tools").unwrap_or_default()),
            argument: argument.value.to_owned(),
            under: under.value.to_owned(),
        })
    });
    Some(SessionRules {
        begin: begin.value.to_owned(),
        end: owned(&section.texts("end").unwrap_or_default()),
        lock_categories: owned(&lock_categories),
        while_locked: owned(&section.texts("while_locked").unwrap_or_default()),
        reading_while_locked: section.boolean("reading_while_locked").unwrap_or(true),
        reports,
    })
}

fn redactor(root: &Section<'_>) -> Redactor {
    let own: Vec<_> = root.list("redact").iter().filter_map(crate::redact::rule::read).collect();
    Redactor::with(own)
}

fn releases(root: &Section<'_>, known: &Known<'_>) -> Vec<Release> {
    let read = |section: Section<'_>| {
        section.allow(&["version", "note", "adds"]);
        let version = section.need_text("version", "say which version the note is for")?;
        let note = section.need_text("note", "say what changed")?;
        let adds = section.texts("adds").unwrap_or_default();
        for id in &adds {
            known.registered(&section, id, "\"adds\"");
        }
        Some(Release {
            version: well_formed(
                &section,
                &version,
                is_version,
                "MAJOR.MINOR.PATCH, such as 1.0.0",
            )?,
            note: note.value.to_owned(),
            adds: owned(&adds),
        })
    };
    root.list("release").into_iter().filter_map(read).collect()
}

fn examples(root: &Section<'_>, known: &Known<'_>, profiles: &[String]) -> Vec<Example> {
    let read = |section: Section<'_>| {
        section.allow(&["fault", "profile", "mcp", "http"]);
        let fault = section.need_text("fault", "give the fault in its JSON form")?;
        let report: Report = match serde_json::from_str(fault.value) {
            Ok(report) => report,
            Err(e) => {
                let what = format!("the fault of {} cannot be read: {e}", section.name);
                section.log.note(&fault.at, what, "use the input format of `faultwire render`");
                return None;
            }
        };
        known.registered(
            &section,
            &Text { value: &report.code, at: fault.at.clone() },
            "the fault",
        )?;
        let profile = surface::profile(&section, profiles)?;
        let expect: Vec<_> = crate::contract::Surface::ALL
            .into_iter()
            .filter_map(|s| Some((s, section.text(s.name())?.value.trim().to_owned())))
            .collect();
        if expect.is_empty() {
            section.note("[[test]] has no expected envelope", "set \"mcp\", \"http\" or both");
        }
        let line = section.log.line(&section.at);
        Some(Example { fault: fault.value.to_owned(), code: report.code, profile, expect, line })
    };
    root.list("test").into_iter().filter_map(read).collect()
}
