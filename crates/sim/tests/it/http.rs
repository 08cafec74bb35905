//! HTTP clients of a node with power failures, over a network with cuts, under many seeds:
//! conversations, quotas, and a webhook that answers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use quota_service::LimitConfig;
use serde_json::{Value, json};
use sim::{DurableNode, Network, Settings, Transcript, Weather, run, run_all};
use webhooks::caller::{Body, CallError, Caller, Calling, Request, Response};

use crate::support::http::Http;

const CONVERSATION: &str = "/v1/conversations/c-1";
const WRITERS: usize = 2;
const MESSAGES: usize = 20;
const TAKES: u64 = 30;
const CAPACITY: u64 = 1_000;

/// Number of looks for an answer of the agent, 50 ms apart.
const ROUNDS_MAX: usize = 1_000;

/// The number of each acknowledged message, by its id.
type Acknowledged = Arc<Mutex<BTreeMap<String, u64>>>;

/// Runs a world: two writers and a client that takes, which all repeat requests without an answer;
/// an agent that fails now and then; cuts and power failures.
fn world(seed: u64) -> Vec<String> {
    run(async move {
        let transcript = Transcript::start();
        let network = Network::new(seed, Weather::CALM);
        let limit = LimitConfig {
            name: "tokens".to_owned(),
            pattern: "acme/*/*".to_owned(),
            unit: "tokens".to_owned(),
            capacity: Some(CAPACITY),
            refill: Some("0/s".to_owned()),
            durability: Some("sync".to_owned()),
            ..LimitConfig::default()
        };
        let settings = Settings {
            limits: vec![limit.read().unwrap()],
            webhooks: Arc::new(Agent(Mutex::new(fastrand::Rng::with_seed(seed)))),
        };
        let mut node = DurableNode::start_with(seed, &network, settings);
        let acknowledged = Acknowledged::default();
        let http = Http(node.dialer("admin"));
        let agent =
            json!({"url": "http://agent/", "pause_ms": 50, "debounce_ms": 20, "attempts_max": 100});
        put(&http, "/v1/agents/bot", &agent).await;
        put(&http, CONVERSATION, &json!({"agent": "bot"})).await;

        let mut clients = Vec::new();
        for writer in 0..WRITERS {
            let http = Http(node.dialer("writer"));
            let log = (acknowledged.clone(), transcript.clone());
            let dice = fastrand::Rng::with_seed(seed + writer as u64);
            clients.push(tokio::spawn(write(http, writer, dice, log)));
        }
        let taking = take(Http(node.dialer("taker")), seed, transcript.clone());
        clients.push(tokio::spawn(taking));

        let mut dice = fastrand::Rng::with_seed(seed);
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(dice.u64(1..300))).await;
            match dice.u8(0..3) {
                0 => network.cut_all(),
                _ => {
                    let before = acknowledged.lock().clone();
                    node.fail_power(Duration::from_millis(dice.u64(1..200)))
                        .await;
                    check(&http, &before, seed).await;
                }
            }
        }
        for client in clients {
            client.await.unwrap();
        }
        let acknowledged = acknowledged.lock().clone();
        answered(&http, &acknowledged, seed).await;
        node.fail_power(Duration::from_millis(1)).await;
        let ids = check(&http, &acknowledged, seed).await;
        let is_answer = |id: &String| id.starts_with("d-");
        assert!(ids.last().is_some_and(is_answer), "seed {seed}: {ids:?}");
        // Each take has an id, so one that was repeated counts once.
        let spent: u64 = (0..TAKES).map(cost).sum();
        assert_eq!(
            remaining_tokens(&node),
            i128::from(CAPACITY - spent),
            "seed {seed}"
        );
        transcript.lines()
    })
}

async fn put(http: &Http, path: &str, body: &Value) {
    let (status, answer) = http.ask("PUT", path, body, || {}).await;
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
}

