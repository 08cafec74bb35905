use super::*;

#[test]
fn append_is_durable_and_readable_only_after_its_sync() {
    let mut stepped = open(&disk(), 1);
    let (bell, waker) = Bell::new();
    let appended = stepped.append(STREAM, b"one");
    assert_eq!(appended.offset, 0);
    assert_eq!(
        stepped.journal.notify(appended.ticket, &waker),
        Status::Pending
    );
    assert!(stepped.read(STREAM).is_empty());
    let state = stepped.journal.stream(SHARD, STREAM).unwrap();
    assert_eq!((state.next, state.next_durable), (1, 0));
    assert_eq!(stepped.line.step(), LineStep::Worked);
    assert_eq!(stepped.journal.status(appended.ticket), Status::Durable);
    assert_eq!(bell.rings(), 1);
    assert_eq!(stepped.read(STREAM), [b"one"]);
    assert_eq!(stepped.line.step(), LineStep::Worked, "the hint");
    assert_eq!(stepped.line.step(), LineStep::Idle);
}

#[test]
fn all_queued_appends_share_one_sync() {
    let mut stepped = open(&disk(), 1);
    let syncs = stepped.journal.stats().syncs;
    for stream in 0..50 {
        stepped.append(StreamId(stream), b"x");
        let mut guard = stepped.journal.lock(ShardId(0), 5);
        guard.append(STREAM, Some(stream), 0, b"y").unwrap();
    }
    assert_eq!(stepped.line.step(), LineStep::Worked);
    assert_eq!(stepped.journal.stats().syncs, syncs + 1);
    assert_eq!(stepped.journal.stats().records, 100);
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
}

#[test]
fn conflict_has_the_ticket_it_depends_on() {
    let mut stepped = open(&disk(), 1);
    let first = stepped.append(STREAM, b"one");
    let mut guard = stepped.journal.lock(SHARD, 0);
    let error = guard.append(STREAM, Some(0), 0, b"again").unwrap_err();
    let ticket = first.ticket;
    assert_eq!(error, AppendError::Conflict { next: 1, ticket });
    drop(guard);
    stepped.settle();
    assert_eq!(stepped.read(STREAM), [b"one"], "a conflict appends nothing");
}

#[test]
fn a_guard_writes_into_one_block() {
    let mut stepped = open(&disk(), 1);
    let limit = stepped.journal.shared().limits.block;
    stepped.append(STREAM, &vec![0; limit / 2]);
    let mut guard = stepped.journal.lock(SHARD, 0);
    guard.reserve(3 * (limit / 4), 3).unwrap();
    let tickets: Vec<_> = (0..3)
        .map(|_| {
            guard
                .append(STREAM, None, 0, &vec![1; limit / 4])
                .unwrap()
                .ticket
        })
        .collect();
    assert!(tickets.iter().all(|ticket| ticket.index == Index(2)));
    let error = guard
        .append(STREAM, None, 0, &vec![1; limit / 4])
        .unwrap_err();
    assert!(matches!(error, AppendError::TooLarge { .. }), "{error}");
    drop(guard);
    stepped.settle();
    assert_eq!(stepped.read(STREAM).len(), 4);
}

#[test]
fn reserved_queue_space_is_usable_when_the_queue_is_full() {
    let mut small = options(1);
    small.queue_bytes_max = 2000;
    let stepped = Journal::open_stepped(disk(), &small).unwrap();
    let mut guard = stepped.journal.lock(SHARD, 0);
    guard.reserve(1000, 2).unwrap();
    let mut other = stepped.journal.lock(ShardId(0), 0);
    while other.append(STREAM, None, 0, &[0; 100]).is_ok() {}
    assert_eq!(
        other.append(STREAM, None, 0, &[0; 100]),
        Err(AppendError::Full)
    );
    assert!(guard.append(STREAM, None, 0, &[0; 500]).is_ok());
    assert!(guard.append(STREAM, None, 0, &[0; 500]).is_ok());
    let queued = stepped.journal.stats().queued_bytes;
    assert_eq!(
        guard.append(STREAM, None, 0, &[0; 500]),
        Err(AppendError::Full)
    );
    assert_eq!(stepped.journal.stats().queued_bytes, queued);
    let too_much = guard.reserve(1 << 20, 5).unwrap_err();
    assert!(
        matches!(too_much, AppendError::TooLarge { .. }),
        "{too_much}"
    );
}

#[test]
fn unused_reservation_is_released() {
    let stepped = open(&disk(), 1);
    stepped.journal.lock(SHARD, 0).reserve(1000, 2).unwrap();
    assert_eq!(stepped.journal.stats().queued_bytes, 0);
}

