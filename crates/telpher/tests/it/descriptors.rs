//! A node with few file descriptors, or with a failing journal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::{Node, Place, eventually};

/// An HTTP connection that stays open.
struct Session(BufReader<TcpStream>);

impl Session {
    fn open(node: &Node) -> Self {
        let stream = TcpStream::connect(node.address("http")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self(BufReader::new(stream))
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        write!(
            self.0.get_mut(),
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        read_answer(&mut self.0)
    }

    fn metric(&mut self, name: &str) -> u64 {
        let (_, text) = self.ask("GET", "/metrics", "");
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no metric {name}:\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Appends a message of about 100 KB; returns the status.
    fn append(&mut self) -> u16 {
        let text = "x".repeat(100_000);
        let body = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let path = "/v1/conversations/long/messages";
        self.ask("POST", path, &body).0
    }
}

fn read_answer(stream: &mut BufReader<TcpStream>) -> (u16, String) {
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap() == 0 {
            return (status, String::new());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest[..3].parse().unwrap();
        } else if let Some(rest) = line.strip_prefix("content-length: ") {
            length = rest.parse().unwrap();
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (status, String::from_utf8(body).unwrap())
}

/// Limits a resource of a running node.
fn limit(node: &Node, resource: Resource, current: u64, maximum: u64) {
    let pid = Pid::from_raw(i32::try_from(node.pid()).unwrap());
    let new = Rlimit {
        current: Some(current),
        maximum: Some(maximum),
    };
    prlimit(pid, resource, new).unwrap();
}

#[test]
fn idle_connections_take_no_descriptor_from_the_journal() {
    let place = Place::new();
    let node = place.serve_under("ulimit -n 192", "");
    let mut session = Session::open(&node);
    assert_eq!(session.append(), 201);
    let max = session.metric("telpher_sockets_max");
    assert!(max < 192, "{max}");
    let kafka = node.ready["kafka"].as_str().unwrap().to_owned();
    let mut idle = Vec::new();
    let mut flood = || {
        for address in [node.address("native"), &kafka, node.address("slim")] {
            idle.extend((0..80).map(|_| TcpStream::connect(address).unwrap()));
        }
    };
    flood();
    eventually("connections are refused", || {
        session.metric("telpher_sockets_refused_total") > 0
    });
    // More data than fits into the segments that exist at the start.
    for _ in 0..120 {
        assert_eq!(session.append(), 201);
    }
    assert_eq!(session.ask("GET", "/readyz", "").0, 200);
    eventually("segments are filed", || {
        session.metric("telpher_journal_filed_segments_total") > 4
    });
    let changes = "telpher_journal_state_changes_total{state=\"filing_retrying\"}";
    assert_eq!(session.metric(changes), 0);
    eventually("a client over the budget reads why", || {
        if session.metric("telpher_sockets") < max {
            flood();
        }
        let stream = TcpStream::connect(node.address("http")).unwrap();
        let (status, body) = read_answer(&mut BufReader::new(stream));
        status == 503 && body.contains("file descriptor")
    });
    let ended = node.stop();
    ended.expect(0);
    assert!(
        ended.stderr.contains("connection refused"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_failed_journal_is_logged_and_ends_the_process() {
    let place = Place::new();
    let node = place.serve_under("trap '' XFSZ", "--journal-exit-delay 1s");
    let (mut writer, mut probe) = (Session::open(&node), Session::open(&node));
    assert_eq!(writer.append(), 201);
    // Writes to files above this size fail.
    limit(&node, Resource::Fsize, 8192, 8192);
    assert_eq!(writer.append(), 503, "it is not on disk");
    let (status, body) = probe.ask("GET", "/readyz", "");
    assert_eq!(status, 503);
    assert!(body.contains("the journal has failed"), "{body}");
    assert_eq!(probe.metric("telpher_journal_state{state=\"failed\"}"), 1);
    let ended = node.end();
    ended.expect(1).tells("the journal has failed", "inspect");
    assert!(ended.stderr.contains("ERROR"), "{}", ended.stderr);
}

#[test]
fn a_failed_journal_does_not_exit_if_configured_so() {
    let place = Place::new();
    let flags = "--journal-exit-on-failure=false";
    let node = place.serve_under("trap '' XFSZ", flags);
    let mut session = Session::open(&node);
    assert_eq!(session.append(), 201);
    limit(&node, Resource::Fsize, 8192, 8192);
    assert_eq!(session.append(), 503);
    let path = "/v1/conversations/long/messages";
    assert_eq!(session.ask("GET", path, "").0, 200, "reads go on");
    node.stop().expect(0);
}

impl Place {
    /// Starts a node from a shell that has run `prelude`, and waits until it is ready.
    fn serve_under(&self, prelude: &str, flags: &str) -> Node {
        let script = format!("{prelude} && exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_telpher")]);
        self.serve_through(shell, "127.0.0.1:0", flags)
    }
}
