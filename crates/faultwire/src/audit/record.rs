//! What a line says after its head: a failure, or something that happened to the log itself.

use std::borrow::Cow;

use faultwire_contract::{Fault, Origin, Outcome, Redactor, Report, bound, shorten_home};
use serde::Serialize;
use serde_json::Value;

use crate::audit::call::Call;
use crate::audit::failure::{FaultRecord, PrivateSide};
use crate::audit::hash::Hash;
use crate::audit::json_writer;
use crate::audit::line::LONGEST_LINE;
use crate::audit::segments::SEGMENT;
use crate::edge;

/// The body of one record, ready to be written: everything that does not depend on its place in
/// the log.
///
/// ```
/// use faultwire::audit::{Call, Entry};
/// use faultwire::contract::{Fault, Report, Stamp, builtin};
///
/// let contract = builtin("owlclaw").unwrap();
/// let fault = Fault::new(&contract, Report::new("runtime.timeout"), &Stamp::default())?;
/// let entry = Entry::fault(&fault, &Call::default());
/// assert!(entry.as_str().starts_with(r#""type":"fault","contract":"owlclaw""#));
/// # Ok::<(), faultwire::contract::FaultError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry(Vec<u8>);

impl Entry {
    /// A failure: the fault in its JSON form, with origin and outcome always (A6); its private side
    /// without credentials; and what is known about the call.
    #[must_use]
    pub fn fault(fault: &Fault, call: &Call) -> Self {
        let contract = fault.contract();
        let call = &call.safe(contract.redactor());
        let record = FaultRecord {
            contract: &contract.name,
            contract_version: &contract.version,
            category: &fault.code().category,
            alert: fault.code().alert_of(fault.public().origin),
            fault: &recorded(fault),
            private: PrivateSide::of(fault, PRIVATE_BYTES, PRIVATE_DEPTH),
            call,
        };
        Self::failure(&record).filter(Self::fits).unwrap_or_else(|| Self::shortened(&record))
    }

    /// Something notable that is not a failure, such as a late reply. The name is a short word; the
    /// facts are any JSON, from which credentials are removed.
    #[must_use]
    pub fn event(name: &str, incident: Option<&str>, facts: &Value, redactor: &Redactor) -> Self {
        let cut = |facts| {
            let shallow = bound::json_unredacted(facts, EVENT_DEPTH, 2 * EVENT_BYTES);
            bound::json(redactor.redact_json_credentials(shallow), EVENT_DEPTH, EVENT_BYTES)
        };
        let name = bound::cut(name, 64);
        let incident = incident.map(|i| bound::cut(i, 256));
        let facts = cut(facts.clone());
        let event = EventRecord {
            r#type: "event",
            name: &name,
            incident: incident.as_deref(),
            facts: &facts,
        };
        Self::of(&event).unwrap_or_else(Self::unwritable)
    }

    /// The record's members as JSON, without the braces around the whole line.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn segment(number: u64, before: Option<&Before>) -> Self {
        let record = SegmentRecord { r#type: SEGMENT, segment: number, before };
        Self::of(&record).unwrap_or_else(Self::unwritable)
    }

