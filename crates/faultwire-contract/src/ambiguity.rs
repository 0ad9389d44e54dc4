//! Finds what two parsers could read differently in a client's message (X1). Of two members of one
//! name, Python and JavaScript use the last and others the first. Go, .NET and C libraries find a
//! member by a name that only folds to the expected one. In C, a name ends at NUL.
//!
//! Most messages are found to be unambiguous by the fast path of `classify`. This walk is for the
//! others. Its text is known to be valid JSON, so it only has to find names.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use crate::classify::{Line, Sort};
use crate::fold::fold;
use crate::protocol::{FOREIGN_MESSAGE, MESSAGE, NOTIFICATIONS, Object, REQUESTS};

/// Deeper messages are refused, because parsers have different depth limits.
const DEEPEST: u32 = 1024;

/// Something that two parsers could read differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// A member occurs twice.
    Twice {
        /// The object that contains it.
        object: &'static str,
        /// The member's name.
        name: String,
    },
    /// A name is not one of the protocol's, but folds to one.
    Folded {
        /// The object that contains it.
        object: &'static str,
        /// The member's name.
        name: String,
        /// The name of the protocol.
        like: &'static str,
    },
    /// A name that some languages cannot hold: with NUL or half of a surrogate pair.
    Unreadable {
        /// The object that contains it.
        object: &'static str,
    },
    /// A method that is not one of the protocol's, but folds to one.
    Method {
        /// The method's name.
        name: String,
        /// The name of the protocol.
        like: &'static str,
    },
    /// The message has `method` beside `result` or `error`.
    RequestAndReply,
    /// The params are neither an object nor null.
    Params,
    /// The message is nested too deeply.
    Deep,
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |name: &str| name[..name.floor_char_boundary(64)].to_owned();
        match self {
            Self::Twice { object, name } => {
                write!(f, "{object} has the member {:?} twice", shown(name))
            }
            Self::Folded { object, name, like } => {
                write!(f, "{object} has a member {:?}; write {like:?}", shown(name))
            }
            Self::Unreadable { object } => {
                write!(f, "{object} has a member whose name is not a valid text")
            }
            Self::Method { name, like } => {
                write!(f, "the method is {:?}; write {like:?}", shown(name))
            }
            Self::RequestAndReply => {
                f.write_str("the message has a method beside a result or error")
            }
            Self::Params => f.write_str("params is not an object"),
            Self::Deep => write!(f, "the message is nested deeper than {DEEPEST} levels"),
        }
    }
}

/// What two parsers could read differently in a well-formed message, if there is anything.
///
/// ```
/// use faultwire_contract::{ambiguity, peek};
///
/// let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#;
/// assert_eq!(
///     ambiguity(&peek(line)).unwrap().to_string(),
///     "params has a member \"Name\"; write \"name\"",
/// );
/// ```
#[must_use]
pub fn ambiguity(line: &Line<'_>) -> Option<Ambiguity> {
    let mut object = &MESSAGE;
    if matches!(line.sort(), Sort::Request | Sort::Notification) {
        if line.is_reply_too() {
            return Some(Ambiguity::RequestAndReply);
        }
        if line.params.is_some_and(|params| !params.starts_with('{') && params != "null") {
            return Some(Ambiguity::Params);
        }
        let method = line.method.as_deref().unwrap_or_default();
        if !is_of_protocol(method) {
            if let Some(like) = folded_method(method) {
                return Some(Ambiguity::Method { name: method.to_owned(), like });
            }
            object = &FOREIGN_MESSAGE;
        }
    }
    if line.is_clear() {
        return None;
    }
    let mut walk = Walk { text: line.text, at: 0 };
    walk.value(object, DEEPEST).err()
}

/// Whether the protocol has the method.
#[must_use]
pub fn is_of_protocol(method: &str) -> bool {
    REQUESTS.contains(&method) || NOTIFICATIONS.contains(&method)
}

