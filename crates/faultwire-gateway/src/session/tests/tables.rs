//! Tables: each row is something that happens, and what comes of it.

use std::time::Duration;

use super::*;
use crate::guard::breaker::BreakerSettings;

/// A message in few words, as JSON.
fn message(words: &str) -> String {
    let mut parts = words.splitn(4, ' ');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (kind, first, second, third) = (next(), next(), next(), next());
    let or =
        |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    match kind.as_str() {
        "call" => format!(
            r#"{{"jsonrpc":"2.0","id":{first},"method":"tools/call","params":{{"name":"{second}","arguments":{}}}}}"#,
            or(&third, "{}")
        ),
        "request" => format!(
            r#"{{"jsonrpc":"2.0","id":{first},"method":"{second}","params":{}}}"#,
            or(&third, "{}")
        ),
        "notify" => {
            let params = or(format!("{second} {third}").trim(), "{}");
            format!(r#"{{"jsonrpc":"2.0","method":"{first}","params":{params}}}"#)
        }
        "ok" => {
            let result = or(format!("{second} {third}").trim(), r#"{"content":[]}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{result}}}"#)
        }
        "error" => format!(
            r#"{{"jsonrpc":"2.0","id":{first},"error":{{"code":{second},"message":"{third}"}}}}"#
        ),
        "failed" => format!(
            r#"{{"jsonrpc":"2.0","id":{first},"result":{{"content":[{{"type":"text","text":"{second} {third}"}}],"isError":true}}}}"#
        ),
        _ => words.to_owned(),
    }
}

/// The tool list that most rows use: `echo` wants a text.
const TOOLS: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"other","inputSchema":{"type":"object"}}]}"#;
const HELLO: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t"}}"#;

/// Does what a row says.
fn act(driven: &mut Driven, step: &str) {
    let (what, rest) = step.split_once(' ').unwrap_or((step, ""));
    match what {
        "client" => driven.client(&message(rest)),
        "server" => driven.server(&message(rest)),
        "wait" => driven.wait(Duration::from_millis(rest.parse().expect("milliseconds"))),
        "exit" => driven.exit(rest),
        "started" => driven.started(),
        "stall" => driven.stalled = Some(driven.at),
        "close" => driven.close(),
        "refuse" => driven.session.refuse_new(),
        "overlong" => {
            driven.session.on_overlong(Some(rest), false, super::super::TooLong::Limit);
            driven.carry_out();
        }
        "lost" => {
            let slot = driven.slot();
            driven.session.on_session_lost(Some(rest), slot);
            driven.carry_out();
        }
        "unsent" => {
            let call = driven.session.on_send_error(rest, driven.now);
            let failure = driven
                .session
                .observed(Condition::UpstreamUnreachable, "The server cannot be reached");
            if let Some(call) = call {
                driven.fail(call, failure);
            }
            driven.carry_out();
        }
        "start-error" => {
            let error = std::io::Error::from_raw_os_error(2);
            driven.session.on_start_error(&error, false, driven.now);
            driven.carry_out();
        }
        other => panic!("no such step: {other}"),
    }
}

/// Runs rows of what happens and what comes of it, `;` between several.
fn check(driven: &mut Driven, rows: &[(&str, &str)]) {
    for (number, (step, expected)) in rows.iter().enumerate() {
        act(driven, step);
        let out = std::mem::take(&mut driven.out).join("; ");
        assert_eq!(out, *expected, "row {number}: {step}");
    }
}

/// A session whose server has told its tools.
fn listed() -> Driven {
    listed_under(settings("standard"))
}

fn listed_under(settings: Settings) -> Driven {
    let mut driven = Driven::new(settings);
    check(
        &mut driven,
        &[
            (&format!("client request 0 initialize {HELLO}"), "pass"),
            ("server ok 0 {}", "answer 0"),
            ("client notify notifications/initialized", "pass"),
            ("client request 90 tools/list", "pass"),
            (&format!("server ok 90 {TOOLS}"), "answer 90"),
        ],
    );
    driven
}

