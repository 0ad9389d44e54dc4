//! A closer look at a line that is not as most are: strictly what JSON allows, and what servers
//! make of it. What was seen before the line turned out to be broken is kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::peek::{CUT_OFF, Found, Judged, Line, Peek, Seen, TOP, Top};
use crate::protocol::{BLOCK, RESULT};

/// Looks at an object.
pub(super) fn read(text: &str) -> Line<'_> {
    let mut top = Top::default();
    let mut judged = Judged::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = (&mut deserializer).deserialize_map(TopVisitor(&mut top, &mut judged));
    top.judge(judged);
    match read.and_then(|()| deserializer.end()) {
        Ok(()) => {
            if let Some(Found::Object(peek)) = &mut top.result {
                let is_bare = !peek.has_content && peek.structured.is_none();
                peek.bare = is_bare.then(|| result_of(text)).flatten();
            }
            top.line(text)
        }
        Err(e) if e.is_eof() => top.broken(text, CUT_OFF),
        Err(_) => top.broken(text, "no JSON"),
    }
}

/// All of the result, as it is written.
fn result_of(text: &str) -> Option<&str> {
    #[derive(serde::Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    serde_json::from_str::<Reply<'_>>(text).ok().map(|reply| reply.result.get())
}

struct TopVisitor<'t, 'a>(&'t mut Top<'a>, &'t mut Judged);

impl<'a> Visitor<'a> for TopVisitor<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let top = self.0;
        let mut seen = Seen::default();
        while let Some(key) = map.next_key_seed(Name)? {
            match &*key {
                "id" => top.twice |= top.id.replace(map.next_value_seed(Raw)?).is_some(),
                "result" => {
                    top.twice |= top.result.replace(map.next_value_seed(ResultSeed)?).is_some();
                }
                "error" => top.twice |= top.error.replace(map.next_value_seed(Raw)?).is_some(),
                "method" => top.twice |= top.method.replace(map.next_value_seed(Raw)?).is_some(),
                "params" => top.twice |= top.params.replace(map.next_value_seed(Raw)?).is_some(),
                other => {
                    seen.any(other, &TOP, self.1);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A value, as it is written.
struct Raw;

impl<'a> DeserializeSeed<'a> for Raw {
    type Value = &'a str;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        <&RawValue>::deserialize(deserializer).map(RawValue::get)
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

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Found::Null)
    }

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
        let mut seen = Seen::default();
        while let Some(key) = map.next_key_seed(Name)? {
            seen.any(&key, &RESULT, &mut peek.names);
            match &*key {
                "isError" => peek.is_error = map.next_value_seed(Truth)?,
                "content" => map.next_value_seed(Blocks(&mut peek))?,
                "structuredContent" => peek.structured = Some(map.next_value_seed(Raw)?),
                "is_error" => peek.says_error |= map.next_value_seed(Raw)? == "true",
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

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

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
        while let Some(text) = seq.next_element_seed(Block(self.0))? {
            match text {
                Some(text) => self.0.push_text(text),
                None => self.0.other_blocks = true,
            }
        }
        Ok(())
    }
}

/// One block: its text, still as a JSON string, when it is a text block.
struct Block<'p, 'a>(&'p mut Peek<'a>);

impl<'a> DeserializeSeed<'a> for Block<'_, 'a> {
    type Value = Option<&'a str>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Block<'_, 'a> {
    type Value = Option<&'a str>;

    else_nothing!(None);

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

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
        let mut text: Option<&'a str> = None;
        let mut seen = Seen::default();
        while let Some(key) = map.next_key_seed(Name)? {
            seen.any(&key, &BLOCK, &mut self.0.names);
            match &*key {
                "text" => text = Some(map.next_value_seed(Raw)?),
                "error" | "isError" => {
                    self.0.says_error |= map.next_value_seed(Raw)? == "true";
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(text.filter(|raw| raw.starts_with('"')))
    }
}
