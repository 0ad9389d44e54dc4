//! The boundary for handlers in another language, as far as it is not tried through one.

use faultwire::json::{self, Boundary, Call, Judged, Standing};
use serde_json::json;

const KAIZA_TOOLS: &str = r#"{"tools":[{"name":"begin_session"},{"name":"write_file"}]}"#;

/// A call of a tool that comes now.
fn call(tool: &str, standing: &Standing) -> Call {
    Call::read(&json!({ "tool": tool, "turn": standing.turn() }).to_string()).unwrap()
}

#[test]
fn k12_a_call_of_a_session_that_is_over_locks_no_other() {
    let boundary = Boundary::new(json::builtin("kaiza").unwrap(), None, "{}").unwrap();
    boundary.learn(KAIZA_TOOLS).unwrap();
    let standing = Standing::default();
    let begin = || {
        let begun = boundary.returned(&call("begin_session", &standing), &standing, "{}").unwrap();
        assert!(matches!(begun, Judged::Success));
    };
    let fail = |call: &Call| {
        let failed =
            boundary.threw(call, r#"{"code":"INVARIANT_VIOLATION","message":"x"}"#).unwrap();
        drop(failed.answer(&boundary, call, &standing));
    };
    let is_locked = || boundary.refusal(&call("write_file", &standing), &standing).is_some();
    begin();
    let late = call("write_file", &standing);
    begin();
    fail(&late);
    assert!(!is_locked(), "it belongs to the session before");
    fail(&call("write_file", &standing));
    assert!(is_locked());
}
