//! A node that has few file descriptors, whose disk is full, or whose journal fails.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::Value;

use crate::support::{Node, Place, eventually};

/// An HTTP connection that stays open.
struct Session {
    stream: BufReader<TcpStream>,
    /// The field that shows the token; empty without one.
    authorization: String,
}

impl Session {
    fn open(node: &Node) -> Self {
        let stream = TcpStream::connect(node.address("http")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            stream: BufReader::new(stream),
            authorization: String::new(),
        }
    }

    fn open_with(node: &Node, token: &str) -> Self {
        Self {
            authorization: format!("Authorization: Bearer {token}\r\n"),
            ..Self::open(node)
        }
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (authorization, length) = (&self.authorization, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             {authorization}Content-Length: {length}\r\n\r\n"
        );
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        read_answer(&mut self.stream)
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
        self.append_numbered(0)
    }

    /// Appends a message of about 100 KB that begins with a number; the status.
    fn append_numbered(&mut self, number: u64) -> u16 {
        let text = "x".repeat(100_000);
        let body = format!(r#"{{"messages":[{{"role":"user","content":"{number} {text}"}}]}}"#);
        self.ask("POST", MESSAGES, &body).0
    }

    /// The numbers with which the messages begin.
    fn numbers(&mut self) -> BTreeSet<u64> {
        let (mut numbers, mut after) = (BTreeSet::new(), 0);
        loop {
            let path = format!("{MESSAGES}?after={after}&limit=20");
            let (status, page) = self.ask("GET", &path, "");
            assert_eq!(status, 200, "{page}");
            let page: Value = serde_json::from_str(&page).unwrap();
            let messages = page["messages"].as_array().unwrap();
            let Some(last) = messages.last() else {
                return numbers;
            };
            after = last["seq"].as_u64().unwrap();
            for message in messages {
                let text = message["parts"][0]["text"].as_str().unwrap();
                numbers.insert(text.split(' ').next().unwrap().parse().unwrap());
            }
        }
    }
}

const MESSAGES: &str = "/v1/conversations/long/messages";

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
    // More than there are sockets for: some are left for health checks anyhow.
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
    // While there is an idle HTTP connection, new ones take its place.
    drop(session);
    let shared = max - (max / 8).min(32);
    eventually("a client over the budget reads why", || {
        if node.metric("telpher_sockets") < shared {
            flood();
        }
        let (status, body) = Session::open(&node).ask("GET", "/v1/conversations", "");
        status == 503 && body.contains("file descriptor")
    });
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(Session::open(&node).ask("GET", path, "").0, 200, "{path}");
    }
    assert!(node.metric("telpher_http_refused_total{reason=\"sockets\"}") > 0);
    let ended = node.stop();
    ended.expect(0);
    assert!(
        ended.stderr.contains("connection refused"),
        "{}",
        ended.stderr
    );
}

/// The descriptors below a number that are in use.
fn used_below(node: &Node, number: u64) -> u64 {
    let listed = std::fs::read_dir(format!("/proc/{}/fd", node.pid())).unwrap();
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok());
    numbers.filter(|found| *found < number).count() as u64
}

