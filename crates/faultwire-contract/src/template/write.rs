//! Writing: the tree flattened to a program of literal bytes and slots.

use super::slot::Slot;
use super::{Defaults, Node, Template};
use crate::json_escape::escape;

/// What fills the slots.
pub(crate) trait Fill {
    /// Writes the slot's value as JSON. Writes nothing and returns `false` if there is none.
    fn fill(&self, slot: Slot, out: &mut Vec<u8>) -> bool;
}

/// One step of the program.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Bytes as they are.
    Raw(Literal),
    /// A comma, unless the object or list has just been opened.
    Comma,
    /// A value, or these bytes if there is none.
    Slot { slot: Slot, absent: Literal },
    /// A member that is left out, including the bytes before it, if there is no value.
    Optional { lead: Literal, slot: Slot },
    /// A part that is left out when none of its slots has a value.
    Group(Vec<Op>),
}

/// Bytes that are the same in every envelope, and how they stand in a JSON text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Literal {
    json: Vec<u8>,
    text: Vec<u8>,
}

impl Literal {
    fn push(&mut self, json: &[u8]) {
        self.json.extend_from_slice(json);
        escape(json, &mut self.text);
    }
}

impl From<&[u8]> for Literal {
    fn from(json: &[u8]) -> Self {
        let mut literal = Self::default();
        literal.push(json);
        literal
    }
}

/// What an envelope is written on.
pub(crate) trait Page {
    /// The state of the writer.
    type Mark: Copy;

    /// How much JSON there is.
    fn len(&self) -> usize;
    fn literal(&mut self, literal: &Literal);
    /// A comma, unless the object or list has just been opened.
    fn comma(&mut self);
    /// A value. If there is none, it writes nothing and returns false.
    fn value(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool;
    fn mark(&self) -> Self::Mark;
    /// Removes everything after the mark.
    fn back_to(&mut self, mark: Self::Mark);
}

impl Page for Vec<u8> {
    type Mark = usize;

    fn len(&self) -> usize {
        self.len()
    }

    fn literal(&mut self, literal: &Literal) {
        self.extend_from_slice(&literal.json);
    }

    /// No complete value ends with an opening bracket, so the last byte shows it.
    fn comma(&mut self) {
        if !matches!(self.last(), Some(b'{' | b'[')) {
            self.push(b',');
        }
    }

    fn value(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        write(self)
    }

    fn mark(&self) -> usize {
        self.len()
    }

    fn back_to(&mut self, mark: usize) {
        self.truncate(mark);
    }
}

/// JSON, and the same JSON escaped as the inside of a JSON string. Most of an envelope is constant,
/// so this is cheaper than escaping it afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Both {
    pub json: Vec<u8>,
    pub text: Vec<u8>,
}

impl Page for Both {
    type Mark = (usize, usize);

    fn len(&self) -> usize {
        self.json.len()
    }

    fn literal(&mut self, literal: &Literal) {
        self.json.extend_from_slice(&literal.json);
        self.text.extend_from_slice(&literal.text);
    }

    fn comma(&mut self) {
        // In a text, nothing that opens is escaped either.
        self.json.comma();
        self.text.comma();
    }

    fn value(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let from = self.json.len();
        let wrote = write(&mut self.json);
        escape(&self.json[from..], &mut self.text);
        wrote
    }

    fn mark(&self) -> (usize, usize) {
        (self.json.len(), self.text.len())
    }

    fn back_to(&mut self, (json, text): (usize, usize)) {
        self.json.truncate(json);
        self.text.truncate(text);
    }
}

impl Template {
    /// Appends the envelope to `out`.
    pub(crate) fn write(&self, source: &impl Fill, out: &mut impl Page) {
        run(&self.program, source, out);
    }
}

/// Says whether any slot had a value.
fn run(program: &[Op], source: &impl Fill, out: &mut impl Page) -> bool {
    let mut any = false;
    for op in program {
        match op {
            Op::Raw(literal) => out.literal(literal),
            Op::Comma => out.comma(),
            Op::Slot { slot, absent } => {
                if out.value(|out| source.fill(*slot, out)) {
                    any = true;
                } else {
                    out.literal(absent);
                }
            }
            Op::Optional { lead, slot } => {
                any |= unless_empty(out, |out| {
                    out.comma();
                    out.literal(lead);
                    out.value(|out| source.fill(*slot, out))
                });
            }
            Op::Group(part) => any |= unless_empty(out, |out| run(part, source, out)),
        }
    }
    any
}

/// Takes back what `write` wrote when it says that there was nothing to say.
fn unless_empty<P: Page>(out: &mut P, write: impl FnOnce(&mut P) -> bool) -> bool {
    let mark = out.mark();
    let wrote = write(out);
    if !wrote {
        out.back_to(mark);
    }
    wrote
}

pub(super) fn flatten(root: &Node, defaults: &Defaults) -> Vec<Op> {
    let mut flat = Flat { program: Vec::new(), defaults };
    flat.node(root);
    flat.program
}

struct Flat<'d> {
    program: Vec<Op>,
    defaults: &'d Defaults,
}

impl Flat<'_> {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Literal(value) => self.raw(value.to_string().as_bytes()),
            Node::Slot(slot) => {
                let absent =
                    self.defaults.get(slot.name()).map_or("null".into(), ToString::to_string);
                self.program.push(Op::Slot { slot: *slot, absent: absent.as_bytes().into() });
            }
            Node::List(items) => {
                self.raw(b"[");
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        self.raw(b",");
                    }
                    self.node(item);
                }
                self.raw(b"]");
            }
            Node::Object(members) => {
                self.raw(b"{");
                let mut comma_is_certain = false;
                for (i, member) in members.iter().enumerate() {
                    self.member(member, i == 0, comma_is_certain);
                    comma_is_certain |= !member.optional;
                }
                self.raw(b"}");
            }
        }
    }

    fn member(&mut self, member: &super::Member, first: bool, comma_is_certain: bool) {
        let key = format!("{}:", serde_json::Value::from(member.key.as_str()));
        match (&member.node, member.optional) {
            (Node::Slot(slot), true) => {
                let lead = key.as_bytes().into();
                self.program.push(Op::Optional { lead, slot: *slot });
            }
            (node, true) => {
                let mut group = Flat { program: vec![Op::Comma], defaults: self.defaults };
                group.raw(key.as_bytes());
                group.node(node);
                self.program.push(Op::Group(group.program));
            }
            (node, false) => {
                if comma_is_certain {
                    self.raw(b",");
                } else if !first {
                    self.program.push(Op::Comma);
                }
                self.raw(key.as_bytes());
                self.node(node);
            }
        }
    }

    /// Literal bytes next to each other become one step.
    fn raw(&mut self, bytes: &[u8]) {
        if let Some(Op::Raw(last)) = self.program.last_mut() {
            last.push(bytes);
        } else {
            self.program.push(Op::Raw(bytes.into()));
        }
    }
}
