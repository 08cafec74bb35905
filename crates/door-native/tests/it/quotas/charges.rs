//! Charges to a `sync` limit are acknowledged when they are on disk, and not before.

use journal::disk::simulated::{Fate, Fault};
use model::ErrorCode;
use quota::Subject;
use quota_service::{Desk, LimitConfig};
use wire::{Append, Cast, Flags, Kind, encode_cancel};

use crate::agent::{Agent, tag};
use crate::durable_node::{DurableNode, Settings};

/// So many of a unit for each client, on disk before they are told.
fn limit(unit: &str, capacity: u64) -> LimitConfig {
    LimitConfig {
        name: unit.to_owned(),
        pattern: "*/*/*".to_owned(),
        unit: unit.to_owned(),
        capacity: Some(capacity),
        refill: Some("0/s".to_owned()),
        durability: Some("sync".to_owned()),
        ..LimitConfig::default()
    }
}

fn open(limits: &[LimitConfig]) -> DurableNode {
    let mut durable_node = DurableNode::with_settings(Settings {
        limits: limits.iter().map(|limit| limit.read().unwrap()).collect(),
        ..Settings::default()
    });
    durable_node.sync();
    durable_node
}

/// What is left of the only limit.
fn remaining(durable_node: &DurableNode, client: &str) -> i128 {
    let (mut desk, subject) = (Desk::new(), Subject::parse(client).unwrap());
    let asked = durable_node.bench.node.quotas().peek(&mut desk, &subject);
    assert!(asked.is_none());
    let mut states = desk.limit_states();
    states.next().unwrap().have
}

async fn client(durable_node: &DurableNode) -> Agent {
    let mut client = durable_node.bench.agent("x/y/z").await;
    client.bind(1, "a/b/c", Cast::Any).await;
    client.bind(2, "a/b/log", Cast::Stream).await;
    client
}

#[tokio::test]
async fn receipts_and_memory_writes_wait_until_their_charge_is_durable() {
    let sends = limit("sends", 4);
    let mut durable_node = open(&[sends]);
    let mut receiver = durable_node.bench.subscriber("a/b/c").await;
    let mut client = client(&durable_node).await;
    client
        .message(Kind::SEND, Flags::REPORT, 1, tag(0), b"reported")
        .await;
    client
        .message(Kind::WRITE, Flags::MEMORY, 1, tag(1), b"in memory")
        .await;
    for expected in [&b"reported"[..], b"in memory"] {
        assert_eq!(receiver.next().await.body(), expected);
    }
    client.expect_nothing().await;
    durable_node.sync();
    let receipt = client.next().await;
    let copies = client.next().await;
    assert_eq!(
        [receipt.header, copies.header].map(|it| (it.kind, it.correlation)),
        [(Kind::RECEIPT, tag(0)), (Kind::REPLY, tag(1))]
    );
    // No acknowledged charge is lost.
    durable_node.disk.crash_with(|_| Fate::Lost);
    let durable_node = durable_node.crash();
    assert_eq!(remaining(&durable_node, "x/y/z"), 2);
}

#[tokio::test]
async fn call_is_forwarded_once_its_charge_is_durable() {
    let mut durable_node = open(&[limit("sends", 10)]);
    let mut responder = durable_node.bench.subscriber("a/b/c").await;
    let mut client = client(&durable_node).await;
    client.request(1, 0, b"ping").await;
    client.expect_nothing().await;
    responder.expect_nothing().await;
    durable_node.sync();
    let request = responder.next().await;
    assert_eq!(request.body(), b"ping");
    responder
        .message(
            Kind::REPLY,
            Flags::NONE,
            0,
            request.header.correlation,
            b"pong",
        )
        .await;
    assert_eq!(client.next().await.body(), b"pong");
    // A caller that cancels meanwhile gets Cancelled, and the call is not forwarded.
    client.request(1, 1, b"never").await;
    client.frame(|out| encode_cancel(tag(1), out)).await;
    let cancelled = client.next().await;
    assert_eq!(cancelled.header.correlation, tag(1));
    assert_eq!(cancelled.failure().code, ErrorCode::Cancelled);
    assert!(!cancelled.failure().sent);
    durable_node.sync();
    client.expect_nothing().await;
    responder.expect_nothing().await;
    // The disk fails: it is not handed on.
    client.request(1, 0, b"lost").await;
    client.expect_nothing().await;
    durable_node.disk.fail_always(Fault::Broken, |_| true);
    durable_node.sync();
    let failed = client.next().await;
    assert_eq!(failed.failure().code, ErrorCode::Unavailable);
    assert!(!failed.failure().sent);
    responder.expect_nothing().await;
}

#[tokio::test]
async fn a_call_awaiting_its_charge_is_in_flight_until_its_caller_disconnects() {
    let in_flight = LimitConfig {
        refill: None,
        ..limit("requests_in_flight", 5)
    };
    let sends = limit("sends", 10);
    let mut durable_node = open(&[in_flight, sends]);
    let mut responder = durable_node.bench.subscriber("a/b/c").await;
    let mut client = client(&durable_node).await;
    client.request(1, 0, b"ping").await;
    client.expect_nothing().await;
    assert_eq!(remaining(&durable_node, "x/y/z"), 4);
    drop(client);
    while remaining(&durable_node, "x/y/z") < 5 {
        tokio::task::yield_now().await;
    }
    durable_node.sync();
    responder.expect_nothing().await;
}

#[tokio::test]
async fn append_is_acknowledged_once_its_charge_is_durable() {
    let bytes = limit("appended_bytes", 15);
    let mut durable_node = open(&[bytes]);
    let mut client = client(&durable_node).await;
    let append = async |client: &mut Agent| {
        let mut body = Vec::new();
        Append::encode(None, &["ten bytes!"], &mut body);
        client
            .message(Kind::APPEND, Flags::NONE, 2, tag(0), &body)
            .await;
    };
    append(&mut client).await;
    client.expect_nothing().await;
    durable_node.sync();
    let appended = client.next().await;
    assert_eq!(appended.header.kind, Kind::REPLY, "{appended:?}");
    append(&mut client).await;
    let throttled = client.next().await;
    assert_eq!(throttled.failure().code, ErrorCode::Throttled);
    durable_node.disk.crash_with(|_| Fate::Lost);
    let durable_node = durable_node.crash();
    assert_eq!(remaining(&durable_node, "x/y/z"), 5);
}
