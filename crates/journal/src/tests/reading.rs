use super::*;
use crate::filing::Step;

#[test]
fn read_respects_its_limits_but_returns_one_record() {
    let mut stepped = open(&disk(), 1);
    for size in [10, 20, 30, 40] {
        stepped.append(STREAM, &vec![size; usize::from(size)]);
        if size == 20 {
            stepped.settle();
        }
    }
    stepped.settle();
    let read = |from, records, bytes| {
        let limit = ReadLimit { records, bytes };
        let read = stepped.journal.read(SHARD, STREAM, from, limit).unwrap();
        let offsets: Vec<_> = read.records.iter().map(|record| record.offset).collect();
        (offsets, read.next_durable)
    };
    assert_eq!(read(0, 10, 1000), (vec![0, 1, 2, 3], 4));
    assert_eq!(read(0, 3, 1000), (vec![0, 1, 2], 4));
    assert_eq!(read(1, 10, 50), (vec![1, 2], 4));
    assert_eq!(read(2, 10, 69), (vec![2], 4));
    assert_eq!(read(3, 0, 0), (vec![3], 4));
    assert_eq!(read(4, 10, 1000), (vec![], 4));
    assert_eq!(read(9, 10, 1000), (vec![], 4));
}

#[test]
fn record_has_its_tag_and_block_time() {
    let mut stepped = open(&disk(), 1);
    stepped.append_durably(STREAM, b"x");
    let read = stepped.journal.read(SHARD, STREAM, 0, ALL).unwrap();
    let record = &read.records[0];
    assert_eq!(
        (record.tag, record.time_ms, &record.payload[..]),
        (3, 1000, &b"x"[..])
    );
}

#[test]
fn trim_moves_the_start_when_durable_and_survives_restart() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    for number in 0..5u8 {
        stepped.append(STREAM, &[number]);
    }
    let mut guard = stepped.journal.lock(SHARD, 0);
    let ticket = guard.trim(STREAM, 3).unwrap();
    drop(guard);
    assert_eq!(stepped.journal.stream(SHARD, STREAM).unwrap().start, 0);
    stepped.settle();
    assert_eq!(stepped.journal.status(ticket), Status::Durable);
    let check = |stepped: &SteppedJournal| {
        let error = stepped.journal.read(SHARD, STREAM, 2, ALL).unwrap_err();
        assert!(matches!(error, ReadError::Trimmed { start: 3 }), "{error}");
        assert_eq!(stepped.read(STREAM), [[3], [4]]);
    };
    check(&stepped);
    drop(stepped);
    check(&open(&disk, 2));
}

#[test]
fn an_erase_removes_all_records_and_offsets_continue() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    stepped.append(STREAM, b"secret");
    stepped.journal.lock(SHARD, 0).erase(STREAM).unwrap();
    stepped.settle();
    assert!(stepped.read(STREAM).is_empty());
    drop(stepped);
    let mut stepped = open(&disk, 2);
    assert_eq!(stepped.append_durably(STREAM, b"next").offset, 1);
    assert_eq!(stepped.read(STREAM), [b"next"]);
}

#[test]
fn trim_of_an_unknown_stream_changes_nothing() {
    let mut stepped = open(&disk(), 1);
    let ticket = stepped.journal.lock(SHARD, 0).trim(STREAM, 9).unwrap();
    assert_eq!(stepped.journal.status(ticket), Status::Durable);
    stepped.settle();
    assert_eq!(stepped.journal.stream(SHARD, STREAM), None);
}

#[test]
fn follower_is_woken_once_by_its_own_stream() {
    let mut stepped = open(&disk(), 1);
    let (bell, waker) = Bell::new();
    stepped.append_durably(STREAM, b"one");
    let follow =
        |stepped: &SteppedJournal, from| stepped.journal.follow(SHARD, STREAM, from, &waker);
    assert_eq!(follow(&stepped, 0), Follow::Ready);
    assert!(matches!(follow(&stepped, 1), Follow::Waiting(_)));
    stepped.append_durably(StreamId(99), b"other");
    assert_eq!(bell.rings(), 0);
    stepped.append_durably(STREAM, b"two");
    assert_eq!(bell.rings(), 1);
    stepped.append_durably(STREAM, b"three");
    assert_eq!(bell.rings(), 1);
    let Follow::Waiting(following) = follow(&stepped, 3) else {
        panic!("nothing is there yet");
    };
    stepped.journal.unfollow(&following);
    stepped.append_durably(STREAM, b"four");
    assert_eq!(bell.rings(), 1);
}

