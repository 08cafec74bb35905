//! Mailboxes and streams that are not in memory: only requests that need one wait for the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use door_testing::{Gate, Gated, ThreadPerWork, until};
use model::ErrorCode;
use wire::{Append, Cast, Extract, Flags, Kind, Read, Stored};

use crate::agent::{Agent, Frame, tag};
use crate::durable_node::{DurableNode, acknowledge, delivered, key, write, writer};

/// A node that has just been started, with messages in the mailbox of `a/b/c` and records in
/// `a/b/log`, all of them on a disk behind a gate; and who waits for that.
async fn started(records: &[&str]) -> (DurableNode, Arc<Gate>, Arc<ThreadPerWork>) {
    let mut durable_node = DurableNode::new();
    let mut agent = writer(&durable_node.bench, "a/b/alice").await;
    for number in 0..3 {
        durable_node
            .write(&mut agent, u32::from(number), key(number))
            .await;
    }
    agent.bind(2, "a/b/log", Cast::Stream).await;
    let mut body = Vec::new();
    Append::encode(None, records, &mut body);
    agent
        .message(Kind::APPEND, Flags::NONE, 2, tag(0), &body)
        .await;
    durable_node.answer(&mut agent).await;
    let gate = Arc::new(Gate::default());
    let before = gate.clone();
    let durable_node = durable_node.crash_behind(|disk| Arc::new(Gated { disk, gate: before }));
    let thread_per_task = Arc::new(ThreadPerWork::default());
    durable_node.offload.switch_to(thread_per_task.clone());
    (durable_node, gate, thread_per_task)
}

async fn reader(durable_node: &DurableNode) -> Agent {
    let mut agent = durable_node.bench.agent("").await;
    agent.bind(1, "a/b/log", Cast::Stream).await;
    agent
}

async fn ask(agent: &mut Agent, kind: Kind, slot: u32, from: u64) {
    let read = Read {
        from,
        records_max: 1,
        bytes_max: 1 << 20,
    };
    agent
        .message(kind, Flags::NONE, 1, tag(slot), &read.encode())
        .await;
}

/// The tag and the text of the record.
fn record(frame: &Frame) -> (u32, String) {
    let extract = Extract::decode(&frame.payload).unwrap();
    let record = extract.records().next().unwrap();
    let text = String::from_utf8(record.bytes.to_vec()).unwrap();
    (frame.header.correlation.slot, text)
}

/// Like [`DurableNode::answer`], of what only writes: nothing is put in order, which would read.
async fn answer(durable_node: &mut DurableNode, agent: &mut Agent) -> Frame {
    agent.expect_nothing().await;
    durable_node.line.step();
    agent.next().await
}

/// All connections of a test are served by its one thread.
#[tokio::test]
async fn a_read_that_waits_for_the_disk_blocks_no_other() {
    let (mut durable_node, gate, _) = started(&["one", "two"]).await;
    gate.shut();
    let (mut first, mut follower) = (reader(&durable_node).await, reader(&durable_node).await);
    for slot in 0..2 {
        ask(&mut first, Kind::READ, slot, u64::from(slot)).await;
    }
    ask(&mut follower, Kind::FOLLOW, 0, 0).await;
    until("reads to wait", || gate.waiting() == 2).await;
    // Others go on, and so does what else comes by the same connection.
    first.expect_nothing().await;
    follower.expect_nothing().await;
    let mut other = durable_node.bench.agent("").await;
    other.bind(1, "a/b/other", Cast::Any).await;
    write(&mut other, 0, key(1), b"hi").await;
    assert_eq!(
        answer(&mut durable_node, &mut other).await.header.kind,
        Kind::REPLY
    );
    // Records in memory are read at once, also by a client with a pending read.
    other.bind(2, "a/b/log", Cast::Stream).await;
    let mut body = Vec::new();
    Append::encode(None, &["three"], &mut body);
    other
        .message(Kind::APPEND, Flags::NONE, 2, tag(1), &body)
        .await;
    answer(&mut durable_node, &mut other).await;
    ask(&mut first, Kind::READ, 2, 2).await;
    assert_eq!(record(&first.next().await), (2, "three".to_owned()));
    // One read of a connection is under way at a time.
    assert_eq!(gate.waiting(), 2);
    gate.open();
    for expected in [(0, "one"), (1, "two")] {
        let (slot, text) = record(&first.next().await);
        assert_eq!((slot, &*text), expected);
    }
    for expected in ["one", "two", "three"] {
        assert_eq!(record(&follower.next().await), (0, expected.to_owned()));
    }
}

