//! JSON that every reader reads alike: integers beyond 2^53 are strings, since many readers keep
//! numbers as doubles and would change the last digits without a word.
//!
//! A record is written while a client waits, and nearly all of it is plain text under known names,
//! which are not looked through. All that is seldom is left to `serde_json`.

use faultwire_contract::quote;
use serde::Serialize;
use serde::ser::{self, Error as _, Serializer};

use crate::audit::line::number;

/// Doubles represent all integers up to this one exactly.
const LARGEST: u64 = 1 << 53;

type Error = serde_json::Error;

/// Appends the value to `out`.
pub fn write<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    value.serialize(Exact { out })
}

struct Exact<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Exact<'o> {
    /// What is too seldom to be worth more.
    fn usual<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        serde_json::to_writer(self.out, value)
    }

    fn begin(self, open: &str, close: &'static str) -> Members<'o> {
        self.out.extend_from_slice(open.as_bytes());
        Members { out: self.out, first: true, close, verbatim: false }
    }

    /// `{"variant":`, whose content is closed with one more brace.
    fn begin_variant(self, variant: &str, open: &str, close: &'static str) -> Members<'o> {
        self.out.push(b'{');
        name(variant, self.out);
        self.begin(open, close)
    }
}

/// A name from the source code, which needs no escapes.
fn name(name: &str, out: &mut Vec<u8>) {
    out.reserve(name.len() + 3);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// The inside of a list or an object.
struct Members<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
    close: &'static str,
    /// Whether the one member is text that is JSON already.
    verbatim: bool,
}

impl Members<'_> {
    fn comma(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.comma();
        write(value, self.out)
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        if self.verbatim {
            let quoted = serde_json::to_string(value)?;
            let json: String = serde_json::from_str(&quoted)?;
            self.out.extend_from_slice(json.as_bytes());
            return Ok(());
        }
        self.comma();
        name(key, self.out);
        write(value, self.out)
    }

    #[expect(clippy::unnecessary_wraps, reason = "all that serde ends may fail")]
    fn close(self) -> Result<(), Error> {
        self.out.extend_from_slice(self.close.as_bytes());
        Ok(())
    }
}

