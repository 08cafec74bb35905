//! The line and the filing combined.

use super::*;
use crate::filing::{Line as _, Step};

impl SteppedJournal {
    /// Steps both until neither has work.
    pub(super) fn settle_all(&mut self, now_ms: u64) {
        loop {
            let line = self.line.step();
            let filing = self.background.step(now_ms);
            if line == LineStep::Failed || filing == Step::Failed {
                panic!("{:?}", self.journal.health());
            }
            if line == LineStep::Idle && filing == Step::Idle {
                return;
            }
        }
    }
}

fn payload(number: u64) -> Vec<u8> {
    vec![number as u8; 200 + number as usize % 100]
}

/// Appends 300 records to 6 streams and files the sealed segments.
fn written(disk: &Arc<SimulatedDisk>) -> SteppedJournal {
    let mut stepped = open(disk, 1);
    for number in 0..300 {
        stepped.append(StreamId(number % 6), &payload(number));
        if number % 7 == 0 {
            stepped.settle_all(1000);
        }
    }
    stepped.settle_all(1000);
    stepped
}

fn check(stepped: &SteppedJournal) {
    for stream in 0..6 {
        let expected: Vec<_> = (0..300)
            .filter(|number| number % 6 == stream)
            .map(payload)
            .collect();
        assert_eq!(stepped.read(StreamId(stream)), expected);
        let bytes: usize = expected.iter().map(Vec::len).sum();
        assert_eq!(
            stepped.journal.bytes(SHARD, StreamId(stream)).unwrap(),
            bytes as u64
        );
    }
}

#[test]
fn reads_continue_from_extents_into_the_line_also_after_restart() {
    let disk = disk();
    let stepped = written(&disk);
    assert_eq!(
        stepped.journal.stats().segments,
        1,
        "all but the active one are filed"
    );
    check(&stepped);
    let end = stepped.journal.shard_end(SHARD);
    drop(stepped);
    for entropy in 2..5 {
        let mut stepped = open(&disk, entropy);
        check(&stepped);
        assert_eq!(stepped.journal.shard_end(SHARD), end);
        stepped.settle_all(2000);
        check(&stepped);
    }
}

#[test]
fn read_of_a_recycled_segment_finds_the_extent() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    stepped.append_durably(STREAM, b"first");
    stepped.line.forget_tail();
    let location = {
        let state = stepped.journal.shared().shards[1].state.lock();
        state.tail.location(Index(1)).unwrap()
    };
    for _ in 0..100 {
        stepped.append(StreamId(8), &[9; 900]);
        stepped.settle_all(1000);
    }
    let found = read::read_block(stepped.journal.shared(), location).unwrap();
    assert!(found.is_none(), "the block's place has another use");
    assert_eq!(stepped.read(STREAM), [b"first"]);
}

#[test]
fn filed_stream_has_no_runs() {
    let stepped = written(&disk());
    let shared = stepped.journal.shared();
    let state = shared.shards[1].state.lock();
    let in_line = state
        .streams
        .values()
        .map(|stream| stream.runs().len())
        .sum::<usize>();
    assert!(in_line < 60, "{in_line}");
}

#[test]
fn retention_also_counts_extents() {
    let stepped = written(&disk());
    let stream = StreamId(2);
    let bytes = stepped.journal.bytes(SHARD, stream).unwrap();
    let offset = stepped
        .journal
        .offset_for_bytes(SHARD, stream, bytes / 2)
        .unwrap();
    assert!((20..=30).contains(&offset), "{offset}");
    assert_eq!(
        stepped.journal.offset_for_time(SHARD, stream, 500).unwrap(),
        0
    );
    assert_eq!(
        stepped
            .journal
            .offset_for_time(SHARD, stream, 5000)
            .unwrap(),
        50
    );
}

#[test]
fn erased_bytes_leave_the_directory() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    let secret = b"do not keep this anywhere";
    stepped.append_durably(STREAM, secret);
    for number in 0..60 {
        stepped.append(StreamId(8), &payload(number));
        stepped.settle_all(1000);
    }
    stepped.append_durably(STREAM, secret);
    stepped.journal.lock(SHARD, 2000).erase(STREAM).unwrap();
    stepped.settle_all(3000);
    let due = 3000 + 24 * 3_600_000;
    stepped.settle_all(due);
    assert_eq!(stepped.background.erase_pending(), None);
    for (path, _) in disk.files() {
        let (bytes, durable) = disk.images(&path).unwrap();
        for image in [bytes, durable] {
            assert!(
                !image.windows(secret.len()).any(|window| window == secret),
                "{path}"
            );
        }
    }
    assert_eq!(stepped.append_durably(STREAM, b"next").offset, 2);
}

#[test]
fn accepted_loss_is_filed() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    for number in 0..10 {
        stepped.append_durably(STREAM, &payload(number));
    }
    drop(stepped);
    disk.flip(&segment::path(1), (4096 + 400) * 8).unwrap();
    let accepting = Options {
        accept_loss: AcceptLoss::Yes,
        ..options(2)
    };
    let mut stepped = Journal::open_stepped(disk.clone(), &accepting).unwrap();
    stepped.append_durably(STREAM, b"next");
    stepped.settle_all(1000);
    drop(stepped);
    let mut stepped = open(&disk, 3);
    stepped.settle_all(1000);
    let read = stepped.journal.read(SHARD, STREAM, 0, ALL).unwrap();
    let offsets: Vec<_> = read.records.iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn used_spares_are_zeroed_at_start_only_after_an_erase() {
    for is_erased in [false, true] {
        let disk = disk();
        let mut stepped = written(&disk);
        if is_erased {
            stepped.append_durably(StreamId(9), b"secret");
            stepped
                .journal
                .lock(SHARD, 1000)
                .erase(StreamId(9))
                .unwrap();
            stepped.settle();
            stepped.prepare_spare();
            stepped.journal.shared().seal();
            stepped.settle_all(1000);
        }
        drop(stepped);
        let files = disk.files();
        assert!(files.iter().any(|(path, _)| path.contains("/used-")));
        let stepped = open(&disk, 2);
        let spares = &stepped.journal.shared().spares;
        assert_eq!(spares.dirty() > 0, is_erased);
        check(&stepped);
    }
}
