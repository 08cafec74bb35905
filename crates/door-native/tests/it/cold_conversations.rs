//! Conversations that are not in memory, over the native protocol.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use door_testing::{Gate, Gated, ThreadPerWork, until};
use model::ErrorCode;
use wire::{AppendedMessages, Cast, Extract, Kind};

use crate::agent::{Agent, Frame};
use crate::conversations::{append, ask, new};
use crate::durable_node::DurableNode;

async fn bound(durable_node: &DurableNode, name: &str) -> Agent {
    let mut agent = durable_node.bench.agent("").await;
    agent.bind(1, name, Cast::Conversation).await;
    agent
}

/// A node that has just been started, with two messages in `a/b/old` on a disk behind a gate.
async fn started() -> (DurableNode, Arc<Gate>, Arc<ThreadPerWork>) {
    let mut durable_node = DurableNode::new();
    let mut agent = bound(&durable_node, "a/b/old").await;
    append(&mut agent, 0, None, &[new("one", "[]"), new("two", "[]")]).await;
    durable_node.answer(&mut agent).await;
    let gate = Arc::new(Gate::default());
    let before = gate.clone();
    let durable_node = durable_node.crash_behind(|disk| Arc::new(Gated { disk, gate: before }));
    let thread_per_task = Arc::new(ThreadPerWork::default());
    durable_node.offload.switch_to(thread_per_task.clone());
    (durable_node, gate, thread_per_task)
}

/// What becomes durable is, and nothing is read.
async fn answer(durable_node: &mut DurableNode, agent: &mut Agent) -> Frame {
    agent.expect_nothing().await;
    durable_node.line.step();
    agent.next().await
}

/// The same of what another thread decides, whenever it does.
async fn eventually(durable_node: &mut DurableNode, agent: &mut Agent) -> Frame {
    let next = agent.next();
    tokio::pin!(next);
    loop {
        durable_node.line.step();
        tokio::select! {
            biased;
            frame = &mut next => return frame,
            () = tokio::task::yield_now() => {}
        }
    }
}

fn first(frame: &Frame) -> (u32, u64) {
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let appended = AppendedMessages::decode(&frame.payload).unwrap();
    (frame.header.correlation.slot, appended.first)
}

fn offsets(frame: &Frame) -> Vec<u64> {
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let extract = Extract::decode(&frame.payload).unwrap();
    extract.records().map(|record| record.offset).collect()
}

#[tokio::test]
async fn appends_to_an_unloaded_conversation_wait_in_order_and_block_no_other() {
    let (mut durable_node, gate, _) = started().await;
    gate.shut();
    let mut writer = bound(&durable_node, "a/b/old").await;
    let (mut reader, mut follower) = (
        bound(&durable_node, "a/b/old").await,
        bound(&durable_node, "a/b/old").await,
    );
    for (slot, id) in (0..).zip(["two", "three", "four"]) {
        append(&mut writer, slot, None, &[new(id, "[]")]).await;
    }
    ask(&mut reader, Kind::READ, 0, 1, 10).await;
    ask(&mut follower, Kind::FOLLOW, 0, 1, 10).await;
    until("reads to wait", || gate.waiting() == 3).await;
    durable_node.bench.node.sweep();
    let mut other = bound(&durable_node, "a/b/new").await;
    append(&mut other, 0, None, &[new("one", "[]")]).await;
    assert_eq!(first(&answer(&mut durable_node, &mut other).await), (0, 1));
    for agent in [&mut writer, &mut reader, &mut follower] {
        agent.expect_nothing().await;
    }
    gate.open();
    assert_eq!(offsets(&reader.next().await), [1, 2]);
    assert_eq!(offsets(&follower.next().await), [1, 2]);
    // The first was there already; the others are in the order in which they came.
    assert_eq!(first(&writer.next().await), (0, 2));
    for expected in [(1, 3), (2, 4)] {
        assert_eq!(
            first(&eventually(&mut durable_node, &mut writer).await),
            expected
        );
    }
}

#[tokio::test]
async fn appends_and_reads_of_an_unloaded_conversation_are_busy_under_overload() {
    let (mut durable_node, _, thread_per_task) = started().await;
    thread_per_task.is_overloaded.store(true, Ordering::SeqCst);
    let mut agent = bound(&durable_node, "a/b/old").await;
    append(&mut agent, 0, None, &[new("three", "[]")]).await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Busy);
    for kind in [Kind::READ, Kind::FOLLOW] {
        ask(&mut agent, kind, 1, 1, 10).await;
        assert_eq!(agent.next().await.failure().code, ErrorCode::Busy);
    }
    thread_per_task.is_overloaded.store(false, Ordering::SeqCst);
    append(&mut agent, 0, None, &[new("three", "[]")]).await;
    assert_eq!(
        first(&eventually(&mut durable_node, &mut agent).await),
        (0, 3)
    );
}
