//! Topic traffic of a run.

use serde::{Deserialize, Serialize};

/// Requests and bytes of a run to or from a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicTraffic {
    /// Number of produce requests; absent if nothing was produced.
    pub requests: Option<u64>,
    /// Bytes of produced payloads, or of consumed batches.
    pub bytes: u64,
    /// Result of reading everything back, if that was done.
    pub verified: Option<Verification>,
}

/// Result of reading back all acknowledged messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Acknowledged messages, including the warm-up.
    pub acked: u64,
    /// Messages of the run that were found.
    pub found: u64,
    /// Acknowledged messages that were not found.
    pub lost: u64,
    /// Messages that were found again.
    pub duplicated: u64,
    /// Messages found at another offset than acknowledged.
    pub moved: u64,
    /// Batches with a wrong checksum, and messages with content that was never sent.
    pub damaged: u64,
}

impl Verification {
    /// Returns true if every message is as it was acknowledged.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost + self.duplicated + self.moved + self.damaged == 0
    }

    /// Adds the result of another run.
    pub fn add(&mut self, other: Self) {
        self.acked += other.acked;
        self.found += other.found;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.moved += other.moved;
        self.damaged += other.damaged;
    }
}
