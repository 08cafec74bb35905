//! Acknowledged records survive a crash at any call.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::world::{End, World};

/// Seeds of a plain `cargo test`, which builds without optimisation. `cargo xtask test` runs ten
/// thousand, `cargo xtask crash` any number; they set the variable.
const SEEDS: Range<u64> = 0..1_000;
const VARIABLE: &str = "TELPHER_CRASH_SEEDS";

/// Seeds between two progress messages.
const NEWS_SEEDS: u64 = 10_000;

/// Runs a journal with crashes, from a seed.
fn world(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..world.rng.usize(2..6) {
        open_in_two_attempts(&mut world);
        live(&mut world, 150, |world| {
            for _ in 0..world.rng.usize(..60) {
                world.act();
            }
        });
    }
    open_in_two_attempts(&mut world);
    world.drain();
    world.check();
}

/// Runs an action, which a crash may interrupt at any call to the disk.
fn live(world: &mut World, calls_max: u64, act: impl FnOnce(&mut World)) {
    let end = End::draw(&mut world.rng);
    if world.rng.u8(..4) > 0 {
        let call = world.disk.calls() + world.rng.u64(..calls_max);
        world.stop_at(call, end);
    }
    act(world);
    world.end(end);
}

/// Opens the journal, at the second attempt at the latest: a crash may interrupt an open too.
fn open_in_two_attempts(world: &mut World) {
    if world.rng.u8(..3) == 0 {
        live(world, 40, |world| drop(world.open()));
    }
    if let Err(error) = world.open() {
        panic!("cannot be opened: {error}");
    }
}

#[test]
fn acknowledged_records_survive_a_crash() {
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let passed = AtomicU64::new(0);
    let workers = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if catch_unwind(AssertUnwindSafe(|| world(seed))).is_err() {
                        next.store(seeds.end, Ordering::Relaxed);
                        panic!("seed {seed} failed; again: cargo xtask crash --seed {seed}");
                    }
                    let passed = passed.fetch_add(1, Ordering::Relaxed) + 1;
                    if passed.is_multiple_of(NEWS_SEEDS) {
                        eprintln!("{passed} seeds passed");
                    }
                }
            });
        }
    });
}

fn seeds() -> Range<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tier that runs more seeds has no other way to say so"
    )]
    let Ok(range) = std::env::var(VARIABLE) else {
        return SEEDS;
    };
    let (start, end) = range.split_once("..").unwrap();
    start.parse().unwrap()..end.parse().unwrap()
}
