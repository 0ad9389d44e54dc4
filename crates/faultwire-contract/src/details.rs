//! Details from any Rust value, as strict JSON (W5).
//!
//! `serde_json` silently turns NaN into `null`, and a client would read a fact that was never
//! stated. So a value is walked first, and everything that is not JSON is reported.

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{self, SerializeMap, SerializeSeq, SerializeStruct};
use serde_json::{Value, json};

use crate::condition::Condition;
use crate::contract::Contract;
use crate::fault::{Fault, FaultError};
use crate::incident::Stamp;
use crate::report::Report;

/// The value as JSON, or the parts that are not JSON.
///
/// ```
/// use faultwire_contract::details;
///
/// assert_eq!(details::from(&[1, 2])?, serde_json::json!([1, 2]));
/// let why = details::from(&("ok", f64::NAN)).unwrap_err();
/// assert_eq!(why, ["$[1]: NaN is no JSON number"]);
/// # Ok::<(), Vec<String>>(())
/// ```
pub fn from<T: Serialize + ?Sized>(value: &T) -> Result<Value, Vec<String>> {
    let mut found = Vec::new();
    let walked = value.serialize(Walk { path: "$".to_owned(), depth: 0, found: &mut found });
    if let Err(NoJson(why)) = walked {
        found.push(why);
    }
    if !found.is_empty() {
        return Err(found);
    }
    serde_json::to_value(value).map_err(|e| vec![e.to_string()])
}

impl Fault {
    /// A fault with details of any type. Details that are not JSON make it the contract's internal
    /// failure, with the original message and what is wrong with the details (W5).
    pub fn with_details<T: Serialize + ?Sized>(
        contract: &Arc<Contract>,
        report: Report,
        details: &T,
        stamp: &Stamp,
    ) -> Result<Self, FaultError> {
        Self::new(contract, put(contract, report, details), stamp)
    }
}

/// Puts details of any type into a report. Details that are not JSON make it a report of the
/// contract's internal failure (W5).
#[must_use]
pub fn put<T: Serialize + ?Sized>(contract: &Contract, report: Report, details: &T) -> Report {
    settle(contract, report, from(details))
}

/// The same with details that were converted before: JSON, or why they are not JSON.
#[must_use]
pub fn settle(contract: &Contract, report: Report, read: Result<Value, Vec<String>>) -> Report {
    match read {
        Ok(value) => Report { details: Some(value), ..report },
        Err(errors) => invalid(contract, report, &errors),
    }
}

fn invalid(contract: &Contract, report: Report, errors: &[String]) -> Report {
    let policy = &contract.text.invalid_details;
    let original =
        report.message.or_else(|| contract.code(&report.code).map(|c| c.message.clone()));
    Report {
        code: contract.code_for(Condition::Internal, None).id.clone(),
        condition: Some(Condition::Internal),
        message: policy.message.clone(),
        details: Some(json!({ &policy.original_key: original, &policy.errors_key: errors })),
        retry: None,
        retry_after_ms: None,
        status: None,
        ..report
    }
}

/// Something that no JSON can hold, and that ends the walk.
#[derive(Debug)]
struct NoJson(String);

impl Display for NoJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoJson {}

impl ser::Error for NoJson {
    fn custom<T: Display>(msg: T) -> Self {
        Self(msg.to_string())
    }
}

/// Deeper values end the walk before they end the stack.
const DEEPEST: usize = 128;

/// A serializer that writes nothing and notes everything that is not JSON.
struct Walk<'f> {
    path: String,
    depth: usize,
    found: &'f mut Vec<String>,
}

impl<'f> Walk<'f> {
    fn below(&mut self, step: impl Display) -> Result<Walk<'_>, NoJson> {
        let depth = self.depth + 1;
        if depth > DEEPEST {
            // Without the path: cut, it could show half of a secret (X6).
            return Err(NoJson(format!("details are nested deeper than {DEEPEST} levels")));
        }
        Ok(Walk { path: format!("{}{step}", self.path), depth, found: self.found })
    }

    fn list(self) -> Items<'f> {
        Items { walk: self, next: 0 }
    }
}

