//! Report of a run with faults.

use std::collections::BTreeMap;

use bench::measurement::Verification;
use serde::Serialize;

/// Result of a run with faults.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FaultReport {
    /// Nodes of the cluster.
    pub nodes: u32,
    /// Producers, each with one message in flight.
    pub producers: u32,
    /// Partitions of the topic.
    pub partitions: i32,
    /// Bytes of a payload.
    pub size: usize,
    /// Each node before the load, with all partitions and without clients.
    pub idle: Vec<IdleNode>,
    /// Times of each kind of fault.
    pub faults: Vec<FaultTimes>,
    /// Repetitions by reason: the code of Kafka's protocol, or `connection-lost`.
    pub retries: BTreeMap<String, u64>,
    /// Messages that were given up, by reason.
    pub failures: BTreeMap<String, u64>,
    /// Comparison of the stored messages with the acknowledged ones.
    pub messages: Verification,
}

/// Cost of an idle node.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct IdleNode {
    /// CPU time in percent of one core.
    pub cpu_percent: f64,
    /// Resident bytes.
    pub rss_bytes: u64,
}

/// Times of a kind of fault.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FaultTimes {
    /// Name of the fault.
    pub fault: &'static str,
    /// Number of times that it was injected.
    pub count: usize,
    /// Time from the fault to the first ack of a request that was sent after it.
    pub first_ack_ms: Milliseconds,
    /// Longest time without an ack of any producer, until all replicas were in sync.
    pub longest_gap_ms: Milliseconds,
    /// Greatest growth of the leader epoch: changes of leader because of one fault.
    pub epochs_max: i32,
}

/// Distribution of times in milliseconds. Percentiles are by nearest rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Milliseconds {
    /// Least.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

impl Milliseconds {
    pub(super) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let rank = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).copied().unwrap_or_default()
        };
        Self {
            min: rank(0),
            p50: rank(50),
            p99: rank(99),
            max: rank(100),
        }
    }
}

impl FaultReport {
    /// Returns true if every message was acknowledged, and is stored once, at its offset.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.messages.is_clean() && self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_times_are_by_nearest_rank() {
        let times = Milliseconds::of((1..=50).rev().map(f64::from).collect());
        let expected = Milliseconds {
            min: 1.0,
            p50: 25.0,
            p99: 50.0,
            max: 50.0,
        };
        assert_eq!(times, expected);
        assert_eq!(Milliseconds::of(Vec::new()), Milliseconds::default());
    }

    #[test]
    fn a_report_with_a_message_that_was_given_up_is_not_clean() {
        let clean = FaultReport::default();
        assert!(clean.is_clean());
        let failed = FaultReport {
            failures: [("unanswered".to_owned(), 1)].into(),
            ..FaultReport::default()
        };
        assert!(!failed.is_clean());
        let mut lost = clean;
        lost.messages.lost = 1;
        assert!(!lost.is_clean());
    }
}
