//! JSON in the middle of a text: `API error: {"code": "not_found"}`.

use serde_json::{Deserializer, Value};

/// So many places are tried.
const MOST: usize = 3;

/// Objects and lists of objects that stand in a text.
pub(super) fn bodies(text: &str) -> Vec<Value> {
    let mut bodies = Vec::new();
    let mut from = 0;
    for _ in 0..MOST {
        let Some(at) = text[from..].find(opens_json).map(|at| from + at) else { break };
        if !begins_json(&text[at..]) {
            from = at + 1;
            continue;
        }
        let mut values = Deserializer::from_str(&text[at..]).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            from = at + values.byte_offset();
            bodies.push(value);
        } else {
            from = at + 1;
        }
    }
    bodies
}

fn opens_json(c: char) -> bool {
    c == '{' || c == '['
}

/// Whether a member's name, or an object, follows.
fn begins_json(text: &str) -> bool {
    let mut signs = text.chars().filter(|c| !c.is_whitespace());
    matches!((signs.next(), signs.next()), (Some('{'), Some('"')) | (Some('['), Some('{')))
}

#[cfg(test)]
mod tests {
    use super::bodies;
    use serde_json::json;

    #[test]
    fn json_is_found_in_a_text() {
        let found = bodies(r#"API error [x]: {"code":"not_found"} and [{"a":1}], {not json}"#);
        assert_eq!(found, [json!({ "code": "not_found" }), json!([{ "a": 1 }])]);
        assert!(bodies("{ {{ [[ [").is_empty());
    }
}
