//! Blocks that are written while a sync is under way.

use super::*;

/// Opens a journal, each of whose syncs covers one block and takes effect when it begins.
fn open_overlapping(disk: &Arc<SimulatedDisk>, entropy: u64) -> SteppedJournal {
    let options = Options {
        bulk_sync_size: 0,
        ..options(entropy)
    };
    let mut stepped = Journal::open_stepped(disk.clone(), &options).unwrap();
    // Of three calls the first chooses the number of blocks, the second how long the sync takes, and the
    // third when it takes effect.
    let mut calls = 0;
    stepped.line.overlap_syncs(move |count| {
        calls += 1;
        if calls % 3 == 1 { 0 } else { count - 1 }
    });
    stepped
}

/// Appends a record to each of both shards.
fn append_to_both(stepped: &SteppedJournal) -> [Ticket; 2] {
    [ShardId(0), SHARD].map(|shard| {
        let mut guard = stepped.journal.lock(shard, 1000);
        guard.append(STREAM, None, 3, b"bytes").unwrap().ticket
    })
}

#[test]
fn block_that_is_written_during_a_sync_is_acked_by_the_next() {
    let disk = disk();
    let mut stepped = open_overlapping(&disk, 1);
    let tickets = append_to_both(&stepped);
    let written = disk.written();
    let begin = stepped.journal.durable_position().0;
    assert_eq!(stepped.line.step(), LineStep::Worked);
    let first = disk.written() - written;
    let size = stepped.journal.durable_position().0 - begin;
    assert_eq!(first, 2 * size, "both were written, and one is durable");
    let status = |stepped: &SteppedJournal| tickets.map(|it| stepped.journal.status(it));
    assert_eq!(status(&stepped), [Status::Durable, Status::Pending]);
    assert!(!stepped.line.owes_hint(), "there is more to do at once");
    let stopped = Arc::new(disk.fork());
    stopped.crash_with(|_| Fate::Lost);
    let lost = open(&stopped, 2);
    let next = |shard| lost.journal.stream(shard, STREAM).map_or(0, |it| it.next);
    assert_eq!((next(ShardId(0)), next(SHARD)), (1, 0));

    assert_eq!(stepped.line.step(), LineStep::Worked);
    assert_eq!(status(&stepped), [Status::Durable; 2]);
    assert_eq!(
        disk.written() - written,
        first,
        "both were written at first"
    );
    disk.crash_with(|_| Fate::Lost);
    let mut again = open(&disk, 3);
    assert_eq!(again.read(STREAM), [b"bytes"]);
    again.append_durably(STREAM, b"next");
}

#[test]
fn failed_sync_fails_the_blocks_that_were_written_during_it() {
    let disk = disk();
    let mut stepped = open_overlapping(&disk, 1);
    let tickets = append_to_both(&stepped);
    disk.fail_once(Fault::Broken, |call| {
        call.kind == Kind::SyncData && call.path.starts_with("line/0")
    });
    assert_eq!(stepped.line.step(), LineStep::Failed);
    let calls = disk.calls();
    assert_eq!(stepped.line.step(), LineStep::Failed);
    assert_eq!(disk.calls(), calls, "no sync is repeated");
    for ticket in tickets {
        assert_eq!(stepped.journal.status(ticket), Status::Failed);
    }
}

#[test]
fn failed_write_during_a_sync_fails_the_synced_blocks_too() {
    let disk = disk();
    let mut stepped = open_overlapping(&disk, 1);
    let tickets = append_to_both(&stepped);
    let mut writes = 0;
    disk.fail_once(Fault::Broken, move |call| {
        writes += u32::from(call.kind == Kind::Write);
        writes == 2
    });
    assert_eq!(stepped.line.step(), LineStep::Failed);
    for ticket in tickets {
        assert_eq!(stepped.journal.status(ticket), Status::Failed);
    }
}

#[test]
fn full_segment_ends_the_writing_ahead_until_its_sync() {
    let disk = disk();
    let mut stepped = open_overlapping(&disk, 1);
    let payload = vec![7; 5_000];
    let mut count = 0;
    for _ in 0..9 {
        for shard in [ShardId(0), SHARD] {
            let mut guard = stepped.journal.lock(shard, 1000);
            guard.append(STREAM, None, 3, &payload).unwrap();
        }
        count += 1;
        stepped.settle();
    }
    assert!(stepped.journal.stats().segments > 5);
    assert_eq!(stepped.read(STREAM).len(), count);
    disk.crash_with(|_| Fate::Lost);
    let again = open(&disk, 2);
    assert_eq!(again.read(STREAM), vec![payload; count]);
}
