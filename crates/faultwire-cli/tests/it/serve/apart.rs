//! Nothing of one client or server reaches another: secrets (X2), tasks and incident ids (X3), and
//! resources and prompts that a client may not use.

use serde_json::{Value, json};

use crate::serve::gateway::{Gateway, modern};
use crate::support::{Dir, faultwire};

const CLIENTS: &str = r#"
[[client]]
name = "ann"
token_env = "ANN_TOKEN"
[[client]]
name = "bob"
token_env = "BOB_TOKEN"
"#;

const TOKENS: [(&str, &str); 2] =
    [("ANN_TOKEN", "ann-secret-token"), ("BOB_TOKEN", "bob-secret-token")];

fn gateway(settings: &str, environment: &[(&str, &str)], server: Option<&str>) -> (Gateway, Dir) {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(&config, format!("contract = \"owlclaw\"\n{settings}")).unwrap();
    let mut args = vec!["--config", config.as_str()];
    if let Some(server) = server {
        args.extend(["--", "python3", "-c", server]);
    }
    (Gateway::start_with_env(&args, environment), dir)
}

fn ask(gateway: &Gateway, token: &str, path: &str, method: &str, params: &Value) -> Value {
    let mut request = gateway
        .request("POST", path)
        .header("accept", "application/json")
        .header("authorization", &format!("Bearer {token}"));
    if let Some(uri) = params["uri"].as_str() {
        request = request.header("mcp-name", uri);
    }
    modern(request, &json!(1), method, params).send().reply()
}

#[test]
fn x2_a_server_gets_no_secret_of_others() {
    let server = r#"
import sys, json, os
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "server/discover": r = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "env", "inputSchema": {"type": "object"}}]}
    else: r = {"content": [{"type": "text", "text": json.dumps(sorted(os.environ.items()))}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
    let server = toml_text(server);
    let settings = format!(
        "{CLIENTS}\n[[mount]]\nname = \"one\"\ncommand = [\"python3\", \"-c\", {server}]\n\
         env = {{ OWN_KEY = \"ONE_KEY\" }}\n\
         [[mount]]\nname = \"two\"\ncommand = [\"python3\", \"-c\", {server}]\n\
         [[mount]]\nname = \"far\"\nurl = \"http://127.0.0.1:9/mcp\"\n\
         headers_env = {{ authorization = \"FAR_AUTHORIZATION\" }}\n"
    );
    let more = [
        ("ONE_KEY", "key-of-mount-one"),
        ("FAR_AUTHORIZATION", "Bearer far-secret-value"),
        ("COPY_OF_A_TOKEN", "x ann-secret-token y"),
        ("HARMLESS", "stays"),
    ];
    let environment: Vec<_> = TOKENS.iter().chain(&more).copied().collect();
    let (gateway, _dir) = gateway(&settings, &environment, None);
    for (path, own) in [("/mcp/one", true), ("/mcp/two", false)] {
        let reply =
            ask(&gateway, "ann-secret-token", path, "tools/call", &json!({ "name": "env" }));
        let seen =
            reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
        assert!(seen.contains("HARMLESS"), "{seen}");
        for secret in ["ann-secret-token", "bob-secret-token", "far-secret-value", "ONE_KEY"] {
            assert!(!seen.contains(secret), "{path} has {secret}: {seen}");
        }
        assert_eq!(seen.contains("[\"OWN_KEY\", \"key-of-mount-one\"]"), own, "{path}: {seen}");
    }
}

/// A text as TOML writes it.
fn toml_text(text: &str) -> String {
    format!("'''{text}'''")
}

const TASKS: &str = r#"
import sys, json
tasks = {}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    p = m.get("params", {})
    if m["method"] == "server/discover": r = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "tasks": {}}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "begin", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        tasks["t%d" % (len(tasks) + 1)] = "working"
        r = {"resultType": "task", "task": {"taskId": "t%d" % len(tasks), "status": "working"}}
    elif m["method"] == "tasks/list": r = {"tasks": [{"taskId": t, "status": s} for t, s in tasks.items()] + [{"taskId": "old"}]}
    elif m["method"] == "tasks/cancel":
        tasks[p["taskId"]] = "cancelled"
        r = {"taskId": p["taskId"], "status": "cancelled"}
    else: r = {"taskId": p.get("taskId"), "status": tasks.get(p.get("taskId")), "content": [{"type": "text", "text": "the result"}]}
    r.setdefault("resultType", "complete")
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

