//! Quotas that several nodes share in a Redis that the test starts; Redis and nodes are killed and
//! restarted under load.

mod cluster;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::quotas::HttpConnection;
use crate::redis::Redis;
use crate::support::{Node, Place, eventually};

const NODES: u64 = 3;
/// Connections of each node.
const CONNECTIONS: u64 = 2;

fn place(capacity: u64, refill: &str, on_unreachable: &str) -> Place {
    let place = Place::new();
    let limits = format!(
        r#"
[[limit]]
name = "calls"
match = "*/*/*"
unit = "requests"
capacity = {capacity}
refill = "{refill}"
on_unreachable = "{on_unreachable}"
"#
    );
    place.write("telpher.toml", &limits);
    place
}

fn serve(place: &Place, redis: &Redis, name: &str, flags: &str) -> Node {
    serve_with(place, &redis.url(), name, flags)
}

fn serve_with(place: &Place, urls: &str, name: &str, flags: &str) -> Node {
    place.serve(&format!(
        "--data {name} --quota-store-redis {urls} --quota-store-nodes {NODES} \
         --quota-store-deadline 2s {flags}"
    ))
}

/// Takes on several connections of one node until it is stopped or the node is gone.
struct Load {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    takers: Vec<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    admitted: AtomicU64,
    degraded: AtomicU64,
    denied: AtomicU64,
    unavailable: AtomicU64,
}

