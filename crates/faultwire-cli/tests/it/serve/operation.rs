//! How a gateway is run: drained, reloaded, watched.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::support::{Dir, command};
use crate::wrap::client::{FAULTWIRE, PATIENCE, ticks_at_rest};

#[test]
fn sigterm_drains_the_calls_in_flight() {
    let gateway = Gateway::demo(&[]);
    let session = gateway.begin();
    let params = |ms: u64| json!({ "name": "slow", "arguments": { "ms": ms } });
    gateway.modern(&json!(0), "tools/call", &params(1)).send();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..50)
            .map(|n| {
                let (gateway, session) = (&gateway, &session);
                scope.spawn(move || match n % 2 {
                    0 => gateway.call(session, n, "slow", &json!({ "ms": 1000 })),
                    _ => gateway.modern(&json!(n), "tools/call", &params(1000)).send().reply(),
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(400));
        gateway.signal("TERM");
        std::thread::sleep(Duration::from_millis(100));
        let late = gateway.modern(&json!("late"), "tools/call", &params(1)).send();
        assert_eq!(late.status, 503, "{late:?}");
        assert!(late.body.contains("shutting down"), "{late:?}");
        let ping = json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]);
        assert_eq!(gateway.post(Some(&session), &ping).status, 503);
        assert_eq!(gateway.request("GET", "/readyz").send().status, 503);
        assert_eq!(gateway.request("GET", "/healthz").send().status, 200);
        for call in calls {
            let reply = call.join().unwrap();
            assert_ne!(reply["result"]["isError"], true, "{reply}");
        }
    });
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn sighup_renews_the_settings_and_keeps_the_old_ones_if_they_are_broken() {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    let token = |token: &str| std::fs::write(dir.path().join("token"), token).unwrap();
    let write = |contract: &str, more: &str| {
        let file = dir.join("token");
        let text = format!(
            "contract = {contract:?}\n[[client]]\nname = \"c\"\ntoken_file = {file:?}\n{more}"
        );
        std::fs::write(&config, text).unwrap();
    };
    token("first");
    write("owlclaw", "");
    let gateway = Gateway::before(&["--config", &config], &[FAULTWIRE, "demo-server"]);
    let ask = |token: &str| {
        let params = json!({ "name": "missing_file", "arguments": {} });
        let request = gateway.modern(&json!(1), "tools/call", &params);
        request.header("authorization", &format!("Bearer {token}")).send()
    };
    let until = |what: &str, fits: &dyn Fn() -> bool| {
        let over = Instant::now() + Duration::from_secs(10);
        while !fits() {
            assert!(Instant::now() < over, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    assert!(ask("first").body.contains("incident_id"));
    token("second");
    write("kaiza", "");
    gateway.signal("HUP");
    until("the new token is known", &|| ask("second").status == 200);
    assert_eq!(ask("first").status, 403, "as the new contract has it");
    assert!(ask("second").body.contains("error_code"), "the new contract holds");
    // Broken in several ways: nothing changes.
    for (contract, more) in
        [("nosuch", ""), ("owlclaw", "nonsense = 1\n"), ("owlclaw", "[[client]]\n")]
    {
        token("third");
        write(contract, more);
        gateway.signal("HUP");
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(ask("third").status, 403, "{contract} {more}");
        assert_eq!(ask("second").status, 200, "{contract} {more}");
    }
    write("owlclaw", "");
    gateway.signal("HUP");
    until("mended settings are taken", &|| ask("third").status == 200);
}

#[test]
fn sighup_changes_what_clients_of_open_sessions_may_do() {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    let write = |more: &str| {
        let text = format!("contract = \"owlclaw\"\n[[client]]\nname = \"all\"\n{more}");
        std::fs::write(&config, text).unwrap();
    };
    write("");
    let gateway = Gateway::before(&["--config", &config], &[FAULTWIRE, "demo-server"]);
    let session = gateway.begin();
    let mut id = 0;
    let mut code = || {
        id += 1;
        let reply = gateway.call(&session, id, "echo", &json!({ "text": "x" }));
        reply["result"]["structuredContent"]["error"]["code"].clone()
    };
    assert_eq!(code(), Value::Null);
    for (more, expected) in [
        ("tools = [\"add\"]\n", json!("auth.forbidden")),
        ("rate = \"1/h\"\n", json!("governance.rate_limited")),
        ("", Value::Null),
    ] {
        write(more);
        gateway.signal("HUP");
        let over = Instant::now() + Duration::from_secs(10);
        while code() != expected {
            assert!(Instant::now() < over, "{more}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_caller_cannot_make_labels() {
    // One ends at once, the other answers whatever it is asked.
    let codes = [
        "import sys\nsys.exit(1)\n",
        r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m: print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}, "tools": [], "content": []}}), flush=True)
"#,
    ];
    for code in codes {
        let gateway = Gateway::before(&[], &["python3", "-c", code]);
        let params = json!({ "name": "made_up", "arguments": {} });
        gateway.modern(&json!(1), "tools/call", &params).send();
        let metrics = gateway.request("GET", "/metrics").send().body;
        assert!(metrics.contains("(unknown)") && !metrics.contains("made_up"), "{metrics}");
    }
}

#[test]
fn beyond_loopback_only_with_tokens() {
    let dir = Dir::new();
    let log = dir.join("log");
    let run = |more: &[&str]| {
        // An address that no machine has: whoever gets as far as to listen is told so.
        let mut args = vec!["serve", "--host", "192.0.2.1", "--port", "0", "--audit", &log];
        args.extend(more);
        let output = command(&args).env("GATEWAY_TOKEN", "t").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let told = run(&[]);
    assert!(told.contains("token") && told.contains("open_to_all"), "{told}");
    let config = dir.join("faultwire.toml");
    let clients = "[[client]]\nname = \"ci\"\ntoken_env = \"GATEWAY_TOKEN\"\n";
    for settings in [clients, "[serve]\nopen_to_all = true\n"] {
        std::fs::write(&config, settings).unwrap();
        let told = run(&["--config", &config]);
        assert!(told.contains("cannot listen on 192.0.2.1"), "{settings}: {told}");
    }
}

#[test]
fn mistakes_in_the_settings_say_where() {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    let rows = [
        ("[serve]\nport = \"x\"\n", ":2", "port"),
        ("[[client]]\nname = \"a\"\nrate = \"often\"\n", ":3", "60/m"),
        ("[[client]]\nname = \"a\"\nbudget = \"5/s\"\n", ":3", "minute"),
        (
            "[[client]]\nname = \"a\"\ntoken_env = \"FAULTWIRE_NOT_SET\"\n",
            ":3",
            "FAULTWIRE_NOT_SET",
        ),
        ("\n[[client]]\nrole = \"a\"\n", ":2", "name"),
        ("[[client]]\nname = \"a\"\ntoken_file = \"/no/such\"\n", ":3", "/no/such"),
        ("[[mount]]\nname = \"a b\"\ncommand = [\"x\"]\n", ":2", "mount name"),
        ("[[mount]]\nname = \"a\"\n", ":2", "command"),
        ("[[mount]]\nname = \"a\"\nurl = \"ftp://x\"\n", ":3", "http://"),
        ("# first\ncontract = \"owlclw\"\n", ":2", "owlclaw"),
        ("[[mount]]\nname = \"a\"\nurl = \"http://x\"\ncontract = \"kaza\"\n", ":4", "kaiza"),
        ("\n\narguments = \"sometimes\"\n", ":3", "enforce"),
        ("[serve]\nconnections = 0\n", ":2", "1,000,000"),
        ("[serve]\nconnections = 9223372036854775807\n", ":2", "1,000,000"),
        ("[serve]\n\notlp = \"ftp://x\"\n", ":3", "http://"),
        ("[[client]]\nname = \"a\"\ntools = [\"[abc\"]\n", ":3", "bracket"),
        ("[[mount]]\nname = \"..\"\nurl = \"http://x\"\n", ":2", "mount name"),
        (
            "arguments = \"never\"\n[[mount]]\nname = \"a\"\nurl = \"http://x\"\ncontract = \"kaiza\"\n",
            "toml:1: arguments",
            "enforce",
        ),
        (
            "[[mount]]\nname = \"a\"\nurl = \"http://x\"\ncontract = \"tuitbot\"\nprofile = \"ap\"\n",
            ":5",
            "api, workflow",
        ),
        (
            "[[mount]]\nname = \"a\"\nurl = \"http://x\"\n[[mount]]\nname = \"a\"\nurl = \"http://x\"\n",
            ":5",
            "two mounts",
        ),
    ];
    for (text, place, what) in rows {
        std::fs::write(&config, text).unwrap();
        let log = dir.join("log");
        let output = command(&["serve", "--port", "0", "--audit", &log, "--config", &config])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {told}");
        assert!(told.contains(place) && told.contains(what), "{text}: {told}");
    }
}

#[test]
fn metrics_and_the_page_show_what_happened() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    let session = gateway.begin();
    gateway.call(&session, 1, "echo", &json!({ "text": "x" }));
    gateway.call(&session, 2, "leak", &json!({}));
    gateway.call(&session, 3, "<script>alert(1)</script>", &json!({}));
    gateway.request("GET", "/").header("origin", "http://evil.example").send();
    let metrics = gateway.request("GET", "/metrics").send().body;
    for line in [
        "faultwire_calls_total{tool=\"echo\",result=\"success\"} 1",
        "faultwire_calls_total{tool=\"leak\",result=\"failure\"} 1",
        "faultwire_failures_total{code=\"dependency.unavailable\",category=\"dependency\",origin=\"upstream\",tool=\"leak\"} 1",
        "faultwire_rejected_requests_total{code=\"auth.forbidden\"} 1",
        "faultwire_calls_in_flight 0",
        "faultwire_servers 1",
        "faultwire_audit_sync_seconds_count 3",
        "faultwire_call_duration_seconds_count{tool=\"echo\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    // One refusal of an unknown client pages no one (X4).
    assert!(!metrics.contains("faultwire_alert_pages_total"), "{metrics}");
    assert!(metrics.contains("faultwire_redactions_total"), "{metrics}");
    assert!(!metrics.contains("script"), "{metrics}");
    let page = gateway.request("GET", "/").send();
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(
        page.body.contains("dependency.unavailable") && page.body.contains("/mcp/"),
        "{}",
        page.body
    );
    assert!(!page.body.contains("<script>") && !page.body.contains("hunter2"), "{}", page.body);
    let status = gateway.request("GET", "/api/status").send().json();
    assert_eq!(status["failures"].as_array().unwrap().len(), 3);
    gateway.call(&session, 4, "crash", &json!({}));
    gateway.call(&session, 5, "echo", &json!({ "text": "there again" }));
    let metrics = gateway.request("GET", "/metrics").send().body;
    assert!(metrics.contains("faultwire_restarts_total 1"), "{metrics}");
}

#[test]
fn no_server_outlives_the_gateway() {
    let dir = Dir::new();
    let pids = dir.join("pids");
    // It does not notice the end of its input.
    let code = format!(
        "import os, time\nopen({pids:?}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(60)\n"
    );
    let gateway = Gateway::before(&[], &["python3", "-c", &code]);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {} } });
    let request = gateway.request("POST", "/mcp").body(hello.to_string());
    request.leave_after(Duration::from_millis(500));
    assert_eq!(gateway.end(), Some(0));
    let pids = std::fs::read_to_string(&pids).unwrap();
    assert!(!pids.is_empty());
    for pid in pids.lines() {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} stays behind");
    }
}

