//! Records as their readers see them: those parts that one looks for, and the line itself.

use std::borrow::Cow;
use std::convert::Infallible;

use serde::Deserialize;

use crate::audit::reader::read_all;
use crate::audit::storage::Storage;
use crate::audit::verify::Finding;

/// What one looks for in a record. Members that are not here stay in the line.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Summary<'a> {
    /// The record's number.
    pub seq: u64,
    /// When it was written.
    #[serde(borrow)]
    pub ts: Cow<'a, str>,
    /// What it is: `fault`, `segment`, `recovery`, `gap`, `event`.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// The contract that the code is one of.
    #[serde(borrow, default)]
    pub contract: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    fault: FaultPart<'a>,
    #[serde(borrow, default)]
    call: CallPart<'a>,
    #[serde(borrow, default)]
    incident: Option<Cow<'a, str>>,
    /// The name of an event.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct FaultPart<'a> {
    #[serde(borrow, default)]
    code: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    origin: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    outcome: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    incident: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session: CallPart<'a>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct CallPart<'a> {
    #[serde(borrow, default)]
    client: Option<Cow<'a, str>>,
}

impl<'a> Summary<'a> {
    /// Reads a line.
    pub fn read(raw: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(raw)
    }

    /// The code of the failure.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.fault.code.as_deref()
    }

    /// The message that the client got.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.fault.message.as_deref()
    }

    /// The tool that was called.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.fault.tool.as_deref()
    }

    /// Whose failure it was.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.fault.origin.as_deref()
    }

    /// How far the call got.
    #[must_use]
    pub fn outcome(&self) -> Option<&str> {
        self.fault.outcome.as_deref()
    }

    /// The incident that it belongs to.
    #[must_use]
    pub fn incident(&self) -> Option<&str> {
        self.fault.incident.as_deref().or(self.incident.as_deref())
    }

    /// Who called.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.call.client.as_deref().or(self.fault.session.client.as_deref())
    }
}

/// Calls `each` with every record of a log, the oldest first, after the whole log was verified: no
/// record of an invalid log is passed on. Older segments may be archived, and torn bytes at the end
/// are skipped. An error of `each` stops it. Records that are written meanwhile are not included.
pub fn each_line<E>(
    storage: &dyn Storage,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Result<(), E>, Box<Finding>> {
    let mut checked = 0_u64;
    let Ok(()) = read_all(storage, |_| {
        checked += 1;
        Ok::<_, Infallible>(())
    })?;
    read_all(storage, |line| {
        let Some(left) = checked.checked_sub(1) else { return Ok(()) };
        checked = left;
        each(line.raw)
    })
}