#[test]
fn a_call_is_answered_once() {
    check(
        &mut listed(),
        &[
            (r#"client call 1 echo {"text":"hi"}"#, "pass"),
            ("server ok 1", "answer 1"),
            ("server ok 1", "event duplicate_reply"),
            (r#"client call 1 echo {"text":"again"}"#, "pass"),
            ("server failed 1 no such file", "fail 1 not_found executed"),
            (r#"client call "a" echo {"text":"hi"}"#, "pass"),
            (r#"server error "a" -32603 broken"#, r#"fail "a" rpc_error maybe_executed"#),
            ("close", "close"),
        ],
    );
}

#[test]
fn what_is_refused_is_never_sent() {
    check(
        &mut listed(),
        &[
            ("client call 1 echo {\"txt\":\"hi\"}", "fail 1 invalid_arguments not_sent"),
            ("client call 1 echo {\"text\":5}", "fail 1 invalid_arguments not_sent"),
            (
                r#"client {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}"#,
                "fail 2 invalid_arguments not_sent",
            ),
            (r#"client {"jsonrpc":"2.0","id":2,"id":3,"method":"tools/list"}"#, "refuse 3 -32600"),
            (r#"client {"jsonrpc":"2.0","id":[],"method":"tools/list"}"#, "refuse - -32600"),
            (r#"client {"jsonrpc":"2.0","method":"tools/call"}"#, "refuse - -32600"),
            ("client nonsense", "refuse - -32700"),
            (r#"client {"jsonrpc":"2.0","result":{}}"#, "refuse - -32600"),
            (r#"client call 4 echo {"text":"hi"}"#, "pass"),
            (r#"client call 4 echo {"text":"hi"}"#, "fail 4 invalid_arguments not_sent"),
            (r#"client call 4.0 echo {"text":"hi"}"#, "fail 4.0 invalid_arguments not_sent"),
            ("server ok 4", "answer 4"),
            ("refuse", ""),
            (r#"client call 5 echo {"text":"hi"}"#, "fail 5 not_ready not_sent"),
        ],
    );
}

#[test]
fn the_first_call_waits_for_the_tool_list() {
    let mut driven = Driven::new(settings("standard"));
    check(
        &mut driven,
        &[
            ("client call 1 echo {\"text\":\"hi\"}", "upstream tools/list own-1"),
            ("client call 2 echo {}", ""),
            ("client request 3 ping", "pass"),
            ("server ok 3 {}", "answer 3"),
            (
                r#"server ok "faultwire-0000000000000000-1" {"tools":[],"nextCursor":"b"}"#,
                "upstream tools/list own-2",
            ),
            (
                &format!(r#"server ok "faultwire-0000000000000000-2" {TOOLS}"#),
                "upstream tools/call 1; fail 2 invalid_arguments not_sent",
            ),
            ("server ok 1", "answer 1"),
        ],
    );
}

#[test]
fn calls_go_on_without_a_list_that_does_not_come() {
    let mut driven = Driven::new(settings("standard"));
    check(
        &mut driven,
        &[
            ("client call 1 echo {\"txt\":1}", "upstream tools/list own-1"),
            ("wait 4000", ""),
            ("wait 2000", "upstream tools/call 1"),
            (&format!(r#"server ok "faultwire-0000000000000000-1" {TOOLS}"#), ""),
            ("client call 2 echo {\"txt\":1}", "fail 2 invalid_arguments not_sent"),
            ("server ok 1", "answer 1"),
        ],
    );
    let mut refusing = Driven::new(settings("standard"));
    check(
        &mut refusing,
        &[
            ("client call 1 echo", "upstream tools/list own-1"),
            (r#"server error "faultwire-0000000000000000-1" -32601 no"#, "upstream tools/call 1"),
        ],
    );
}

#[test]
fn deadlines_are_kept_and_progress_moves_them() {
    let mut settings = settings("standard");
    settings.deadlines.default = Duration::from_secs(2);
    settings.deadlines.hard = Duration::from_secs(5);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","_meta":{"progressToken":"p"}}}"#;
    let progress = r#"server notify notifications/progress {"progressToken":"p","progress":1}"#;
    check(
        &mut listed_under(settings),
        &[
            ("client call 7 other", "pass"),
            ("wait 2100", "upstream notifications/cancelled 7; fail 7 timeout maybe_executed"),
            ("server ok 7", "event late_reply"),
            (&format!("client {call}"), "pass"),
            ("wait 1500", ""),
            (progress, "pass"),
            ("wait 1500", ""),
            (progress, "pass"),
            ("wait 1500", ""),
            (progress, "pass"),
            ("wait 600", "upstream notifications/cancelled 1; fail 1 timeout maybe_executed"),
            ("stall", ""),
            ("client call 8 other", "pass"),
            ("wait 2100", "fail 8 timeout not_sent"),
        ],
    );
}

#[test]
fn cancelled_calls_end() {
    let cancel = r#"client notify notifications/cancelled {"requestId":1}"#;
    check(
        &mut listed(),
        &[
            ("client call 1 other", "pass"),
            (cancel, "pass; fail 1 cancelled maybe_executed"),
            ("server ok 1", "event late_reply"),
            (cancel, "pass"),
            ("client notify notifications/cancelled {}", "pass"),
        ],
    );
}

#[test]
fn replies_that_answer_nothing_are_recorded_or_fail_the_only_call() {
    check(
        &mut listed(),
        &[
            ("server ok 9", "event unmatched_reply"),
            ("client call 1 other", "pass"),
            ("server ok 9", "fail 1 upstream_protocol maybe_executed"),
            ("client call 1 other", "pass"),
            ("client call 2 other", "pass"),
            ("server ok 9", "event unmatched_reply"),
            (r#"server ok "2""#, "fail 2 upstream_protocol maybe_executed"),
            (r#"server {"jsonrpc":"2.0","result":{}}"#, "fail 1 upstream_protocol maybe_executed"),
            ("client notify some/notification", "pass"),
            ("client call 3 other", "pass"),
            ("server error null -32601 unknown", "event unmatched_reply"),
            ("server ok 3", "answer 3"),
        ],
    );
}

#[test]
fn lines_that_are_no_messages_fail_their_call_or_are_noise() {
    check(
        &mut listed(),
        &[
            ("server plain text", "event stray_output"),
            (r#"server {"level":"info"}"#, "event stray_output"),
            ("client call 1 other", "pass"),
            (
                r#"server {"jsonrpc":"2.0","id":1,"result":{"a":nonsense}}"#,
                "fail 1 upstream_protocol maybe_executed",
            ),
            ("client call 2 other", "pass"),
            (r#"server {"jsonrpc":"2.0","id":2,"result":{"#, "unfinished"),
            (
                r#"server {"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":""}}"#,
                "fail 2 upstream_protocol maybe_executed",
            ),
            ("client call 3 other", "pass"),
            ("overlong 3", "fail 3 upstream_protocol maybe_executed"),
        ],
    );
}

#[test]
fn a_server_that_ends_is_started_again_and_greeted() {
    check(
        &mut listed(),
        &[
            ("client call 1 other", "pass"),
            ("stall", ""),
            ("client call 2 other", "pass"),
            (
                "exit was ended by signal 9",
                "event server_ended; fail 1 upstream_crashed maybe_executed",
            ),
            ("wait 0", "start"),
            ("wait 10", ""),
            ("client call 3 other", ""),
            ("started", "event server_started; upstream initialize 0"),
            ("server ok 0 {}", "upstream notifications/initialized; upstream tools/list own-1"),
            (
                &format!(r#"server ok "faultwire-0000000000000000-1" {TOOLS}"#),
                "upstream tools/call 2; upstream tools/call 3",
            ),
            ("server ok 3", "answer 3"),
            ("server ok 2", "answer 2"),
        ],
    );
}

#[test]
fn a_handshake_that_a_new_server_does_not_take_ends_it() {
    let mut driven = listed();
    check(
        &mut driven,
        &[
            ("exit exited with status 1", "event server_ended"),
            ("wait 0", "start"),
            ("started", "event server_started; upstream initialize 0"),
            ("server error 0 -32602 no", "kill"),
            ("exit was ended by signal 9", "event server_ended"),
            ("wait 250", "start"),
            ("started", "event server_started; upstream initialize 0"),
            ("wait 61000", "kill"),
        ],
    );
}

#[test]
fn u6_a_server_that_never_starts_is_given_up() {
    let mut settings = settings("standard");
    settings.restart.limit = 1;
    let mut driven = Driven::new(settings);
    check(
        &mut driven,
        &[
            (&format!("client request 1 initialize {HELLO}"), "pass"),
            ("exit exited with status 1", "event server_ended; fail 1 start_failed maybe_executed"),
            ("wait 250", "start"),
            ("started", "event server_started"),
            ("exit exited with status 1", "event server_ended"),
            ("client call 2 echo", "fail 2 start_failed not_sent"),
            ("wait 60000", ""),
        ],
    );
    let mut missing = Driven::new(super::settings("standard"));
    check(
        &mut missing,
        &[
            ("start-error", "event server_not_started"),
            ("client call 2 echo", "fail 2 start_failed not_sent"),
            ("wait 250", "start"),
            ("start-error", "event server_not_started"),
        ],
    );
}

#[test]
fn requests_of_the_server_reach_the_client_and_move_deadlines() {
    let mut settings = settings("standard");
    settings.deadlines.default = Duration::from_secs(2);
    check(
        &mut listed_under(settings),
        &[
            ("client call 1 other", "pass"),
            ("server request 5 elicitation/create", "pass"),
            ("wait 3000", ""),
            ("client ok 5 {}", "pass"),
            ("client ok 5 {}", "event stray_answer"),
            ("wait 1500", ""),
            ("wait 1000", "upstream notifications/cancelled 1; fail 1 timeout maybe_executed"),
            ("server request 6 sampling/createMessage", "pass"),
            ("exit exited with status 1", "event server_ended; tell notifications/cancelled"),
        ],
    );
}

#[test]
fn a_list_that_changed_is_asked_for_again() {
    check(
        &mut listed(),
        &[
            ("server notify notifications/tools/list_changed", "pass"),
            ("client call 1 echo {}", "upstream tools/list own-1"),
            (
                &format!(r#"server ok "faultwire-0000000000000000-1" {TOOLS}"#),
                "fail 1 invalid_arguments not_sent",
            ),
        ],
    );
}

#[test]
fn a_session_that_a_url_server_lost_is_begun_again_once() {
    let mut driven = Driven::with(settings("standard"), true, None);
    check(
        &mut driven,
        &[
            (&format!("client request 0 initialize {HELLO}"), "pass"),
            ("server ok 0 {}", "answer 0"),
            ("client request 90 tools/list", "pass"),
            (&format!("server ok 90 {TOOLS}"), "answer 90"),
            ("client call 1 other", "pass"),
            ("lost 1", "event session_lost; upstream initialize 0"),
            ("client call 2 other", ""),
            ("server ok 0 {}", "upstream tools/list own-1"),
            (
                &format!(r#"server ok "faultwire-0000000000000000-1" {TOOLS}"#),
                "upstream tools/call 1; upstream tools/call 2",
            ),
            ("lost 1", "fail 1 upstream_unreachable not_sent"),
            ("unsent 2", "fail 2 upstream_unreachable not_sent"),
            ("unsent 2", ""),
        ],
    );
}

#[test]
fn there_is_a_limit_to_open_calls() {
    let mut settings = settings("standard");
    settings.limits.in_flight = 2;
    check(
        &mut listed_under(settings),
        &[
            ("client call 1 other", "pass"),
            ("client call 2 other", "pass"),
            ("client call 3 other", "fail 3 rate_limited not_sent"),
            ("server ok 1", "answer 1"),
            ("client call 3 other", "pass"),
            ("close", "fail 2 timeout maybe_executed; fail 3 timeout maybe_executed; close"),
        ],
    );
}

#[test]
fn a_server_in_trouble_is_left_alone() {
    let breaker = BreakerSettings { failures: 1, ..BreakerSettings::default() };
    let breaker = Arc::new(Breaker::new(breaker));
    let mut driven = Driven::with(settings("standard"), false, Some(Arc::clone(&breaker)));
    check(
        &mut driven,
        &[
            ("client request 90 tools/list", "pass"),
            (&format!("server ok 90 {TOOLS}"), "answer 90"),
        ],
    );
    breaker.failed(driven.now);
    check(
        &mut driven,
        &[
            ("client call 1 other", "fail 1 upstream_unreachable not_sent"),
            ("client request 2 ping", "pass"),
            ("wait 5001", ""),
            ("client call 3 other", "pass"),
            ("client call 4 other", "fail 4 upstream_unreachable not_sent"),
        ],
    );
}

#[test]
fn k12_sessions_are_begun_and_lock() {
    let mut driven = Driven::new(settings("kaiza"));
    let tools =
        r#"{"tools":[{"name":"begin_session"},{"name":"write_file"},{"name":"read_file"}]}"#;
    check(
        &mut driven,
        &[
            ("client request 90 tools/list", "pass"),
            (&format!("server ok 90 {tools}"), "answer 90"),
            ("client call 1 write_file", "fail 1 not_ready not_sent"),
            ("client call 2 begin_session", "pass"),
            ("server ok 2", "answer 2"),
            ("client call 3 write_file", "pass"),
            ("server failed 3 rate limit exceeded", "fail 3 rate_limited maybe_executed"),
            ("client call 4 write_file", "fail 4 locked not_sent"),
            ("client call 5 read_file", "pass"),
        ],
    );
}

#[test]
fn a_shared_server_is_told_that_it_has_no_one_client() {
    let mut driven = Driven::shared(settings("standard"));
    check(
        &mut driven,
        &[
            ("server request 1 ping", "upstream 1"),
            ("server request 2 sampling/createMessage", "upstream 2"),
            ("server notify notifications/message", "pass"),
            (
                r#"server notify notifications/x {"_meta":{"io.modelcontextprotocol/subscriptionId":"9"}}"#,
                "",
            ),
        ],
    );
}

#[test]
fn a_modern_call_asks_for_the_list_in_its_own_era() {
    let mut driven = Driven::shared(settings("standard"));
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
    let call = |id: u8| {
        format!(
            r#"client {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"x"}},"_meta":{meta}}}}}"#
        )
    };
    let listed = TOOLS.replacen('{', r#"{"resultType":"complete","#, 1);
    let wants_more = r#"server ok 2 {"resultType":"input_required","inputRequests":{}}"#;
    check(
        &mut driven,
        &[
            (&call(1), "upstream tools/list own-1"),
            (
                &format!(r#"server ok "faultwire-0000000000000000-1" {listed}"#),
                "upstream tools/call 1",
            ),
            (r#"server ok 1 {"resultType":"complete","content":[]}"#, "answer 1"),
            (&call(2), "pass"),
            (wants_more, "answer 2"),
        ],
    );
    driven.bridged = Bridged::LegacyClient;
    check(
        &mut driven,
        &[
            (&call(2), "pass"),
            // A client of the legacy era cannot give more input.
            (wants_more, "fail 2 unsupported_version maybe_executed"),
        ],
    );
}

#[test]
fn what_a_client_ordered_is_ordered_again_from_the_next_server() {
    check(
        &mut listed(),
        &[
            (r#"client request 1 logging/setLevel {"level":"info"}"#, "pass"),
            ("server ok 1 {}", "answer 1"),
            ("exit exited with status 1", "event server_ended"),
            ("wait 0", "start"),
            ("started", "event server_started; upstream initialize 0"),
            (
                "server ok 0 {}",
                "upstream notifications/initialized; upstream tools/list own-1; upstream logging/setLevel own-2",
            ),
            (r#"server error "faultwire-0000000000000000-2" -32601 no"#, "event order_lost"),
        ],
    );
}

#[test]
fn k12_a_refused_call_does_not_lock_a_session() {
    let mut settings = settings("kaiza");
    settings.limits.in_flight = 1;
    let mut driven = Driven::new(settings);
    let tools = r#"{"tools":[{"name":"begin_session"},{"name":"write_file"}]}"#;
    check(
        &mut driven,
        &[
            ("client request 90 tools/list", "pass"),
            (&format!("server ok 90 {tools}"), "answer 90"),
            ("client call 2 begin_session", "pass"),
            ("server ok 2", "answer 2"),
            ("client call 3 write_file", "pass"),
            ("client call 4 write_file", "fail 4 rate_limited not_sent"),
            ("server ok 3", "answer 3"),
            ("client call 5 write_file", "pass"),
        ],
    );
}

#[test]
fn x1_a_check_of_other_arguments_counts_for_nothing() {
    let mut driven = listed();
    let tool = driven.session.tools.get("echo").cloned().expect("it is listed");
    // A line may be rewritten after its check, for a server of the other era.
    let arguments = Some(r#"{"text":"hi"}"#.into());
    driven.checked = Some(super::super::Checked { tool, arguments, objection: None });
    check(
        &mut driven,
        &[
            (r#"client call 1 echo {"text":"hi"}"#, "pass"),
            (r#"client call 2 echo {"text":5}"#, "fail 2 invalid_arguments not_sent"),
            ("client call 3 echo", "fail 3 invalid_arguments not_sent"),
        ],
    );
}
