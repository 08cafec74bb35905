//! Counts of durations by size, from which quantiles of an interval are computed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of buckets. Two for each power of two of microseconds: the last begins at 53 minutes.
pub(super) const BUCKETS: usize = 64;

/// Counts of durations, one per bucket.
#[derive(Debug)]
pub(super) struct LatencyCounts([AtomicU64; BUCKETS]);

impl Default for LatencyCounts {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }
}

impl LatencyCounts {
    /// Counts one duration.
    pub(super) fn count(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.0[bucket_of(us)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts since the start.
    pub(super) fn get(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|bucket| self.0[bucket].load(Ordering::Relaxed))
    }
}

/// Returns the bucket of a duration: twice the position of its highest bit, plus the bit below it.
fn bucket_of(us: u64) -> usize {
    let us = us.max(1);
    let octave = us.ilog2() as usize;
    let half = match octave {
        0 => 0,
        _ => (us >> (octave - 1) & 1) as usize,
    };
    (2 * octave + half).min(BUCKETS - 1)
}

/// Returns the exclusive upper bound of a bucket, in nanoseconds.
pub(super) fn bound_ns(bucket: usize) -> u64 {
    let octave_us = 1u64 << (bucket / 2);
    let us = match bucket % 2 {
        0 => octave_us + octave_us.div_ceil(2),
        _ => 2 * octave_us,
    };
    us * 1_000
}

/// Returns the smallest bound that at least `quantile` (0 to 1) of the durations do not exceed, in
/// milliseconds; `None` without a duration. The last bucket counts by the bound before it.
pub(super) fn quantile_ms(
    counts: impl Iterator<Item = (Option<u64>, u64)> + Clone,
    quantile: f64,
) -> Option<f32> {
    let total: u64 = counts.clone().map(|(_, count)| count).sum();
    if total == 0 {
        return None;
    }
    let rank = (total as f64 * quantile).ceil() as u64;
    let (mut seen, mut bound_ns) = (0, 0);
    for (bound, count) in counts {
        bound_ns = bound.unwrap_or(bound_ns);
        seen += count;
        if seen >= rank {
            break;
        }
    }
    Some((bound_ns as f64 / 1e6) as f32)
}