#[test]
fn retention_finds_the_offset_to_trim_before() {
    let mut stepped = open(&disk(), 1);
    for number in 0..10u64 {
        let mut guard = stepped.journal.lock(SHARD, 100 * number);
        guard.append(STREAM, None, 0, &[0; 10]).unwrap();
        drop(guard);
        stepped.settle();
    }
    let journal = &stepped.journal;
    assert_eq!(journal.bytes(SHARD, STREAM).unwrap(), 100);
    assert_eq!(journal.offset_for_bytes(SHARD, STREAM, 35).unwrap(), 6);
    assert_eq!(journal.offset_for_bytes(SHARD, STREAM, 1000).unwrap(), 0);
    assert_eq!(journal.offset_for_time(SHARD, STREAM, 0).unwrap(), 0);
    assert_eq!(journal.offset_for_time(SHARD, STREAM, 301).unwrap(), 4);
    assert_eq!(journal.offset_for_time(SHARD, STREAM, 5000).unwrap(), 10);
}

#[test]
fn streams_are_listed_in_order() {
    let mut stepped = open(&disk(), 1);
    for stream in [5, 1, 9, 3] {
        stepped.append(StreamId(stream), b"x");
    }
    stepped.settle();
    let list = |after: Option<u64>, limit| -> Vec<u64> {
        let streams = stepped.journal.streams(SHARD, after.map(StreamId), limit);
        streams.iter().map(|(stream, _)| stream.0).collect()
    };
    assert_eq!(list(None, 3), [1, 3, 5]);
    assert_eq!(list(Some(5), 3), [9]);
}

#[test]
fn cut_voids_uncommitted_blocks_and_their_indexes_are_reused() {
    let disk = disk();
    let by_caller = |entropy| Options {
        commit: Commit::ByCaller,
        ..options(entropy)
    };
    let mut stepped = Journal::open_stepped(disk.clone(), &by_caller(1)).unwrap();
    stepped.journal.begin_reign(SHARD, 1);
    for payload in [&b"one"[..], b"two", b"three"] {
        stepped.append_durably(STREAM, payload);
    }
    stepped.journal.commit(SHARD, Index(1));
    assert_eq!(stepped.read(STREAM), [b"one"]);
    let committed = Index(1);
    assert_eq!(
        stepped.journal.cut(SHARD, Index(1)),
        Err(CutError::Committed { committed })
    );
    stepped.journal.cut(SHARD, Index(2)).unwrap();
    stepped.journal.begin_reign(SHARD, 2);
    let appended = stepped.append_durably(STREAM, b"2");
    assert_eq!((appended.offset, appended.ticket.index), (1, Index(2)));
    drop(stepped);
    let stepped = Journal::open_stepped(disk, &by_caller(2)).unwrap();
    let end = segment::ShardEnd {
        index: Index(2),
        term: 2,
    };
    assert_eq!(stepped.journal.shard_end(SHARD), end);
    assert!(
        stepped.read(STREAM).is_empty(),
        "nothing is known to be committed"
    );
    stepped.journal.commit(SHARD, Index(2));
    assert_eq!(stepped.read(STREAM), [&b"one"[..], b"2"]);
}

#[test]
fn read_in_memory_returns_none_if_memory_lacks_records() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    stepped.append_durably(STREAM, b"old");
    stepped.append_durably(STREAM, b"older");
    let in_memory = |stepped: &SteppedJournal, from| {
        let read = stepped.journal.read_in_memory(SHARD, STREAM, from, ALL);
        let whole = stepped.journal.read(SHARD, STREAM, from, ALL).unwrap();
        let read = read.unwrap();
        assert!(read.as_ref().is_none_or(|read| *read == whole), "{read:?}");
        read.map(|read| read.records.len())
    };
    assert_eq!(
        [0, 1, 2].map(|from| in_memory(&stepped, from)),
        [Some(2), Some(1), Some(0)]
    );
    drop(stepped);
    let mut stepped = open(&disk, 2);
    stepped.append_durably(STREAM, b"new");
    let found = [0, 1, 2, 3].map(|from| in_memory(&stepped, from));
    assert_eq!(found, [None, None, Some(1), Some(0)]);
}

#[test]
fn commit_ahead_of_the_disk_takes_effect_with_the_sync() {
    let by_caller = Options {
        commit: Commit::ByCaller,
        ..options(1)
    };
    let mut stepped = Journal::open_stepped(disk(), &by_caller).unwrap();
    let refused = stepped.journal.lock(SHARD, 1).append(STREAM, None, 0, b"");
    assert_eq!(refused, Err(AppendError::Moved), "nothing leads the shard");
    stepped.journal.begin_reign(SHARD, 1);
    let (bell, waker) = Bell::new();
    let one = stepped.append(STREAM, b"one").ticket;
    assert_eq!(stepped.journal.notify(one, &waker), Status::Pending);
    let follow = stepped.journal.follow(SHARD, STREAM, 0, &waker);
    assert!(matches!(follow, Follow::Waiting(_)));

    // A quorum of other nodes has the block before this one does.
    stepped.journal.commit(SHARD, one.index);
    assert_eq!(stepped.journal.status(one), Status::Pending);
    assert!(stepped.read(STREAM).is_empty());
    assert_eq!(stepped.line.step(), LineStep::Worked);
    assert_eq!(stepped.journal.status(one), Status::Durable);
    assert_eq!(stepped.read(STREAM), [b"one"]);
    assert_eq!(bell.rings(), 2, "one for the ticket and one for the stream");

    let two = stepped.append_durably(STREAM, b"two").ticket;
    assert_eq!(stepped.journal.status(two), Status::Pending);
    let follow = stepped.journal.follow(SHARD, STREAM, 1, &waker);
    assert!(matches!(follow, Follow::Waiting(_)));
    assert_eq!(bell.rings(), 2, "not committed yet");
    stepped.journal.commit(SHARD, two.index);
    assert_eq!(bell.rings(), 3, "woken once, at the commit");
    assert_eq!(stepped.read(STREAM), [b"one", b"two"]);
}

