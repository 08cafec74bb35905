//! Conversations that are not in memory, over the native protocol.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use door_testing::{Gate, Gated, ThreadPerWork, until};
use model::ErrorCode;
use wire::{AppendedMessages, Cast, Extract, Kind};

use crate::agent::{Agent, Frame};
use crate::conversations::{append, ask, new};
use crate::kept::Kept;

async fn bound(kept: &Kept, name: &str) -> Agent {
    let mut agent = kept.bench.agent("").await;
    agent.bind(1, name, Cast::Conversation).await;
    agent
}

/// A node that has just been started, with two messages in `a/b/old` on a disk behind a gate.
async fn started() -> (Kept, Arc<Gate>, Arc<ThreadPerWork>) {
    let mut kept = Kept::new();
    let mut agent = bound(&kept, "a/b/old").await;
    append(&mut agent, 0, None, &[new("one", "[]"), new("two", "[]")]).await;
    kept.answer(&mut agent).await;
    let gate = Arc::new(Gate::default());
    let before = gate.clone();
    let kept = kept.crash_behind(|disk| Arc::new(Gated { disk, gate: before }));
    let elsewhere = Arc::new(ThreadPerWork::default());
    kept.offload.switch_to(elsewhere.clone());
    (kept, gate, elsewhere)
}

/// What becomes durable is, and nothing is read.
async fn answer(kept: &mut Kept, agent: &mut Agent) -> Frame {
    agent.expect_nothing().await;
    kept.line.step();
    agent.next().await
}

/// The same of what another thread decides, whenever it does.
async fn eventually(kept: &mut Kept, agent: &mut Agent) -> Frame {
    let next = agent.next();
    tokio::pin!(next);
    loop {
        kept.line.step();
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
    let (mut kept, gate, _) = started().await;
    gate.shut();
    let mut writer = bound(&kept, "a/b/old").await;
    let (mut reader, mut follower) = (bound(&kept, "a/b/old").await, bound(&kept, "a/b/old").await);
    for (slot, id) in (0..).zip(["two", "three", "four"]) {
        append(&mut writer, slot, None, &[new(id, "[]")]).await;
    }
    ask(&mut reader, Kind::READ, 0, 1, 10).await;
    ask(&mut follower, Kind::FOLLOW, 0, 1, 10).await;
    until("reads to wait", || gate.waiting() == 3).await;
    kept.bench.node.sweep();
    let mut other = bound(&kept, "a/b/new").await;
    append(&mut other, 0, None, &[new("one", "[]")]).await;
    assert_eq!(first(&answer(&mut kept, &mut other).await), (0, 1));
    for agent in [&mut writer, &mut reader, &mut follower] {
        agent.expect_nothing().await;
    }
    gate.open();
    assert_eq!(offsets(&reader.next().await), [1, 2]);
    assert_eq!(offsets(&follower.next().await), [1, 2]);
    // The first was there already; the others are in the order in which they came.
    assert_eq!(first(&writer.next().await), (0, 2));
    for expected in [(1, 3), (2, 4)] {
        assert_eq!(first(&eventually(&mut kept, &mut writer).await), expected);
    }
}

#[tokio::test]
async fn appends_and_reads_of_an_unloaded_conversation_are_busy_under_overload() {
    let (mut kept, _, elsewhere) = started().await;
    elsewhere.is_overloaded.store(true, Ordering::SeqCst);
    let mut agent = bound(&kept, "a/b/old").await;
    append(&mut agent, 0, None, &[new("three", "[]")]).await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Busy);
    for kind in [Kind::READ, Kind::FOLLOW] {
        ask(&mut agent, kind, 1, 1, 10).await;
        assert_eq!(agent.next().await.failure().code, ErrorCode::Busy);
    }
    elsewhere.is_overloaded.store(false, Ordering::SeqCst);
    append(&mut agent, 0, None, &[new("three", "[]")]).await;
    assert_eq!(first(&eventually(&mut kept, &mut agent).await), (0, 3));
}
