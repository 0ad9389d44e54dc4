//! Schemas come from servers that nobody vouches for: compiling one and checking against it take
//! bounded time and memory, and what cannot be checked so does not open the rest.

use std::time::{Duration, Instant};

use faultwire::arguments::{Allowance, Schema};
use faultwire::output::OutputSchema;
use serde_json::{Value, json};

/// Much more than any of this takes, and much less than without a bound.
const SOON: Duration = Duration::from_secs(5);

fn soon<T>(what: &str, act: impl FnOnce() -> T) -> T {
    #[expect(clippy::disallowed_methods, reason = "this test measures time")]
    let begin = Instant::now();
    let made = act();
    let took = begin.elapsed();
    assert!(took < SOON, "{what} took {took:?}");
    made
}

fn compiled(schema: &Value) -> Schema {
    let text = schema.to_string();
    soon("compiling", || Schema::compile("tool", Some(&text)))
}

fn fits(schema: &Schema, arguments: &Value) -> bool {
    let text = arguments.to_string();
    soon("checking", || schema.misfit(Some(&text))).is_none()
}

/// A schema with a pattern for one member, and a limit for another.
fn with_pattern(pattern: &str) -> Value {
    json!({
        "type": "object",
        "properties": { "text": { "type": "string", "pattern": pattern }, "n": { "maximum": 5 } },
    })
}

#[test]
fn x7_a_pattern_that_needs_backtracking_is_skipped_and_the_rest_holds() {
    let long = "a".repeat(31_000);
    let patterns = [
        "^(?=(a+)+$)b",
        "^(?!(a+)+b)x",
        "(?<=(a|aa)+)b$",
        "(?<!a)b",
        r"^(a+)\1+$b",
        r"^(?<x>a+)\k<x>b$",
        "(?:a|b",
        "^(?>a+)b",
    ];
    for pattern in patterns {
        let schema = compiled(&with_pattern(pattern));
        assert!(fits(&schema, &json!({ "text": long })), "{pattern}");
        assert!(!fits(&schema, &json!({ "text": 5 })), "{pattern}: the type still counts");
        assert!(!fits(&schema, &json!({ "n": 6 })), "{pattern}: other members still count");
    }
}

#[test]
fn x7_patterns_take_linear_time() {
    let long = format!("{}!", "a".repeat(31_000));
    for pattern in ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "^([a-z]+)*$", "^(.*a){1,12}$", "^(a*)*b$"]
    {
        let schema = compiled(&with_pattern(pattern));
        assert!(!fits(&schema, &json!({ "text": long })), "{pattern}");
    }
}

#[test]
fn x7_large_repetitions_are_skipped_in_no_time() {
    let long = "a".repeat(31_000);
    let patterns = [
        r"[\w\p{L}]{160}".to_owned(),
        "((a{100}){100}){100}".to_owned(),
        "(((((((a{9}){9}){9}){9}){9}){9}){9}){9}".to_owned(),
        ".{1,100000}".to_owned(),
        r"\p{L}{1000}b".to_owned(),
        "(".repeat(2000) + &")".repeat(2000),
        r"\s".repeat(2000),
        "[ab]*a[ab]{60}c".to_owned(),
        "a?".repeat(1000) + &"a".repeat(1000),
        r"(?i)\p{L}".repeat(300),
    ];
    for pattern in &patterns {
        let schema = compiled(&with_pattern(pattern));
        fits(&schema, &json!({ "text": long }));
        fits(&schema, &json!({ "text": "ab".repeat(500_000) }));
        assert!(!fits(&schema, &json!({ "n": 6 })), "{pattern}");
    }
}

#[test]
fn x7_many_patterns_are_bounded_together() {
    let many = |n: usize, pattern: &dyn Fn(usize) -> String| {
        let all: Vec<Value> = (0..n).map(|i| json!({ "pattern": pattern(i) })).collect();
        json!({ "properties": { "text": { "allOf": all }, "n": { "maximum": 5 } } })
    };
    let schemas = [
        many(60, &|i| format!(r"[\w\p{{L}}]{{{}}}", 160 + i)),
        many(1000, &|i| format!("[ab]*a[ab]{{{}}}c", 10 + i % 50)),
        many(1500, &|i| format!("(x{i}|.*)*y")),
    ];
    for schema in &schemas {
        let schema = compiled(schema);
        fits(&schema, &json!({ "text": "ab".repeat(16_000) }));
        assert!(!fits(&schema, &json!({ "n": 6 })));
    }
}

