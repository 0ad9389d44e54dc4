//! Members that a lenient parser takes for a declared property are refused (X1).

use faultwire::arguments::{Objection, Schema};
use serde_json::{Value, json};

fn refused(schema: &Value, arguments: &Value) -> Option<String> {
    let schema = Schema::compile("tool", Some(&schema.to_string()));
    let text = arguments.to_string();
    let path = |counts| match schema.objection(Some(&text), counts) {
        Some(Objection::Folded(misfit)) => Some(misfit.issues[0].path.clone()),
        Some(Objection::Misfit(_)) | None => None,
    };
    assert_eq!(path(true), path(false), "whether schemas are enforced makes no difference");
    path(false)
}

fn check(schema: &Value, arguments: &Value, expected: Option<&str>) {
    assert_eq!(refused(schema, arguments).as_deref(), expected, "{arguments} under {schema}");
}

#[test]
fn x1_other_spellings_of_a_declared_property_are_refused() {
    let schema = json!({ "type": "object", "properties": { "task": {}, "filePath": {} } });
    let other = [
        "Task",
        "TASK",
        "ta\u{17f}k",
        "tas\u{212a}",
        "\u{ff54}ask",
        "ta\u{200d}sk",
        "task\u{feff}",
        "filepath",
        "FilePath",
        "file\u{ad}Path",
        "task\0",
        "\u{1d42d}ask",
    ];
    for name in other {
        check(&schema, &json!({ name: 1 }), Some(name));
        check(&schema, &json!({ "task": 1, "filePath": 2, name: 1 }), Some(name));
    }
    for name in ["task", "filePath", "tasks", "file_path", "x"] {
        check(&schema, &json!({ name: 1 }), None);
    }
}

#[test]
fn x1_declared_properties_are_found_wherever_they_are_declared() {
    let path = json!({ "type": "object", "properties": { "path": {} } });
    let wrong = json!({ "PATH": 1 });
    let in_place = [
        json!({ "allOf": [path] }),
        json!({ "anyOf": [{}, path] }),
        json!({ "oneOf": [path, true] }),
        json!({ "if": {}, "then": path }),
        json!({ "if": {}, "else": path }),
        json!({ "$ref": "#/$defs/p", "$defs": { "p": path } }),
        json!({ "$ref": "#/$defs/q", "$defs": { "p": path, "q": { "allOf": [{ "$ref": "#/$defs/p" }] } } }),
        json!({ "dependentSchemas": { "x": path } }),
        // A reference that is not followed may lead to anything that is declared.
        json!({ "$ref": "#p", "$defs": { "p": { "$anchor": "p", "properties": { "path": {} } } } }),
    ];
    for schema in &in_place {
        check(schema, &wrong, Some("PATH"));
    }
    let below = [
        (json!({ "properties": { "a": path } }), json!({ "a": wrong }), "a.PATH"),
        (
            json!({ "properties": { "a": { "items": path } } }),
            json!({ "a": [{}, wrong] }),
            "a.1.PATH",
        ),
        (
            json!({ "properties": { "a": { "prefixItems": [{}, path] } } }),
            json!({ "a": [1, wrong] }),
            "a.1.PATH",
        ),
        (json!({ "additionalProperties": path }), json!({ "any": wrong }), "any.PATH"),
        (json!({ "patternProperties": { "^a": path } }), json!({ "any": wrong }), "any.PATH"),
        (
            json!({ "properties": { "c": { "$ref": "#" }, "path": {} } }),
            json!({ "c": { "c": wrong } }),
            "c.c.PATH",
        ),
    ];
    for (schema, arguments, expected) in &below {
        check(schema, arguments, Some(expected));
    }
}

#[test]
fn x1_what_another_object_declares_does_not_count() {
    let schema = json!({ "properties": {
        "path": {},
        "env": { "type": "object", "additionalProperties": { "type": "string" } },
        "other": { "properties": { "Path": {} } },
    } });
    check(&schema, &json!({ "path": 1, "env": { "PATH": "/bin" } }), None);
    check(&schema, &json!({ "path": 1, "other": { "Path": 1 } }), None);
    check(&schema, &json!({ "Path": 1 }), Some("Path"));
    check(&schema, &json!({ "other": { "path": 1 } }), Some("other.path"));
    let both = json!({ "properties": { "id": {}, "ID": {} } });
    check(&both, &json!({ "id": 1, "ID": 2 }), None);
    check(&both, &json!({ "Id": 1 }), Some("Id"));
    check(&json!({ "type": "object" }), &json!({ "a": 1, "A": 2 }), None);
}

#[test]
fn x1_a_schema_that_is_not_checked_still_declares() {
    let many: Vec<Value> = (0..20_000).map(|i| json!(i)).collect();
    check(
        &json!({ "properties": { "path": { "enum": many } } }),
        &json!({ "PATH": 1 }),
        Some("PATH"),
    );
    let dynamic = json!({ "properties": { "path": {}, "x": { "$dynamicRef": "#a" } } });
    check(&dynamic, &json!({ "PATH": 1 }), Some("PATH"));
    let mut defs = serde_json::Map::new();
    for i in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
        defs.insert(format!("d{i}"), json!({ "anyOf": [next, next], "properties": { "c": next } }));
    }
    defs.insert("d40".to_owned(), json!({ "properties": { "path": {} } }));
    check(&json!({ "$ref": "#/$defs/d0", "$defs": defs }), &json!({ "PATH": 1 }), Some("PATH"));
}
