//! One pass over a line: which message it is, and the few members that can make it a failure.
//! Nothing is built; values are borrowed from the line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What a line is.
pub(super) enum Message<'a> {
    Result(Peek<'a>),
    Error(&'a RawValue),
    /// A request, a notification.
    Other,
    Malformed(&'static str),
}

/// What matters of a result.
#[derive(Default)]
pub(super) struct Peek<'a> {
    pub is_error: bool,
    pub has_content: bool,
    /// The text blocks, still as JSON strings: most results have one.
    first_text: Option<&'a RawValue>,
    more_texts: Vec<&'a RawValue>,
    /// Whether there are blocks that are no text.
    pub other_blocks: bool,
    pub structured: Option<&'a RawValue>,
}

impl<'a> Peek<'a> {
    /// The text blocks, still as JSON strings.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'a RawValue> {
        self.first_text.into_iter().chain(self.more_texts.iter().copied())
    }

    /// The text, when there is just one.
    pub(super) fn only_text(&self) -> Option<&'a RawValue> {
        self.first_text.filter(|_| self.more_texts.is_empty())
    }

    fn push_text(&mut self, text: &'a RawValue) {
        match self.first_text {
            None => self.first_text = Some(text),
            Some(_) => self.more_texts.push(text),
        }
    }
}

pub(super) fn line(bytes: &[u8]) -> Message<'_> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Message::Malformed("no UTF-8");
    };
    let text = text.trim_ascii();
    match text.as_bytes().first() {
        Some(b'{') => {}
        Some(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
            return Message::Malformed("JSON that is no object");
        }
        Some(_) => return Message::Malformed("no JSON"),
        None => return Message::Malformed("an empty line"),
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let envelope = (&mut deserializer).deserialize_map(TopVisitor);
    match envelope.and_then(|top| deserializer.end().map(|()| top)) {
        Ok(top) => top.message(),
        Err(_) => Message::Malformed("no JSON"),
    }
}

#[derive(Default)]
struct Top<'a> {
    method: bool,
    result: Option<Found<'a>>,
    error: Option<&'a RawValue>,
}

impl<'a> Top<'a> {
    fn message(self) -> Message<'a> {
        // JSON-RPC 1 servers write `"error":null` beside a result.
        let error = self.error.filter(|raw| raw.get() != "null");
        match (self.method, self.result, error) {
            (true, _, _) => Message::Other,
            (false, Some(_), Some(_)) => Message::Malformed("both result and error"),
            (false, None, None) => Message::Malformed("neither result nor error"),
            (false, None, Some(error)) => Message::Error(error),
            (false, Some(Found::Object(result)), None) => Message::Result(result),
            (false, Some(Found::NoObject), None) => {
                Message::Malformed("a result that is no object")
            }
        }
    }
}

/// The member `result`.
enum Found<'a> {
    Object(Peek<'a>),
    NoObject,
}

struct TopVisitor;

impl<'a> Visitor<'a> for TopVisitor {
    type Value = Top<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Top<'a>, A::Error> {
        let mut top = Top::default();
        while let Some(key) = map.next_key_seed(Name)? {
            match &*key {
                "result" => top.result = Some(map.next_value_seed(ResultSeed)?),
                "error" => top.error = Some(map.next_value()?),
                "method" => {
                    top.method = true;
                    map.next_value::<IgnoredAny>()?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(top)
    }
}

/// A member's name, borrowed unless it is escaped.
struct Name;

impl<'a> DeserializeSeed<'a> for Name {
    type Value = Cow<'a, str>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for Name {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, name: &'a str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// Visitors that take one kind of value and let every other pass as nothing.
macro_rules! else_nothing {
    ($nothing:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }
        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }
    };
}

/// A result.
struct ResultSeed;

impl<'a> DeserializeSeed<'a> for ResultSeed {
    type Value = Found<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for ResultSeed {
    type Value = Found<'a>;

    else_nothing!(Found::NoObject);

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Found::NoObject)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Found::NoObject)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::NoObject)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut peek = Peek::default();
        while let Some(key) = map.next_key_seed(Name)? {
            match &*key {
                "isError" => peek.is_error = map.next_value_seed(Truth)?,
                "content" => map.next_value_seed(Blocks(&mut peek))?,
                "structuredContent" => peek.structured = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Found::Object(peek))
    }
}

/// `isError`, forgiving: servers write `"true"` and 1 as well.
struct Truth;

impl<'a> DeserializeSeed<'a> for Truth {
    type Value = bool;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Truth {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<bool, E> {
        Ok(truth)
    }

    fn visit_i64<E>(self, n: i64) -> Result<bool, E> {
        Ok(n != 0)
    }

    fn visit_u64<E>(self, n: u64) -> Result<bool, E> {
        Ok(n != 0)
    }

    fn visit_f64<E>(self, n: f64) -> Result<bool, E> {
        Ok(n != 0.0)
    }

    fn visit_str<E>(self, word: &str) -> Result<bool, E> {
        Ok(word.eq_ignore_ascii_case("true"))
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(true)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(true)
    }
}

/// The content list, into the peek.
struct Blocks<'p, 'a>(&'p mut Peek<'a>);

impl<'a> DeserializeSeed<'a> for Blocks<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Blocks<'_, 'a> {
    type Value = ();

    else_nothing!(());

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.has_content = true;
        while let Some(text) = seq.next_element_seed(Block)? {
            match text {
                Some(text) => self.0.push_text(text),
                None => self.0.other_blocks = true,
            }
        }
        Ok(())
    }
}

/// One block: its text, still as a JSON string, when it is a text block.
struct Block;

impl<'a> DeserializeSeed<'a> for Block {
    type Value = Option<&'a RawValue>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Block {
    type Value = Option<&'a RawValue>;

    else_nothing!(None);

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut text: Option<&'a RawValue> = None;
        while let Some(key) = map.next_key_seed(Name)? {
            if key == "text" {
                text = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(text.filter(|raw| raw.get().starts_with('"')))
    }
}
