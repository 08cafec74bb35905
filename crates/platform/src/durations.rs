//! Histograms of durations that many threads record into, and the operations of the native protocol
//! that are timed.
//!
//! Recording costs two additions to shared counters; the histogram is made for requests that take
//! microseconds or more.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of the ranges, in nanoseconds, inclusive.
const BOUNDS_NS: [u64; 15] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    30_000_000_000,
];

/// A histogram of durations since the start.
#[derive(Debug, Default)]
pub struct Durations {
    counts: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_ns: AtomicU64,
}

/// A snapshot of [`Durations`].
#[derive(Clone, Debug, PartialEq)]
pub struct DurationsView {
    /// Upper bounds in seconds, the last one infinite, and the number of durations in each range.
    pub counts: Vec<(f64, u64)>,
    /// Sum of all durations, in seconds.
    pub sum: f64,
}

impl Durations {
    /// Records one duration.
    pub fn record(&self, ns: u64) {
        let range = BOUNDS_NS.partition_point(|bound| *bound < ns);
        self.counts[range].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Returns a snapshot.
    pub fn view(&self) -> DurationsView {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let bounds = BOUNDS_NS.iter().map(|bound| seconds(*bound));
        let counts = self.counts.iter().map(|it| it.load(Ordering::Relaxed));
        DurationsView {
            counts: bounds.chain([f64::INFINITY]).zip(counts).collect(),
            sum: seconds(self.sum_ns.load(Ordering::Relaxed)),
        }
    }
}

impl DurationsView {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

/// An operation of the native protocol that has one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// A call, until its first reply.
    Request,
    /// A one-way message with a receipt.
    Send,
    /// A write to a mailbox.
    Write,
    /// An append to a stream, a conversation or a topic.
    Append,
    /// A read of a stream, a conversation or a partition.
    Read,
    /// Takes from limits.
    Take,
    /// The end of a hold.
    Settle,
    /// A look at the limits of a subject.
    Peek,
    /// A subscription.
    Subscribe,
}

impl Verb {
    /// All operations with their names in metrics.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Request, "request"),
        (Self::Send, "send"),
        (Self::Write, "write"),
        (Self::Append, "append"),
        (Self::Read, "read"),
        (Self::Take, "take"),
        (Self::Settle, "settle"),
        (Self::Peek, "peek"),
        (Self::Subscribe, "subscribe"),
    ];
}

/// Durations by operation.
#[derive(Debug, Default)]
pub struct VerbDurations([Durations; Verb::ALL.len()]);

impl VerbDurations {
    /// Returns the histogram of an operation.
    pub fn of(&self, verb: Verb) -> &Durations {
        &self.0[verb as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_counted_in_the_first_range_that_holds_it() {
        let durations = Durations::default();
        for ns in [0, 50_000, 50_001, 60_000_000_000] {
            durations.record(ns);
        }
        let view = durations.view();
        assert_eq!(view.counts[0], (0.000_05, 2));
        assert_eq!(view.counts[1], (0.000_1, 1));
        assert_eq!(view.counts[15], (f64::INFINITY, 1));
        assert_eq!(view.count(), 4);
        assert!((view.sum - 60.000_1).abs() < 1e-5, "{}", view.sum);
    }

    #[test]
    fn each_operation_has_a_histogram_of_its_own() {
        let durations = VerbDurations::default();
        for (index, (verb, _)) in Verb::ALL.iter().enumerate() {
            assert_eq!(*verb as usize, index);
            durations.of(*verb).record(1);
        }
        for (verb, _) in Verb::ALL {
            assert_eq!(durations.of(verb).view().count(), 1);
        }
    }
}