impl<'o> Serializer for Exact<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'o>;
    type SerializeTuple = Members<'o>;
    type SerializeTupleStruct = Members<'o>;
    type SerializeTupleVariant = Members<'o>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = Members<'o>;

    fn serialize_str(self, v: &str) -> Result<(), Error> {
        quote(v, self.out);
        Ok(())
    }

    fn serialize_bool(self, v: bool) -> Result<(), Error> {
        self.out.extend_from_slice(if v { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_u64(self, v: u64) -> Result<(), Error> {
        if v > LARGEST {
            return self.usual(&v.to_string());
        }
        number(v, self.out);
        Ok(())
    }

    fn serialize_i64(self, v: i64) -> Result<(), Error> {
        if v.unsigned_abs() > LARGEST { self.usual(&v.to_string()) } else { self.usual(&v) }
    }

    fn serialize_u128(self, v: u128) -> Result<(), Error> {
        if v > u128::from(LARGEST) { self.usual(&v.to_string()) } else { self.usual(&v) }
    }

    fn serialize_i128(self, v: i128) -> Result<(), Error> {
        let large = v.unsigned_abs() > u128::from(LARGEST);
        if large { self.usual(&v.to_string()) } else { self.usual(&v) }
    }

    fn serialize_u8(self, v: u8) -> Result<(), Error> {
        self.serialize_u64(v.into())
    }

    fn serialize_u16(self, v: u16) -> Result<(), Error> {
        self.serialize_u64(v.into())
    }

    fn serialize_u32(self, v: u32) -> Result<(), Error> {
        self.serialize_u64(v.into())
    }

    fn serialize_i8(self, v: i8) -> Result<(), Error> {
        self.usual(&v)
    }

    fn serialize_i16(self, v: i16) -> Result<(), Error> {
        self.usual(&v)
    }

    fn serialize_i32(self, v: i32) -> Result<(), Error> {
        self.usual(&v)
    }

    fn serialize_f32(self, v: f32) -> Result<(), Error> {
        self.usual(&v)
    }

    fn serialize_f64(self, v: f64) -> Result<(), Error> {
        self.usual(&v)
    }

    fn serialize_char(self, v: char) -> Result<(), Error> {
        self.usual(&v)
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Error> {
        self.usual(v)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut object = self.begin("{", "}");
        object.member(variant, value)?;
        object.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'o>, Error> {
        Ok(self.begin("[", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'o>, Error> {
        Ok(self.begin("[", "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'o>, Error> {
        Ok(self.begin("[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'o>, Error> {
        Ok(self.begin_variant(variant, "[", "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o>, Error> {
        Ok(self.begin("{", "}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'o>, Error> {
        // A number or a raw value, which serde_json passes as text.
        if name.starts_with("$serde_json::private::") {
            return Ok(Members { verbatim: true, ..self.begin("", "") });
        }
        Ok(self.begin("{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'o>, Error> {
        Ok(self.begin_variant(variant, "{", "}}"))
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.comma();
        let at = self.out.len();
        write(key, self.out)?;
        match self.out.get(at) {
            Some(b'"') => {}
            Some(b'{' | b'[') | None => return Err(Error::custom("a key must be a word")),
            // A number as a key is text.
            Some(_) => {
                self.out.insert(at, b'"');
                self.out.push(b'"');
            }
        }
        self.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        write(value, self.out)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),+) => { $(
        impl ser::$trait for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )+ };
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! members {
    ($($trait:ident),+) => { $(
        impl ser::$trait for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.member(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )+ };
}

members!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn exact<T: Serialize + ?Sized>(value: &T) -> String {
        let mut out = Vec::new();
        write(value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[derive(Serialize)]
    enum Every {
        Unit,
        Newtype(u8),
        Tuple(i8, f32),
        Struct { a: Option<char>, b: (), c: [i16; 2] },
    }

    #[derive(Serialize)]
    struct Newtype(i32);

    #[derive(Serialize)]
    struct Tuple(bool, f64, &'static str);

    #[derive(Serialize)]
    struct Unit;

    #[test]
    fn it_is_what_serde_json_writes() {
        let texts: Vec<String> = (0_u32..0x180)
            .filter_map(char::from_u32)
            .flat_map(|c| [0, 1, 31, 32, 33, 70].map(|n| format!("{}{c}{}", "x".repeat(n), "é")))
            .chain([String::new(), "\u{2028}\u{1f98a}".into()])
            .collect();
        assert_eq!(exact(&texts), serde_json::to_string(&texts).unwrap());

        let every = (
            (Every::Unit, Every::Newtype(7), Every::Tuple(-7, 0.5)),
            Every::Struct { a: Some('"'), b: (), c: [-1, 1] },
            (Newtype(-3), Tuple(true, 1e300, "a\"b"), Unit),
            (BTreeMap::from([(1, "one"), (2, "two")]), BTreeMap::from([(true, 1)])),
            json!({"a": [1, -1, 1.5, null, {"\"": {}}, []], "b": "\n"}),
            RawValue::from_string(r#"{"as":  "it is"}"#.to_owned()).unwrap(),
            (1_u128, -1_i128, 70_000_u32, 300_u16, f64::NAN),
        );
        assert_eq!(exact(&every), serde_json::to_string(&every).unwrap());
    }

    #[test]
    fn integers_that_a_double_would_change_are_text() {
        let numbers = json!([9_007_199_254_740_992_u64, 9_007_199_254_740_993_u64, u64::MAX]);
        assert_eq!(
            exact(&numbers),
            r#"[9007199254740992,"9007199254740993","18446744073709551615"]"#
        );
        let below = (i64::MIN, -9_007_199_254_740_992_i64, i128::MIN, u128::MAX);
        assert_eq!(
            exact(&below),
            format!(r#"["{}",-9007199254740992,"{}","{}"]"#, i64::MIN, i128::MIN, u128::MAX)
        );
    }

    #[test]
    fn a_list_cannot_be_a_key() {
        let odd = BTreeMap::from([(vec![1], 2)]);
        assert!(write(&odd, &mut Vec::new()).is_err());
    }
}
