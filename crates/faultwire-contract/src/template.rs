//! A template: the shape of an envelope, compiled once, used to write and to read.
//!
//! The text is JSON. `"$x"` is a slot: `null` or the contract's default if it has no value. `"$x?"`
//! is left out if it has no value, and a member `"key?": {…}` if none of its slots has a value.
//! Everything else is literal. The order is kept.

pub(crate) mod read;
pub(crate) mod slot;
pub(crate) mod write;

use std::collections::HashMap;

use serde_json::Value;

use crate::mistake::nearest;
use slot::Slot;
use write::Op;

/// A compiled template.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub root: Node,
    program: Vec<Op>,
    slots: Vec<Slot>,
    /// What every envelope has somewhere: its fixed keys and words, the longest first.
    marks: Vec<String>,
}

/// The shape as a tree, from which envelopes are read and the schema is made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Literal(Value),
    Slot(Slot),
    Object(Vec<Member>),
    List(Vec<Node>),
}

/// One member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub key: String,
    pub optional: bool,
    pub node: Node,
}

/// Why a template cannot be compiled.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum TemplateError {
    #[error("the template is not valid JSON: {0}")]
    NotJson(String),
    #[error("the template has an unknown slot \"${name}\"")]
    UnknownSlot { name: String, near: Option<&'static str> },
    #[error("the template has \"${0}?\" in a list, which could not be read back")]
    OptionalInList(&'static str),
    #[error("the template has a key that ends in \"?\" for the slot \"${0}\"")]
    OptionalKey(&'static str),
    #[error("the template is not an object or a list")]
    NotComposite,
    #[error("the template repeats the member {0:?}")]
    Repeated(String),
    #[error("an object of the template has more than 64 members")]
    TooWide,
}

impl TemplateError {
    /// What the author should do.
    pub(crate) fn help(&self) -> String {
        match self {
            Self::NotJson(_) => "write the envelope as JSON, with \"$slot\" strings".to_owned(),
            Self::UnknownSlot { near: Some(near), .. } => format!("did you mean \"${near}\"?"),
            Self::UnknownSlot { near: None, .. } => {
                let names: Vec<_> = Slot::ALL.iter().map(|s| s.name()).collect();
                format!("the slots are {}", names.join(", "))
            }
            Self::OptionalInList(name) => format!("write \"${name}\", which is null when empty"),
            Self::OptionalKey(name) => format!("write \"${name}?\" as the value"),
            Self::NotComposite => "an envelope is at least {\"code\":\"$code\"}".to_owned(),
            Self::Repeated(_) => "use each member of an object only once".to_owned(),
            Self::TooWide => "nest some of the members".to_owned(),
        }
    }
}

/// What slots without a value are filled with, by slot name.
pub(crate) type Defaults = HashMap<&'static str, Value>;

impl Template {
    pub(crate) fn compile(text: &str, defaults: &Defaults) -> Result<Self, TemplateError> {
        let json = serde_json::from_str::<Shape>(text)
            .map_err(|e| TemplateError::NotJson(e.to_string()))?;
        let root = parse(json)?;
        if !matches!(root, Node::Object(_) | Node::List(_)) {
            return Err(TemplateError::NotComposite);
        }
        let mut slots = Vec::new();
        collect(&root, &mut slots);
        let mut marks = Vec::new();
        mark(&root, &mut marks);
        marks.sort_by_key(|m| std::cmp::Reverse(m.len()));
        Ok(Self { program: write::flatten(&root, defaults), root, slots, marks })
    }

    /// Whether the bytes can hold an envelope of this shape, escaped or not: a cheap look.
    pub(crate) fn may_match(&self, bytes: &[u8]) -> bool {
        self.marks.iter().all(|m| memchr::memmem::find(bytes, m.as_bytes()).is_some())
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn uses(&self, slot: Slot) -> bool {
        self.slots.contains(&slot)
    }
}

/// JSON with its members in order and repeated ones still there: `Value` would drop them.
#[derive(Debug)]
enum Shape {
    Leaf(Value),
    Object(Vec<(String, Shape)>),
    List(Vec<Shape>),
}

fn parse(shape: Shape) -> Result<Node, TemplateError> {
    match shape {
        Shape::Leaf(Value::String(s)) => match s.strip_prefix('$') {
            Some(name) => Ok(Node::Slot(find(name)?)),
            None => Ok(Node::Literal(Value::String(s))),
        },
        Shape::Leaf(other) => Ok(Node::Literal(other)),
        Shape::List(items) => {
            items.into_iter().map(parse_item).collect::<Result<_, _>>().map(Node::List)
        }
        Shape::Object(members) => parse_object(members),
    }
}

fn parse_item(shape: Shape) -> Result<Node, TemplateError> {
    if let Shape::Leaf(Value::String(s)) = &shape
        && let Some(name) = s.strip_prefix('$').and_then(|s| s.strip_suffix('?'))
    {
        return Err(TemplateError::OptionalInList(find(name)?.name()));
    }
    parse(shape)
}

fn parse_object(members: Vec<(String, Shape)>) -> Result<Node, TemplateError> {
    let mut parsed: Vec<Member> = Vec::with_capacity(members.len());
    for (key, shape) in members {
        let member = parse_member(key, shape)?;
        if parsed.iter().any(|m| m.key == member.key) {
            return Err(TemplateError::Repeated(member.key));
        }
        parsed.push(member);
    }
    if parsed.len() > 64 {
        return Err(TemplateError::TooWide);
    }
    Ok(Node::Object(parsed))
}

fn parse_member(key: String, shape: Shape) -> Result<Member, TemplateError> {
    if let Shape::Leaf(Value::String(s)) = &shape
        && let Some(name) = s.strip_prefix('$').and_then(|s| s.strip_suffix('?'))
    {
        return Ok(Member { key, optional: true, node: Node::Slot(find(name)?) });
    }
    let node = parse(shape)?;
    match (key.strip_suffix('?'), &node) {
        (Some(bare), Node::Object(_) | Node::List(_)) => {
            Ok(Member { key: bare.to_owned(), optional: true, node })
        }
        (Some(_), Node::Slot(slot)) => Err(TemplateError::OptionalKey(slot.name())),
        _ => Ok(Member { key, optional: false, node }),
    }
}

fn find(name: &str) -> Result<Slot, TemplateError> {
    Slot::from_name(name).ok_or_else(|| TemplateError::UnknownSlot {
        name: name.to_owned(),
        near: nearest(name, Slot::ALL.iter().map(|s| s.name())),
    })
}

fn collect(node: &Node, slots: &mut Vec<Slot>) {
    match node {
        Node::Literal(_) => {}
        Node::Slot(slot) => slots.push(*slot),
        Node::Object(members) => members.iter().for_each(|m| collect(&m.node, slots)),
        Node::List(items) => items.iter().for_each(|n| collect(n, slots)),
    }
}

fn is_plain(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn mark(node: &Node, marks: &mut Vec<String>) {
    match node {
        // Other characters may be escaped on the wire.
        Node::Literal(Value::String(word)) if is_plain(word) => marks.push(word.clone()),
        Node::Literal(_) | Node::Slot(_) => {}
        Node::List(items) => items.iter().for_each(|n| mark(n, marks)),
        Node::Object(members) => {
            for member in members.iter().filter(|m| !m.optional) {
                if is_plain(&member.key) {
                    marks.push(member.key.clone());
                }
                mark(&member.node, marks);
            }
        }
    }
}

impl<'de> serde::Deserialize<'de> for Shape {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> serde::de::Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Shape, E> {
        Ok(Shape::Leaf(v.into()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Shape, E> {
        Ok(Shape::Leaf(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Shape, E> {
        Ok(Shape::Leaf(v.into()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Shape, E> {
        Ok(Shape::Leaf(v.into()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Shape, E> {
        Ok(Shape::Leaf(v.into()))
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Leaf(Value::Null))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Shape::List(items))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Shape::Object(members))
    }
}