#[test]
fn x7_patterns_for_names_are_bounded_and_nothing_is_refused_for_want_of_one() {
    let schema = |pattern: &str| {
        json!({
            "properties": { "n": { "maximum": 5 } },
            "patternProperties": { pattern: { "type": "string" } },
            "additionalProperties": false,
        })
    };
    let name = "a".repeat(31_000);
    for pattern in
        ["^(?=(a+)+$)b", r"^(a+)\1$", "a{5000}", r"(\d|\w)+(\s)*\d\d\d\d\d\d\d\d\d\d\d\d\d\d\d\d"]
    {
        let schema = compiled(&schema(pattern));
        assert!(fits(&schema, &json!({ name.as_str(): "x" })), "{pattern}");
        assert!(!fits(&schema, &json!({ "n": 6 })), "{pattern}");
    }
    let linear = compiled(&schema("^(a+)+$"));
    assert!(!fits(&linear, &json!({ "aaa": 5 })));
    assert!(!fits(&linear, &json!({ "b": "x" })));
    assert!(fits(&linear, &json!({ "aaa": "x" })));
    let many: serde_json::Map<String, Value> =
        (0..2000).map(|i| (format!("^(.*{i})+x"), json!({ "type": "string" }))).collect();
    let many = compiled(&json!({ "patternProperties": many, "additionalProperties": false }));
    fits(&many, &json!({ name.as_str(): "x" }));
}

#[test]
fn x7_ordinary_patterns_are_checked() {
    let cases = [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-01-31", "2026-1-31"),
        (r"^[\w.-]+@[\w-]+\.\w+$", "a.b@c-d.org", "a b@c.org"),
        (r"^\/[^\s]*$", "/etc", "etc"),
        (
            "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            "123e4567-e89b-12d3-a456-426614174000",
            "123e4567",
        ),
        (r"^\p{Lu}", "Ä", "ä"),
        ("^.{1,255}$", "x", ""),
        (r"\bcat\b", "a cat", "concatenate"),
        (r"^\w+$", "abc", "äbc"),
        ("^(get|put)$", "get", "post"),
    ];
    for (pattern, right, wrong) in cases {
        let schema = compiled(&with_pattern(pattern));
        assert!(fits(&schema, &json!({ "text": right })), "{pattern} {right}");
        assert!(!fits(&schema, &json!({ "text": wrong })), "{pattern} {wrong}");
        let megabyte = "x".repeat(1 << 20);
        assert!(!fits(&schema, &json!({ "text": wrong, "content": megabyte })), "{pattern}");
    }
    let schema = compiled(&with_pattern("^a$"));
    let misfit = schema.misfit(Some(r#"{"text":"b"}"#)).unwrap();
    assert_eq!(misfit.issues[0].path, "text");
    assert_eq!(misfit.issues[0].message, r#"The value does not match "^a$""#);
}

#[test]
fn x7_other_keywords_are_bounded() {
    let wide: Vec<Value> = (0..9_000).map(|i| json!(i)).collect();
    let objects: Vec<Value> = (0..2000).map(|i| json!({ "kind": { "deep": [i] } })).collect();
    let lengths = vec![json!({ "minLength": 5 }); 3000];
    let properties: serde_json::Map<String, Value> =
        (0..4000).map(|i| (format!("p{i}"), json!({ "type": "string" }))).collect();
    let required: Vec<String> = (0..9000).map(|i| format!("p{i}")).collect();
    let branches: Vec<Value> = (0..500)
        .map(|i| json!({ "properties": { format!("b{i}"): true }, "required": [format!("b{i}")] }))
        .collect();
    let many_items = json!({ "all": (0..20_000).map(|i| json!({ "i": i })).collect::<Vec<_>>() });
    let long = json!({ "all": "x".repeat(1 << 20) });
    let members: serde_json::Map<String, Value> =
        (0..5000).map(|i| (format!("m{i}"), json!(i))).collect();
    let members = json!({ "all": members });
    let nested = (0..100).fold(json!(["x"]), |inner, _| json!([inner.clone(), 1, 2, 3]));
    let nested = json!({ "all": nested });
    let schemas = [
        json!({ "items": { "enum": wide } }),
        json!({ "items": { "enum": objects } }),
        json!({ "allOf": lengths }),
        json!({ "items": { "properties": properties } }),
        json!({ "items": { "required": required } }),
        json!({ "uniqueItems": true, "items": { "uniqueItems": true } }),
        json!({ "anyOf": branches, "unevaluatedProperties": false }),
        json!({ "items": { "anyOf": branches, "unevaluatedProperties": false } }),
        json!({ "multipleOf": 1e-300, "items": { "properties": { "i": { "multipleOf": 1e-300 } } } }),
        json!({ "items": { "properties": { "i": { "multipleOf": 1e300 } } } }),
        json!({ "propertyNames": { "allOf": vec![json!({ "maxLength": 3 }); 2000] } }),
        json!({ "dependentSchemas": { "m1": { "anyOf": branches } } }),
        json!({ "contains": { "anyOf": branches }, "minContains": 10_000 }),
        json!({ "additionalProperties": { "allOf": vec![json!({ "maximum": 1 }); 3000] } }),
        json!({ "format": "regex" }),
        json!({ "format": "email" }),
        json!({ "contentMediaType": "application/json", "contentEncoding": "base64" }),
    ];
    for all in &schemas {
        for draft in [
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let schema = json!({ "$schema": draft, "properties": { "all": all } });
            let schema = compiled(&schema);
            for arguments in [&many_items, &long, &members, &nested] {
                fits(&schema, arguments);
            }
        }
    }
}

#[test]
fn x7_recursion_and_references_are_bounded() {
    let mut doubled = serde_json::Map::new();
    for i in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
        doubled.insert(
            format!("d{i}"),
            json!({ "properties": { "c": next, "d": next }, "anyOf": [next, next] }),
        );
    }
    doubled.insert("d60".to_owned(), json!({ "type": "object" }));
    let recursive: serde_json::Map<String, Value> = (0..2000)
        .map(|i| (format!("p{i}"), json!({ "$ref": "#", "anyOf": [{ "$ref": "#" }] })))
        .collect();
    let plain: serde_json::Map<String, Value> =
        (0..3000).map(|i| (format!("p{i}"), json!({ "$ref": "#" }))).collect();
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "p1": inner, "c": 1 }));
    let schemas = [
        json!({ "$ref": "#/$defs/d0", "$defs": doubled }),
        json!({ "properties": recursive }),
        json!({ "properties": plain }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$ref": "http://127.0.0.1:9/x.json" }),
        json!({ "$ref": "file:///etc/passwd" }),
        json!({ "$schema": "http://127.0.0.1:9/x.json" }),
        json!({ "$dynamicRef": "#x", "$dynamicAnchor": "x" }),
    ];
    for schema in &schemas {
        let schema = compiled(schema);
        fits(&schema, &deep);
        fits(&schema, &json!({}));
    }
}

