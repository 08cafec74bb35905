use std::pin::Pin;
use std::task::Context as TaskContext;

use journal::disk::SimulatedDisk;
use journal::{Commit, Journal, Options, ShardId, StreamId};

use super::*;

const SHARD: ShardId = ShardId(0);

/// Returns the answer of a request with one batch, once it is known.
fn answered(journal: &Arc<Journal>, acks: i16) -> Pin<Box<dyn Future<Output = ErrorCode>>> {
    let mut guard = journal.lock(SHARD, 1);
    let ticket = guard.append(StreamId(7), None, 0, b"batch").unwrap().ticket;
    drop(guard);
    let mut waiting = Waiting::default();
    waiting.response.responses.push(TopicResponse {
        partition_responses: vec![PartitionResponse::default()],
        ..TopicResponse::default()
    });
    let durable = Durable::new(journal, [None, Some(ticket)]);
    waiting.durables.push((0, 0, durable));
    Box::pin(async move {
        let response = waiting.told(acks, Deadline::usual()).await;
        response.responses[0].partition_responses[0].error_code
    })
}

fn poll(answer: &mut Pin<Box<dyn Future<Output = ErrorCode>>>) -> Poll<ErrorCode> {
    let mut cx = TaskContext::from_waker(Waker::noop());
    answer.as_mut().poll(&mut cx)
}

#[tokio::test(start_paused = true)]
async fn acks_1_waits_for_the_own_disk_and_acks_all_for_the_commit() {
    let options = Options {
        shard_count: 1,
        segment_size: 1 << 20,
        reserve_size: 0,
        commit: Commit::ByCaller,
        ..Options::default()
    };
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut opened = Journal::open_stepped(disk, &options).unwrap();
    let journal = Arc::new(opened.journal);
    journal.begin_reign(SHARD, 1);

    let (mut one, mut all) = (answered(&journal, 1), answered(&journal, -1));
    assert_eq!(
        (poll(&mut one), poll(&mut all)),
        (Poll::Pending, Poll::Pending)
    );
    opened.line.step();
    let written = (poll(&mut one), poll(&mut all));
    assert_eq!(written, (Poll::Ready(ErrorCode::None), Poll::Pending));
    let end = journal.shard_end(SHARD).index;
    journal.commit(SHARD, end);
    assert_eq!(poll(&mut all), Poll::Ready(ErrorCode::None));

    // Another node takes over, and does not have the next batch.
    let (mut one, mut all) = (answered(&journal, 1), answered(&journal, -1));
    opened.line.step();
    journal.cut(SHARD, journal::Index(end.0 + 1)).unwrap();
    let outcomes = (poll(&mut one), poll(&mut all));
    let unknown = Poll::Ready(ErrorCode::KafkaStorageError);
    assert_eq!(outcomes, (unknown, unknown));
}