fn folded_method(method: &str) -> Option<&'static str> {
    let folded = fold(method.trim());
    let folded = folded.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '/');
    let all = REQUESTS.iter().chain(&NOTIFICATIONS).copied();
    all.into_iter().find(|known| fold(known) == folded)
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    fn value(&mut self, object: &'static Object, depth: u32) -> Result<(), Ambiguity> {
        match self.next() {
            b'{' => {
                let below = depth.checked_sub(1).ok_or(Ambiguity::Deep)?;
                self.members(object, below)
            }
            b'[' => {
                let below = depth.checked_sub(1).ok_or(Ambiguity::Deep)?;
                self.items(object, below)
            }
            b'"' => {
                self.string();
                Ok(())
            }
            _ => {
                self.scalar();
                Ok(())
            }
        }
    }

    fn members(&mut self, object: &'static Object, depth: u32) -> Result<(), Ambiguity> {
        self.at += 1;
        let mut names = Names::default();
        while self.next() == b'"' {
            let raw = self.string();
            let name = if raw.contains('\\') {
                unescaped(raw).ok_or(Ambiguity::Unreadable { object: object.label })?
            } else {
                Cow::Borrowed(raw)
            };
            let inner = object.inner(&name).map_err(|like| Ambiguity::Folded {
                object: object.label,
                name: name.to_string(),
                like,
            })?;
            if !names.insert(name.clone()) {
                return Err(Ambiguity::Twice { object: object.label, name: name.into_owned() });
            }
            self.next();
            self.at += 1;
            self.value(inner, depth)?;
            if self.next() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(())
    }

    fn items(&mut self, object: &'static Object, depth: u32) -> Result<(), Ambiguity> {
        self.at += 1;
        while !matches!(self.next(), b']' | 0) {
            self.value(object, depth)?;
            if self.next() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The string that begins here, without its quotes.
    fn string(&mut self) -> &'a str {
        self.at += 1;
        let from = self.at;
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        let mut length = 0;
        while let Some(found) = memchr::memchr2(b'"', b'\\', rest.get(length..).unwrap_or_default())
        {
            length += found;
            if rest[length] == b'"' {
                break;
            }
            length += 2;
        }
        let end = (from + length).min(self.text.len());
        self.at = end + 1;
        self.text.get(from..end).unwrap_or_default()
    }

    /// A number or a word.
    fn scalar(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let ends = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        // Anything but a value would stop the walk, but valid JSON has nothing else.
        self.at += rest.iter().position(ends).unwrap_or(rest.len()).max(1);
    }

    /// The next byte that is not white space, or 0 at the end of the text. It is not consumed.
    fn next(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }
}

/// The name behind its escapes, if every language can hold it: JSON writes NUL and half of a
/// surrogate pair in no other way.
fn unescaped(raw: &str) -> Option<Cow<'_, str>> {
    let name = serde_json::from_str::<String>(&format!("\"{raw}\"")).ok()?;
    (!name.contains('\0')).then_some(Cow::Owned(name))
}

/// The names of one object. Few are compared with each other; many are hashed.
#[derive(Default)]
struct Names<'a> {
    few: [&'a str; FEW],
    count: usize,
    many: Option<HashSet<Cow<'a, str>>>,
}

const FEW: usize = 12;

