//! Measurement of one repeat, and every figure derived from it.
//!
//! A measurement holds only readings and counts. Figures are derived here, once, so that a live
//! line, a table and a plot cannot disagree. A figure with a missing input does not exist.
//!
//! The *send window* is the time in which messages could be sent: it opens when set-up is done, and
//! closes with the last completion, or in a paced run with the end of the schedule if that is later
//! (each message owns its whole interval, so 100 messages at 100 per second make one second).

mod answers;
mod exact;
mod figures;
mod memory;
mod reported_latency;
mod storage;
mod topic_traffic;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::process::Usage;
pub use answers::{Answers, Endpoint, Phase};
pub use exact::{Exactness, Excess, exactness, excess};
pub use memory::MemoryPoint;
use meter::histogram::Histogram;
pub use reported_latency::ReportedLatency;
pub use storage::Storage;
pub use topic_traffic::{TopicTraffic, Verification};

/// The readings and counts of one repeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Messages handed over.
    pub sent: u64,
    /// Messages that ended well from the sender's point of view.
    pub completed: u64,
    /// Length of the send window.
    pub window_ns: u64,
    /// Duration of connecting, subscribing and warming up, which come before the window.
    pub setup_ns: Option<u64>,
    /// First and last completion.
    pub completions: Option<Arrivals>,
    /// Failures at the sender by kind.
    pub errors: BTreeMap<String, u64>,
    /// Counts of the receiving side, in modes where it counts.
    pub sink: Option<Sink>,
    /// Latency of each completed message from its real send.
    pub service: Option<Histogram>,
    /// Service latency as another program reports it, when it does not export its histogram.
    pub reported: Option<ReportedLatency>,
    /// Latency from the intended send; paced modes only.
    pub response: Option<Histogram>,
    /// Delay of each send although the generator was free to send; paced modes only.
    pub lag: Option<Histogram>,
    /// CPU and memory of the processes during the window.
    pub usage: Option<Usage>,
    /// Disk activity, in modes where messages wait for the disk.
    pub storage: Option<Storage>,
    /// Memory samples of the node over the run, including set-up and ramp. Empty if not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryPoint>,
    /// Answers of a rate limiter by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answers>,
    /// Counts of a topic: requests, bytes and the verification of its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed: Option<TopicTraffic>,
}

/// The receiving side's counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sink {
    /// Messages of the run received; warm-up is not counted.
    pub received: u64,
    /// First and last of these messages.
    pub arrivals: Option<Arrivals>,
    /// Lifetime of the sink; needed only to reproduce reports that divide by it.
    pub elapsed_ns: Option<u64>,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
}

/// Key of lost messages in [`Run::errors`](crate::model::Run::errors).
pub const LOST: &str = "sink.lost";

impl Sink {
    /// Counts messages that never arrived as failures.
    #[must_use]
    pub fn with_lost(mut self, expected: u64) -> Self {
        let lost = expected.saturating_sub(self.received);
        if lost > 0 {
            self.errors.insert("lost".to_owned(), lost);
        }
        self
    }
}

/// Times of the first and the last of a series of events on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Time of the first event.
    pub first_ns: u64,
    /// Time of the last event.
    pub last_ns: u64,
}

impl Arrivals {
    /// Adds an event at `at_ns`.
    #[inline]
    pub fn note(arrivals: &mut Option<Self>, at_ns: u64) {
        let new = Self {
            first_ns: at_ns,
            last_ns: at_ns,
        };
        *arrivals = Some(arrivals.map_or(new, |old| old.and(new)));
    }

    /// Returns the span that covers both.
    #[inline]
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
        }
    }

    fn active_s(self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }
}

impl Measurement {
    /// Checks that the measurement does not contradict itself.
    ///
    /// # Errors
    /// When it has no window, completed more than it sent, or holds more or fewer latencies than
    /// completions.
    pub fn check(&self) -> Result<(), MeasurementError> {
        let Self {
            sent, completed, ..
        } = *self;
        if self.window_ns == 0 {
            return Err(MeasurementError::NoWindow);
        }
        if completed > sent {
            return Err(MeasurementError::MoreCompleted { sent, completed });
        }
        if self.service.is_some() && self.reported.is_some() {
            return Err(MeasurementError::TwoLatencies);
        }
        let histograms = [&self.service, &self.response].into_iter().flatten();
        let counts = histograms.map(Histogram::count);
        let reported = self.reported.iter().map(|reported| reported.count);
        for recorded in counts.chain(reported) {
            if recorded != completed {
                return Err(MeasurementError::SamplesDiffer {
                    recorded,
                    completed,
                });
            }
        }
        Ok(())
    }
}

/// Contradictions in a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MeasurementError {
    /// The window has no length to divide by.
    #[error("the send window has no length")]
    NoWindow,
    /// A message was counted twice, or not counted when sent.
    #[error("{completed} messages completed, but only {sent} were sent")]
    MoreCompleted {
        /// Messages sent.
        sent: u64,
        /// Messages completed.
        completed: u64,
    },
    /// The histogram has more or fewer values than messages completed.
    #[error("{recorded} latencies recorded for {completed} completed messages")]
    SamplesDiffer {
        /// Latencies in the histogram.
        recorded: u64,
        /// Messages completed.
        completed: u64,
    },
    /// Service latency is present twice, measured and reported.
    #[error("the service latency is measured and reported by another program as well")]
    TwoLatencies,
}

#[cfg(test)]
mod tests;
