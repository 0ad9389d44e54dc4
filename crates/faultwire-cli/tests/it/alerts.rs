//! `alerts replay`.

use serde_json::{Value, json};

use crate::support::faultwire;

fn replay(events: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = events.iter().map(|e| format!("{e}\n")).collect();
    let input = lines.concat();
    let out = faultwire(&["alerts", "replay", "-c", "owlclaw"], input).fine();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn o7_pages_a_line_each() {
    let warning = |t: Value| json!({"t": t, "client": "a", "code": "runtime.timeout"});
    let mut events: Vec<Value> = (0..6).map(|t| warning(json!(t))).collect();
    events.push(json!({"t": 6.25, "client": "b", "code": "auth.forbidden"}));
    assert_eq!(
        replay(&events),
        [
            json!({"t": 5, "level": "warning", "client": "a", "code": "runtime.timeout", "count": 6}),
            json!({"t": 6.25, "level": "critical", "client": "b", "code": "auth.forbidden", "count": 1}),
        ]
    );
    let edge: Vec<Value> =
        [0.1, 1.0, 2.0, 3.0, 4.0, 300.1].iter().map(|t| warning(json!(t))).collect();
    assert_eq!(replay(&edge), Vec::<Value>::new(), "exactly 300 s old is outside");
    let inside: Vec<Value> =
        [0.1, 1.0, 2.0, 3.0, 4.0, 300.099_999].iter().map(|t| warning(json!(t))).collect();
    assert_eq!(replay(&inside).len(), 1);
}

#[test]
fn a_bad_line_is_named() {
    for (line, says) in [
        ("nonsense", "line 2: not a valid event"),
        (r#"{"t":1,"client":"a"}"#, "missing field `code`"),
        (r#"{"t":1,"client":"a","code":"runtime.timeot"}"#, "did you mean \"runtime.timeout\"?"),
        (r#"{"t":-1,"client":"a","code":"runtime.timeout"}"#, "use seconds, 0 or more"),
        (r#"{"t":1,"client":"a","code":"runtime.timeout","x":1}"#, "unknown field `x`"),
    ] {
        let ran = faultwire(
            &["alerts", "replay"],
            format!("{{\"t\":0,\"client\":\"a\",\"code\":\"auth.forbidden\"}}\n{line}\n"),
        );
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains(says), "{}", ran.err);
        assert_eq!(ran.out.lines().count(), 1, "what came before is not lost");
    }
}