#[tokio::test]
async fn writes_to_a_loading_mailbox_wait_in_order_and_block_no_other() {
    let (mut durable_node, gate, _) = started(&["x"]).await;
    gate.shut();
    let mut alice = writer(&durable_node.bench, "a/b/alice").await;
    for number in 2..5 {
        write(&mut alice, u32::from(number) - 2, key(number), b"later").await;
    }
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    until("reads to wait", || gate.waiting() == 1).await;
    durable_node.line.step();
    alice.expect_nothing().await;
    subscriber.expect_nothing().await;
    let mut other = durable_node.bench.agent("").await;
    other.bind(1, "a/b/other", Cast::Any).await;
    write(&mut other, 0, key(1), b"hi").await;
    assert_eq!(
        answer(&mut durable_node, &mut other).await.header.kind,
        Kind::REPLY
    );
    durable_node.bench.node.sweep();
    gate.open();
    // The stored message is delivered, and the writes are answered: the first is a duplicate.
    let (delivery, body, at) = delivered(&mut subscriber).await;
    assert_eq!((delivery.offset, &body[..]), (0, &b"hi"[..]));
    durable_node.line.step();
    for expected in [(2, true), (3, false), (4, false)] {
        let frame = alice.next().await;
        assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
        let stored = Stored::decode(&frame.payload).unwrap();
        assert_eq!((stored.offset, stored.is_duplicate), expected);
    }
    acknowledge(&mut subscriber, at).await;
    let mut offsets = Vec::new();
    for _ in 1..5 {
        let (delivery, _, at) = delivered(&mut subscriber).await;
        acknowledge(&mut subscriber, at).await;
        offsets.push(delivery.offset);
    }
    assert_eq!(offsets, [1, 2, 3, 4]);
}

#[tokio::test]
async fn cold_reads_and_writes_are_busy_under_overload_and_lose_nothing() {
    let (mut durable_node, _, thread_per_task) = started(&["one"]).await;
    thread_per_task.is_overloaded.store(true, Ordering::SeqCst);
    let mut agent = reader(&durable_node).await;
    agent.bind(2, "a/b/c", Cast::Any).await;
    for kind in [Kind::READ, Kind::FOLLOW] {
        ask(&mut agent, kind, 0, 0).await;
        let frame = agent.next().await;
        let failure = frame.failure();
        assert_eq!(failure.code, ErrorCode::Busy, "{failure:?}");
        assert!(failure.retry_after_ms > 0);
    }
    let mut alice = writer(&durable_node.bench, "a/b/alice").await;
    write(&mut alice, 0, key(9), b"refused").await;
    let frame = alice.next().await;
    let failure = frame.failure();
    assert_eq!(failure.code, ErrorCode::Busy, "{failure:?}");
    assert!(failure.retry_after_ms > 0);
    // A subscriber need not retry: waiting messages are delivered later.
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    subscriber.expect_nothing().await;
    assert!(durable_node.bench.node.sweep());
    thread_per_task.is_overloaded.store(false, Ordering::SeqCst);
    assert!(durable_node.bench.node.sweep());
    let (delivery, body, _) = delivered(&mut subscriber).await;
    assert_eq!((delivery.offset, &body[..]), (0, &b"hi"[..]));
    ask(&mut agent, Kind::READ, 0, 0).await;
    assert_eq!(record(&agent.next().await), (0, "one".to_owned()));
    write(&mut alice, 0, key(9), b"taken").await;
    let frame = durable_node.answer(&mut alice).await;
    assert!(!Stored::decode(&frame.payload).unwrap().is_duplicate);
}

#[tokio::test]
async fn messages_that_are_not_in_memory_are_fetched_without_holding_their_mailbox() {
    let (mut durable_node, gate, _) = started(&["x"]).await;
    // The mailbox is loaded, but its messages are only on disk.
    assert_eq!(
        durable_node
            .bench
            .node
            .messaging()
            .mailboxes()
            .unwrap()
            .list("", "", 10)
            .unwrap()[0]
            .messages,
        3
    );
    gate.shut();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    until("reads to wait", || gate.waiting() == 1).await;
    let mut alice = writer(&durable_node.bench, "a/b/alice").await;
    write(&mut alice, 0, key(7), b"new").await;
    let frame = answer(&mut durable_node, &mut alice).await;
    assert_eq!(Stored::decode(&frame.payload).unwrap().offset, 3);
    subscriber.expect_nothing().await;
    gate.open();
    for offset in 0..4 {
        let (delivery, _, at) = delivered(&mut subscriber).await;
        assert_eq!(delivery.offset, offset);
        acknowledge(&mut subscriber, at).await;
    }
}
