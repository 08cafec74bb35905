//! Clients and worlds that several simulations share.

#![allow(dead_code, reason = "not every test binary uses all of it")]

pub(crate) mod http;
pub(crate) mod kafka;

use std::ops::Range;

/// Runs the worlds of these seeds. Returns their transcripts, one after the other.
pub(crate) fn run_all(seeds: Range<u64>, world: impl Fn(u64) -> Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for seed in seeds {
        let world = std::panic::AssertUnwindSafe(|| world(seed));
        let of_seed = std::panic::catch_unwind(world);
        lines.extend(of_seed.unwrap_or_else(|_| panic!("the world of seed {seed} failed")));
    }
    lines
}
