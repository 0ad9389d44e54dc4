//! Many clients at once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::gateway::Gateway;
use crate::serve::http::Connection;
use crate::wrap::client::status_of;

const CLIENTS: usize = 64;
const REPLIES: usize = 100_000;

#[test]
fn a5_no_reply_reaches_another_client() {
    let gateway = Gateway::demo(&[]);
    // Half of them share a server, the others have one each; all use the same ids.
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut connection = Connection::new(&gateway.address);
                let session = (client % 2 == 0).then(|| gateway.begin());
                for n in 0..REPLIES.div_ceil(CLIENTS) {
                    let id = json!(n % 10);
                    let text = format!("{client}/{n}");
                    let params = json!({ "name": "echo", "arguments": { "text": text } });
                    let request = match &session {
                        None => gateway.modern(&id, "tools/call", &params),
                        Some(session) => gateway
                            .request("POST", "/mcp")
                            .header("content-type", "application/json")
                            .header("mcp-session-id", session)
                            .body(
                                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                                          "params": params })
                                .to_string(),
                            ),
                    };
                    let reply = connection.send(&request).reply();
                    assert_eq!(reply["id"], id, "{text}: {reply}");
                    assert_eq!(reply["result"]["content"][0]["text"], text, "{reply}");
                }
            });
        }
    });
    let faults = gateway.records().iter().filter(|r| r["fault"].is_object()).count();
    assert_eq!(faults, 0);
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn half_open_connections_stop_nobody() {
    let gateway = Gateway::demo(&[]);
    let half: Vec<TcpStream> = (0..1000)
        .map(|n| {
            let mut socket = TcpStream::connect(&gateway.address).unwrap();
            let begun = [
                "",
                "POST /mcp HT",
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
            ];
            socket.write_all(begun[n % 3].as_bytes()).unwrap();
            socket
        })
        .collect();
    let session = gateway.begin();
    for n in 0..100 {
        let reply = gateway.call(&session, n, "echo", &json!({ "text": "x" }));
        assert_eq!(reply["result"]["content"][0]["text"], "x");
    }
    drop(half);
}

#[test]
fn endless_bodies_take_no_memory() {
    let gateway = Gateway::demo(&[]);
    let session = gateway.begin();
    let at_rest = memory(&gateway);
    // A gibibyte each, announced and not announced, several at once.
    let heads = ["content-length: 1073741824", "transfer-encoding: chunked"];
    std::thread::scope(|scope| {
        for head in heads.iter().cycle().take(8) {
            let (address, session) = (&gateway.address, &session);
            scope.spawn(move || {
                let mut socket = TcpStream::connect(address).unwrap();
                socket.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
                let begin = format!(
                    "POST /mcp HTTP/1.1\r\nhost: localhost\r\n\
                     mcp-session-id: {session}\r\n{head}\r\n\r\n"
                );
                socket.write_all(begin.as_bytes()).unwrap();
                let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                for _ in 0..16 * 1024 {
                    if socket.write_all(piece.as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    assert_little_memory(&gateway, at_rest, BODY_MIB);
}

#[test]
fn clients_that_read_nothing_take_no_memory() {
    let gateway = Gateway::demo(&[]);
    let big = |id: usize, kib: usize| {
        let params = json!({ "name": "big", "arguments": { "kib": kib } });
        gateway.modern(&json!(id), "tools/call", &params)
    };
    let session = gateway.begin();
    let at_rest = memory(&gateway);
    // More than a gibibyte in all, as one answer and as events.
    let unread: Vec<TcpStream> = (0..150).map(|id| big(id, 8_000).send_only()).collect();
    // Some read a little, and never enough.
    let mut slow: Vec<TcpStream> = (150..160).map(|id| big(id, 8_000).send_only()).collect();
    for _ in 0..20 {
        for reader in &mut slow {
            reader.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let _ = reader.read(&mut [0; 64]);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Who asks for little is answered at once.
    let before = Instant::now();
    let reply = gateway.call(&session, 99, "echo", &json!({ "text": "still there" }));
    assert_eq!(reply["result"]["content"][0]["text"], "still there");
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    // Who asks for much is answered in time, too: with a failure, if there was no room.
    let reply = gateway.call(&session, 100, "big", &json!({ "kib": 1_000 }));
    assert_eq!(reply["id"], 100);
    assert_little_memory(&gateway, at_rest, LINE_MIB);
    let cut = |record: &Value| record["name"] == "answer_not_taken";
    eventually("a client that reads nothing is cut off", || gateway.records().iter().any(cut));
    drop((unread, slow));
    // Nothing of it stays behind.
    eventually("there is room again", || {
        let reply = big(201, 30_000).send().reply();
        reply["result"]["content"][0]["text"].as_str().is_some_and(|t| t.len() == 30_000 * 1024)
    });
    assert_little_memory(&gateway, at_rest, LINE_MIB);
}

/// Waits for something that takes its time.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < until, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// How long bodies of clients and messages of servers may be.
const BODY_MIB: u64 = 4;
const LINE_MIB: u64 = 32;

/// What the gateway takes before it is attacked, in KiB: its program, and the rules.
fn memory(gateway: &Gateway) -> u64 {
    status_of(gateway.process.id(), "VmRSS")
}

/// 48 MiB more than before, and twice the limit.
fn assert_little_memory(gateway: &Gateway, at_rest: u64, limit: u64) {
    assert!(at_rest < 32 * 1024, "{at_rest} KiB at rest");
    let growth = status_of(gateway.process.id(), "VmHWM").saturating_sub(at_rest);
    assert!(growth < (48 + 2 * limit) * 1024, "{growth} KiB more than {at_rest}");
}