#[test]
fn x3_a_task_is_its_clients_alone() {
    let (gateway, _dir) = gateway(CLIENTS, &TOKENS, Some(TASKS));
    let (ann, bob) = ("ann-secret-token", "bob-secret-token");
    let begin = |token| ask(&gateway, token, "/mcp", "tools/call", &json!({ "name": "begin" }));
    assert_eq!(begin(ann)["result"]["task"]["taskId"], "t1");
    assert_eq!(begin(bob)["result"]["task"]["taskId"], "t2");
    let about =
        |token, method, id: Value| ask(&gateway, token, "/mcp", method, &json!({ "taskId": id }));
    for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"] {
        for (token, id) in [
            (bob, json!("t1")),
            (ann, json!("t2")),
            (ann, json!("old")),
            (ann, json!(["t2"])),
            (ann, Value::Null),
        ] {
            let reply = about(token, method, id.clone());
            assert_eq!(reply["error"]["code"], -32602, "{method} {id}: {reply}");
            assert!(reply["error"]["message"].as_str().unwrap().contains("not found"), "{reply}");
            assert!(!reply.to_string().contains("the result"), "{reply}");
        }
    }
    let related = json!({ "name": "begin", "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t2" } } });
    let reply = ask(&gateway, ann, "/mcp", "tools/call", &related);
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    for (token, own) in [(ann, "t1"), (bob, "t2")] {
        let reply = ask(&gateway, token, "/mcp", "tasks/list", &json!({}));
        assert_eq!(reply["result"]["tasks"].as_array().unwrap().len(), 1, "{reply}");
        assert_eq!(reply["result"]["tasks"][0]["taskId"], own, "{reply}");
        assert_eq!(about(token, "tasks/get", json!(own))["result"]["status"], "working");
    }
    assert_eq!(about(ann, "tasks/cancel", json!("t1"))["result"]["status"], "cancelled");
}

#[test]
fn x3_a_client_does_not_choose_anothers_incident_id() {
    let (gateway, _dir) = gateway(CLIENTS, &TOKENS, Some(TASKS));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let incident = |token| {
        let request = gateway
            .request("POST", "/mcp")
            .header("accept", "application/problem+json")
            .header("authorization", &format!("Bearer {token}"))
            .header("traceparent", trace);
        let params = json!({ "taskId": "missing" });
        let problem = modern(request, &json!(1), "tasks/get", &params).send().json();
        problem["incident_id"].as_str().unwrap_or_else(|| panic!("{problem}")).to_owned()
    };
    let (ann, bob) = (incident("ann-secret-token"), incident("bob-secret-token"));
    assert!(ann.contains("4bf92f3577b34da6a3ce929d0e0e4736"), "it leads to the trace: {ann}");
    assert_ne!(ann, bob);
}

const LIBRARY: &str = r#"
import sys, json
heard = []
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    heard.append(m["method"])
    lists = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ["read_a", "read_slow", "heard"]]},
        "resources/list": {"resources": [{"uri": "memo://a", "name": "a"}, {"uri": "file:///etc/passwd", "name": "b"}]},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "memo://{id}", "name": "m"}, {"uriTemplate": "file:///{path}", "name": "f"}]},
        "prompts/list": {"prompts": [{"name": "greet"}, {"name": "deploy"}]},
    }
    r = lists.get(m["method"], {"content": [{"type": "text", "text": " ".join(heard)}]})
    r.setdefault("resultType", "complete")
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

