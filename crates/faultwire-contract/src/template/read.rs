//! Reading: the same tree, walked along with the JSON. Strict: a member more or less, or a
//! literal that differs, is not this envelope.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::slot::Slot;
use super::{Member, Node, Template};
use crate::report::Report;

/// What an envelope says: the report, and facts that the contract derives from the code, not yet
/// compared with the contract.
#[derive(Debug, Default)]
pub(crate) struct Reading<'de> {
    pub report: Report,
    pub category: Option<Cow<'de, str>>,
    pub retry_kind: Option<Cow<'de, str>>,
    pub alert: Option<Cow<'de, str>>,
    pub problem_type: Option<Cow<'de, str>>,
    pub title: Option<Cow<'de, str>>,
    pub action: Option<Cow<'de, str>>,
    pub retryable: Option<bool>,
    pub after_s: Option<u64>,
}

impl Template {
    pub(crate) fn read<'de>(&self, json: &'de [u8]) -> Result<Reading<'de>, serde_json::Error> {
        let mut reading = Reading::default();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        Seed { node: &self.root, reading: &mut reading }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(reading)
    }
}

impl Template {
    /// Reads a malformed envelope as far as possible: every fact at its place and in the right
    /// form.
    pub(crate) fn glean<'de>(&self, body: &'de Value) -> Reading<'de> {
        let mut reading = Reading::default();
        reading.glean(&self.root, body);
        reading
    }
}

struct Seed<'t, 'r, 'de> {
    node: &'t Node,
    reading: &'r mut Reading<'de>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.node {
            Node::Literal(wanted) => literal(wanted, deserializer),
            Node::Slot(slot) => self.reading.take(*slot, deserializer),
            Node::Object(members) => {
                deserializer.deserialize_map(ObjectVisitor { members, reading: self.reading })
            }
            Node::List(items) => {
                deserializer.deserialize_seq(ListVisitor { items, reading: self.reading })
            }
        }
    }
}

fn literal<'de, D: Deserializer<'de>>(wanted: &Value, deserializer: D) -> Result<(), D::Error> {
    let found = Value::deserialize(deserializer)?;
    if found == *wanted {
        return Ok(());
    }
    Err(D::Error::custom(format_args!("expected {wanted}")))
}

struct ObjectVisitor<'t, 'r, 'de> {
    members: &'t [Member],
    reading: &'r mut Reading<'de>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0u64;
        let mut expected = 0;
        while let Some(i) = map.next_key_seed(Key { members: self.members, expected })? {
            if seen & (1 << i) != 0 {
                return Err(A::Error::custom(format_args!("{:?} twice", self.members[i].key)));
            }
            seen |= 1 << i;
            expected = i + 1;
            let node = &self.members[i].node;
            map.next_value_seed(Seed { node, reading: &mut *self.reading })?;
        }
        let missing = |(i, m): &(usize, &Member)| !m.optional && seen & (1 << i) == 0;
        match self.members.iter().enumerate().find(missing) {
            Some((_, member)) => Err(A::Error::custom(format_args!("no member {:?}", member.key))),
            None => Ok(()),
        }
    }
}

/// Finds the member of a key. Members mostly are in the template's order, so the next one is tried
/// first.
struct Key<'t> {
    members: &'t [Member],
    expected: usize,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<usize, E> {
        if self.members.get(self.expected).is_some_and(|m| m.key == key) {
            return Ok(self.expected);
        }
        self.members
            .iter()
            .position(|m| m.key == key)
            .ok_or_else(|| E::custom(format_args!("unknown member {key:?}")))
    }
}

struct ListVisitor<'t, 'r, 'de> {
    items: &'t [Node],
    reading: &'r mut Reading<'de>,
}

impl<'de> Visitor<'de> for ListVisitor<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.items.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for (i, node) in self.items.iter().enumerate() {
            let seed = Seed { node, reading: &mut *self.reading };
            seq.next_element_seed(seed)?.ok_or_else(|| A::Error::invalid_length(i, &"more"))?;
        }
        match seq.next_element::<serde::de::IgnoredAny>()? {
            Some(_) => Err(A::Error::custom("the list is too long")),
            None => Ok(()),
        }
    }
}

