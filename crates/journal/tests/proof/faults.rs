//! Disk faults: errors, a full disk and short writes, each reported.

use journal::disk::simulated::{Call, Fate, Fault, Kind};
use journal::{AppendError, Commit, Health, LineStep, ShardId, Status, StreamId, Ticket};

use crate::model::Shard;
use crate::world::{End, Shape, World};

fn world(seed: u64) -> World {
    let shape = Shape {
        shard_count: 2,
        stream_count: 3,
        segment_size: 16 << 10,
        payload_size_max: 500,
        tail_bytes_max: 0,
        reserve_size: 16 << 10,
        piece_size_min: 200,
        bulk_sync_size: 0,
        commit: Commit::WithDurable,
    };
    let mut world = World::shaped(shape, fastrand::Rng::with_seed(seed));
    world.open().unwrap();
    for _ in 0..20 {
        world.act();
    }
    world.drain();
    world
}

fn is_segment(call: &Call<'_>) -> bool {
    call.path.starts_with("line/0")
}

fn append(world: &World) -> Result<Ticket, AppendError> {
    let journal = world.journal();
    let mut guard = journal.lock(ShardId(1), 1_800_000_000_000);
    let appended = guard.append(StreamId(99), None, 0, b"12345678");
    appended.map(|appended| appended.ticket)
}

#[test]
fn line_makes_no_disk_call_after_its_first_failure() {
    for (kind, fault) in [
        (Kind::Write, Fault::Broken),
        (Kind::Write, Fault::Short),
        (Kind::Write, Fault::Full),
        (Kind::SyncData, Fault::Broken),
        (Kind::SyncData, Fault::Full),
    ] {
        let mut world = world(5);
        world.is_disturbed = true;
        let ticket = append(&world).unwrap();
        let is_it = move |call: &Call<'_>| call.kind == kind && is_segment(call);
        world.disk.fail_once(fault, is_it);
        assert_eq!(world.step_line(), LineStep::Failed, "{kind:?} {fault:?}");
        assert_eq!(world.journal().status(ticket), Status::Failed);
        assert!(matches!(world.journal().health(), Health::Failed { .. }));
        assert_eq!(append(&world), Err(AppendError::Failed));

        let calls = world.disk.calls();
        assert_eq!(world.step_line(), LineStep::Failed);
        world.step_filer();
        assert_eq!(world.disk.calls(), calls, "nothing is tried again");
        assert_eq!(world.journal().status(ticket), Status::Failed);
    }
}

#[test]
fn a_full_disk_refuses_appends_until_space_is_freed() {
    let mut world = world(6);
    world.is_disturbed = true;
    world.disk.set_capacity(world.disk.used() + 6_000);
    let mut acts = 0;
    while world.journal().health() != Health::DiskFull {
        world.act();
        acts += 1;
        assert!(acts < 20_000, "the disk was never full");
    }
    assert_eq!(append(&world), Err(AppendError::DiskFull));
    // Appends that free space are accepted; here only the guard's flag matters.
    let journal = world.journal();
    let guard = journal.lock(ShardId(1), 1_800_000_000_000);
    let mut guard = guard.for_room();
    assert_eq!(guard.reserve(8, 1), Ok(()));
    drop(guard);
    for _ in 0..200 {
        world.act();
    }
    world.check();
    world.disk.set_capacity(u64::MAX);
    world.drain();
    assert_eq!(world.journal().health(), Health::Serving);
    let ticket = append(&world).unwrap();
    world.step_line();
    assert_eq!(world.journal().status(ticket), Status::Durable);
}

#[test]
fn single_fault_loses_no_acked_record() {
    for seed in 0..800 {
        let mut world = World::new(seed);
        world.open().unwrap();
        let faults = [Fault::Broken, Fault::Full, Fault::Short];
        for _ in 0..3 {
            let fault = faults[world.rng.usize(..faults.len())];
            let end = End::draw(&mut world.rng);
            let call = world.disk.calls() + world.rng.u64(..200);
            world.is_disturbed = true;
            world.disk.fail_once(fault, move |at| {
                at.number == call && end.may_follow(at.kind)
            });
            for _ in 0..40 {
                world.act();
            }
            world.end(end);
            if let Err(error) = world.open() {
                panic!("seed {seed}: {error}");
            }
        }
        world.drain();
        world.check();
    }
}

#[test]
fn recovery_syncs_bytes_of_a_failed_sync_before_it_serves_them() {
    let mut trusted = 0;
    for seed in 0..200 {
        let mut world = world(seed);
        let durable = |world: &World| world.shards.iter().map(Shard::durable).sum::<u64>();
        let acked = durable(&world);
        world.is_disturbed = true;
        world.write();
        let is_it = |call: &Call<'_>| call.kind == Kind::SyncData && is_segment(call);
        world.disk.fail_once(Fault::Broken, is_it);
        world.step_line();
        // The machine continues, and bytes of the failed sync are still readable.
        world.kill();
        world.open().unwrap();
        trusted += u64::from(durable(&world) > acked);
        world.settle();
        world.disk.crash_with(|_| Fate::Lost);
        world.kill();
        if let Err(error) = world.open() {
            panic!("seed {seed}: {error}");
        }
    }
    assert!(trusted > 10, "{trusted}");
}
