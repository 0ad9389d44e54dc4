//! SIGHUP: what the new settings change, and what they leave as it was.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::support::Dir;
use crate::wrap::client::FAULTWIRE;

struct Renewed {
    dir: Dir,
    gateway: Gateway,
}

/// A gateway whose settings can be written anew.
fn start(settings: &str, server: &[&str]) -> Renewed {
    let dir = Dir::new();
    for client in ["ann", "bob"] {
        std::fs::write(dir.path().join(client), format!("{client}-token\n")).unwrap();
    }
    write(&dir, settings);
    let gateway = Gateway::before(&["--config", &dir.join("faultwire.toml")], server);
    Renewed { dir, gateway }
}

fn write(dir: &Dir, settings: &str) {
    let settings = settings.replace("DIR", &dir.path().display().to_string());
    std::fs::write(dir.path().join("faultwire.toml"), settings).unwrap();
}

impl Renewed {
    /// Renews the settings, and waits until that shows: a client comes or goes with it.
    fn renew(&self, settings: &str, token: &str, is_known: bool) {
        write(&self.dir, settings);
        self.gateway.signal("HUP");
        let until = Instant::now() + Duration::from_secs(10);
        let ask = || {
            let list = self.gateway.modern(&json!(1), "tools/list", &json!({}));
            list.header("authorization", &format!("Bearer {token}")).send().status
        };
        while (ask() == 200) != is_known {
            assert!(Instant::now() < until, "the new settings are not taken");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a call is open.
    fn until_open(&self) {
        let is_open = || {
            let metrics = self.gateway.request("GET", "/metrics").send().body;
            metrics.contains("\nfaultwire_calls_in_flight 1\n")
        };
        let until = Instant::now() + Duration::from_secs(10);
        while !is_open() {
            assert!(Instant::now() < until, "the call does not come");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn call(&self, token: &str, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let request = self.gateway.modern(&json!(1), "tools/call", &params);
        request.header("authorization", &format!("Bearer {token}")).send().reply()
    }
}

const ANN: &str = "[[client]]\nname = \"ann\"\ntoken_file = \"DIR/ann\"\n";
const BOB: &str = "[[client]]\nname = \"bob\"\ntoken_file = \"DIR/bob\"\n";

#[test]
fn what_is_used_up_of_a_rate_stays_used_up() {
    let limited = format!("contract = \"owlclaw\"\n{ANN}rate = \"2/h\"\n");
    let renewed = start(&limited, &[FAULTWIRE, "demo-server"]);
    let code = || {
        let reply = renewed.call("ann-token", "echo", &json!({ "text": "x" }));
        reply["result"]["structuredContent"]["error"]["code"].clone()
    };
    assert_eq!([code(), code()], [Value::Null, Value::Null]);
    renewed.renew(&format!("{limited}{BOB}"), "bob-token", true);
    assert_eq!(code(), "governance.rate_limited");
    // Another rate is another matter.
    let other = limited.replace("2/h", "3/h");
    renewed.renew(&other, "bob-token", false);
    assert_eq!(code(), Value::Null);
}

#[test]
fn k12_a_session_that_was_begun_goes_on() {
    let code = r#"
import sys, json, time
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/call": time.sleep(m["params"]["arguments"].get("seconds", 0))
    if m["method"] == "initialize": r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": t, "inputSchema": {"type": "object"}} for t in ["begin_session", "work"]]}
    else: r = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let settings = format!("contract = \"kaiza\"\n{ANN}");
    let renewed = start(&settings, &["python3", "-c", code]);
    let work = || renewed.call("ann-token", "work", &json!({}))["result"]["isError"].clone();
    assert_eq!(work(), true, "nothing is called before the session began");
    // It counts whenever it is answered.
    std::thread::scope(|scope| {
        let begin =
            scope.spawn(|| renewed.call("ann-token", "begin_session", &json!({ "seconds": 6 })));
        renewed.until_open();
        renewed.renew(&format!("{settings}{BOB}"), "bob-token", true);
        assert_eq!(work(), true, "it has not begun yet");
        begin.join().unwrap();
    });
    assert_ne!(work(), true);
    renewed.renew(&settings, "bob-token", false);
    assert_ne!(work(), true);
}

#[test]
fn who_is_let_in_no_more_hears_no_more() {
    let renewed = start(&format!("{ANN}{BOB}"), &[FAULTWIRE, "demo-server"]);
    let begin = |token: &str| {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
        let request = renewed.gateway.request("POST", "/mcp");
        let request = request.header("authorization", &format!("Bearer {token}"));
        let answer = request.body(hello.to_string()).send();
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        renewed
            .gateway
            .request("GET", "/mcp")
            .header("accept", "text/event-stream")
            .header("authorization", &format!("Bearer {token}"))
            .header("mcp-session-id", &session)
            .open()
    };
    let (mut gone, mut stays) = (begin("ann-token"), begin("bob-token"));
    renewed.renew(BOB, "ann-token", false);
    assert!(!gone.is_silent(Duration::from_secs(5)), "the stream goes on");
    assert_eq!(gone.rest().body, "", "the stream has ended");
    assert!(stays.is_silent(Duration::from_millis(300)), "and the other has not");
}

#[test]
fn it_is_ready_for_signals_when_it_says_so() {
    for _ in 0..5 {
        let gateway = Gateway::demo(&[]);
        gateway.signal("HUP");
        assert_eq!(gateway.request("GET", "/readyz").send().status, 200);
        let gateway = Gateway::demo(&[]);
        assert_eq!(gateway.end(), Some(0));
    }
}

/// The server that all share is replaced, and whoever waits for the old one is still answered.
#[test]
fn open_calls_outlive_the_settings_that_they_began_with() {
    let renewed = start(&format!("drain = \"1s\"\n{ANN}"), &[FAULTWIRE, "demo-server"]);
    renewed.call("ann-token", "echo", &json!({ "text": "x" }));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| renewed.call("ann-token", "slow", &json!({ "ms": 8000 })));
        renewed.until_open();
        renewed.renew(&format!("drain = \"1s\"\n{ANN}{BOB}"), "bob-token", true);
        let reply = slow.join().unwrap();
        assert_ne!(reply["result"]["isError"], true, "{reply}");
    });
}
