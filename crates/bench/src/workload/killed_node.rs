//! A node that is killed at random moments and restarted.

use std::path::Path;
use std::time::Duration;

use super::node::Node;
use super::{Surroundings, WorkloadError};
use meter::clock::now_ns;

/// Milliseconds between a start and a kill.
const LIFE_MS: std::ops::Range<u64> = 5..500;

/// Small segments, so that some are sealed, filed and reused within a check.
const FLAGS: [&str; 4] = ["--journal-segment-size", "1MiB", "--journal-reserve", "0B"];

/// Starts the node on the data of its last life; `start_ms_max` is raised to the time it took.
pub(super) fn start(
    surroundings: &Surroundings,
    data: &Path,
    start_ms_max: &mut u64,
) -> Result<Node, WorkloadError> {
    let begin_ns = now_ns();
    let node = Node::start_in(&surroundings.executable, data, &FLAGS)?;
    *start_ms_max = (*start_ms_max).max((now_ns() - begin_ns) / 1_000_000);
    Ok(node)
}

/// Durations of the node's lives, derived from a seed (xorshift64, Marsaglia 2003).
pub(super) struct Lifetimes(u64);

impl Lifetimes {
    pub(super) fn of(seed: u64) -> Self {
        // A state of zero would stay zero.
        Self(seed | 1)
    }

    pub(super) fn next(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_millis(LIFE_MS.start + self.0 % (LIFE_MS.end - LIFE_MS.start))
    }
}