/// The lines of the log with a text in them.
fn count_lines(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_node_without_descriptors_serves_open_connections_and_recovers() {
    const MAXIMUM: u64 = 512;
    let place = Place::new();
    let added = place.run("token add writer --for */*/*");
    let token = added.expect(0).stdout.trim().to_owned();
    let mut node = place.serve_under(&format!("ulimit -n {MAXIMUM}"), "");
    let mut probe = Session::open_with(&node, &token);
    let mut writer = Session::open_with(&node, &token);
    assert_eq!(writer.append_numbered(0), 201);
    assert_eq!(probe.ask("GET", "/readyz", "").0, 200);

    // Event streams take every descriptor that is left, and further connections wait for one.
    let few = used_below(&node, MAXIMUM) + 8;
    limit(&node, Resource::Nofile, few, MAXIMUM);
    let mut held = Vec::new();
    eventually("no descriptor is left", || {
        let mut stream = TcpStream::connect(node.address("http")).unwrap();
        write!(
            stream,
            "GET {MESSAGES} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Accept: text/event-stream\r\n\r\n"
        )
        .unwrap();
        held.push(stream);
        used_below(&node, few) == few
    });
    for _ in 0..8 {
        held.push(TcpStream::connect(node.address("http")).unwrap());
    }

    // Filing needs files, so that writes end before long.
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let writing = std::thread::spawn(move || {
        let mut acked = BTreeSet::from([0]);
        for number in 1.. {
            if writer.append_numbered(number) == 201 {
                acked.insert(number);
            }
            if over.load(Ordering::Relaxed) {
                break;
            }
        }
        acked
    });
    let mut unready = String::new();
    eventually("the node is not ready", || {
        let (status, body) = probe.ask("GET", "/readyz", "");
        unready = body;
        status == 503
    });
    assert!(unready.contains("no journal segment is free"), "{unready}");
    // The tokens cannot be read any more, and those that were read stay valid.
    let mut log = node.wait_for_log("tokens cannot be read");
    let path = format!("{MESSAGES}?limit=1");
    assert_eq!(probe.ask("GET", &path, "").0, 200);

    drop(held);
    eventually("the node is ready again", || {
        probe.ask("GET", "/readyz", "").0 == 200
    });
    let mut fresh = Session::open_with(&node, &token);
    eventually("a new client writes", || {
        fresh.append_numbered(u64::MAX) == 201
    });
    let filed = fresh.metric("telpher_journal_filed_segments_total");
    eventually("segments are filed again", || {
        fresh.metric("telpher_journal_filed_segments_total") > filed
    });
    is_over.store(true, Ordering::Relaxed);
    let mut acked = writing.join().unwrap();
    acked.insert(u64::MAX);
    log += &node.wait_for_log("tokens are readable again");
    node.signal(Signal::KILL);
    log += &node.end().stderr;
    for once in ["tokens cannot be read", "readable again", "is retried"] {
        assert_eq!(count_lines(&log, once), 1, "{once}: {log}");
    }

    let node = place.serve("");
    let stored = Session::open_with(&node, &token).numbers();
    let lost: Vec<_> = acked.difference(&stored).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

/// Runs the node on a file system of 24 MiB of its own, in which a file takes half of the room.
const SMALL_DISK: &str = "exec unshare -rm sh -c 'mkdir disk && mount -t tmpfs -o size=24m none disk \
                          && head -c 12M /dev/zero > disk/filler && exec \"$0\" \"$@\"' \"$0\" \"$@\"; false";

#[test]
fn disk_full_and_recovered_are_each_logged_once() {
    let place = Place::new();
    let node = place.serve_under(SMALL_DISK, "--data disk");
    let (mut writer, mut probe) = (Session::open(&node), Session::open(&node));
    let mut acked = BTreeSet::new();
    let mut append = |number: u64| {
        let status = writer.append_numbered(number);
        if status == 201 {
            acked.insert(number);
        }
        status
    };
    let mut numbers = 0..;
    eventually("the disk is full", || {
        append(numbers.next().unwrap());
        probe.ask("GET", "/readyz", "").0 == 503
    });
    let (_, reason) = probe.ask("GET", "/readyz", "");
    assert!(reason.contains("the disk is full"), "{reason}");
    for _ in 0..5 {
        assert_eq!(append(numbers.next().unwrap()), 503);
    }
    assert_eq!(probe.ask("GET", "/livez", "").0, 200);
    let root = format!("/proc/{}/root", node.pid());
    let filler = place.path("disk/filler");
    std::fs::remove_file(format!("{root}{}", filler.display())).unwrap();
    eventually("there is room", || probe.ask("GET", "/readyz", "").0 == 200);
    assert_eq!(append(numbers.next().unwrap()), 201);
    let stored = probe.numbers();
    assert!(acked.is_subset(&stored), "{acked:?} {stored:?}");
    let ended = node.stop();
    let log = &ended.expect(0).stderr;
    assert_eq!(count_lines(log, "the disk is full"), 1, "{log}");
    assert_eq!(count_lines(log, "accepts writes again"), 1, "{log}");
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
    ended
        .expect(1)
        .shows_error("the journal has failed", "inspect");
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
