//! HTTP as the tests speak it: by hand, so that every byte can be wrong if it is to be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::wrap::client::PATIENCE;

#[derive(Clone)]
pub struct Request {
    address: String,
    head: String,
    body: Vec<u8>,
    has_host: bool,
    length: bool,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// An answer that is still coming.
pub struct Stream {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    chunked: bool,
    length: Option<usize>,
}

impl Request {
    pub fn new(address: &str, method: &str, path: &str) -> Self {
        let head = format!("{method} {path} HTTP/1.1\r\n");
        Self { address: address.to_owned(), head, body: Vec::new(), has_host: false, length: true }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.has_host |= name.eq_ignore_ascii_case("host");
        self.length &= !name.eq_ignore_ascii_case("content-length");
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Leaves the length to whoever sets other headers.
    pub fn without_length(mut self) -> Self {
        self.length = false;
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn send(&self) -> Answer {
        self.open().rest()
    }

    /// Sends it, and hangs up after a while.
    pub fn leave_after(&self, span: Duration) {
        let _socket = self.send_only();
        std::thread::sleep(span);
    }

    /// The same over a connection that stays open.
    pub fn open(&self) -> Stream {
        Stream::read(self.send_only())
    }

    /// Sends it, and reads nothing.
    pub fn send_only(&self) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = self.head.clone();
        if !self.has_host {
            bytes.push_str(&format!("host: {}\r\n", self.address));
        }
        if self.length {
            bytes.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        bytes.push_str("\r\n");
        socket.write_all(bytes.as_bytes()).unwrap();
        // It may have been refused before all of it was sent.
        let _ = socket.write_all(&self.body);
        socket
    }
}

/// What somebody asks of us: the head and the body of a request.
pub fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.is_empty() {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A connection that is used again and again.
pub struct Connection {
    address: String,
    reader: Option<BufReader<TcpStream>>,
}

impl Connection {
    pub fn new(address: &str) -> Self {
        let socket = TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { address: address.to_owned(), reader: Some(BufReader::new(socket)) }
    }

    /// One request after the other.
    pub fn send(&mut self, request: &Request) -> Answer {
        let reader = self.reader.take().expect("the connection is open");
        let mut bytes = request.head.clone();
        bytes.push_str(&format!("host: {}\r\n", self.address));
        bytes.push_str(&format!("content-length: {}\r\n\r\n", request.body.len()));
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(&request.body);
        reader.get_ref().write_all(&bytes).unwrap();
        let mut stream = Stream::read_from(reader);
        let mut body = Vec::new();
        while let Some(piece) = stream.piece() {
            body.extend(piece);
        }
        self.reader = Some(stream.reader);
        let body = String::from_utf8(body).unwrap();
        Answer { status: stream.status, headers: stream.headers, body }
    }
}

impl Stream {
    pub fn read(socket: TcpStream) -> Self {
        Self::read_from(BufReader::new(socket))
    }

    fn read_from(mut reader: BufReader<TcpStream>) -> Self {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer in time");
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {line:?}"));
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a whole head");
            match line.trim_end().split_once(':') {
                Some((name, value)) => {
                    headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
                }
                None => break,
            }
        }
        let of = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let chunked = of("transfer-encoding").is_some_and(|coding| coding == "chunked");
        let length = of("content-length").and_then(|length| length.parse().ok());
        Self { status, headers, reader, chunked, length }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The next piece of the body; none at its end.
    fn piece(&mut self) -> Option<Vec<u8>> {
        if !self.chunked {
            let mut body = vec![0; self.length.take()?];
            self.reader.read_exact(&mut body).expect("a whole body");
            return Some(body);
        }
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut piece = vec![0; size + 2];
        self.reader.read_exact(&mut piece).ok()?;
        piece.truncate(size);
        Some(piece)
    }

    /// The next message on a stream of events.
    pub fn event(&mut self) -> Option<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < until, "nothing but signs of life");
            let piece = String::from_utf8(self.piece()?).unwrap();
            let data = piece.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    pub fn rest(mut self) -> Answer {
        let mut body = Vec::new();
        while let Some(piece) = self.piece() {
            body.extend(piece);
        }
        let body = String::from_utf8(body).unwrap();
        Answer { status: self.status, headers: self.headers, body }
    }

    /// Whether nothing comes for so long.
    pub fn is_silent(&mut self, span: Duration) -> bool {
        self.reader.get_ref().set_read_timeout(Some(span)).unwrap();
        let silent = self.reader.fill_buf().is_err();
        self.reader.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e} in {self:?}"))
    }

    /// Every message in it, in either form.
    pub fn messages(&self) -> Vec<Value> {
        if self.header("content-type") != Some("text/event-stream") {
            return vec![self.json()];
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// The last message, which is the reply.
    pub fn reply(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no reply in {self:?}"))
    }
}
