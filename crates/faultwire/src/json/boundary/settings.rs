//! Settings of a boundary.

use std::collections::{BTreeMap, BTreeSet};

use faultwire_contract::{Contract, Masks, Meta, Session, SoftFailures};
use serde::Deserialize;

use crate::json::error::{Error, ErrorKind};
use crate::json::masks;
use crate::output::Output;

/// Settings of a boundary, as JSON; all are optional.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The profile of the contract.
    pub(super) profile: Option<String>,
    /// Facts for every session.
    pub(super) session: Session,
    /// Facts for every call.
    pub(super) meta: Meta,
    /// What happens to results that do not match their tool's schema.
    output: Mode,
    /// What happens to arguments that do not match it.
    arguments: Mode,
    #[serde(rename = "soft_failures", deserialize_with = "soft_failures")]
    pub(super) soft_failures: SoftFailures,
    /// Kinds of text that clients see although they did not send them.
    keep: Vec<String>,
    /// The codes that each tool may answer.
    pub(super) codes: BTreeMap<String, BTreeSet<String>>,
    /// An undeclared code becomes an internal failure.
    pub(super) strict: bool,
    #[serde(skip)]
    pub(super) masks: Masks,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Off,
    #[default]
    Warn,
    Enforce,
}

impl Settings {
    pub(super) fn read(text: &str, contract: &Contract) -> Result<Self, Error> {
        let mut settings: Self = serde_json::from_str(text).map_err(|e| {
            let help =
                "use profile, session, meta, output, arguments, soft_failures, keep, codes, strict";
            Error::new(ErrorKind::Input, format!("not valid settings: {e}"), help)
        })?;
        let kept = settings.keep.iter().map(String::as_str);
        let kept = Masks::ALL.without(masks(kept)?);
        // A contract's own redaction is a floor (U2).
        if let Some(name) = settings
            .keep
            .iter()
            .find(|name| Masks::named(name).is_some_and(|kind| contract.text.masks.covers(kind)))
        {
            let what = format!("contract {} masks this kind of text itself", contract.name);
            return Err(Error::new(ErrorKind::Input, what, "remove it from keep").at(name));
        }
        settings.masks = Masks::REMOTE.without(kept);
        for (tool, codes) in &settings.codes {
            if let Some(code) = codes.iter().find(|code| contract.code(code).is_none()) {
                let what =
                    format!("{tool} declares {code:?}, which {} does not have", contract.name);
                let help = contract.nearest_code(code).map_or_else(
                    || "use codes of the contract".to_owned(),
                    |near| format!("did you mean {near:?}?"),
                );
                return Err(Error::new(ErrorKind::UnknownCode, what, help));
            }
        }
        Ok(settings)
    }

    pub(super) fn output(&self) -> Output {
        match self.output {
            Mode::Off => Output::Off,
            Mode::Warn => Output::Warn,
            Mode::Enforce => Output::Enforce,
        }
    }

    pub(super) fn checks_arguments(&self) -> bool {
        self.arguments == Mode::Enforce
    }
}

fn soft_failures<'de, D: serde::Deserializer<'de>>(from: D) -> Result<SoftFailures, D::Error> {
    let name = String::deserialize(from)?;
    name.parse().map_err(serde::de::Error::custom)
}