#[test]
fn exact_reservation_is_used_up() {
    let stepped = open(&disk(), 1);
    let mut guard = stepped.journal.lock(SHARD, 0);
    guard.reserve(3 + 16, 2).unwrap();
    assert_eq!(guard.reserved(), 2 * record::RECORD_HEADER_SIZE + 3 + 16);
    guard.append(STREAM, None, 0, &[0; 3]).unwrap();
    assert_eq!(guard.reserved(), record::RECORD_HEADER_SIZE + 16);
    guard.append(STREAM, None, 0, &[0; 16]).unwrap();
    assert_eq!(guard.reserved(), 0);
}

#[test]
fn record_above_the_size_limit_is_refused() {
    let mut stepped = open(&disk(), 1);
    let limit = stepped.journal.shared().limits.record;
    let mut guard = stepped.journal.lock(SHARD, 0);
    let error = guard
        .append(STREAM, None, 0, &vec![0; limit + 1])
        .unwrap_err();
    assert_eq!(
        error,
        AppendError::TooLarge {
            size: limit + 1,
            limit
        }
    );
    drop(guard);
    stepped.append_durably(STREAM, &vec![9; limit]);
    assert_eq!(stepped.read(STREAM), [vec![9; limit]]);
}

#[test]
fn records_over_several_segments_are_read_after_a_restart() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    let payload = |number: u64| vec![number as u8; 100 + number as usize % 300];
    for number in 0..300 {
        stepped.append(StreamId(number % 5), &payload(number));
        if number % 3 == 0 {
            stepped.settle();
        }
    }
    stepped.settle();
    assert!(stepped.journal.stats().segments > 4);
    let check = |stepped: &SteppedJournal| {
        for stream in 0..5 {
            let expected: Vec<_> = (0..300)
                .filter(|number| number % 5 == stream)
                .map(payload)
                .collect();
            assert_eq!(stepped.read(StreamId(stream)), expected);
        }
    };
    check(&stepped);
    stepped.line.forget_tail();
    check(&stepped);
    let end = stepped.journal.shard_end(SHARD);
    drop(stepped);
    let stepped = open(&disk, 2);
    assert_eq!(stepped.journal.shard_end(SHARD), end);
    assert_eq!(stepped.recovery.torn_bytes, 0);
    check(&stepped);
}

#[test]
fn appends_stay_pending_until_a_spare_segment_exists() {
    let mut stepped = open(&disk(), 1);
    let last = (0..30)
        .map(|_| stepped.append(STREAM, &[1; 1000]))
        .last()
        .unwrap();
    while stepped.line.step() == LineStep::Worked {}
    assert_eq!(stepped.line.step(), LineStep::Starved);
    assert_eq!(stepped.journal.status(last.ticket), Status::Pending);
    stepped.settle();
    assert_eq!(stepped.journal.status(last.ticket), Status::Durable);
    assert_eq!(stepped.read(STREAM).len(), 30);
}

#[test]
fn a_failed_sync_fails_all_waiters_and_later_appends() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    let acked = stepped.append_durably(STREAM, b"acked");
    disk.fail_once(Fault::Broken, |call| call.kind == Kind::SyncData);
    let (bell, waker) = Bell::new();
    let pending = stepped.append(STREAM, b"pending").ticket;
    stepped.journal.notify(pending, &waker);
    assert!(matches!(
        stepped.journal.follow(SHARD, STREAM, 1, &waker),
        Follow::Waiting(_)
    ));
    assert_eq!(stepped.line.step(), LineStep::Failed);
    assert_eq!(bell.rings(), 2);
    assert_eq!(stepped.journal.status(pending), Status::Failed);
    assert_eq!(stepped.journal.wait(pending), Status::Failed);
    assert_eq!(stepped.journal.status(acked.ticket), Status::Durable);
    let mut guard = stepped.journal.lock(SHARD, 0);
    assert_eq!(guard.append(STREAM, None, 0, b""), Err(AppendError::Failed));
    assert_eq!(guard.trim(STREAM, 1), Err(AppendError::Failed));
    drop(guard);
    let calls = disk.calls();
    assert_eq!(stepped.line.step(), LineStep::Failed);
    assert_eq!(disk.calls(), calls, "nothing is tried again");
    assert!(matches!(stepped.journal.health(), Health::Failed { .. }));
}

#[test]
fn record_times_follow_a_clock_that_is_set_back() {
    let mut stepped = open(&disk(), 1);
    let hour_ms = 3_600_000;
    let start_ms = 100 * hour_ms;
    for now_ms in [
        start_ms,
        start_ms - 30_000,
        start_ms + 400 * 24 * hour_ms,
        start_ms + 1_000,
        start_ms + 2_000,
    ] {
        let mut guard = stepped.journal.lock(SHARD, now_ms);
        guard.append(STREAM, None, 0, b"x").unwrap();
        drop(guard);
        stepped.settle();
    }
    let read = stepped.journal.read(SHARD, STREAM, 0, ALL).unwrap();
    let times: Vec<u64> = read.records.iter().map(|record| record.time_ms).collect();
    assert_eq!(times[..2], [start_ms, start_ms], "a small correction");
    assert_eq!(times[3..], [start_ms + 1_000, start_ms + 2_000]);
}
