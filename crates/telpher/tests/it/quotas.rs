//! Quotas of a node: state after a kill or a stop, and the compatible limiter.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Node, Place};

/// Limits without refill, so that takes can be counted.
const LIMITS: &str = r#"
[[limit]]
name = "calls"
match = "*/*/*"
unit = "requests"
capacity = 1000000
refill = "0/s"

[[limit]]
name = "tokens"
match = "*/*/*"
unit = "tokens"
capacity = 1000000000000
refill = "0/s"

[[limit]]
name = "money"
match = "*/*/*"
unit = "usd_micros"
budget = 1000000
every = "never"
durability = "sync"
"#;

/// A connection for sequential requests.
pub(crate) struct HttpConnection(TcpStream);

impl HttpConnection {
    pub(crate) fn open(url: &str) -> Self {
        let stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self(stream)
    }

    /// Sends a request; returns the status and the body, or `None` if the node is gone.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
        let size = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
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

/// Returns the remaining amount of a limit.
fn remaining(node: &Node, limit: &str) -> u64 {
    let mut asking = HttpConnection::open(node.url("http"));
    let (status, seen) = asking.ask("GET", "/v1/quota/acme/load/bot", "").unwrap();
    assert_eq!(status, 200, "{seen}");
    let limits = seen["limits"].as_array().unwrap();
    let found = limits.iter().find(|it| it["name"] == limit).unwrap();
    found["remaining"].as_u64().unwrap()
}

/// Takes of one agent over several connections in a closed loop, until the node is gone.
struct Load {
    /// Number of answered takes, all of which were admitted.
    admitted: Arc<AtomicU64>,
    taking: Vec<thread::JoinHandle<()>>,
}

const CONNECTIONS: u64 = 8;

/// Number of kills.
const KILLS: usize = 3;

impl Load {
    fn start(node: &Node, cost: &Value) -> Self {
        let admitted = Arc::new(AtomicU64::new(0));
        let body = json!({"subject": "acme/load/bot", "cost": cost}).to_string();
        let take = |_| {
            let mut asking = HttpConnection::open(node.url("http"));
            let (body, admitted) = (body.clone(), admitted.clone());
            thread::spawn(move || {
                while let Some((status, answer)) = asking.ask("POST", "/v1/take", &body) {
                    assert_eq!(status, 200, "{answer}");
                    admitted.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let taking = (0..CONNECTIONS).map(take).collect();
        Self { admitted, taking }
    }

    fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::SeqCst)
    }

    /// Waits for a number of further takes.
    fn wait_for_takes(&self, takes: u64) {
        let until = self.admitted() + takes;
        while self.admitted() < until && self.taking.iter().any(|one| !one.is_finished()) {
            thread::yield_now();
        }
    }

    /// Waits for the end and returns the number of admitted takes; the node must be gone.
    fn end(self) -> u64 {
        self.taking.into_iter().for_each(|one| one.join().unwrap());
        self.admitted.load(Ordering::SeqCst)
    }
}

/// Returns the number of takes that were admitted before the journal got changes twice and synced.
/// The first write may have been collected before the count was read; the second one includes all
/// of it. A write may have a second record, of usage.
fn synced_takes(node: &Node, load: &Load) -> u64 {
    let admitted = load.admitted();
    let count = |name| node.metric(name);
    let told = count("telpher_journal_records_total");
    while count("telpher_journal_records_total") < told + 3 {
        thread::yield_now();
    }
    let synced = count("telpher_journal_syncs_total");
    while count("telpher_journal_syncs_total") == synced {
        thread::yield_now();
    }
    admitted
}

#[test]
fn kill9_loses_no_take_of_a_sync_limit() {
    let place = place();
    let mut taken = 0;
    for _ in 0..KILLS {
        let node = place.serve("");
        assert_eq!(remaining(&node, "money"), 1_000_000 - taken);
        let load = Load::start(&node, &json!({"usd_micros": 1}));
        load.wait_for_takes(100);
        node.signal(Signal::KILL);
        node.end();
        let admitted = load.end();
        let node = place.serve("");
        let now = 1_000_000 - remaining(&node, "money");
        // The last take of each connection may be on disk without an answer.
        let expected = taken + admitted..=taken + admitted + CONNECTIONS;
        assert!(
            admitted >= 100 && expected.contains(&now),
            "{now}, not {expected:?}"
        );
        taken = now;
    }
}

#[test]
fn kill9_loses_only_the_last_takes_of_an_async_limit() {
    let place = place();
    let mut taken = 0;
    for _ in 0..KILLS {
        let node = place.serve("");
        let load = Load::start(&node, &json!({"requests": 1}));
        load.wait_for_takes(100);
        let kept = synced_takes(&node, &load);
        load.wait_for_takes(100);
        node.signal(Signal::KILL);
        node.end();
        let admitted = load.end();
        let node = place.serve("");
        let now = 1_000_000 - remaining(&node, "calls");
        let expected = taken + kept..=taken + admitted + CONNECTIONS;
        assert!(
            kept >= 100 && admitted > kept && expected.contains(&now),
            "{now}, not {expected:?}"
        );
        taken = now;
    }
}

/// Returns the amount and the number of takes of the limit `tokens`.
fn used(node: &Node) -> (u64, u64) {
    let mut asking = HttpConnection::open(node.url("http"));
    let path = "/v1/usage?limit=tokens&by=limit&from=2020-01-01";
    let (status, seen) = asking.ask("GET", path, "").unwrap();
    assert_eq!(status, 200, "{seen}");
    let row = &seen["rows"][0];
    let number = |member: &str| row[member].as_u64().unwrap_or(0);
    (number("amount"), number("takes"))
}

/// Returns the number of takes that were admitted before the usage of them was synced. A sweep, ten
/// times a second, writes one record of cells, and once a second another one of usage.
fn takes_with_synced_usage(node: &Node, load: &Load) -> u64 {
    let admitted = load.admitted();
    let records = || node.metric("telpher_journal_records_total");
    let told = records();
    while records() < told + 40 {
        load.wait_for_takes(1);
    }
    let synced = node.metric("telpher_journal_syncs_total");
    while node.metric("telpher_journal_syncs_total") < synced + 2 {
        load.wait_for_takes(1);
    }
    admitted
}

#[test]
fn kill9_loses_only_the_last_usage() {
    let place = place();
    let mut counted = 0;
    for _ in 0..KILLS {
        let node = place.serve("");
        assert_eq!(used(&node).0, counted * 3);
        let load = Load::start(&node, &json!({"tokens": 3}));
        load.wait_for_takes(100);
        let kept = takes_with_synced_usage(&node, &load);
        load.wait_for_takes(100);
        // What is shown includes the last answered take.
        let (before, (amount, takes)) = (load.admitted(), used(&node));
        assert!(
            amount == takes * 3 && takes >= counted + before,
            "{takes}, {before}"
        );
        node.signal(Signal::KILL);
        node.end();
        let admitted = load.end();
        let node = place.serve("");
        let (amount, takes) = used(&node);
        assert_eq!(amount, takes * 3);
        // The last take of each connection may be counted without an answer.
        let expected = counted + kept..=counted + admitted + CONNECTIONS;
        assert!(
            kept >= 100 && admitted > kept && expected.contains(&takes),
            "{takes}, not {expected:?}"
        );
        counted = takes;
    }
    let node = place.serve("");
    let mut asking = HttpConnection::open(node.url("http"));
    let body = json!({"subject": "acme/load/bot", "cost": {"tokens": 5}}).to_string();
    assert_eq!(asking.ask("POST", "/v1/take", &body).unwrap().0, 200);
    drop(asking);
    node.stop();
    let node = place.serve("");
    assert_eq!(used(&node), (counted * 3 + 5, counted + 1));
}

#[test]
fn takes_survive_a_clean_stop() {
    let place = place();
    let node = place.serve("");
    let mut asking = HttpConnection::open(node.url("http"));
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
fn the_compat_limiter_listens_on_its_own_port() {
    let place = Place::new()
        .with_variable("PORT", "0")
        .with_variable("TOKEN_BUCKET_CAPACITY", "5")
        .with_variable("TOKEN_BUCKET_RATE", "0.5");
    let node = place.serve("--compat-limiter");
    let mut asking = HttpConnection::open(node.url("limiter"));
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
    // The HTTP listener is separate.
    let mut door = HttpConnection::open(node.url("http"));
    assert_eq!(door.ask("GET", "/health", "").unwrap().0, 404);
    let place = Place::new().with_variable("TOKEN_BUCKET_RATE", "fast");
    let refused = place.run("serve --compat-limiter");
    refused
        .expect(2)
        .shows_error("`TOKEN_BUCKET_RATE`", "TOKEN_BUCKET_RATE=10");
}