impl<'de> Reading<'de> {
    fn glean(&mut self, node: &Node, value: &'de Value) {
        match (node, value) {
            // What has another form is left out.
            (Node::Slot(slot), value) => drop(self.take(*slot, value)),
            (Node::Object(members), Value::Object(found)) => {
                for member in members {
                    if let Some(value) = found.get(&*member.key) {
                        self.glean(&member.node, value);
                    }
                }
            }
            (Node::List(items), Value::Array(found)) => {
                items.iter().zip(found).for_each(|(node, value)| self.glean(node, value));
            }
            _ => {}
        }
    }

    /// Reads the slot's value into its place; `null` is nothing.
    fn take<D: Deserializer<'de>>(&mut self, slot: Slot, d: D) -> Result<(), D::Error> {
        let report = &mut self.report;
        match slot {
            Slot::Code => report.code = String::deserialize(d)?,
            Slot::Message => report.message = Some(words(d)?),
            Slot::Title => self.title = Some(borrowed(d)?),
            Slot::Category => self.category = Some(borrowed(d)?),
            Slot::Action => self.action = Some(borrowed(d)?),
            Slot::Alert => self.alert = Some(borrowed(d)?),
            Slot::ProblemType => self.problem_type = Some(borrowed(d)?),
            Slot::RetryKind => self.retry_kind = Some(borrowed(d)?),
            Slot::Retryable => self.retryable = Some(bool::deserialize(d)?),
            Slot::RetryAfterS => self.after_s = Option::deserialize(d)?,
            Slot::RetryAfterMs => report.retry_after_ms = Option::deserialize(d)?,
            Slot::Status => report.status = Some(u16::deserialize(d)?),
            Slot::Incident => report.incident = Some(words(d)?),
            Slot::Timestamp => report.timestamp = Some(words(d)?),
            Slot::Trace => report.trace = Option::deserialize(d)?,
            Slot::Condition => report.condition = Option::deserialize(d)?,
            Slot::Origin => report.origin = Option::deserialize(d)?,
            Slot::Outcome => report.outcome = Option::deserialize(d)?,
            Slot::Tool => report.tool = Option::deserialize(d)?,
            Slot::Method => report.method = Option::deserialize(d)?,
            Slot::Next => report.next = Some(words(d)?),
            Slot::Suggestion => report.suggestion = Option::deserialize(d)?,
            Slot::Details => report.details = Option::deserialize(d)?,
            Slot::Data => report.data = Option::deserialize(d)?,
            Slot::Cause => report.cause = Option::deserialize(d)?,
            Slot::Stack => report.stack = Option::deserialize(d)?,
            Slot::Invariant => report.invariant = Option::deserialize(d)?,
            Slot::RateLimitReset => report.rate_limit_reset = Option::deserialize(d)?,
            Slot::PolicyDecision => report.policy_decision = Option::deserialize(d)?,
            Slot::SessionId => report.session.id = Option::deserialize(d)?,
            Slot::SessionClient => report.session.client = Option::deserialize(d)?,
            Slot::SessionRole => report.session.role = Option::deserialize(d)?,
            Slot::SessionWorkspaceRoot => report.session.workspace_root = Option::deserialize(d)?,
            Slot::SessionPhase => report.session.phase = Option::deserialize(d)?,
            Slot::SessionPlanHash => report.session.plan_hash = Option::deserialize(d)?,
            Slot::MetaToolVersion => report.meta.tool_version = Option::deserialize(d)?,
            Slot::MetaElapsedMs => report.meta.elapsed_ms = Option::deserialize(d)?,
            Slot::MetaMode => report.meta.mode = Option::deserialize(d)?,
            Slot::MetaApprovalMode => report.meta.approval_mode = Option::deserialize(d)?,
        }
        Ok(())
    }
}

fn words<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    let text = String::deserialize(d)?;
    if text.is_empty() {
        return Err(D::Error::custom("an empty string"));
    }
    Ok(text)
}

fn borrowed<'de, D: Deserializer<'de>>(d: D) -> Result<Cow<'de, str>, D::Error> {
    d.deserialize_str(BorrowedVisitor)
}

struct BorrowedVisitor;

impl<'de> Visitor<'de> for BorrowedVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