impl<'a> Names<'a> {
    /// Whether the name is new.
    fn insert(&mut self, name: Cow<'a, str>) -> bool {
        match (name, &mut self.many) {
            (name, Some(many)) => many.insert(name),
            (Cow::Borrowed(name), None) if self.count < FEW => {
                let is_new = !self.few[..self.count].contains(&name);
                self.few[self.count] = name;
                self.count += 1;
                is_new
            }
            (name, none) => {
                let known = self.few[..self.count].iter().map(|name| Cow::Borrowed(*name));
                none.insert(known.collect()).insert(name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::classify::peek;

    fn check(line: &str, expected: Option<&str>) {
        let found = ambiguity(&peek(line.as_bytes())).map(|found| found.to_string());
        assert_eq!(found.as_deref(), expected, "{line}");
    }

    fn params(params: &str, expected: Option<&str>) {
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#),
            expected,
        );
    }

    #[test]
    fn x1_usual_messages_are_not_ambiguous() {
        params(r#"{"name":"a","arguments":{"Name":1,"name":2,"x":[{"a":1},{"a":2}]}}"#, None);
        params(r#"{ "name" : "a" , "arguments" : { } , "_meta" : {"own/Key":1,"ID":2} }"#, None);
        params(r#"{"n\u0061me":"a","arguments":{"a":"\"","b":"\\","c":"{\"name\":1}"}}"#, None);
        params("null", None);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[{"uri":"a"},{"uri":"b"}]}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"own/thing","params":{"Name":1}}"#, None);
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, None);
        check("{\"id\":1,\t\"method\":\r\"ping\" }", None);
        let many: Vec<String> = (0..40).map(|n| format!("\"k{n}\":{n}")).collect();
        params(&format!(r#"{{"name":"a","arguments":{{{}}}}}"#, many.join(",")), None);
    }

    #[test]
    fn x1_a_member_that_occurs_twice_is_found_at_any_depth() {
        let name = Some("params has the member \"name\" twice");
        params(r#"{"name":"a","name":"b"}"#, name);
        params(r#"{"name":"a","n\u0061me":"b"}"#, name);
        params(r#"{"\u006eame":"a","n\u0061me":"b"}"#, name);
        let arguments = Some("arguments has the member \"a\" twice");
        params(r#"{"name":"t","arguments":{"a":1,"a":2}}"#, arguments);
        params(r#"{"name":"t","arguments":{"x":[[{"a":1,"b":{},"a":2}]]}}"#, arguments);
        params(
            r#"{"name":"t","_meta":{"own":{"a":1,"a":2}}}"#,
            Some("an object has the member \"a\" twice"),
        );
        let many: Vec<String> = (0..40).map(|n| format!("\"k{n}\":{n}")).collect();
        let many = format!(r#"{{"name":"a","arguments":{{{},"k3":0}}}}"#, many.join(","));
        params(&many, Some("arguments has the member \"k3\" twice"));
    }

    #[test]
    fn x1_a_name_that_folds_to_one_of_the_protocol_is_found() {
        let cases = [
            (r#"{"name":"a","Name":"b"}"#, "Name", "name"),
            (r#"{"NAME":"b"}"#, "NAME", "name"),
            (r#"{"name":"a","n\u0041me":"b"}"#, "nAme", "name"),
            ("{\"name\":\"a\",\"argument\u{17f}\":{}}", "argument\u{17f}", "arguments"),
            (r#"{"name":"a","ta\u017f\u212a":{}}"#, "ta\u{17f}\u{212a}", "task"),
            ("{\"name\":\"a\",\"\u{ff4e}ame\":{}}", "\u{ff4e}ame", "name"),
            ("{\"name\":\"a\",\"na\u{200b}me\":{}}", "na\u{200b}me", "name"),
            (r#"{"name":"a","name ":"b"}"#, "name ", "name"),
            (r#"{"name":"a","name\t":"b"}"#, "name\t", "name"),
        ];
        for (text, name, like) in cases {
            params(text, Some(&format!("params has a member {name:?}; write {like:?}")));
        }
        let meta = r#"{"name":"a","_meta":{"PROGRESSTOKEN":1}}"#;
        params(meta, Some("_meta has a member \"PROGRESSTOKEN\"; write \"progressToken\""));
        params(
            r#"{"name":"a","_Meta":{}}"#,
            Some("params has a member \"_Meta\"; write \"_meta\""),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","Name":"p"}}}"#,
            Some("ref has a member \"Name\"; write \"name\""),
        );
    }

    #[test]
    fn x1_names_that_some_languages_cannot_hold_are_found() {
        params(
            r#"{"name":"a","name\u0000x":"b"}"#,
            Some("params has a member whose name is not a valid text"),
        );
        params(
            r#"{"name":"a","arguments":{"a\ud800":1}}"#,
            Some("arguments has a member whose name is not a valid text"),
        );
    }

    #[test]
    fn x1_methods_params_and_both_kinds_at_once() {
        check(
            r#"{"id":1,"method":"Tools/Call"}"#,
            Some("the method is \"Tools/Call\"; write \"tools/call\""),
        );
        check(
            r#"{"id":1,"method":"tools/call "}"#,
            Some("the method is \"tools/call \"; write \"tools/call\""),
        );
        check(
            r#"{"id":1,"method":"tool\u017f/call"}"#,
            Some("the method is \"tool\u{17f}/call\"; write \"tools/call\""),
        );
        check(r#"{"id":1,"method":"tools/call","params":["a"]}"#, Some("params is not an object"));
        let both = Some("the message has a method beside a result or error");
        check(r#"{"id":1,"method":"tools/call","result":{}}"#, both);
        check(r#"{"id":1,"method":"tools/call","error":{"code":1}}"#, both);
        check(r#"{"id":1,"method":"ping","error":null}"#, None);
    }

    #[test]
    fn x1_depth_is_bounded() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        params(
            &format!(r#"{{"name":"a","arguments":{{"a":{deep}}}}}"#),
            Some("the message is nested deeper than 1024 levels"),
        );
    }

    /// JSON objects of few names, so that many occur twice or fold to the protocol's.
    fn object() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "name",
            "Name",
            "arguments",
            "_meta",
            "task",
            "ta\u{17f}k",
            "a",
            "b",
            "a\\u0062",
            "id",
        ]);
        let leaf = prop::sample::select(vec!["1", "\"{\\\"a\\\":1}\"", "null", "[]"]);
        leaf.prop_map(str::to_owned).prop_recursive(4, 24, 5, move |inner| {
            let members = prop::collection::vec((name.clone(), inner.clone()), 0..5);
            prop_oneof![
                members.prop_map(|all| {
                    let all: Vec<_> = all.iter().map(|(n, v)| format!("\"{n}\": {v}")).collect();
                    format!("{{{}}}", all.join(","))
                }),
                prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(" ,"))),
            ]
        })
    }

    proptest! {
        #[test]
        fn x1_what_the_scan_finds_clear_the_walk_finds_clear(params in object(), method in 0..3_usize) {
            let method = ["tools/call", "own/thing", "resources/read"][method];
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let line = peek(text.as_bytes());
            let object = if is_of_protocol(method) { &MESSAGE } else { &FOREIGN_MESSAGE };
            let walked = Walk { text: &text, at: 0 }.value(object, DEEPEST);
            prop_assert!(!line.is_clear() || walked.is_ok(), "{text}");
        }
    }
}
