//! Quotas of a real node: the door of the profile, and what is left of takes after a kill or a stop.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Node, Place};

/// Nothing comes back, so that what was taken can be counted.
const LIMITS: &str = r#"
[[limit]]
name = "calls"
match = "*/*/*"
unit = "requests"
capacity = 1000000
refill = "0/s"

[[limit]]
name = "money"
match = "*/*/*"
unit = "usd_micros"
budget = 1000000
every = "never"
durability = "sync"
"#;

/// A connection on which requests are asked one after the other.
struct Asking(TcpStream);

impl Asking {
    fn open(url: &str) -> Self {
        let stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self(stream)
    }

    /// The status and the body, or nothing if the node is gone.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
        let size = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
             content-length: {size}\r\n\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        loop {
            if let Some(answer) = answer(&bytes) {
                return Some(answer);
            }
            let mut chunk = [0; 4096];
            match self.0.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(size) => bytes.extend_from_slice(&chunk[..size]),
            }
        }
    }
}

fn answer(bytes: &[u8]) -> Option<(u16, Value)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

fn place() -> Place {
    let place = Place::new();
    place.write("telpher.toml", LIMITS);
    place
}

/// What is left of a limit.
fn remaining(node: &Node, limit: &str) -> u64 {
    let mut asking = Asking::open(node.url("http"));
    let (status, seen) = asking.ask("GET", "/v1/quota/acme/load/bot", "").unwrap();
    assert_eq!(status, 200, "{seen}");
    let limits = seen["limits"].as_array().unwrap();
    let found = limits.iter().find(|it| it["name"] == limit).unwrap();
    found["remaining"].as_u64().unwrap()
}

#[test]
fn a_kill_forgets_no_take_of_a_sync_limit() {
    let place = place();
    let node = place.serve("");
    let mut asking = Asking::open(node.url("http"));
    let body = json!({"subject": "acme/load/bot", "cost": {"usd_micros": 1}}).to_string();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let count = acknowledged.clone();
    let taking = thread::spawn(move || {
        while let Some((status, answer)) = asking.ask("POST", "/v1/take", &body) {
            assert_eq!(status, 200, "{answer}");
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    while acknowledged.load(Ordering::SeqCst) < 50 && !taking.is_finished() {
        thread::yield_now();
    }
    node.signal(Signal::KILL);
    node.end();
    taking.join().unwrap();
    let acknowledged = acknowledged.load(Ordering::SeqCst);
    let node = place.serve("");
    let taken = 1_000_000 - remaining(&node, "money");
    // The last may be on disk without having been answered.
    let expected = acknowledged..=acknowledged + 1;
    assert!(
        acknowledged >= 50 && expected.contains(&taken),
        "{taken} of {acknowledged}"
    );
}

#[test]
fn a_kill_forgets_nothing_that_was_written_down_in_the_background() {
    let place = place();
    let node = place.serve("");
    let mut asking = Asking::open(node.url("http"));
    let body = json!({"subject": "acme/load/bot"}).to_string();
    let mut take = || assert_eq!(asking.ask("POST", "/v1/take", &body).unwrap().0, 200);
    (0..50).for_each(|_| take());
    // What is written from now on has all of these: there is one bucket.
    let before = node.metric("telpher_journal_records_total");
    take();
    while node.metric("telpher_journal_records_total") == before {
        thread::yield_now();
    }
    node.signal(Signal::KILL);
    node.end();
    let node = place.serve("");
    let taken = 1_000_000 - remaining(&node, "calls");
    assert!((50..=51).contains(&taken), "{taken}");
}

#[test]
fn a_stop_forgets_nothing() {
    let place = place();
    let node = place.serve("");
    let mut asking = Asking::open(node.url("http"));
    let body = json!({"subject": "acme/load/bot"}).to_string();
    for _ in 0..137 {
        assert_eq!(asking.ask("POST", "/v1/take", &body).unwrap().0, 200);
    }
    drop(asking);
    node.stop();
    let node = place.serve("");
    assert_eq!(remaining(&node, "calls"), 1_000_000 - 137);
}

#[test]
fn the_profile_stands_in_for_a_limiter_on_a_port_of_its_own() {
    let place = Place::new()
        .with_variable("PORT", "0")
        .with_variable("TOKEN_BUCKET_CAPACITY", "5")
        .with_variable("TOKEN_BUCKET_RATE", "0.5");
    let node = place.serve("--compat-limiter");
    let mut asking = Asking::open(node.url("limiter"));
    let (status, health) = asking.ask("GET", "/health", "").unwrap();
    assert_eq!((status, &health["redis"]), (200, &json!("embedded")));
    let body = json!({"agentId": "a", "tokens": 5}).to_string();
    let (status, taken) = asking.ask("POST", "/api/request", &body).unwrap();
    assert_eq!((status, &taken["remaining"]), (200, &json!(0)), "{taken}");
    let (status, denied) = asking.ask("POST", "/api/request", &body).unwrap();
    assert_eq!(
        (status, &denied["retryAfter"]),
        (429, &json!(10)),
        "{denied}"
    );
    let (_, quota) = asking.ask("GET", "/api/quota/a", "").unwrap();
    assert_eq!(
        (&quota["rate"], &quota["limit"]),
        (&json!(0.5), &json!(5)),
        "{quota}"
    );
    // The HTTP door is its own.
    let mut door = Asking::open(node.url("http"));
    assert_eq!(door.ask("GET", "/health", "").unwrap().0, 404);
    let place = Place::new().with_variable("TOKEN_BUCKET_RATE", "fast");
    let refused = place.run("serve --compat-limiter");
    refused
        .expect(2)
        .tells("`TOKEN_BUCKET_RATE`", "TOKEN_BUCKET_RATE=10");
}
