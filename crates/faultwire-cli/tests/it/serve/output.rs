//! Successes against the tool's `outputSchema` behind `serve`: sessions, shared servers, URLs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::support::Dir;
use crate::wrap::client::{PATIENCE, envelope};
use crate::wrap::output::{FINE, MISSING, SERVER, WRONG, things, tools};

/// A gateway before the server, and one before another gateway.
fn gateways(mode: &str, dir: &Dir) -> Vec<(&'static str, Gateway, Option<Gateway>)> {
    let tools = tools(dir, &things());
    let server = ["python3", "-c", SERVER, &tools, "at once"];
    let args = ["--contract", "standard", "--output", mode];
    let behind = Gateway::before(&["--contract", "standard", "--output", "off"], &server);
    let before = Gateway::before_url(&args, &behind.url());
    vec![("process", Gateway::before(&args, &server), None), ("url", before, Some(behind))]
}

/// What a client of each era is told.
fn told(gateway: &Gateway, session: &str, id: u64, raw: &str) -> [Value; 2] {
    let arguments = json!({ "raw": raw });
    let legacy = gateway.call(session, id, "t", &arguments);
    let params = json!({ "name": "t", "arguments": arguments });
    [legacy, gateway.modern(&json!(id), "tools/call", &params).send().reply()]
}

fn mismatches(gateway: &Gateway) -> Vec<Value> {
    let text = std::fs::read_to_string(gateway.audit.path().join("log/audit-log.jsonl")).unwrap();
    // The last line may be on its way.
    let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    records.filter(|r: &Value| r["name"] == "output_mismatch").collect()
}

#[test]
fn a8_over_http_a_mismatch_passes_is_recorded_and_counted() {
    for (place, gateway, _behind) in gateways("warn", &Dir::new()) {
        let session = gateway.begin();
        for (id, raw) in [(1, FINE), (2, WRONG), (3, MISSING)] {
            let given: Value = serde_json::from_str(raw).unwrap();
            let [legacy, modern] = told(&gateway, &session, id, raw);
            assert_eq!(legacy["result"], given, "{place}");
            for (name, value) in given.as_object().unwrap() {
                assert_eq!(modern["result"][name], *value, "{place}");
            }
        }
        let metrics = gateway.request("GET", "/metrics").send().body;
        let line = "faultwire_output_mismatch_total{tool=\"t\"} 4";
        assert!(metrics.contains(line), "{place}: {line} is not in\n{metrics}");
        assert!(!metrics.contains("result=\"failure\"} 1"), "{place}: {metrics}");
        // The reply does not wait for its record.
        let until = Instant::now() + PATIENCE;
        while mismatches(&gateway).len() < 4 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let recorded = mismatches(&gateway);
        assert_eq!(recorded.len(), 4, "{place}: {recorded:?}");
        assert_eq!(recorded[0]["facts"]["issues"][0]["path"], "items.0.id", "{place}");
    }
}

#[test]
fn s5_over_http_an_enforced_mismatch_is_an_envelope_for_every_client() {
    for (place, gateway, _behind) in gateways("enforce", &Dir::new()) {
        let session = gateway.begin();
        for reply in told(&gateway, &session, 1, FINE) {
            let given: Value = serde_json::from_str(FINE).unwrap();
            let structured = &reply["result"]["structuredContent"];
            assert_eq!(*structured, given["structuredContent"], "{place}");
        }
        for (id, raw) in [(2, WRONG), (3, MISSING)] {
            for reply in told(&gateway, &session, id, raw) {
                let error = envelope(&reply)["error"].clone();
                assert_eq!(error["code"], "bad_response", "{place}: {reply}");
                assert!(reply["result"].get("structuredContent").is_none(), "{place}: {reply}");
                assert_eq!(reply["id"], id, "{place}: {reply}");
            }
        }
        let metrics = gateway.request("GET", "/metrics").send().body;
        assert!(metrics.contains("faultwire_output_mismatch_total{tool=\"t\"} 4"), "{metrics}");
        assert!(mismatches(&gateway).is_empty(), "{place}");
    }
}

#[test]
fn s5_over_http_a_reply_of_any_form_is_compared() {
    let dir = Dir::new();
    let lines = WRONG.replace(',', ",\n");
    for arguments in [
        json!({ "raw": lines }),
        json!({ "raw": WRONG, "list": true }),
        json!({ "raw": WRONG, "last": true }),
    ] {
        let (_, gateway, _) = gateways("enforce", &dir).swap_remove(0);
        let session = gateway.begin();
        let reply = gateway.call(&session, 1, "t", &arguments);
        assert_eq!(envelope(&reply)["error"]["code"], "bad_response", "{arguments}: {reply}");
    }
}

#[test]
fn a_mismatch_does_not_open_the_breaker() {
    let dir = Dir::new();
    let (_, gateway, _) = gateways("enforce", &dir).swap_remove(0);
    let session = gateway.begin();
    for id in 0..10 {
        let reply = gateway.call(&session, id, "t", &json!({ "raw": WRONG }));
        assert_eq!(envelope(&reply)["error"]["code"], "bad_response", "{id}: {reply}");
    }
    let reply = gateway.call(&session, 10, "t", &json!({ "raw": FINE }));
    assert!(reply["result"]["isError"].is_null(), "{reply}");
}
