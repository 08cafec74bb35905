//! A flipped bit is found, named and never served; no acknowledged record is lost silently.

use std::sync::Arc;

use journal::{AcceptLoss, Commit, Journal, LineError, OpenError, ReadLimit, ShardId};

use crate::model::Payload;
use crate::world::{Shape, World, read_all};

const FLIPS: usize = 1_500;

/// Creates a directory with extents, sealed segments and a tail whose hint is written.
fn world() -> World {
    let shape = Shape {
        shard_count: 2,
        stream_count: 4,
        segment_size: 64 << 10,
        payload_size_max: 3000,
        tail_bytes_max: 0,
        reserve_size: 4096,
        piece_size_min: 1_000,
        bulk_sync_size: 0,
        commit: Commit::WithDurable,
    };
    let mut world = World::shaped(shape, fastrand::Rng::with_seed(11));
    world.open().unwrap();
    for _ in 0..600 {
        world.act();
    }
    world.drain();
    for _ in 0..60 {
        world.write();
        world.step_line();
    }
    // Two more steps, so that no hint is owed any more.
    world.step_line();
    world.step_line();
    world.kill();
    world
}

#[test]
fn a_flipped_bit_is_named_and_never_served() {
    let mut world = world();
    let files = world.disk.files();
    assert!(files.iter().any(|(path, _)| path.ends_with(".ext")));
    let (mut refused, mut failed, mut harmless) = (0, 0, 0);
    for _ in 0..FLIPS {
        let (path, size) = &files[world.rng.usize(..files.len())];
        if *size == 0 {
            continue;
        }
        let bit = world.rng.u64(..size * 8);
        let disk = world.disk.fork();
        disk.flip(path, bit).unwrap();
        let what = format!("bit {} of byte {} of {path}", bit % 8, bit / 8);
        match Journal::open_stepped(Arc::new(disk), &world.options()) {
            Err(error) => {
                refused += 1;
                assert_names(&error, path, &what);
            }
            Ok(opened) => match served(&world, &opened.journal, &what) {
                Ok(()) => harmless += 1,
                Err(error) => {
                    failed += 1;
                    assert_names(&error, path, &what);
                }
            },
        }
    }
    // Spares, padding and dead records are most of a small directory, so flip bits in the relevant
    // parts too.
    assert!(
        refused > FLIPS / 10,
        "{refused} refused, {failed} failed, {harmless} harmless"
    );
    assert!(
        failed > FLIPS / 100,
        "{refused} refused, {failed} failed, {harmless} harmless"
    );
}

/// Compares everything readable with the written records.
fn served(world: &World, journal: &Journal, what: &str) -> Result<(), journal::ReadError> {
    for (number, shard) in world.shards.iter().enumerate() {
        let found = read_all(journal, ShardId(number as u16))?;
        assert!(
            found == shard.streams(),
            "{what}: shard {number} differs from the written records"
        );
    }
    Ok(())
}

fn assert_names(error: &dyn std::error::Error, path: &str, what: &str) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    assert!(text.contains(name), "{what}: {text}");
}

#[test]
fn loss_is_accepted_only_with_the_option_and_once() {
    let mut world = world();
    let segments = world.disk.files();
    let segments: Vec<_> = segments
        .iter()
        .filter(|(path, _)| path.starts_with("line/0"))
        .collect();
    let mut accepted = 0;
    for _ in 0..300 {
        let (path, _) = segments[world.rng.usize(..segments.len())];
        let disk = world.disk.fork();
        disk.flip(path, world.rng.u64(8 * 4096..8 * 40_000))
            .unwrap();
        let options = world.options();
        let refused = Journal::open_stepped(Arc::new(disk.clone()), &options);
        let Err(OpenError::Line(LineError::Damaged(report))) = refused else {
            continue;
        };
        assert_eq!(report.ranges[0].path, *path);
        disk.kill();
        let accepting = journal::Options {
            accept_loss: AcceptLoss::Yes,
            ..options
        };
        let opened = Journal::open_stepped(Arc::new(disk.clone()), &accepting).unwrap();
        assert_eq!(opened.recovery.lost.ranges, report.ranges);
        assert_records_unchanged(&world, &opened.journal);
        drop(opened);
        disk.crash(&mut world.rng);
        let again = Journal::open_stepped(Arc::new(disk), &world.options()).unwrap();
        assert!(again.recovery.lost.is_empty());
        assert_records_unchanged(&world, &again.journal);
        accepted += 1;
    }
    assert!(accepted > 50, "{accepted}");
}

/// Checks that the remaining records have their bytes and offsets.
fn assert_records_unchanged(world: &World, journal: &Journal) {
    for (number, shard) in world.shards.iter().enumerate() {
        let id = ShardId(number as u16);
        for (stream, wanted) in shard.streams() {
            let Some(state) = journal.stream(id, stream) else {
                continue;
            };
            let limit = ReadLimit {
                records: usize::MAX,
                bytes: usize::MAX,
            };
            let read = journal.read(id, stream, state.start, limit).unwrap();
            for record in read.records {
                let payload = Payload::of(&record.payload);
                let is_trimmed = record.offset < wanted.start;
                assert!(is_trimmed || wanted.records.get(&record.offset) == Some(&payload));
            }
        }
    }
}
