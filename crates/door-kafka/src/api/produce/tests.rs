use std::task::Context as TaskContext;

use journal::disk::SimulatedDisk;
use journal::{Commit, Journal, Options, ShardId, StreamId};

use super::*;
use crate::reply::WaitingAnswer;

const SHARD: ShardId = ShardId(0);

/// Returns the answer of a request with one batch.
fn answer(journal: &Arc<Journal>, acks: i16) -> Unconfirmed {
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
    let tag = Tag {
        version: VERSION_MIN,
        correlation_id: 1,
    };
    Unconfirmed::new(waiting, tag, acks, Deadline::usual())
}

fn poll_at(answer: &mut Unconfirmed, is_over: bool) -> Poll<ErrorCode> {
    let mut cx = TaskContext::from_waker(Waker::noop());
    let code = |answer: &Unconfirmed| {
        let told = &answer.response().responses[0];
        told.partition_responses[0].error_code
    };
    answer.poll(&mut cx, is_over).map(|()| code(answer))
}

fn poll(answer: &mut Unconfirmed) -> Poll<ErrorCode> {
    poll_at(answer, false)
}

fn open() -> (Arc<Journal>, journal::Line) {
    let options = Options {
        shard_count: 1,
        segment_size: 1 << 20,
        reserve_size: 0,
        commit: Commit::ByCaller,
        ..Options::default()
    };
    let disk = Arc::new(SimulatedDisk::new(1));
    let opened = Journal::open_stepped(disk, &options).unwrap();
    let journal = Arc::new(opened.journal);
    journal.begin_reign(SHARD, 1);
    (journal, opened.line)
}

#[test]
fn unconfirmed_write_is_answered_with_a_timeout_at_its_deadline() {
    let (journal, _line) = open();
    let mut answer = answer(&journal, -1);
    assert_eq!(poll(&mut answer), Poll::Pending);
    let late = Poll::Ready(ErrorCode::RequestTimedOut);
    assert_eq!(poll_at(&mut answer, true), late);
}

#[test]
fn acks_1_waits_for_the_own_disk_and_acks_all_for_the_commit() {
    let (journal, mut line) = open();
    let (mut one, mut all) = (answer(&journal, 1), answer(&journal, -1));
    assert_eq!(
        (poll(&mut one), poll(&mut all)),
        (Poll::Pending, Poll::Pending)
    );
    line.step();
    let written = (poll(&mut one), poll(&mut all));
    assert_eq!(written, (Poll::Ready(ErrorCode::None), Poll::Pending));
    let end = journal.shard_end(SHARD).index;
    journal.commit(SHARD, end);
    assert_eq!(poll(&mut all), Poll::Ready(ErrorCode::None));

    // Another node takes over, and does not have the next batch.
    let (mut one, mut all) = (answer(&journal, 1), answer(&journal, -1));
    line.step();
    journal.cut(SHARD, journal::Index(end.0 + 1)).unwrap();
    let outcomes = (poll(&mut one), poll(&mut all));
    let unknown = Poll::Ready(ErrorCode::KafkaStorageError);
    assert_eq!(outcomes, (unknown, unknown));
}