impl Counts {
    fn note(&self, status: u16, answer: &Value) {
        let count = match status {
            200 => &self.admitted,
            429 | 403 => &self.denied,
            503 => &self.unavailable,
            _ => panic!("{status}: {answer}"),
        };
        count.fetch_add(1, Ordering::SeqCst);
        if status == 200 && answer["degraded"] == json!(true) {
            self.degraded.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Load {
    fn start(node: &Node) -> Self {
        let (stop, counts) = (Arc::<AtomicBool>::default(), Arc::<Counts>::default());
        let body = json!({"subject": "acme/load/hot"}).to_string();
        let takers = (0..CONNECTIONS).map(|_| {
            let mut asking = HttpConnection::open(node.url("http"));
            let (stop, counts, body) = (stop.clone(), counts.clone(), body.clone());
            thread::spawn(move || {
                while !stop.load(Ordering::SeqCst)
                    && let Some((status, answer)) = asking.ask("POST", "/v1/take", &body)
                {
                    counts.note(status, &answer);
                }
            })
        });
        Self {
            takers: takers.collect(),
            stop,
            counts,
        }
    }

    fn admitted(&self) -> u64 {
        self.counts.admitted.load(Ordering::SeqCst)
    }

    fn denied(&self) -> u64 {
        self.counts.denied.load(Ordering::SeqCst)
    }

    fn unavailable(&self) -> u64 {
        self.counts.unavailable.load(Ordering::SeqCst)
    }

    /// Stops and returns the total of admitted takes.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.takers.into_iter().for_each(|one| one.join().unwrap());
        self.counts.admitted.load(Ordering::SeqCst)
    }
}

fn admitted(loads: &[Load]) -> u64 {
    loads.iter().map(Load::admitted).sum()
}

fn read_quota(node: &Node) -> (u16, Value) {
    let mut asking = HttpConnection::open(node.url("http"));
    asking.ask("GET", "/v1/quota/acme/load/hot", "").unwrap()
}

fn remaining(node: &Node) -> Option<i64> {
    let (status, seen) = read_quota(node);
    (status == 200).then(|| seen["limits"][0]["remaining"].as_i64().unwrap())
}

#[test]
fn three_nodes_admit_exactly_the_capacity_and_mostly_by_leases() {
    let (redis, place) = (Redis::started(), place(30_000, "0/s", "deny"));
    let nodes = ["a", "b", "c"].map(|name| serve(&place, &redis, name, ""));
    let loads = nodes.each_ref().map(Load::start);
    eventually("everything is taken", || admitted(&loads) >= 30_000);
    let denied = loads.each_ref().map(Load::denied);
    eventually("everybody is denied", || {
        let now = loads.each_ref().map(Load::denied);
        now.iter()
            .zip(denied)
            .all(|(now, before)| *now > before + 20)
    });
    let admitted: u64 = loads.into_iter().map(Load::end).sum();
    assert_eq!(admitted, 30_000);
    assert_eq!(remaining(&nodes[0]), Some(0));
    let sum = |name: &str| -> u64 { nodes.iter().map(|node| node.metric(name)).sum() };
    let (leased, asked) = (
        sum("telpher_quota_store_leased_total"),
        sum("telpher_quota_store_asked_total"),
    );
    assert!(leased > 4 * asked, "{leased} by leases, {asked} asked");
    assert_eq!(sum("telpher_quota_degraded_total"), 0);
    for node in nodes {
        node.stop().expect(0);
    }
}

#[test]
fn a_killed_node_loses_only_its_leased_credit() {
    const CAPACITY: u64 = 60_000;
    let (redis, place) = (Redis::started(), place(CAPACITY, "0/s", "deny"));
    let [a, b, c] = ["a", "b", "c"].map(|name| serve(&place, &redis, name, ""));
    let loads = [&a, &b, &c].map(Load::start);
    eventually("all take", || {
        loads.iter().all(|load| load.admitted() > 500)
    });
    a.signal(Signal::KILL);
    a.end();
    let again = serve(&place, &redis, "a", "");
    let more = Load::start(&again);
    eventually("nothing is left", || {
        remaining(&b) == Some(0) && remaining(&c) == Some(0) && remaining(&again) == Some(0)
    });
    let admitted: u64 = loads.into_iter().chain([more]).map(Load::end).sum();
    // At most a lease and the takes without an answer are lost.
    let lost = CAPACITY / (4 * NODES) + CONNECTIONS;
    let expected = CAPACITY - lost..=CAPACITY;
    assert!(expected.contains(&admitted), "{admitted}, not {expected:?}");
}

#[test]
fn redis_killed_under_load_admits_no_credit_twice() {
    let (mut redis, place) = (Redis::started(), place(20_000, "200/s", "deny"));
    let begin = Instant::now();
    let nodes = ["a", "b", "c"].map(|name| serve(&place, &redis, name, ""));
    let loads = nodes.each_ref().map(Load::start);
    for _ in 0..2 {
        let before = loads.each_ref().map(Load::admitted);
        eventually("all take", || {
            let now = loads.each_ref().map(Load::admitted);
            now.iter()
                .zip(before)
                .all(|(now, before)| *now > before + 20)
        });
        let before = loads.each_ref().map(Load::unavailable);
        redis.crash();
        eventually("all are told so", || {
            let now = loads.each_ref().map(Load::unavailable);
            now.iter().zip(before).all(|(now, before)| *now > before)
        });
        redis.start();
    }
    eventually("everybody is denied", || {
        loads.iter().all(|load| load.denied() > 100)
    });
    let admitted: u64 = loads.into_iter().map(Load::end).sum();
    let there = 20_000 + begin.elapsed().as_millis() as u64 * 200 / 1_000 + 1;
    assert!(
        (10_000..=there).contains(&admitted),
        "{admitted} of {there}"
    );
    for node in nodes {
        node.stop().expect(0);
    }
}

#[test]
fn three_nodes_admit_at_most_the_capacity_plus_refill() {
    let (redis, place) = (Redis::started(), place(300, "300/s", "deny"));
    let nodes = ["a", "b", "c"].map(|name| serve(&place, &redis, name, ""));
    let begin = Instant::now();
    let loads = nodes.each_ref().map(Load::start);
    eventually("much has come back", || admitted(&loads) > 1_500);
    let took = begin.elapsed();
    let admitted: u64 = loads.into_iter().map(Load::end).sum();
    let there = 300 + begin.elapsed().as_millis() as u64 * 300 / 1_000 + 1;
    assert!(admitted <= there, "{admitted} of {there}");
    // Leased credit is idle for a moment, but most of the refill is admitted.
    let at_least = took.as_millis() as u64 * 300 / 1_000 * 6 / 10;
    assert!(admitted >= at_least, "{admitted}, not {at_least}");
}

/// Takes for one agent; returns the status and whether the store was not used.
fn take(node: &Node, cost: &Value) -> (u16, bool) {
    let body = json!({"subject": "acme/load/hot", "cost": cost}).to_string();
    let mut asking = HttpConnection::open(node.url("http"));
    let (status, answer) = asking.ask("POST", "/v1/take", &body).unwrap();
    (status, answer["degraded"] == json!(true))
}

#[test]
fn node_admits_its_share_as_debt_while_redis_is_down() {
    let (mut redis, place) = (Redis::started(), place(300, "300/s", "degrade"));
    let node = serve(&place, &redis, "a", "");
    eventually("it is connected", || {
        node.metric("telpher_quota_store_connected") == 1
    });
    redis.crash();
    // A third of the refill, and at most a third of the capacity.
    eventually("its share has come back", || {
        let (status, is_degraded) = take(&node, &json!(100));
        assert!(is_degraded);
        status == 200
    });
    assert_eq!(take(&node, &json!(101)), (503, true));
    assert_eq!(read_quota(&node).0, 503);
    assert_eq!(node.metric("telpher_quota_store_owed"), 1);
    redis.start();
    eventually("it is charged", || {
        node.metric("telpher_quota_store_owed") == 0 && remaining(&node).is_some()
    });
    node.stop().expect(0);
}

#[test]
fn a_drained_bucket_stays_drained_while_redis_is_down() {
    let (mut redis, place) = (Redis::started(), Place::new());
    place.write(
        "telpher.toml",
        r#"
[[limit]]
name = "calls"
match = "*/*/*"
unit = "requests"
capacity = 100
refill = "1/h"

[[limit]]
name = "spend"
match = "*/*/*"
unit = "usd_micros"
budget = 1000
every = "never"
"#,
    );
    let nodes = ["a", "b"].map(|name| serve(&place, &redis, name, ""));
    let all = json!({"requests": 100, "usd_micros": 1_000});
    assert_eq!(take(&nodes[0], &all), (200, false));
    redis.crash();
    for node in &nodes {
        assert_eq!(take(node, &json!({"requests": 1})), (429, true));
        assert_eq!(take(node, &json!({"usd_micros": 1})), (503, true));
    }
    redis.start();
    for node in &nodes {
        eventually("nothing is left", || remaining(node) == Some(0));
        assert_eq!(node.metric("telpher_quota_store_owed"), 0);
    }
    for node in nodes {
        node.stop().expect(0);
    }
}

#[test]
fn the_compat_limiter_reports_its_redis() {
    let mut redis = Redis::started();
    let place = Place::new().with_variable("PORT", "0");
    let node = serve(&place, &redis, "a", "--compat-limiter");
    let mut asking = HttpConnection::open(node.url("limiter"));
    let mut health = || asking.ask("GET", "/health", "").unwrap();
    eventually("it is connected", || {
        health() == (200, with_time(&health().1, "ok", "connected"))
    });
    let mut asking = HttpConnection::open(node.url("limiter"));
    let (status, tested) = asking.ask("GET", "/test-redis", "").unwrap();
    assert_eq!(
        (status, &tested["success"]),
        (200, &json!(true)),
        "{tested}"
    );
    assert!(tested["redisVersion"].as_str().unwrap().contains('.'));
    let body = json!({"agentId": "a", "tokens": 60}).to_string();
    let (status, taken) = asking.ask("POST", "/api/request", &body).unwrap();
    assert_eq!((status, &taken["remaining"]), (200, &json!(40)), "{taken}");
    let (_, quota) = asking.ask("GET", "/api/quota/a", "").unwrap();
    assert_eq!(quota["status"], json!("active"), "{quota}");
    redis.crash();
    eventually("it is disconnected", || {
        let (status, health) = asking.ask("GET", "/health", "").unwrap();
        (status, &health["redis"]) == (503, &json!("disconnected"))
    });
    let (status, _) = asking.ask("GET", "/test-redis", "").unwrap();
    assert_eq!(status, 500);
    node.stop().expect(0);
}

fn with_time(seen: &Value, status: &str, redis: &str) -> Value {
    json!({"status": status, "timestamp": seen["timestamp"], "redis": redis})
}

#[test]
fn overrides_may_reduce_a_limit_on_one_node_but_not_raise_it() {
    let (redis, place) = (Redis::started(), place(10, "0/s", "deny"));
    let [node, other] = ["a", "b"].map(|name| serve(&place, &redis, name, ""));
    let mut asking = HttpConnection::open(node.url("http"));
    let mut ask = |method, path, body: Value| asking.ask(method, path, &body.to_string()).unwrap();
    let take = json!({"subject": "acme/load/hot", "cost": 10});
    assert_eq!(ask("POST", "/v1/take", take).0, 200);
    let reset = json!({"subject": "acme/load/hot", "reason": "a test"});
    let (status, done) = ask("POST", "/v1/reset", reset);
    assert_eq!((status, &done["here_alone"]), (200, &Value::Null));
    assert_eq!(remaining(&node), Some(10));
    let halt = json!({"prefix": "acme", "reason": "a test"});
    let (status, halted) = ask("POST", "/v1/halt", halt);
    assert_eq!((status, &halted["here_alone"]), (200, &json!(true)));
    let take = json!({"subject": "acme/load/hot"});
    assert_eq!(ask("POST", "/v1/take", take.clone()).0, 403);
    let elsewhere =
        HttpConnection::open(other.url("http")).ask("POST", "/v1/take", &take.to_string());
    assert_eq!(elsewhere.unwrap().0, 200);
    let url = node.url("native");
    let resumed = place.run(&format!("quota resume acme --reason a-test --url {url}"));
    assert_eq!(
        resumed.expect(0).stdout,
        "done on this node, not on the nodes that share its buckets; the limits have version 1\n"
    );
    let change = |field: &str, value: u64| {
        let mut change = json!({
            "limit": "calls", "prefix": "acme/load/hot", "for": "1h", "reason": "a test"
        });
        change[field] = value.into();
        change
    };
    let (status, granted) = ask("PUT", "/v1/overrides", change("grant", 5));
    assert_eq!(
        (status, &granted["here_alone"]),
        (200, &Value::Null),
        "{granted}"
    );
    assert_eq!(remaining(&other), Some(14));
    let factor = |factor: f64| json!({"factor": factor, "reason": "a test"});
    for (path, more, less, what) in [
        (
            "/v1/overrides",
            change("capacity", 50),
            change("capacity", 5),
            "an override",
        ),
        ("/v1/factors/calls", factor(1.5), factor(0.5), "a factor"),
    ] {
        let (status, refused) = ask("PUT", path, more);
        assert_eq!(
            (status, &refused["code"], &refused["detail"]),
            (
                501,
                &json!("unsupported"),
                &json!(format!(
                    "{what} that gives more would stand at this node alone, and others share its \
                     buckets through a store: change the limits of every node instead"
                ))
            )
        );
        let (status, stands) = ask("PUT", path, less);
        assert_eq!(
            (status, &stands["here_alone"]),
            (200, &json!(true)),
            "{stands}"
        );
    }
    assert_eq!((remaining(&node), remaining(&other)), (Some(5), Some(14)));
    // A reduced limit drops unused leases above it.
    assert_eq!(ask("POST", "/v1/take", take).0, 200);
    assert_eq!((remaining(&node), remaining(&other)), (Some(4), Some(9)));
    for node in [node, other] {
        node.stop().expect(0);
    }
}

#[test]
fn an_invalid_url_is_reported_without_its_password() {
    let refused = Place::new().run("serve --quota-store-redis http://u:s3cret@h");
    refused.expect(2);
    let told = format!("{}{}", refused.stdout, refused.stderr);
    assert!(
        told.contains("redis://") && !told.contains("s3cret"),
        "{told}"
    );
}
