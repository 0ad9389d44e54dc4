//! What a request of a client passes before it is sent: the whole order, and the only place that
//! has one. The first guard that objects ends the request.
//!
//! A call whose tool is not known yet waits for the tool list between the two columns. One that
//! waited, for the list or for the server, passes the second column when it is sent.

use faultwire_contract::{Line, ambiguity};

use super::Session;
use super::inbound::Request;
use crate::failing::CallFailure;

/// A check of a request, by the name that `docs/guards.md` uses.
pub(super) struct Guard {
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the documents"))]
    name: &'static str,
    check: fn(&Session, &Request<'_>) -> Option<CallFailure>,
}

macro_rules! column {
    ($($name:literal $check:path),+ $(,)?) => { &[$(Guard { name: $name, check: $check }),+] };
}

/// Before anything else: the line itself.
#[cfg(test)]
const MESSAGE: [&str; 3] = ["message", "depth", "ambiguity"];

/// For every request.
pub(super) const REQUEST: &[Guard] = column![
    "tool name" Session::tool_name_objection,
    "access"    Session::access_objection,
    "task"      Session::task_objection,
    "id in use" Session::id_objection,
    "shutdown"  Session::shutdown_objection,
    "server"    Session::server_objection,
    "room"      Session::room_objection,
    "breaker"   Session::breaker_objection,
];

/// For a call of a tool, once the tool list is known.
pub(super) const TOOL: &[Guard] = column![
    "session rules" Session::rules_objection,
    "headers"       Session::headers_objection,
    "arguments"     Session::arguments_objection,
];

/// The first objection of a column.
pub(super) fn objection(
    column: &[Guard],
    session: &Session,
    request: &Request<'_>,
) -> Option<CallFailure> {
    column.iter().find_map(|guard| (guard.check)(session, request))
}

/// Why a line is not read as the message that it seems to be: two parsers could differ on it, or
/// it is nested too deeply. ([`MESSAGE`], after the line was found to be a message at all.)
pub(super) fn unreadable(line: &Line<'_>, depth: usize) -> Option<String> {
    if line.is_deeper_than(depth) {
        return Some(format!("it is nested deeper than {depth} levels"));
    }
    ambiguity(line).map(|found| found.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_documents_name_the_guards_in_this_order() {
        let columns = REQUEST.iter().chain(TOOL).map(|guard| guard.name);
        let names: Vec<&str> = MESSAGE.into_iter().chain(columns).collect();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = fs::read_to_string(root.join("docs/guards.md")).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let listed: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        assert_eq!(listed, names, "docs/guards.md");
        let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix("Guards, in order: "));
        let line =
            line.expect("ARCHITECTURE.md has a line that begins with \"Guards, in order: \"");
        let listed: Vec<&str> = line.trim_end_matches('.').split(" → ").collect();
        assert_eq!(listed, names, "ARCHITECTURE.md");
    }
}
