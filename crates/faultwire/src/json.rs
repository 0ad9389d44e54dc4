//! The engine as texts: JSON in, JSON out. The command line and the packages for other languages
//! share it, so that all of them give the same bytes.
//!
//! ```
//! use faultwire::contract::Stamp;
//! use faultwire::json::{self, Target};
//!
//! let contract = json::builtin("workrail")?;
//! let fault = json::fault(&contract, r#"{"code":"TIMEOUT"}"#, &Stamp::default())?;
//! let envelope = json::render(&fault, &Target::default())?;
//! assert_eq!(
//!     String::from_utf8_lossy(&envelope),
//!     r#"{"code":"TIMEOUT","message":"The operation timed out","retry":{"kind":"retryable_immediate"}}"#,
//! );
//! assert_eq!(json::read(&contract, &envelope, None, None)?.code, "TIMEOUT");
//!
//! let wrong = json::fault(&contract, r#"{"code":"TIMEOUTS"}"#, &Stamp::default()).unwrap_err();
//! assert_eq!(wrong.what(), r#"workrail has no code "TIMEOUTS"; did you mean "TIMEOUT"?"#);
//! # Ok::<(), json::Error>(())
//! ```

mod alerts;
mod audit;
#[cfg(feature = "arguments")]
mod boundary;
mod classify;
mod describe;
mod error;
mod fault;
mod retry;
mod stamp;

#[cfg(feature = "arguments")]
pub use crate::own_codes::of as own_codes;
pub use alerts::{AlertReplay, seconds};
pub use audit::{entry, event, open_log};
#[cfg(feature = "arguments")]
pub use boundary::{Answer, Boundary, Call, Failed, Form, Judged, Pending, Settings, Standing};
pub use classify::{Request, classify};
pub use describe::{code, describe};
pub use error::{Error, ErrorKind, Place};
pub use fault::{Target, View, fault, profile, read, render, report, text_of};
pub use retry::{failure, retry, retry_context, verdict};
pub use stamp::{moment, stamp};

use std::sync::Arc;

use faultwire_contract::{BUILTINS, Contract, Masks, RedactRule, Redactor, nearest};

/// A built-in contract.
pub fn builtin(name: &str) -> Result<Arc<Contract>, Error> {
    faultwire_contract::builtin(name).ok_or_else(|| {
        let names = BUILTINS.iter().map(|builtin| builtin.name);
        let help = match nearest(name, names.clone()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("use one of {}, or name a file", names.collect::<Vec<_>>().join(", ")),
        };
        Error::new(ErrorKind::UnknownContract, "unknown contract", help).at(name)
    })
}

/// The contract in the text of a file; the name is used in errors.
pub fn load(file: &str, text: &str) -> Result<Arc<Contract>, Error> {
    Ok(Arc::new(Contract::load(file, text)?))
}

/// The text without credentials, and without everything else that is not kept by name: `paths`,
/// `addresses`, `frames`, `personal`. The rules of a contract apply, too, if there is one.
///
/// ```
/// let text = "open /srv/a.md with password=hunter2";
/// let safe = faultwire::json::redact(text, ["paths"], None)?;
/// assert_eq!(safe, "open /srv/a.md with password=[redacted]");
/// # Ok::<(), faultwire::json::Error>(())
/// ```
pub fn redact<'k>(
    text: &str,
    keep: impl IntoIterator<Item = &'k str>,
    contract: Option<&Contract>,
) -> Result<String, Error> {
    let redactor = contract.map_or_else(Redactor::default, |known| known.redactor().clone());
    let masks = masks(keep)?;
    Ok(redactor.masking(masks).redact_all(text).into_owned())
}

/// What is masked if these kinds are kept.
pub fn masks<'k>(keep: impl IntoIterator<Item = &'k str>) -> Result<Masks, Error> {
    keep.into_iter().try_fold(Masks::ALL, |masks, name| {
        let kind = Masks::named(name).ok_or_else(|| {
            let help = format!("use one of {}", Masks::ALL);
            Error::new(ErrorKind::Input, "unknown kind of text", help).at(name)
        })?;
        Ok(masks.without(kind))
    })
}

/// Rules of redaction from the text of a file.
pub fn redact_rules(file: &str, text: &str) -> Result<Vec<RedactRule>, Error> {
    Ok(RedactRule::load(file, text)?)
}
