//! Failed compactions: the pause of each partition, and warnings for the log.

use std::collections::HashMap;

use store::Location;

/// The pause of a partition after its first failure, in nanoseconds; it doubles after each further
/// one.
const PAUSE_NS_MIN: u64 = 60 * NS_PER_S;

/// The maximum pause, in nanoseconds.
const PAUSE_NS_MAX: u64 = 24 * 3600 * NS_PER_S;
const NS_PER_S: u64 = 1_000_000_000;

/// Maximum number of warnings that wait to be logged.
const WARNINGS_MAX: usize = 64;

/// Failed compactions; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pauses: HashMap<(u32, u64), Pause>,
    pub(super) warnings: Vec<String>,
}

#[derive(Debug)]
struct Pause {
    failures: u32,
    until_ns: u64,
}

impl Failures {
    /// Returns whether compaction of a partition is paused.
    pub(crate) fn is_paused(&self, at: Location, now_ns: u64) -> bool {
        let pause = self.pauses.get(&key(at));
        pause.is_some_and(|pause| now_ns < pause.until_ns)
    }

    /// Records a failed compaction of a partition.
    pub(super) fn add(&mut self, at: Location, now_ns: u64, reason: String) {
        let pause = self.pauses.entry(key(at)).or_insert(Pause {
            failures: 0,
            until_ns: 0,
        });
        let times = 1_u64 << pause.failures.min(16);
        pause.failures += 1;
        let pause_ns = PAUSE_NS_MIN.saturating_mul(times).min(PAUSE_NS_MAX);
        pause.until_ns = now_ns.saturating_add(pause_ns);
        self.push(format!(
            "a compaction has failed and is tried again in {} s: {reason}",
            pause_ns / NS_PER_S
        ));
    }

    /// Forgets a partition's failures, after a success or when it was deleted.
    pub(super) fn forget(&mut self, at: Location) {
        self.pauses.remove(&key(at));
    }

    /// Queues a warning about a topic.
    pub(super) fn warn(&mut self, topic: &str, reason: String) {
        self.push(format!("compaction of topic {topic}: {reason}"));
    }

    fn push(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }
}

fn key(at: Location) -> (u32, u64) {
    (u32::from(at.shard.0), at.stream.0)
}