async fn write(
    http: Http,
    writer: usize,
    mut dice: fastrand::Rng,
    (acknowledged, transcript): (Acknowledged, Transcript),
) {
    for number in 0..MESSAGES {
        let id = format!("{writer}.{number}");
        let message = json!({"id": id, "role": "user", "from": "alice", "content": id});
        let body = json!({"messages": [message]});
        let path = format!("{CONVERSATION}/messages");
        let lost = || transcript.note("again");
        let (status, answer) = http.ask("POST", &path, &body, lost).await;
        assert!((200..300).contains(&status), "{status} {answer}");
        let seq = answer["messages"][0]["seq"].as_u64().unwrap();
        transcript.note(format!("appended {id} at {seq}"));
        acknowledged.lock().insert(id, seq);
        tokio::time::sleep(Duration::from_millis(dice.u64(0..40))).await;
    }
}

/// The cost of a take, in tokens.
fn cost(number: u64) -> u64 {
    1 + number % 5
}

async fn take(http: Http, seed: u64, transcript: Transcript) {
    let mut dice = fastrand::Rng::with_seed(seed + 20);
    for number in 0..TAKES {
        let body = json!({
            "subject": "acme/research/bot",
            "cost": {"tokens": cost(number)},
            "id": format!("take-{number}"),
        });
        let lost = || transcript.note("again");
        let (status, answer) = http.ask("POST", "/v1/take", &body, lost).await;
        assert_eq!(status, 200, "{answer}");
        transcript.note(format!("took {number}"));
        tokio::time::sleep(Duration::from_millis(dice.u64(0..30))).await;
    }
}

/// Checks that each acknowledged message is there once, under its number. Returns all ids.
async fn check(http: &Http, acknowledged: &BTreeMap<String, u64>, seed: u64) -> Vec<String> {
    let path = format!("{CONVERSATION}/messages?after=0&limit=1000");
    let (status, page) = http.ask("GET", &path, &Value::Null, || {}).await;
    assert_eq!(status, 200, "seed {seed}: {page}");
    let messages = page["messages"].as_array().unwrap();
    let id = |message: &Value| message["id"].as_str().unwrap().to_owned();
    let ids: Vec<_> = messages.iter().map(id).collect();
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(message["seq"], index + 1, "seed {seed}: a gap");
    }
    for (id, seq) in acknowledged {
        let found = ids.get(*seq as usize - 1);
        assert_eq!(found, Some(id), "seed {seed}: {id} at {seq}");
    }
    let mut different = ids.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), ids.len(), "seed {seed}: a message twice");
    ids
}

/// Waits until the agent has answered everything: then the newest message is an answer.
async fn answered(http: &Http, acknowledged: &BTreeMap<String, u64>, seed: u64) {
    for _ in 0..ROUNDS_MAX {
        let ids = check(http, acknowledged, seed).await;
        if ids.last().is_some_and(|id| id.starts_with("d-")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("seed {seed}: the agent does not answer");
}

/// Returns the tokens left of the limit.
fn remaining_tokens(node: &DurableNode) -> i128 {
    use quota::Subject;
    use quota_service::Desk;
    let (mut desk, subject) = (Desk::new(), Subject::parse("acme/research/bot").unwrap());
    assert!(node.handle().quotas().peek(&mut desk, &subject).is_none());
    desk.limit_states().next().unwrap().have
}

/// An agent that answers late, or not, or with an error.
struct Agent(Mutex<fastrand::Rng>);

impl Caller for Agent {
    fn call(&self, _: Request) -> Calling {
        let (delay_ms, fate) = {
            let mut dice = self.0.lock();
            (dice.u64(0..50), dice.u8(0..5))
        };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            let status = match fate {
                0 => return Err(CallError::Lost("the agent was not reached".to_owned())),
                1 => 503,
                _ => 200,
            };
            Ok(Response {
                status,
                content_type: "text/plain".to_owned(),
                retry_after: None,
                body: Box::pin(Whole(Some(Bytes::from_static(b"an answer")))),
            })
        })
    }
}

/// A body in one piece.
struct Whole(Option<Bytes>);

impl Body for Whole {
    fn poll_piece(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, CallError>>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

#[test]
fn acknowledged_messages_and_takes_survive_power_failures() {
    let lines = run_all(0..20, world).concat();
    // Worlds without any fault would prove nothing.
    assert!(lines.iter().any(|line| line.ends_with("again")));
}

/// Long run, by `cargo xtask sim`.
#[test]
#[ignore = "minutes"]
fn acknowledged_messages_survive_in_thousands_of_worlds() {
    run_all(crate::support::seeds(20..2_000), world);
}
