use super::*;
use crate::disk::reserve;
use crate::disk::simulated::{Fault, Kind};

#[test]
fn filing_reports_a_full_disk_and_recovers_after_trimming() {
    let mut world = World::new();
    world.settle();
    let mut round = 0_u64;
    while round < 60 {
        world.append(0, round % 3, &[round as u8; 4000]);
        round += 1;
        if round.is_multiple_of(8) {
            world.line.roll();
        }
    }
    world.settle();
    assert!(
        world
            .disk
            .files()
            .iter()
            .any(|(path, _)| path == reserve::PATH)
    );
    world.append(0, 0, &[1; 9000]);
    world.append(0, 1, &[1; 9000]);
    world.line.roll();
    world.disk.set_capacity(world.disk.used() + 4096);
    assert_eq!(world.run(), Step::Full);
    assert!(world.line.state.lock().is_full);

    // No acknowledged record is missing.
    let full: u64 = world.disk.files().iter().map(|(_, size)| size).sum();
    for stream in 0..3 {
        let next = world.line.state.lock().models[&(ShardId(0), StreamId(stream))].next;
        world.trim(0, stream, next - 1);
    }
    for _ in 0..20 {
        world.now_ms += 2_000;
        world.run();
    }
    assert!(!world.line.state.lock().is_full);
    let now: u64 = world.disk.files().iter().map(|(_, size)| size).sum();
    assert!(now < full);
    assert!(
        world
            .disk
            .files()
            .iter()
            .any(|(path, _)| path == reserve::PATH)
    );
    world.disk.set_capacity(u64::MAX);
    world.roll_and_settle();
    world.check();
}

#[test]
fn a_disk_that_stays_full_loses_nothing() {
    let mut world = World::new();
    for round in 0..20_u8 {
        world.append(0, 1, &[round; 4000]);
    }
    world.line.roll();
    world.disk.set_capacity(world.disk.used());
    for _ in 0..50 {
        world.now_ms += 700;
        let step = world.run();
        assert_ne!(step, Step::Failed, "{:?}", world.filer.failure());
    }
    world.disk.set_capacity(u64::MAX);
    for _ in 0..20 {
        world.now_ms += 2_000;
        world.run();
    }
    assert!(!world.line.state.lock().is_full);
    world.check();
}

#[test]
fn failed_extent_sync_makes_filing_write_another_extent() {
    let mut world = World::new();
    world.append(0, 1, b"acked");
    world.line.roll();
    world.disk.fail_once(Fault::Broken, |call| {
        call.kind == Kind::SyncAll && call.path.starts_with("extents/")
    });
    assert_eq!(world.run(), Step::Idle);
    assert!(world.filer.failure().is_none());
    assert!(world.filer.retry_reason().is_some());
    assert_eq!(world.line.sealed_count(), 1);
    assert_eq!(world.extents(0), 0);
    let due_ms = world.filer.due_ms(&world.line, world.now_ms).unwrap();
    assert!(due_ms <= world.now_ms + 1_000, "{due_ms}");
    world.now_ms += 1_000;
    assert_eq!(world.run(), Step::Idle);
    assert_eq!(world.filer.retry_reason(), None);
    assert_eq!((world.line.sealed_count(), world.extents(0)), (0, 1));
    world.check();
}

#[test]
fn unconfirmed_manifest_replacement_stops_filing() {
    let mut world = World::new();
    world.append(0, 1, b"acked");
    world.line.roll();
    world.disk.fail_once(Fault::Broken, |call| {
        call.kind == Kind::Rename && call.path.starts_with("MANIFEST")
    });
    assert_eq!(world.run(), Step::Failed);
    assert!(world.filer.failure().is_some());
    assert_eq!(world.line.sealed_count(), 1);
    let world = world.reopen();
    assert_eq!(world.extents(0), 0);
    let files: Vec<_> = world
        .disk
        .files()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert!(files.contains(&segment::path(1)));
    assert!(!files.iter().any(|path| path.starts_with("extents/")));
}
