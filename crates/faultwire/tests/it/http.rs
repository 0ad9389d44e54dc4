//! HTTP by hand, over a real socket.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// `line` is method and path, `headers` whole lines. Of a stream of events the last one is the body.
pub async fn ask(address: &str, line: &str, headers: &str, body: &str) -> Answer {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let event = body.lines().filter_map(|line| line.strip_prefix("data: {")).next_back();
    let body = event.map_or_else(|| body.to_owned(), |event| format!("{{{event}"));
    let body = serde_json::from_str(&body).unwrap_or_else(|_| json!(body));
    Answer { status, head: head.to_lowercase(), body }
}
