//! Crashes: unacknowledged records may be lost, torn or retained; acknowledged ones survive.

use super::*;

#[test]
fn a_crash_before_the_sync_loses_only_unacked_records() {
    for seed in 0..300 {
        let disk = Arc::new(SimulatedDisk::new(seed));
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut stepped = open(&disk, seed);
        let mut acked = Vec::new();
        for number in 0..rng.u8(1..20) {
            stepped.append_durably(STREAM, &vec![number; rng.usize(..700)]);
            acked = stepped.read(STREAM);
        }
        stepped.prepare_spare();
        disk.fail_once(Fault::Broken, |call| call.kind == Kind::SyncData);
        for number in 0..rng.u8(1..5) {
            stepped.append(STREAM, &vec![100 + number; rng.usize(..2000)]);
        }
        assert_eq!(stepped.line.step(), LineStep::Failed);
        disk.heal();
        disk.crash(&mut rng);
        let mut stepped = open(&disk, seed + 1000);
        let found = stepped.read(STREAM);
        assert_eq!(&found[..acked.len()], &acked[..], "seed {seed}");
        let next = stepped.append_durably(STREAM, b"next").offset;
        assert_eq!(next as usize, found.len());
    }
}

#[test]
fn a_torn_tail_is_cut_counted_and_never_read_again() {
    let disk = disk();
    let mut stepped = open(&disk, 1);
    stepped.append_durably(STREAM, b"acked");
    disk.fail_once(Fault::Full, |call| call.kind == Kind::SyncData);
    // Three blocks in one write; the first is lost, the others are retained.
    for shard in [0, 1, 0] {
        let mut guard = stepped.journal.lock(ShardId(shard), 0);
        guard.append(StreamId(1), None, 0, &[7; 1500]).unwrap();
        drop(guard);
        stepped.journal.shared().shards[usize::from(shard)]
            .state
            .lock()
            .close_block();
    }
    assert_eq!(stepped.line.step(), LineStep::Failed);
    disk.heal();
    let mut sector = 0;
    disk.crash_with(|_| {
        sector += 1;
        if sector <= 2 { Fate::Lost } else { Fate::Kept }
    });
    let mut stepped = open(&disk, 2);
    assert!(stepped.recovery.torn_bytes > 1500);
    assert_eq!(stepped.read(STREAM), [b"acked"]);
    assert!(stepped.read(StreamId(1)).is_empty());
    stepped.append_durably(StreamId(1), &[8; 1500]);
    drop(stepped);
    let stepped = open(&disk, 3);
    assert_eq!(
        stepped.recovery.torn_bytes, 0,
        "it was sealed behind a new segment"
    );
    assert_eq!(stepped.read(StreamId(1)), [[8; 1500]]);
}

#[test]
fn start_without_a_write_uses_no_segment() {
    let disk = disk();
    open(&disk, 1).append_durably(STREAM, b"x");
    drop(open(&disk, 2));
    let segments = |disk: &SimulatedDisk| {
        let names = disk.list(segment::LINE_DIR).unwrap();
        names
            .iter()
            .filter_map(|name| segment::sequence_of(name))
            .count()
    };
    let before = segments(&disk);
    drop(open(&disk, 3));
    assert_eq!(segments(&disk), before);
}