    pub(crate) fn recovery(torn: &Torn) -> Self {
        Self::of(&RecoveryRecord { r#type: "recovery", torn }).unwrap_or_else(Self::unwritable)
    }

    pub(crate) fn gap(gap: &Gap) -> Self {
        Self::of(&GapRecord { r#type: "gap", gap }).unwrap_or_else(Self::unwritable)
    }

    fn of<T: Serialize>(record: &T) -> Option<Self> {
        let mut json = Vec::with_capacity(1024);
        json_writer::write(record, &mut json).ok()?;
        json.remove(0);
        Some(Self::with_short_homes(json))
    }

    fn failure(record: &FaultRecord<'_>) -> Option<Self> {
        let mut json = Vec::with_capacity(1536);
        record.write(&mut json).ok()?;
        Some(Self::with_short_homes(json))
    }

    /// A record does not show whose home directory it was (U2).
    fn with_short_homes(json: Vec<u8>) -> Self {
        let short =
            str::from_utf8(&json).ok().and_then(|text| match shorten_home(text, edge::home()) {
                Cow::Owned(short) => Some(short.into_bytes()),
                Cow::Borrowed(_) => None,
            });
        Self(short.unwrap_or(json))
    }

    fn fits(&self) -> bool {
        self.0.len() <= LONGEST_LINE - ROOM_FOR_HEAD
    }

    /// A contract may allow more text than fits in a line. Then long parts are cut, and the record
    /// still shows who, what and when.
    fn shortened(record: &FaultRecord<'_>) -> Self {
        let short = |v: &Value| bound::json(v.clone(), 4, SHORT_BYTES);
        let mut report = record.fault.clone();
        report.details = report.details.as_ref().map(short);
        report.data = report.data.as_ref().map(short);
        report.cause = report.cause.as_ref().map(short);
        report.stack = report.stack.map(|s| bound::cut(&s, SHORT_BYTES).into_owned());
        report.message = report.message.map(|m| bound::cut(&m, SHORT_BYTES).into_owned());
        report.suggestion = report.suggestion.map(|s| bound::cut(&s, SHORT_BYTES).into_owned());
        let private = PrivateSide::default();
        let record = FaultRecord { private, fault: &report, ..*record };
        Self::failure(&record).filter(Self::fits).unwrap_or_else(Self::unwritable)
    }

    /// Entries are always valid JSON. If one is not, the log records that.
    fn unwritable() -> Self {
        Self(br#""type":"event","name":"unwritable"}"#.to_vec())
    }
}

/// How much of a private text is written down.
const PRIVATE_BYTES: usize = 16 * 1024;
/// How much of each part of a record that is too long is kept.
const SHORT_BYTES: usize = 4 * 1024;
const EVENT_BYTES: usize = 16 * 1024;
const EVENT_DEPTH: usize = 16;
const PRIVATE_DEPTH: usize = 16;
const ROOM_FOR_HEAD: usize = 512;

/// The fault's JSON. Without an origin, the tool raised it; then how far the call got is unknown.
fn recorded(fault: &Fault) -> Cow<'_, Report> {
    let mut report = Cow::Borrowed(fault.public());
    if report.origin.is_none() || report.outcome.is_none() {
        let report = report.to_mut();
        report.origin.get_or_insert(Origin::Upstream);
        report.outcome.get_or_insert(Outcome::MaybeExecuted);
    }
    report
}

#[derive(Serialize)]
struct EventRecord<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    incident: Option<&'a str>,
    facts: &'a Value,
}

#[derive(Serialize)]
struct SegmentRecord<'a> {
    r#type: &'static str,
    segment: u64,
    before: Option<&'a Before>,
}

/// What a segment's first line says about the lines before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Before {
    /// How many records there were.
    pub records: u64,
    /// The hash of the last line.
    pub last: String,
    /// The peaks of the Merkle tree over them, the largest first.
    pub peaks: Vec<String>,
}

impl Before {
    pub(crate) fn new(records: u64, last: &Hash, peaks: &[Hash]) -> Self {
        let peaks = peaks.iter().map(ToString::to_string).collect();
        Self { records, last: last.to_string(), peaks }
    }
}

#[derive(Serialize)]
struct RecoveryRecord<'a> {
    r#type: &'static str,
    torn: &'a Torn,
}

/// Bytes at the end of a segment that were no whole record when the log was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Torn {
    /// How many there were.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
    /// The file that keeps them.
    pub moved_to: String,
}

#[derive(Serialize)]
struct GapRecord<'a> {
    r#type: &'static str,
    gap: &'a Gap,
}

/// Failures that were answered without being recorded, because the log is set to fail open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// How many.
    pub missed: u64,
    /// Since when.
    pub since: String,
    /// What was wrong.
    pub why: String,
}