#[test]
fn x7_schemas_share_an_allowance_and_give_it_back() {
    let patterns: Vec<Value> =
        (0..8).map(|i| json!({ "pattern": format!("^.{{1,{}}}$", 300 + i) })).collect();
    let text = json!({ "properties": { "a": { "allOf": patterns }, "n": { "maximum": 5 } } });
    let text = text.to_string();
    let wrong = json!({ "n": 6 }).to_string();
    let allowance = Allowance::default();
    let compile = || Schema::compile_within("tool", Some(&text), &allowance);
    let mut schemas: Vec<Schema> = (0..200).map(|_| compile()).collect();
    assert!(schemas[0].misfit(Some(&wrong)).is_some(), "the first one fits in");
    assert!(schemas[199].misfit(Some(&wrong)).is_none(), "the last one does not");
    schemas.clear();
    assert!(compile().misfit(Some(&wrong)).is_some(), "what was dropped counts no more");
}

#[test]
fn x7_a_schema_that_is_too_large_is_not_used() {
    let text = format!(r#"{{"maxProperties":0,"description":"{}"}}"#, "x".repeat(300_000));
    assert!(
        soon("compiling", || Schema::compile("tool", Some(&text)))
            .misfit(Some(r#"{"a":1}"#))
            .is_none()
    );
    let many: Vec<Value> = (0..20_000).map(|i| json!(i)).collect();
    let schema = compiled(&json!({ "enum": many, "maxProperties": 0 }));
    assert!(fits(&schema, &json!({ "a": 1 })));
}

/// Results are long, and theirs is another check.
fn matches(schema: &Value, result: &str) -> bool {
    let schema = soon("compiling", || OutputSchema::compile("tool", &schema.to_string()));
    soon("checking", || schema.mismatch(Some(result))).is_none()
}

#[test]
fn u5_a_result_that_cannot_be_compared_passes() {
    let one = json!({ "type": "object", "required": ["n"] });
    assert!(!matches(&one, "{}") && matches(&one, r#"{"n":1}"#));
    // JSON that others may read.
    assert!(matches(&one, r#"{"x":1e999}"#));
    // More than a mebibyte.
    let long = |length: usize| format!(r#"{{"x":"{}"}}"#, "x".repeat(length));
    assert!(!matches(&one, &long(1024 * 1024 - 8)));
    assert!(matches(&one, &long(1024 * 1024 - 7)));
    for unusable in [json!({ "type": 5 }), json!(false), json!([]), json!(null)] {
        let schema = OutputSchema::compile("tool", &unusable.to_string());
        assert!(schema.mismatch(None).is_none(), "{unusable}");
        assert!(schema.mismatch(Some("{}")).is_none(), "{unusable}");
    }
}

#[test]
fn x7_a_check_of_a_result_takes_bounded_time() {
    let node = json!({ "$ref": "#" });
    let wide: serde_json::Map<String, Value> =
        (0..1500).map(|i| (format!("p{i}"), json!({ "anyOf": [node, node] }))).collect();
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "p1": inner }));
    for schema in [
        json!({ "properties": wide }),
        json!({ "anyOf": [node, { "allOf": [node, node] }] }),
        json!({ "items": { "enum": (0..9000).collect::<Vec<_>>() } }),
        json!({ "items": { "pattern": "^(a+)+$" } }),
        json!({ "items": { "uniqueItems": true } , "uniqueItems": true }),
    ] {
        matches(&schema, &deep.to_string());
        matches(&schema, &json!(vec!["aaaaaaaaaa!"; 70_000]).to_string());
        matches(&schema, &json!((0..140_000).collect::<Vec<_>>()).to_string());
    }
}
