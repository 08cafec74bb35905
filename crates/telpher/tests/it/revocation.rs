//! The revocation of a token ends open event streams, WebSockets, uploads and waiting requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{Node, Place, eventually};

/// Time limit of every wait; a longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request whose answer is read in pieces.
struct OpenRequest {
    stream: TcpStream,
    read: Vec<u8>,
}

impl OpenRequest {
    /// Sends a request with these header lines and the beginning of a body.
    fn new(node: &Node, token: &str, request: &str, lines: &[&str], body: &str) -> Self {
        let mut stream = TcpStream::connect(node.address("http")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let address = node.address("http");
        let mut head = format!("{request} HTTP/1.1\r\nHost: {address}\r\n");
        head += &format!("Authorization: Bearer {token}\r\n");
        for line in lines {
            head += &format!("{line}\r\n");
        }
        stream
            .write_all(format!("{head}\r\n{body}").as_bytes())
            .unwrap();
        let read = Vec::new();
        Self { stream, read }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// Reads until the answer contains a text; false at its end.
    fn read_until(&mut self, text: &str) -> bool {
        let mut chunk = [0; 4096];
        while !self.text().contains(text) {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(size) => self.read.extend_from_slice(&chunk[..size]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return false,
                Err(error) => panic!("{error}: no {text:?} in {}", self.text()),
            }
        }
        true
    }

    #[track_caller]
    fn expect(&mut self, text: &str) -> &mut Self {
        assert!(self.read_until(text), "no {text:?} in {}", self.text());
        self
    }

    /// Reads to the end of the answer.
    fn end(mut self) -> Vec<u8> {
        // No answer contains this text.
        assert!(!self.read_until("\u{1}no answer has this\u{1}"));
        self.read
    }
}

fn post(node: &Node, token: &str, path: &str, body: &str) -> String {
    let size = format!("Content-Length: {}", body.len());
    let lines = ["Content-Type: application/json", &size, "Connection: close"];
    let answer = OpenRequest::new(node, token, &format!("POST {path}"), &lines, body).end();
    String::from_utf8(answer).unwrap()
}

const MESSAGE: &str = r#"{"messages":[{"role":"user","content":"first"}]}"#;

/// A node with two agents' tokens.
struct Home {
    place: Place,
    node: Node,
    doomed: String,
    stays: String,
}

impl Home {
    fn new() -> Self {
        let place = Place::new();
        place.write(
            "telpher.toml",
            "[[limit]]\nname = \"calls\"\nmatch = \"*/*/*\"\nunit = \"requests\"\n\
             capacity = 1\nrefill = \"1/min\"\n",
        );
        let add = |name: &str| {
            let added = place.run(&format!("token add {name} --for */*/*"));
            added.expect(0).stdout.trim().to_owned()
        };
        let (doomed, stays) = (add("doomed"), add("stays"));
        let node = place.serve("");
        let home = Self {
            node,
            doomed,
            stays,
            place,
        };
        let topic = r#"{"name":"t-1","partitions":1}"#;
        let made = post(&home.node, &home.stays, "/v1/topics", topic);
        assert!(made.starts_with("HTTP/1.1 201"), "{made}");
        home.append("c-1");
        home
    }

    fn append(&self, conversation: &str) {
        let path = format!("/v1/conversations/{conversation}/messages");
        let said = post(&self.node, &self.stays, &path, MESSAGE);
        assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    }

    fn open(&self, token: &str, request: &str, lines: &[&str], body: &str) -> OpenRequest {
        OpenRequest::new(&self.node, token, request, lines, body)
    }

    fn revoke(&self) {
        self.place.run("token revoke doomed").expect(0);
        let status = || self.node.get("/v1/agents", Some(&self.doomed)).0;
        eventually("the token is refused", || status() == 401);
    }
}

#[test]
fn event_streams_end_with_an_error_when_their_token_is_revoked() {
    let home = Home::new();
    let paths = [
        "/v1/conversations/c-1/messages",
        "/v1/topics/t-1/partitions/0/follow",
        "/v1/inbox/ann",
        "/v1/watch",
    ];
    let open = |token: &str| {
        let follow = |path: &&str| {
            let lines = ["Accept: text/event-stream"];
            let mut open = home.open(token, &format!("GET {path}"), &lines, "");
            open.expect("HTTP/1.1 200").expect("text/event-stream");
            open
        };
        paths.iter().map(follow).collect::<Vec<_>>()
    };
    let (doomed, mut stay) = (open(&home.doomed), open(&home.stays));
    home.revoke();
    for (path, open) in paths.iter().zip(doomed) {
        let text = String::from_utf8(open.end()).unwrap();
        assert!(text.contains("event: error"), "{path}: {text}");
        assert!(
            text.contains("\"code\":\"unauthenticated\""),
            "{path}: {text}"
        );
    }
    // Streams of other tokens continue.
    let said = post(
        &home.node,
        &home.stays,
        "/v1/conversations/c-1/messages",
        r#"{"messages":[{"role":"user","content":"later"}]}"#,
    );
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    stay[0].expect("later");
}

#[test]
fn a_websocket_is_closed_with_1008_when_its_token_is_revoked() {
    let home = Home::new();
    let upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let mut socket = home.open(&home.doomed, "GET /v1/ws", &upgrade, "");
    socket.expect("HTTP/1.1 101").expect("\r\n\r\n");
    home.revoke();
    let read = socket.end();
    // An unmasked close frame: the first two bytes are the code.
    let closes = read
        .windows(4)
        .any(|it| it[0] == 0x88 && it[2..] == 1008_u16.to_be_bytes());
    assert!(closes, "{read:?}");
}

#[test]
fn an_upload_is_cut_off_when_its_token_is_revoked() {
    let home = Home::new();
    let chunk = |text: &str| {
        let line = format!("{{\"type\":\"text-delta\",\"id\":\"t\",\"delta\":\"{text}\"}}\n");
        format!("{:x}\r\n{line}\r\n", line.len())
    };
    let start = "{\"type\":\"text-start\",\"id\":\"t\"}\n";
    let body = format!("{:x}\r\n{start}\r\n{}", start.len(), chunk("said-before"));
    let lines = [
        "Content-Type: application/jsonl",
        "Transfer-Encoding: chunked",
    ];
    let request = "POST /v1/conversations/c-1/messages/a-1/stream";
    let mut upload = home.open(&home.doomed, request, &lines, &body);
    let follow = ["Accept: text/event-stream"];
    let path = "GET /v1/conversations/c-1/messages";
    let mut watcher = home.open(&home.stays, path, &follow, "");
    watcher.expect("said-before");
    home.revoke();
    upload.expect("HTTP/1.1 401");
    // The connection may be closed already.
    let _ = upload.stream.write_all(chunk("said-after").as_bytes());
    drop(upload);
    home.append("c-1");
    let (status, page) = home
        .node
        .get("/v1/conversations/c-1/messages", Some(&home.stays));
    assert_eq!(status, 200);
    assert!(
        page.contains("said-before") && !page.contains("said-after"),
        "{page}"
    );
}

#[test]
fn a_request_that_waits_is_answered_when_its_token_is_revoked() {
    let home = Home::new();
    let take = r#"{"subject":"a/b/c","cost":1}"#;
    let taken = post(&home.node, &home.doomed, "/v1/take", take);
    assert!(taken.starts_with("HTTP/1.1 200"), "{taken}");
    let take = r#"{"subject":"a/b/c","cost":1,"wait":"10m"}"#;
    let size = format!("Content-Length: {}", take.len());
    let lines = ["Content-Type: application/json", &size];
    let mut waits = home.open(&home.doomed, "POST /v1/take", &lines, take);
    home.revoke();
    waits.expect("HTTP/1.1 503").expect("unconfirmed");
}

#[test]
fn sighup_reloads_the_tokens_and_revokes_removed_ones() {
    let Home {
        place,
        node,
        doomed,
        stays,
    } = Home::new();
    let is_known = |token: &str| node.get("/v1/agents", Some(token)).0 == 200;
    let lines = ["Accept: text/event-stream"];
    let request = "GET /v1/conversations/c-1/messages";
    let mut followed = OpenRequest::new(&node, &doomed, request, &lines, "");
    followed.expect("first");
    place.run("token revoke doomed").expect(0);
    let added = place.run("token add late --for */*/*");
    let late = added.expect(0).stdout.trim().to_owned();
    node.signal(rustix::process::Signal::HUP);
    eventually("the new token is known", || is_known(&late));
    assert!(!is_known(&doomed), "tokens are read all at once");
    assert!(is_known(&stays));
    followed.expect("event: error").expect("unauthenticated");
    // A file that is damaged lets no client in until it is whole again.
    let file = place.path("telpher-data/tokens.toml");
    let whole = std::fs::read(&file).unwrap();
    place.write("telpher-data/tokens.toml", "version = 9");
    node.signal(rustix::process::Signal::HUP);
    eventually("no client is let in", || !is_known(&stays));
    std::fs::write(&file, whole).unwrap();
    node.signal(rustix::process::Signal::HUP);
    eventually("clients are let in again", || is_known(&stays));
    let ended = node.stop();
    ended.expect(0);
    assert!(ended.stderr.contains("SIGHUP"), "{}", ended.stderr);
}