#[test]
fn untaken_blocks_are_dropped_when_their_reign_ends() {
    let mut stepped = open(&disk(), 1);
    let kept = stepped.append_durably(STREAM, b"kept");
    let dropped = stepped.append(STREAM, b"dropped");
    stepped.journal.lock(SHARD, 1).trim(STREAM, 1).unwrap();
    let (bell, waker) = Bell::new();
    stepped.journal.notify(dropped.ticket, &waker);
    stepped.journal.end_reign(SHARD);
    assert_eq!(bell.rings(), 1);
    assert_eq!(stepped.journal.status(dropped.ticket), Status::Moved);
    assert_eq!(stepped.journal.wait(dropped.ticket), Status::Moved);
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
    assert_eq!(stepped.line.step(), LineStep::Idle);

    stepped.journal.begin_reign(SHARD, 1);
    let next = stepped.append_durably(STREAM, b"next");
    assert_eq!(next.offset, dropped.offset);
    assert_eq!(next.ticket.index, dropped.ticket.index);
    assert_eq!(stepped.journal.status(dropped.ticket), Status::Moved);
    assert_eq!(stepped.journal.status(kept.ticket), Status::Durable);
    assert_eq!(stepped.read(STREAM), [&b"kept"[..], b"next"]);
}

/// Appends a reference to stream 1 and a record to stream 2 or 3 under each guard. The first ones are
/// filed.
fn written_in_pairs(disk: &Arc<SimulatedDisk>) -> SteppedJournal {
    let mut stepped = open(disk, 1);
    for number in 0..300_u64 {
        let mut guard = stepped.journal.lock(SHARD, 0);
        let reference = number.to_le_bytes();
        guard.append(StreamId(1), None, 1, &reference).unwrap();
        let stream = StreamId(2 + number % 2);
        guard.append(stream, None, 2, &[number as u8; 200]).unwrap();
        drop(guard);
        if number % 30 == 29 {
            stepped.settle();
        }
        if number == 150 {
            while stepped.background.step(1) == Step::Worked {}
        }
    }
    stepped.settle();
    stepped
}

#[test]
fn records_beside_those_of_a_read_are_visited_from_one_read_of_each_block() {
    let disk = disk();
    drop(written_in_pairs(&disk));
    let stepped = open(&disk, 2);
    let unfiled = stepped.journal.filing().unfiled_bytes;
    assert!(unfiled > 10_000, "{unfiled}");
    let before = disk.read();
    let mut visited = Vec::new();
    let stream = StreamId(1);
    let read = stepped
        .journal
        .read_and_visit(SHARD, stream, 240, ALL, |record, _| {
            visited.push((record.stream.0, record.offset, record.tag));
        });
    assert!(disk.read() - before <= unfiled);
    let read = read.unwrap();
    assert!(read.records.iter().map(|it| it.offset).eq(240..300));
    let expected: Vec<_> = (240..300)
        .flat_map(|number| [(1, number, 1), (2 + number % 2, number / 2, 2)])
        .collect();
    assert_eq!(visited, expected);
    let plain = stepped.journal.read(SHARD, stream, 240, ALL).unwrap();
    assert_eq!(read, plain);
}

#[test]
fn visit_ends_before_the_first_record_beyond_the_limit() {
    let disk = disk();
    let stepped = written_in_pairs(&disk);
    let check = |from, records, bytes, read: usize, visited: usize| {
        let limit = ReadLimit { records, bytes };
        let mut count = 0;
        let stream = StreamId(1);
        let found = stepped
            .journal
            .read_and_visit(SHARD, stream, from, limit, |_, _| count += 1);
        let found = found.unwrap();
        assert_eq!((found.records.len(), count), (read, visited), "{limit:?}");
        let plain = stepped.journal.read(SHARD, stream, from, limit).unwrap();
        assert_eq!(found, plain);
    };
    check(270, 7, 1000, 7, 14);
    check(270, 100, 7 * 8, 7, 14);
    check(270, 100, 7 * 8 + 1, 7, 14);
    check(270, 0, 0, 1, 2);
    check(299, 100, 1000, 1, 2);
    check(300, 100, 1000, 0, 0);
    // Filed records are read, and not visited.
    check(0, 5, 1000, 5, 0);
}
