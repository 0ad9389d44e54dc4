//! Whatever comes, in whatever order: every request is answered exactly once, nothing follows the
//! end, and no deadline is missed.

use hashbrown::HashMap;
use proptest::prelude::*;

use super::*;

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Client(String),
    Server(String),
    Wait(u64),
    Stall,
    Exit(&'static str),
    Started,
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..6u8).prop_map(|id| id.to_string()),
        (0..3u8).prop_map(|id| format!("\"{id}\"")),
        Just("1.0".to_owned()),
        Just("1e0".to_owned()),
        (1..6u8).prop_map(|id| format!("\"faultwire-0000000000000000-{id}\"")),
    ]
}

fn client_line() -> impl Strategy<Value = String> {
    let method = prop_oneof![
        Just("tools/list"),
        Just("ping"),
        Just("initialize"),
        Just("logging/setLevel"),
        Just("subscriptions/listen"),
    ];
    let tool = prop_oneof![Just("echo"), Just("other"), Just("nosuch"), Just("")];
    let arguments = prop_oneof![Just("{}"), Just(r#"{"text":"x"}"#), Just("[]"), Just("{")];
    prop_oneof![
        4 => (id(), tool, arguments).prop_map(|(id, tool, arguments)| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        )),
        2 => (id(), method).prop_map(|(id, method)| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#
        )),
        2 => id().prop_map(|id| format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )),
        1 => Just(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()),
        1 => id().prop_map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)),
        1 => "[ -~]{0,20}",
    ]
}

fn server_line() -> impl Strategy<Value = String> {
    let result = prop_oneof![
        Just(r#"{"content":[]}"#),
        Just(r#"{"content":[{"type":"text","text":"no such file"}],"isError":true}"#),
        Just(r#"{"tools":[{"name":"echo"},{"name":"other"}]}"#),
        Just(r#"{"tools":[],"nextCursor":"next"}"#),
        Just("[]"),
    ];
    let notice = prop_oneof![
        Just("notifications/progress"),
        Just("notifications/tools/list_changed"),
        Just("notifications/message"),
    ];
    prop_oneof![
        4 => (id(), result).prop_map(|(id, result)| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        )),
        2 => id().prop_map(|id| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"broken"}}}}"#
        )),
        1 => (id(), notice).prop_map(|(id, notice)| format!(
            r#"{{"jsonrpc":"2.0","method":"{notice}","params":{{"progressToken":{id}}}}}"#
        )),
        1 => id().prop_map(|id| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{}}}}"#
        )),
        1 => id().prop_map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":"#)),
        1 => "[ -~]{0,20}",
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => client_line().prop_map(Step::Client),
        8 => server_line().prop_map(Step::Server),
        2 => prop_oneof![0..50u64, 500..3000u64, 10_000..90_000u64].prop_map(Step::Wait),
        1 => Just(Step::Stall),
        1 => prop_oneof![Just("exited with status 0"), Just("was ended by signal 9")]
            .prop_map(Step::Exit),
        2 => Just(Step::Started),
    ]
}

/// How often each id was asked under, and answered.
#[derive(Default)]
struct Tally(HashMap<String, (u32, u32)>);

impl Tally {
    fn asked(&mut self, line: &str) {
        let line = format!("{line}\n");
        let seen = peek(line.as_bytes());
        if seen.sort() == faultwire_contract::Sort::Request
            && let Some(id) = seen.id.filter(|id| crate::wire::is_id(id))
        {
            self.0.entry(id.to_owned()).or_default().0 += 1;
        }
    }

    fn answered(&mut self, out: &[String]) {
        for line in out {
            let mut words = line.split(' ');
            let is_answer = matches!(words.next(), Some("answer" | "fail"));
            if let Some(id) = words.next().filter(|id| is_answer && *id != "-") {
                self.0.entry(id.to_owned()).or_default().1 += 1;
            }
        }
    }
}

fn play(steps: Vec<Step>, is_remote: bool) {
    let mut settings = settings("standard");
    settings.deadlines.default = Duration::from_secs(2);
    settings.deadlines.hard = Duration::from_secs(6);
    settings.deadlines.start = Duration::from_secs(5);
    settings.restart.limit = 2;
    let mut driven = Driven::with(settings, is_remote, None);
    let (mut tally, mut is_running) = (Tally::default(), true);
    for step in steps {
        match step {
            Step::Client(line) => {
                tally.asked(&line);
                driven.client(&line);
            }
            Step::Server(line) if is_running => driven.server(&line),
            Step::Wait(time) => driven.wait(Duration::from_millis(time)),
            Step::Stall => driven.stalled = Some(driven.at),
            Step::Exit(how) if is_running && !is_remote => {
                driven.exit(how);
                is_running = false;
            }
            // It is started when the session wants it, and only then.
            Step::Started if !is_running => {
                driven.wait(Duration::from_secs(31));
                if driven.out.iter().any(|out| out == "start") {
                    driven.started();
                    is_running = true;
                }
            }
            _ => {}
        }
        let overdue = driven.session.calls.iter().find(|call| {
            call.deadline.is_some_and(|deadline| deadline + Duration::from_secs(90) < driven.now)
                || call.hard.is_some_and(|hard| hard + Duration::from_secs(90) < driven.now)
        });
        assert!(overdue.is_none(), "a call is open past its deadline: {:?}", driven.out);
        tally.answered(&std::mem::take(&mut driven.out));
    }
    driven.close();
    assert_eq!(driven.out.last().map(String::as_str), Some("close"), "{:?}", driven.out);
    tally.answered(&std::mem::take(&mut driven.out));
    for (id, (asked, answered)) in &tally.0 {
        assert_eq!(asked, answered, "id {id}: asked {asked} times, answered {answered}");
    }
    nothing_after_close(&mut driven);
}

/// After the end a request is still answered, and nothing else is done.
fn nothing_after_close(driven: &mut Driven) {
    driven.client(r#"{"jsonrpc":"2.0","id":77,"method":"ping"}"#);
    assert_eq!(std::mem::take(&mut driven.out), ["fail 77 not_ready not_sent"]);
    driven.wait(Duration::from_mins(10));
    let effects = std::mem::take(&mut driven.out);
    assert!(effects.is_empty(), "{effects:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_exactly_once(steps in prop::collection::vec(step(), 0..60)) {
        play(steps, false);
    }

    #[test]
    fn the_same_behind_a_url(steps in prop::collection::vec(step(), 0..60)) {
        play(steps, true);
    }
}
