//! A server that answers in microseconds, over stdio and over HTTP, for the benchmarks.
#![allow(dead_code, reason = "each benchmark uses some of it")]

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

const OK: &str = r#"{"content":[{"type":"text","text":"bench-ok"}],"isError":false}"#;
const FAIL: &str = r#"{"content":[{"type":"text","text":"upstream API rate limit reached, retry after 30 s"}],"isError":true}"#;
const HELLO: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}"#;
const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;

/// The reply to a line, if it is a request.
fn reply(line: &str) -> Option<String> {
    let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{SCHEMA}}}"#);
    let list;
    let result = match () {
        () if line.contains("\"fail\"") => FAIL,
        () if line.contains("\"tools/call\"") => OK,
        () if line.contains("\"tools/list\"") => {
            list = format!(r#"{{"tools":[{},{}]}}"#, tool("ok"), tool("fail"));
            &list
        }
        () => HELLO,
    };
    let id = line.split("\"id\":").nth(1)?.split([',', '}']).next().unwrap_or("0");
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
}

/// A server with two tools, one that works and one that fails.
pub fn child() -> io::Result<()> {
    let mut input = BufReader::with_capacity(256 * 1024, io::stdin().lock());
    let (mut line, mut out) = (String::new(), Vec::new());
    while input.read_line(&mut line)? > 0 {
        if let Some(reply) = reply(&line) {
            writeln!(out, "{reply}")?;
        }
        line.clear();
        if input.buffer().is_empty() {
            io::stdout().write_all(&out)?;
            io::stdout().flush()?;
            out.clear();
        }
    }
    Ok(())
}

/// The same over HTTP. It says on which port.
pub fn http_child() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}/mcp", listener.local_addr()?);
    for socket in listener.incoming() {
        let socket = socket?;
        socket.set_nodelay(true)?;
        std::thread::spawn(
            move || while matches!(answer(&mut BufReader::new(&socket)), Ok(true)) {},
        );
    }
    Ok(())
}

/// One request on a connection. Whether there may be another.
fn answer(reader: &mut BufReader<&TcpStream>) -> io::Result<bool> {
    loop {
        let Some(body) = read_message(reader)? else { return Ok(false) };
        let (status, body) = match reply(&body) {
            Some(reply) => ("200 OK", reply),
            None => ("202 Accepted", String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: b\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut socket: &TcpStream = reader.get_ref();
        socket.write_all((head + &body).as_bytes())?;
    }
}

/// The body of the next request or answer on a connection.
pub fn read_message(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.len() > 15 && line[..15].eq_ignore_ascii_case("content-length:") {
            length = line[15..].trim().parse().map_err(io::Error::other)?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    String::from_utf8(body).map(Some).map_err(io::Error::other)
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