#[test]
fn a_server_is_ready_before_the_next_session_needs_it() {
    for (spare, expected) in [(0, [1, 2, 3]), (1, [2, 3, 4]), (2, [3, 4, 4])] {
        let dir = Dir::new();
        let (pids, config) = (dir.join("pids"), dir.join("faultwire.toml"));
        std::fs::write(&config, format!("[serve]\nspare = {spare}\nsessions = 4\n")).unwrap();
        let script = format!("echo $$ >> {pids}; exec {FAULTWIRE} demo-server");
        let gateway = Gateway::before(&["--config", &config], &["sh", "-c", &script]);
        let started = || std::fs::read_to_string(&pids).unwrap_or_default().lines().count();
        for expected in expected {
            let session = gateway.begin();
            let until = Instant::now() + PATIENCE;
            while started() < expected && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(started(), expected, "{spare} to spare");
            let reply = gateway.call(&session, 1, "echo", &json!({ "text": "x" }));
            assert_eq!(reply["result"]["content"][0]["text"], "x");
        }
        let pids = std::fs::read_to_string(&pids).unwrap();
        assert_eq!(gateway.end(), Some(0));
        for pid in pids.lines() {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} stays behind");
        }
    }
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let gateway = Gateway::demo(&["--contract", "owlclaw"]);
    let before = Instant::now();
    let answer = gateway
        .request("POST", "/mcp")
        .header("content-length", "100")
        .body("{\"jsonrpc\":")
        .send();
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(answer.json()["title"], "The body did not arrive in time");
    assert!(before.elapsed() > Duration::from_secs(10), "{:?}", before.elapsed());
}

