//! A client without a token cannot fill the disk, the log, stderr or memory (X4).

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::serve::http::{Connection, Request};
use crate::support::Dir;

fn settings() -> (Dir, String) {
    let dir = Dir::new();
    let config = dir.join("faultwire.toml");
    std::fs::write(dir.path().join("ann"), "ann-token\n").unwrap();
    let token = dir.join("ann");
    let text = format!(
        "contract = \"owlclaw\"\n[[client]]\nname = \"ann\"\ntoken_file = {token:?}\n\
         [serve]\ntrusted_proxies = [\"127.0.0.1\"]\nhosts = [\"gate.example\"]\n"
    );
    std::fs::write(&config, text).unwrap();
    (dir, config)
}

fn from(gateway: &Gateway, peer: &str) -> Request {
    Request::new(&gateway.address, "POST", "/mcp").header("x-forwarded-for", peer)
}

fn refused(gateway: &Gateway) -> Vec<Value> {
    let records = gateway.records().into_iter();
    records.filter(|record| record["call"]["refusals"].is_number()).collect()
}

#[test]
fn x4_refusals_are_summed_up_by_source() {
    let (_dir, config) = settings();
    let gateway = Gateway::demo(&["--config", &config]);
    let mut connection = Connection::new(&gateway.address);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let mut incidents = Vec::new();
    for number in 0..300 {
        let request = from(&gateway, "198.51.100.7").header("accept", "application/problem+json");
        let request = match number % 3 {
            0 => request.header("origin", "https://evil.example"),
            1 => request.header("authorization", "Bearer guessed"),
            _ => request,
        };
        let answer = connection.send(&request.body(ping.clone()));
        assert!([401, 403].contains(&answer.status), "{answer:?}");
        incidents.push(answer.json()["incident_id"].as_str().unwrap().to_owned());
    }
    let records = refused(&gateway);
    let counts: Vec<_> = records.iter().map(|r| r["call"]["refusals"].as_u64().unwrap()).collect();
    assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
    for record in &records {
        assert_eq!(record["call"]["peer"], "198.51.100.7", "{record}");
    }
    // Each answer leads to a record that is there.
    let recorded: Vec<_> =
        records.iter().map(|r| r["fault"]["incident"].as_str().unwrap()).collect();
    assert!(incidents.iter().all(|incident| recorded.contains(&incident.as_str())));
    let metrics = gateway.request("GET", "/metrics").send();
    assert_eq!(metrics.status, 403, "a trusted proxy is never this machine: {metrics:?}");
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn x4_a_summary_has_the_counts_and_one_page_a_source() {
    let (_dir, config) = settings();
    let mut gateway = {
        let mut args = vec!["--config", config.as_str(), "--log", "warn", "--"];
        args.extend([crate::wrap::client::FAULTWIRE, "demo-server"]);
        Gateway::start_with_stderr(Stdio::piped(), &args)
    };
    let mut connection = Connection::new(&gateway.address);
    for peer in ["198.51.100.7", "2001:db8::1", "2001:db8::ffff:2"] {
        for _ in 0..200 {
            let request = from(&gateway, peer).header("origin", "https://evil.example");
            assert_eq!(connection.send(&request.body("{}")).status, 403);
        }
    }
    let stderr = gateway.process.stderr.take().unwrap();
    let log = gateway.audit.path().join("log/audit-log.jsonl");
    gateway.signal("TERM");
    let lines: Vec<String> = BufReader::new(stderr).lines().map_while(Result::ok).collect();
    let pages: Vec<_> = lines.iter().filter(|line| line.contains("page")).collect();
    assert_eq!(pages.len(), 2, "one for each source: {lines:?}");
    assert!(pages.iter().all(|page| page.contains("warning") && !page.contains("critical")));
    assert!(lines.len() < 20, "{lines:?}");
    assert!(gateway.process.wait().unwrap().success());
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.len() < 40_000, "{} bytes", text.len());
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sums: Vec<_> = records.iter().filter(|r| r["name"] == "refusals").collect();
    let total = |source: &str| {
        let of = sums.iter().find(|r| r["facts"]["source"] == source);
        of.unwrap_or_else(|| panic!("{source} in {sums:?}"))["facts"]["total"].clone()
    };
    assert_eq!((total("198.51.100.7"), total("2001:db8::/64")), (json!(200), json!(400)));
}

#[test]
fn x4_pages_are_not_shown_through_a_proxy() {
    let gateway = Gateway::demo(&["-c", "owlclaw"]);
    for path in ["/", "/metrics", "/api/status"] {
        assert_eq!(gateway.request("GET", path).send().status, 200, "{path}");
        for header in ["x-forwarded-for", "forwarded", "x-real-ip", "via", "x-forwarded-host"] {
            let answer = gateway.request("GET", path).header(header, "127.0.0.1").send();
            assert_eq!(answer.status, 403, "{path} {header}: {answer:?}");
        }
    }
    assert_eq!(gateway.request("GET", "/healthz").header("via", "1.1 proxy").send().status, 200);
}