macro_rules! fine {
    ($($method:ident: $type:ty),+ $(,)?) => {
        $( fn $method(self, _: $type) -> Result<(), NoJson> { Ok(()) } )+
    };
}

impl<'f> ser::Serializer for Walk<'f> {
    type Ok = ();
    type Error = NoJson;
    type SerializeSeq = Items<'f>;
    type SerializeTuple = Items<'f>;
    type SerializeTupleStruct = Items<'f>;
    type SerializeTupleVariant = Items<'f>;
    type SerializeMap = Members<'f>;
    type SerializeStruct = Members<'f>;
    type SerializeStructVariant = Members<'f>;

    fine!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
    );

    fn serialize_i128(self, v: i128) -> Result<(), NoJson> {
        if i64::try_from(v).is_err() && u64::try_from(v).is_err() {
            self.found.push(format!("{}: {v} does not fit 64 bits", self.path));
        }
        Ok(())
    }

    fn serialize_u128(self, v: u128) -> Result<(), NoJson> {
        if u64::try_from(v).is_err() {
            self.found.push(format!("{}: {v} does not fit 64 bits", self.path));
        }
        Ok(())
    }

    fn serialize_f32(self, v: f32) -> Result<(), NoJson> {
        self.serialize_f64(f64::from(v))
    }

    fn serialize_f64(self, v: f64) -> Result<(), NoJson> {
        if !v.is_finite() {
            self.found.push(format!("{}: {v} is no JSON number", self.path));
        }
        Ok(())
    }

    fn serialize_none(self) -> Result<(), NoJson> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoJson> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NoJson> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NoJson> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<(), NoJson> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), NoJson> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), NoJson> {
        value.serialize(self.below(format_args!(".{variant}"))?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'f>, NoJson> {
        Ok(self.list())
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'f>, NoJson> {
        Ok(self.list())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'f>, NoJson> {
        Ok(self.list())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Items<'f>, NoJson> {
        Ok(self.list())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'f>, NoJson> {
        Ok(Members { walk: self, key: String::new() })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'f>, NoJson> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Members<'f>, NoJson> {
        self.serialize_map(None)
    }
}

struct Items<'f> {
    walk: Walk<'f>,
    next: usize,
}

impl Items<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJson> {
        let i = self.next;
        self.next += 1;
        value.serialize(self.walk.below(format_args!("[{i}]"))?)
    }
}

macro_rules! items {
    ($($trait:ident::$method:ident),+) => {
        $( impl ser::$trait for Items<'_> {
            type Ok = ();
            type Error = NoJson;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJson> {
                self.item(value)
            }

            fn end(self) -> Result<(), NoJson> {
                Ok(())
            }
        } )+
    };
}

items!(
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

impl SerializeSeq for Items<'_> {
    type Ok = ();
    type Error = NoJson;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJson> {
        self.item(value)
    }

    fn end(self) -> Result<(), NoJson> {
        Ok(())
    }
}

struct Members<'f> {
    walk: Walk<'f>,
    key: String,
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = NoJson;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoJson> {
        let named = serde_json::to_value(key).ok();
        let plain = named.filter(|k| k.is_string() || k.is_number() || k.is_boolean());
        let Some(key) = plain else {
            return Err(NoJson(format!("{}: a key that is no string", self.walk.path)));
        };
        self.key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJson> {
        let key = std::mem::take(&mut self.key);
        value.serialize(self.walk.below(format_args!(".{key}"))?)
    }

    fn end(self) -> Result<(), NoJson> {
        Ok(())
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = NoJson;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), NoJson> {
        value.serialize(self.walk.below(format_args!(".{key}"))?)
    }

    fn end(self) -> Result<(), NoJson> {
        Ok(())
    }
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = NoJson;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), NoJson> {
        SerializeStruct::serialize_field(self, key, value)
    }

    fn end(self) -> Result<(), NoJson> {
        Ok(())
    }
}