#[test]
fn x1_a_client_sees_and_uses_what_it_is_allowed() {
    let settings = r#"
[[client]]
name = "ann"
token_env = "ANN_TOKEN"
tools = ["read_*", "heard"]
deny = ["read_slow"]
resources = ["memo://*"]
prompts = ["greet"]
[[client]]
name = "bob"
token_env = "BOB_TOKEN"
tools = ["read_*"]
"#;
    let (gateway, _dir) = gateway(settings, &TOKENS, Some(LIBRARY));
    let (ann, bob) = ("ann-secret-token", "bob-secret-token");
    let names = |token, method, list: &str, name: &str| -> Vec<String> {
        let reply = ask(&gateway, token, "/mcp", method, &json!({}));
        let items = reply["result"][list].as_array().unwrap_or_else(|| panic!("{reply}"));
        items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect()
    };
    let lists = [
        ("tools/list", "tools", "name", vec!["read_a", "heard"], vec!["read_a", "read_slow"]),
        ("resources/list", "resources", "uri", vec!["memo://a"], vec![]),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
            vec!["memo://{id}"],
            vec![],
        ),
        ("prompts/list", "prompts", "name", vec!["greet"], vec![]),
    ];
    for (method, list, name, of_ann, of_bob) in lists {
        assert_eq!(names(ann, method, list, name), of_ann, "{method}");
        assert_eq!(names(bob, method, list, name), of_bob, "{method}");
    }
    let refused = [
        (ann, "tools/call", json!({ "name": "read_slow" })),
        (ann, "tools/call", json!({ "name": "READ_SLOW" })),
        (ann, "resources/read", json!({ "uri": "file:///etc/passwd" })),
        (ann, "resources/read", json!({ "uri": "memo://../etc" })),
        (ann, "prompts/get", json!({ "name": "deploy" })),
        (
            ann,
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "deploy" }, "argument": {} }),
        ),
        (
            ann,
            "subscriptions/listen",
            json!({ "notifications": { "resourceSubscriptions": ["file:///a"] } }),
        ),
        (ann, "own/method", json!({})),
        (bob, "resources/read", json!({ "uri": "memo://a" })),
        (bob, "prompts/get", json!({ "name": "greet" })),
    ];
    for (token, method, params) in refused {
        let reply = ask(&gateway, token, "/mcp", method, &params).to_string();
        assert!(reply.contains("auth.forbidden"), "{method} {params}: {reply}");
    }
    for (method, params) in [
        ("resources/read", json!({ "uri": "memo://a" })),
        ("prompts/get", json!({ "name": "greet" })),
    ] {
        let reply = ask(&gateway, ann, "/mcp", method, &params);
        assert_eq!(reply["error"], Value::Null, "{reply}");
    }
    let heard = ask(&gateway, ann, "/mcp", "tools/call", &json!({ "name": "heard" })).to_string();
    for method in ["completion/complete", "subscriptions/listen", "own/method"] {
        assert!(!heard.contains(method), "{heard}");
    }
}

#[test]
fn settings_that_mean_something_else_are_refused() {
    let check = |client: &str, says: &[&str]| {
        let dir = Dir::new();
        let config = dir.join("faultwire.toml");
        std::fs::write(&config, format!("[[client]]\nname = \"ann\"\n{client}\n")).unwrap();
        let ran = faultwire(
            &["serve", "--port", "0", "--config", &config, "--audit", &dir.join("log")],
            "",
        );
        assert_eq!(ran.code, 2, "{client}: {}", ran.err);
        for word in says {
            assert!(ran.err.contains(word), "{client}: {} lacks {word:?}", ran.err);
        }
    };
    check(r#"tools = ["read_*", "!read_slow"]"#, &["faultwire.toml:3", "!read_slow", "deny = "]);
    check(r#"tools = [""]"#, &["is empty", "deny"]);
    check(r#"tools = ["read_*, search"]"#, &["no name can contain", "deny"]);
    check(r#"deny = ["a\u0000"]"#, &["no name can contain", "deny"]);
    check(r#"resources = ["!file://*"]"#, &["deny_resources"]);
    check(r#"prompts = ["[a"]"#, &["unclosed", "deny_prompts"]);
    check("[[client]]\nname = \"ann\"", &["two clients are named \"ann\""]);
    check("[serve]\ntrusted_proxies = [\"10.0.0.0/99\"]", &["10.0.0.0/99", "list the addresses"]);
}
#[test]
fn x3_no_record_has_what_a_session_is_used_with() {
    let (gateway, _dir) = gateway("", &[], None);
    let session = gateway.begin();
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    gateway.call(&session, 1, token, &json!({}));
    let records = serde_json::to_string(&gateway.records()).unwrap();
    assert!(records.contains("\"tool\""), "{records}");
    assert!(!records.contains(&session) && !records.contains(token), "{records}");
}

#[test]
fn a_pattern_that_matches_no_tool_is_a_warning_with_the_nearest_name() {
    let settings =
        "[[client]]\nname = \"ann\"\ntoken_env = \"ANN_TOKEN\"\ntools = [\"raed_a\", \"heard\"]\n";
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(&config, format!("contract = \"owlclaw\"\n{settings}")).unwrap();
    let stderr = dir.join("stderr");
    let file = std::fs::File::create(&stderr).unwrap();
    let log = dir.join("log");
    let mut start = crate::support::command(&[
        "serve", "--port", "0", "--audit", &log, "--log", "warn", "--config", &config, "--",
        "python3", "-c", LIBRARY,
    ]);
    let gateway = Gateway::spawn(start.envs(TOKENS).stderr(file));
    ask(&gateway, "ann-secret-token", "/mcp", "tools/list", &json!({}));
    let until = std::time::Instant::now() + crate::wrap::client::PATIENCE;
    loop {
        let text = std::fs::read_to_string(&stderr).unwrap();
        if let Some(line) = text.lines().find(|line| line.contains("matches no tool")) {
            assert!(line.contains("raed_a") && line.contains("read_a"), "{line}");
            assert_eq!(text.matches("matches no tool").count(), 1, "{text}");
            return;
        }
        assert!(std::time::Instant::now() < until, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
