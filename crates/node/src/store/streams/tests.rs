//! Retention of raw streams by age.

use journal::Line;
use journal::disk::SimulatedDisk;

use super::*;
use crate::testing::{World, storage_on};
use crate::{Parts, Stream};

const NAME: &str = "acme/demo/log";
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

fn append(world: &World, line: &mut Line) {
    let mut client = world.client(1);
    let mut turn = client.connection.turn();
    let mut stream = Stream::new(Name::parse(NAME).unwrap()).unwrap();
    let records = [&b"record"[..]].into_iter();
    let appended = turn.append(&mut stream, None, records).unwrap();
    drop(appended);
    turn.finish();
    line.step();
}

fn pass(world: &World, ms: u64) {
    world.pass_ns(ms * 1_000_000);
    world.step_wall_ms(ms as i64);
}

/// Applies a retention of 90 minutes: the streams that were cut, and where the stream starts then.
fn retain(world: &World, line: &mut Line) -> (usize, u64) {
    let keep = StreamRetention {
        age: Some(Duration::from_millis(90 * MINUTE_MS)),
        bytes: None,
    };
    let count = world.node.apply_stream_retention(keep).unwrap();
    line.step();
    let (store, name, location) = world.node.raw_stream(NAME).unwrap();
    (count, store.stream_view(&name, location).start)
}

#[test]
fn records_older_than_the_retention_are_deleted_and_a_step_of_the_clock_deletes_none() {
    let disk = SimulatedDisk::new(1);
    let (storage, mut line, _background) = storage_on(&disk, 1);
    let storage = Some(storage);
    let world = World::open(1_700_000_000_000, |parts| Parts { storage, ..parts });
    append(&world, &mut line);
    assert_eq!(retain(&world, &mut line), (0, 0));
    for _ in 0..2 {
        pass(&world, 60 * MINUTE_MS);
        append(&world, &mut line);
    }
    assert_eq!(retain(&world, &mut line), (1, 1));
    assert_eq!(retain(&world, &mut line), (0, 1));
    world.step_wall_ms(30 * DAY_MS as i64);
    assert_eq!(retain(&world, &mut line), (0, 1));
    pass(&world, 11 * MINUTE_MS);
    assert_eq!(retain(&world, &mut line), (1, 3), "the step has lasted");
}