/// Nor is one that comes a byte at a time.
#[test]
fn a_body_that_dribbles_in_is_not_waited_for() {
    use std::io::{Read, Write};
    let gateway = Gateway::demo(&[]);
    let request = gateway.request("POST", "/mcp").header("content-length", "1000");
    let mut socket = request.send_only();
    let before = Instant::now();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut answer = [0; 12];
    while socket.read_exact(&mut answer).is_err() {
        assert!(before.elapsed() < Duration::from_secs(40), "it waits");
        let _ = socket.write_all(b" ");
    }
    assert_eq!(&answer, b"HTTP/1.1 400");
}

#[test]
fn between_calls_it_rests() {
    let gateway = Gateway::demo(&[]);
    let session = gateway.begin();
    for id in 0..50 {
        gateway.call(&session, id, "echo", &json!({ "text": "x" }));
    }
    // Whoever stays awake for good takes a hundred.
    let ticks = ticks_at_rest(gateway.process.id());
    assert!(ticks <= 10, "{ticks}");
}

/// Log collectors die, and disks fill up.
#[test]
fn a_stderr_that_takes_nothing_stops_nobody() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let gateway = Gateway::start_with_stderr(full.into(), &["--log", "debug"]);
    for tool in ["crash", "missing_file"] {
        let params = json!({ "name": tool, "arguments": {} });
        let reply = gateway.modern(&json!(1), "tools/call", &params).send().reply();
        assert_eq!(reply["result"]["isError"], true, "{tool}: {reply}");
    }
    let faults = gateway.records().iter().filter(|record| record["fault"].is_object()).count();
    assert_eq!(faults, 2);
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn it_goes_by_the_address_that_it_prints() {
    let gateway = Gateway::start(&["--host", "127.0.0.2"]);
    assert!(gateway.url().contains("127.0.0.2"), "{}", gateway.url());
    assert_eq!(gateway.request("GET", "/healthz").send().status, 200);
}

#[test]
fn it_is_not_ready_when_failures_cannot_be_recorded() {
    let gateway = Gateway::start(&[]);
    assert_eq!(gateway.request("GET", "/readyz").send().status, 200);
    let live = gateway.audit.path().join("log/audit-log.jsonl");
    std::fs::remove_file(&live).unwrap();
    let params = json!({ "name": "missing_file", "arguments": {} });
    gateway.modern(&json!(1), "tools/call", &params).send();
    let answer = gateway.request("GET", "/readyz").send();
    assert_eq!((answer.status, &*answer.body), (503, "failures cannot be recorded\n"));
    assert_eq!(gateway.request("GET", "/healthz").send().status, 200);
}
