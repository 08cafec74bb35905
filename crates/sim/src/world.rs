//! The clock, the random numbers and the thread of a simulated world.

use std::future::Future;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use platform::{Clock, Entropy};
use tokio::time::Instant;

/// Limit on simulated time: a world that does not end has a bug.
const WORLD_MAX: Duration = Duration::from_secs(3600);

/// Runs a world to its end, on one thread and with a clock that jumps to the next event.
///
/// # Panics
/// If the world does not end within an hour of simulated time.
pub fn run<T>(world: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O can always be made");
    runtime.block_on(async {
        tokio::time::timeout(WORLD_MAX, world)
            .await
            .expect("the world ends within an hour of its own time")
    })
}

/// Runs the worlds of these seeds. Returns the transcript of each.
///
/// # Panics
/// When a world fails, with its seed.
pub fn run_all(seeds: Range<u64>, world: impl Fn(u64) -> Vec<String>) -> Vec<Vec<String>> {
    let run = |seed| {
        let world = AssertUnwindSafe(|| world(seed));
        let lines = std::panic::catch_unwind(world);
        lines.unwrap_or_else(|_| panic!("the world of seed {seed} failed"))
    };
    seeds.map(run).collect()
}

/// The node's clock, which shows simulated time. The time of day may be wrong.
#[derive(Debug)]
pub(crate) struct SimClock {
    start: Instant,
    skew_ms: AtomicI64,
}

impl SimClock {
    /// Creates a clock that starts now.
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            skew_ms: AtomicI64::new(0),
        }
    }

    /// Sets the difference of the time of day to the true one, in milliseconds.
    pub(crate) fn set_skew(&self, skew_ms: i64) {
        self.skew_ms.store(skew_ms, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn unix_ms(&self) -> u64 {
        let skew_ms = self.skew_ms.load(Ordering::Relaxed);
        let true_ms = 1_700_000_000_000 + self.start.elapsed().as_millis() as u64;
        true_ms.saturating_add_signed(skew_ms)
    }
}

/// The node's random numbers.
#[derive(Debug)]
pub(crate) struct SimEntropy(Mutex<fastrand::Rng>);

impl SimEntropy {
    /// Creates a generator whose numbers follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Entropy for SimEntropy {
    fn next_u64(&self) -> u64 {
        self.0.lock().u64(..)
    }
}
