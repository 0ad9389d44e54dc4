//! Records as their readers see them: those parts that one looks for, and the line itself.

use std::borrow::Cow;
use std::io;

use serde::Deserialize;

use crate::audit::lines::{Lines, Shape};
use crate::audit::segments;
use crate::audit::storage::Storage;

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

    /// What the client was told.
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

/// Calls `each` with every whole line of a log, from the oldest on. Lines that are no records are
/// given, too: whether a log holds is for [`verify`](crate::audit::verify) to say. An error of
/// `each` ends it. What is written meanwhile may or may not be among them.
pub fn each_line<E>(
    storage: &dyn Storage,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> io::Result<Result<(), E>> {
    for number in segments::present(storage)? {
        let Some(segment) = segments::open(storage, number)? else { continue };
        let mut lines = Lines::new(segment.file);
        while let Some(line) = lines.next_line()? {
            if line.shape == Shape::Whole
                && let Err(stop) = each(line.raw)
            {
                return Ok(Err(stop));
            }
        }
    }
    Ok(Ok(()))
}
