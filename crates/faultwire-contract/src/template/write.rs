//! Writing: the tree flattened to a program of literal bytes and slots.

use super::slot::Slot;
use super::{Defaults, Node, Template};

/// What fills the slots.
pub(crate) trait Fill {
    /// Writes the slot's value as JSON. Writes nothing and says `false` when there is none.
    fn fill(&self, slot: Slot, out: &mut Vec<u8>) -> bool;
}

/// One step of the program.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// A comma, unless the object or list has just been opened.
    Comma,
    /// A value, or these bytes when there is none.
    Slot { slot: Slot, absent: Box<[u8]> },
    /// A member that is left out, its lead too, when there is no value.
    Optional { lead: Box<[u8]>, slot: Slot },
    /// A part that is left out when none of its slots has a value.
    Group(Vec<Op>),
}

impl Template {
    /// Appends the envelope to `out`.
    pub(crate) fn write(&self, source: &impl Fill, out: &mut Vec<u8>) {
        run(&self.program, source, out);
    }
}

/// Says whether any slot had a value.
fn run(program: &[Op], source: &impl Fill, out: &mut Vec<u8>) -> bool {
    let mut any = false;
    for op in program {
        match op {
            Op::Raw(bytes) => out.extend_from_slice(bytes),
            Op::Comma => comma(out),
            Op::Slot { slot, absent } => {
                if source.fill(*slot, out) {
                    any = true;
                } else {
                    out.extend_from_slice(absent);
                }
            }
            Op::Optional { lead, slot } => {
                any |= unless_empty(out, |out| {
                    comma(out);
                    out.extend_from_slice(lead);
                    source.fill(*slot, out)
                });
            }
            Op::Group(part) => any |= unless_empty(out, |out| run(part, source, out)),
        }
    }
    any
}

/// Takes back what `write` wrote when it says that there was nothing to say.
fn unless_empty(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
    let mark = out.len();
    let wrote = write(out);
    if !wrote {
        out.truncate(mark);
    }
    wrote
}

/// No finished value ends with an opening bracket, so the last byte tells.
fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
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
                self.program.push(Op::Slot { slot: *slot, absent: absent.into_bytes().into() });
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
                let lead = key.into_bytes().into();
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
            last.extend_from_slice(bytes);
        } else {
            self.program.push(Op::Raw(bytes.to_vec()));
        }
    }
}
