//! An HTTP client on a plain socket that sends and returns bytes unchanged.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Timeout of a request.
const STUCK: Duration = Duration::from_secs(20);

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Asserts that it is a problem, and gives its detail.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let json = self.json();
        assert_eq!(json["code"], code, "{json}");
        assert_eq!(json["status"], status);
        json["detail"].as_str().unwrap().to_owned()
    }
}

pub(crate) async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !headers.iter().any(|(name, _)| *name == "transfer-encoding") {
        head += &format!("content-length: {}\r\n", body.len());
    }
    head += "\r\n";
    let mut stream = TcpStream::connect(address).await.unwrap();
    let all = async {
        // A server that has read enough answers and closes: what is not sent then does not matter.
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body).await;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        bytes
    };
    let bytes = tokio::time::timeout(STUCK, all).await.unwrap();
    let (mut answer, size) = parse_head(&bytes).unwrap();
    answer.body = bytes[size..].to_vec();
    if answer.header("transfer-encoding") == Some("chunked") {
        let mut chunks = Chunks::default();
        answer.body = chunks.take(&bytes[size..]);
    }
    answer
}

/// An answer without its body, and how long its head is; `None` while that is not all there.
fn parse_head(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    });
    let answer = Answer {
        status,
        headers: headers.collect(),
        body: Vec::new(),
    };
    Some((answer, end + 4))
}

/// Takes the chunks of a body apart.
#[derive(Default)]
struct Chunks {
    rest: Vec<u8>,
}

impl Chunks {
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(bytes);
        let mut body = Vec::new();
        loop {
            let Some(end) = self.rest.windows(2).position(|two| two == b"\r\n") else {
                return body;
            };
            let size = std::str::from_utf8(&self.rest[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            if self.rest.len() < end + 2 + size + 2 {
                return body;
            }
            body.extend_from_slice(&self.rest[end + 2..end + 2 + size]);
            self.rest.drain(..end + 2 + size + 2);
        }
    }
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// A stream of events.
pub(crate) struct Events {
    stream: TcpStream,
    chunks: Chunks,
    text: Vec<u8>,
}

impl Events {
    pub(crate) async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        Self::open_with(address, "GET", path, headers).await
    }

    pub(crate) async fn open_with(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Self {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let (answer, size) = loop {
            read_more(&mut stream, &mut bytes).await;
            if let Some(head) = parse_head(&bytes) {
                break head;
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(answer.status, 200, "{text}");
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let mut chunks = Chunks::default();
        let text = chunks.take(&bytes[size..]);
        Self {
            stream,
            chunks,
            text,
        }
    }

    /// The next event; comments are passed over.
    pub(crate) async fn next(&mut self) -> Event {
        loop {
            if let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block = String::from_utf8(self.text.drain(..end + 2).collect()).unwrap();
                let event = parse_event(block.trim_end_matches('\n'));
                if event != Event::default() {
                    return event;
                }
                continue;
            }
            let mut bytes = Vec::new();
            read_more(&mut self.stream, &mut bytes).await;
            assert!(!bytes.is_empty(), "the stream of events has ended");
            self.text.extend(self.chunks.take(&bytes));
        }
    }

    /// Its messages up to a number, which follow each other without a gap.
    pub(crate) async fn messages(&mut self, after: u64, until: u64) -> Vec<Value> {
        let mut messages = Vec::new();
        while (messages.len() as u64) < until - after {
            let event = self.next().await;
            if event.kind == "head" {
                continue;
            }
            assert_eq!(event.kind, "message", "{event:?}");
            let message = event.json();
            let seq = after + 1 + messages.len() as u64;
            assert_eq!(
                (&message["seq"], &event.id),
                (&seq.into(), &seq.to_string())
            );
            messages.push(message);
        }
        messages
    }
}

fn parse_event(block: &str) -> Event {
    let mut event = Event::default();
    let mut data: Vec<&str> = Vec::new();
    for line in block.split('\n') {
        match line.split_once(": ") {
            Some(("id", value)) => event.id = value.to_owned(),
            Some(("event", value)) => event.kind = value.to_owned(),
            Some(("data", value)) => data.push(value),
            _ => {}
        }
    }
    event.data = data.join("\n");
    event
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) {
    let read = tokio::time::timeout(STUCK, stream.read_buf(bytes)).await;
    read.unwrap().unwrap();
}
