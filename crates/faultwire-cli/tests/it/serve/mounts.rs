//! Several servers behind one gateway, and servers behind TLS.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::{Gateway, modern};
use crate::serve::upstreams::running;
use crate::support::{Dir, command};
use crate::wrap::client::FAULTWIRE;

fn call_at(gateway: &Gateway, path: &str, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {} });
    modern(gateway.request("POST", path), &json!(1), "tools/call", &params).send().reply()
}

#[test]
fn each_server_has_a_path_and_a_contract() {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    let mount = |name: &str, contract: &str| {
        format!(
            "[[mount]]\nname = {name:?}\ncommand = [{FAULTWIRE:?}, \"demo-server\"]\n\
             contract = {contract:?}\n"
        )
    };
    let settings = mount("first", "owlclaw") + &mount("second", "kaiza");
    std::fs::write(&config, settings).unwrap();
    let gateway = Gateway::start(&["--config", &config]);
    for (path, key) in
        [("/mcp", "/error/code"), ("/mcp/first", "/error/code"), ("/mcp/second", "/error_code")]
    {
        let reply = call_at(&gateway, path, "missing_file");
        let told = reply["result"]["structuredContent"].pointer(key);
        assert!(told.is_some_and(Value::is_string), "{path}: {reply}");
    }
    assert_eq!(gateway.request("POST", "/mcp/third").send().status, 404);
    // What is refused before it is read is refused in the words of the same contract.
    for (path, key) in [("/mcp/first", "code"), ("/mcp/second", "error_code")] {
        let refused = gateway.request("POST", path).header("origin", "http://evil").send();
        assert_eq!(refused.status, 403);
        assert!(refused.json()[key].is_string(), "{path}: {refused:?}");
    }
}

#[test]
fn a_secret_of_the_settings_comes_out_nowhere() {
    let server = running(
        r#"
class Server(Plain):
    def take(self, m, say):
        if "id" not in m: return self.answer(202)
        if m["method"] == "initialize": say({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
        elif m["method"] == "tools/list": say({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        elif m["method"] == "resources/list":
            body = {"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32021, "message": "no", "data": {"requiredCapabilities": {}, "of": self.headers["x-api-key"] + " " + self.headers["authorization"]}}}
            self.answer(200, json.dumps(body).encode(), content_type="application/json")
        else: say({"isError": True, "content": [{"type": "text", "text": "bad key " + self.headers["x-api-key"] + " of " + self.headers["authorization"]}]})
"#,
    );
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    let settings = format!(
        "[[mount]]\nname = \"m\"\nurl = {:?}\n\
         headers_env = {{ \"x-api-key\" = \"THE_KEY\", authorization = \"THE_KEY_TOO\" }}\n",
        server.url
    );
    std::fs::write(&config, settings).unwrap();
    for (key, other, kept) in [
        ("prod.key-7731", "Bearer q1w2e3r4t5", ["prod.key-7731", "q1w2e3r4t5"]),
        ("bGVtb25zcXVlZXplcg==", "sid=abcdefgh; a=b", ["bGVtb25zcXVlZXplcg", "abcdefgh"]),
        ("correct horse battery", "a b c d", ["horse", "a b c d"]),
    ] {
        let environment = [("THE_KEY", key), ("THE_KEY_TOO", other)];
        let gateway = Gateway::start_with_env(&["--config", &config], &environment);
        let session = gateway.begin();
        let reply = gateway.call(&session, 1, "t", &json!({})).to_string();
        assert!(reply.contains("[redacted]"), "{reply}");
        // A failure that the protocol wants as it is says no more than others.
        let read = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/list" });
        let protocol = gateway.post(Some(&session), &read).json();
        assert_eq!(protocol["error"]["code"], -32021, "{protocol}");
        let page = gateway.request("GET", "/").send().body;
        let log = format!("{:?}", gateway.records());
        assert!(log.contains("[redacted]"), "{log}");
        for text in [reply, protocol.to_string(), page, log] {
            assert!(!kept.iter().any(|kept| text.contains(kept)), "{text}");
        }
    }
}

/// A server of MCP behind TLS, with a certificate of its own authority.
struct Secure {
    process: Child,
    url: String,
    ca: String,
    _dir: Dir,
}

impl Secure {
    fn start() -> Self {
        let dir = Dir::new();
        let authority = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca = params.self_signed(&authority).unwrap();
        let issuer = rcgen::Issuer::new(params, authority);
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        std::fs::write(dir.path().join("ca.pem"), ca.pem()).unwrap();
        std::fs::write(dir.path().join("leaf.pem"), leaf.pem() + &key.serialize_pem()).unwrap();
        let code = r#"
import http.server, json, ssl, sys
class Mcp(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = {"resultType": "complete"}
        if m["method"] == "server/discover": result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        elif m["method"] == "tools/list": result |= {"tools": []}
        else: result |= {"content": [{"type": "text", "text": self.headers.get("x-key", "none")}]}
        body = json.dumps({"jsonrpc": "2.0", "id": m.get("id"), "result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mcp)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True)
open(sys.argv[2], "w").write(str(server.server_port))
server.serve_forever()
"#;
        let port = dir.join("port");
        let process = Command::new("python3")
            .args(["-c", code, &dir.join("leaf.pem"), &port])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let port = loop {
            match std::fs::read_to_string(&port) {
                Ok(port) if !port.is_empty() => break port,
                _ => assert!(Instant::now() < until, "the server does not start"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let (url, ca) = (format!("https://localhost:{port}/mcp"), dir.join("ca.pem"));
        Self { process, url, ca, _dir: dir }
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A length that is not the body's, or a session that is not the client's, would reach the server.
#[test]
fn headers_of_the_protocol_are_not_for_settings() {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    for header in ["Mcp-Session-Id", "content-length", "Transfer-Encoding", "accept"] {
        let settings = format!(
            "[[mount]]\nname = \"far\"\nurl = \"http://127.0.0.1:9/mcp\"\n\
             headers_env = {{ {header} = \"UPSTREAM_KEY\" }}\n"
        );
        std::fs::write(&config, settings).unwrap();
        let mut serve = command(&["serve", "--port", "0", "--config", &config]);
        let ended = serve.env("UPSTREAM_KEY", "7").output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success(), "{told}");
        assert!(told.contains(&format!("{config}:4")), "{told}");
        assert!(told.contains(&format!("{header:?} is set by the gateway itself")), "{told}");
    }
}

#[test]
fn a_server_behind_tls_is_used_if_its_certificate_is_trusted() {
    let server = Secure::start();
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    for (more, trusted) in [(format!("ca_file = {:?}\n", server.ca), true), (String::new(), false)]
    {
        let settings = format!(
            "contract = \"owlclaw\"\n[[mount]]\nname = \"secure\"\nurl = {:?}\n\
             headers_env = {{ x-key = \"UPSTREAM_KEY\" }}\n{more}",
            server.url
        );
        std::fs::write(&config, settings).unwrap();
        let gateway =
            Gateway::start_with_env(&["--config", &config], &[("UPSTREAM_KEY", "open-it")]);
        let reply = call_at(&gateway, "/mcp/secure", "any");
        if trusted {
            assert_eq!(reply["result"]["content"][0]["text"], "open-it", "{reply}");
            continue;
        }
        let told = &reply["result"]["structuredContent"]["error"];
        assert_eq!(told["code"], "dependency.unavailable", "{reply}");
        let records = gateway.records();
        let fault = &records.iter().rfind(|record| record["type"] == "fault").unwrap()["fault"];
        assert_eq!(fault["outcome"], "not_sent", "nobody heard the call: {fault}");
    }
}
