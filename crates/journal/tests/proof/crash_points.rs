//! A workload with all operations, and a crash at every call that it makes to the disk.

use journal::Commit;
use journal::disk::SimulatedDisk;
use journal::disk::simulated::{Fate, Unsynced};

use crate::model::Shard;
use crate::world::{Shape, World};

const OPERATIONS: usize = 200;

/// Limit on unsynced sectors and names that are tried one by one.
const SINGLED_OUT_MAX: usize = 6;

/// State of the model after a number of calls.
struct Mark {
    recorded: usize,
    shards: Vec<Shard>,
}

#[test]
fn every_prefix_of_a_workload_recovers() {
    check_prefixes(u64::MAX, "used-");
}

#[test]
fn every_prefix_of_a_workload_with_retained_segments_recovers() {
    check_prefixes(0, "Remove { path: \"line/0");
}

/// Runs the workload, and opens the journal after a crash before each of its calls. `wanted` is a call
/// that the workload must have made.
fn check_prefixes(piece_size_min: u64, wanted: &str) {
    let shape = Shape {
        shard_count: 2,
        stream_count: 3,
        segment_size: 16 << 10,
        payload_size_max: 2000,
        tail_bytes_max: 0,
        reserve_size: 4096,
        piece_size_min,
        bulk_sync_size: piece_size_min,
        commit: Commit::WithDurable,
    };
    let mut world = World::shaped(shape, fastrand::Rng::with_seed(3));
    world.disk.record();
    let mut marks = vec![mark(&world)];
    world.open().unwrap();
    for _ in 0..OPERATIONS {
        world.act();
        marks.push(mark(&world));
    }
    let trace = world.disk.take_trace().unwrap();
    assert_has_every_operation(&trace, wanted);

    let mut at = 0;
    for (count, disk) in trace.prefixes().enumerate() {
        while marks.get(at + 1).is_some_and(|mark| mark.recorded <= count) {
            at += 1;
        }
        let written = &marks[(at + 1).min(marks.len() - 1)].shards;
        let shards: Vec<Shard> = written
            .iter()
            .zip(&marks[at].shards)
            .map(|(written, acked)| written.acked_like(acked))
            .collect();
        for (name, disk) in variants(&disk) {
            let mut after = world.elsewhere(disk, shards.clone());
            if let Err(error) = after.open() {
                panic!(
                    "{name} before call {count}, {}: {error}",
                    trace.describe(count)
                );
            }
        }
    }
}

fn mark(world: &World) -> Mark {
    Mark {
        recorded: world.disk.recorded(),
        shards: world.shards.clone(),
    }
}

/// Checks that the workload has all operations, so that a prefix proves something.
fn assert_has_every_operation(trace: &journal::disk::simulated::Trace, wanted: &str) {
    let calls: Vec<String> = (0..trace.len()).map(|call| trace.describe(call)).collect();
    for wanted in [".seg\" }", ".ext\" }", "to: \"MANIFEST\"", "Remove", wanted] {
        assert!(
            calls.iter().any(|call| call.contains(wanted)),
            "no {wanted}"
        );
    }
}

/// Returns the possible disks after a crash now.
fn variants(disk: &SimulatedDisk) -> Vec<(String, SimulatedDisk)> {
    let crashed = |name: String, choose: &dyn Fn(&Unsynced) -> Fate| {
        let disk = disk.fork();
        disk.crash_with(choose);
        (name, disk)
    };
    let mut all = vec![
        crashed("nothing retained".into(), &|_| Fate::Lost),
        crashed("everything retained".into(), &|_| Fate::Kept),
    ];
    let unsynced = disk.unsynced();
    let step = unsynced.len().div_ceil(SINGLED_OUT_MAX).max(1);
    for one in unsynced.iter().rev().step_by(step) {
        let mut single = |what: &str, this: Fate, others: Fate| {
            all.push(crashed(format!("{one:?} {what}"), &|unsynced| {
                if unsynced == one { this } else { others }
            }));
        };
        single("retained alone", Fate::Kept, Fate::Lost);
        single("lost alone", Fate::Lost, Fate::Kept);
        single("torn", Fate::Torn(200), Fate::Kept);
    }
    all
}
