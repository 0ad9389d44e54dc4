//! Ten thousand calls of all kinds at once: nothing hangs, nothing is answered twice, nothing is
//! missing from the log, and memory stays where it was.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wrap::client::Client;

const CALLS: usize = 10_000;
const IN_FLIGHT: usize = 64;
const DEADLINE: Duration = Duration::from_millis(500);
/// How late a busy machine may let us hear an answer.
const LATE: Duration = Duration::from_secs(2);

/// A small generator: the same calls in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Mostly successes; now and then everything that can go wrong with 63 others open. Where the
/// server crashes no call waits long, so that is for the first half, and to hang for the second.
fn pick(dice: &mut Dice, sent: usize) -> (&'static str, Value) {
    const RARE: [&str; 10] = [
        "twice",
        "noise",
        "both",
        "neither",
        "text_id",
        "crash",
        "exit_zero",
        "half",
        "crash_after",
        "truncated",
    ];
    const COMMON: [&str; 8] = [
        "missing_file",
        "leak",
        "rate_limited",
        "soft_failure",
        "rpc_error",
        "malformed",
        "not_utf8",
        "result_as_text",
    ];
    match dice.roll(100) {
        0..60 => ("add", json!({ "a": 1, "b": 2 })),
        60..70 => ("slow", json!({ "ms": dice.roll(20) })),
        70..75 => ("big", json!({ "kib": dice.roll(64) })),
        75..80 => ("echo", json!({})),
        80..98 => (COMMON[usize::try_from(dice.roll(8)).unwrap()], json!({})),
        98 if sent < CALLS / 2 => (RARE[usize::try_from(dice.roll(10)).unwrap()], json!({})),
        98 => (RARE[usize::try_from(dice.roll(5)).unwrap()], json!({})),
        _ if sent > CALLS / 2 && dice.roll(2) == 0 => ("hang", json!({})),
        _ => ("pretty", json!({})),
    }
}

#[test]
fn a5_ten_thousand_mixed_calls() {
    let timeout = format!("{}ms", DEADLINE.as_millis());
    let mut client = Client::demo(&["--timeout", &timeout]);
    let mut dice = Dice(20_261_116);
    let mut open: HashMap<String, (Instant, &str)> = HashMap::new();
    let (mut sent, mut failed, mut answered) = (0, Vec::new(), 0);
    let mut timed_out = 0;
    let mut warm = 0;
    while answered < CALLS {
        while open.len() < IN_FLIGHT && sent < CALLS {
            let (tool, arguments) = pick(&mut dice, sent);
            let id = client.post_call(tool, &arguments);
            open.insert(id.to_string(), (Instant::now(), tool));
            sent += 1;
        }
        let line = client.line(DEADLINE * 4).unwrap_or_else(|| panic!("hung: {open:?}"));
        let message: Value = serde_json::from_str(&line).unwrap();
        if message.get("method").is_some() {
            continue;
        }
        let id = message["id"].to_string();
        let (since, tool) =
            open.remove(&id).unwrap_or_else(|| panic!("twice, or never asked: {line}"));
        let took = since.elapsed();
        assert!(took < DEADLINE + LATE, "{tool} took {took:?}");
        timed_out += u32::from(tool == "hang" && took >= DEADLINE);
        if message["result"]["isError"] == true {
            failed.push(message["id"].clone());
        }
        answered += 1;
        if answered == CALLS / 4 {
            warm = client.status("VmRSS");
        }
    }
    let after = client.status("VmRSS");
    assert!(after < warm + 16 * 1024, "{warm} KiB after a quarter, {after} at the end");
    let ended = client.end();
    assert!(ended.replies.values().all(|times| *times == 1));
    let mut recorded: HashMap<String, u32> = HashMap::new();
    for record in ended.records.iter().filter(|r| r["type"] == "fault") {
        *recorded.entry(record["call"]["request"].to_string()).or_default() += 1;
    }
    assert!(timed_out > 10, "{timed_out}");
    assert!(failed.len() > CALLS / 10, "{}", failed.len());
    assert_eq!(recorded.len(), failed.len());
    for id in failed {
        assert_eq!(recorded.get(&id.to_string()), Some(&1), "{id}");
    }
}
