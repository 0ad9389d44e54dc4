//! A tool with an output schema behind `serve`: no refusal and no failure of it carries
//! `structuredContent`, on any path (S5).

use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::support::{BUILTINS, Dir};
use crate::wrap::facts::{SERVER, check};

struct Served {
    gateway: Gateway,
    session: String,
    _dir: Dir,
}

/// A gateway with one session, whose tool list is known.
fn served(contract: &str, settings: &str) -> Served {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(&config, format!("contract = \"{contract}\"\ntimeout = \"1s\"\n{settings}"))
        .unwrap();
    let gateway = Gateway::before(&["--config", &config], &["python3", "-c", SERVER]);
    let session = gateway.begin();
    let served = Served { gateway, session, _dir: dir };
    served.post(&json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }));
    served
}

impl Served {
    fn post(&self, message: &Value) -> crate::serve::http::Answer {
        self.gateway.post(Some(&self.session), message)
    }

    fn call(&self, id: u64, how: &Value) -> Value {
        self.gateway.call(&self.session, id, "t", &json!({ "how": how }))
    }

    /// Calls the tool so that it hangs, does something meanwhile, and waits for the reply.
    fn meanwhile(&self, id: u64, act: impl FnOnce()) -> Value {
        std::thread::scope(|scope| {
            let open = scope.spawn(|| self.call(id, &json!("hang")));
            std::thread::sleep(Duration::from_millis(300));
            act();
            open.join().unwrap()
        })
    }
}

#[test]
fn s5_every_path_over_http_has_the_same_facts_under_every_contract() {
    for contract in BUILTINS {
        let to = served(contract, "[limits]\nin_flight = 1\n");
        check("reported", &to.call(1, &json!("fail")));
        check("invalid arguments", &to.call(2, &json!(5)));
        let timeout = to.meanwhile(3, || check("in flight", &to.call(4, &json!("fail"))));
        check("timeout", &timeout);
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": { "requestId": 5 } });
        check("cancelled", &to.meanwhile(5, || drop(to.post(&cancel))));
        check("crash", &to.call(6, &json!("crash")));
        let metrics = to.gateway.request("GET", "/metrics").send().body;
        // Six failures, each counted under its tool once.
        let counted = "faultwire_calls_total{tool=\"t\",result=\"failure\"} 6";
        assert!(metrics.contains(counted), "{contract}: {metrics}");
        for record in to.gateway.records().iter().filter(|record| record["type"] == "fault") {
            assert_eq!(record["fault"]["tool"], "t", "{contract}: {record}");
            assert!(record["call"]["elapsed_ms"].is_number(), "{contract}: {record}");
        }
        let to = served(contract, "");
        let first = to.meanwhile(7, || check("duplicate id", &to.call(7, &json!("fail"))));
        check("timeout", &first);
    }
}

#[test]
fn s5_no_refusal_over_http_gives_structured_content_beside_an_output_schema() {
    for contract in BUILTINS {
        let rated = served(contract, "[tool.t]\nrate = \"1/h\"\n");
        check("reported", &rated.call(1, &json!("fail")));
        check("rate", &rated.call(2, &json!("fail")));
        let broken = served(contract, "[breaker]\nfailures = 1\nwait = \"60s\"\n");
        check("crash", &broken.call(1, &json!("crash")));
        check("breaker", &broken.call(2, &json!("fail")));
    }
}

#[test]
fn s5_a_client_that_may_not_call_the_tool_gets_none_either() {
    for (contract, limit) in [("owlclaw", "deny = [\"t\"]"), ("workrail", "budget = \"1/d\"")] {
        let dir = Dir::new();
        let (config, token) = (dir.join("faultwire.toml"), dir.join("ann"));
        std::fs::write(&token, "ann-token").unwrap();
        let settings = format!(
            "contract = \"{contract}\"\n[[client]]\nname = \"ann\"\ntoken_file = {token:?}\n{limit}\n"
        );
        std::fs::write(&config, settings).unwrap();
        let gateway = Gateway::before(&["--config", &config], &["python3", "-c", SERVER]);
        let ask = |id: u64, method: &str, params: &Value| {
            let request = gateway.modern(&json!(id), method, params);
            request.header("authorization", "Bearer ann-token").send().reply()
        };
        ask(0, "tools/list", &json!({}));
        for id in 1..4 {
            let params = json!({ "name": "t", "arguments": { "how": "fail" } });
            check(limit, &ask(id, "tools/call", &params));
        }
    }
}
