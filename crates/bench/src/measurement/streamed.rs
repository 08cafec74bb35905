//! What a run did to a topic, beside messages.

use serde::{Deserialize, Serialize};

/// How messages went to a topic, or came from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streamed {
    /// Requests that carried them; absent where nothing was produced.
    pub requests: Option<u64>,
    /// Bytes of payloads that were produced, or of batches that were consumed.
    pub bytes: u64,
    /// What was found when everything was read back, where that was done.
    pub verified: Option<Verified>,
}

/// What was found when everything that was acknowledged was read back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Messages that were acknowledged, those of the warm-up included.
    pub acked: u64,
    /// Messages of the run that were found.
    pub found: u64,
    /// Of what was acknowledged, what was not found.
    pub lost: u64,
    /// Messages that were found once more.
    pub duplicated: u64,
    /// Messages that were found elsewhere than was said.
    pub moved: u64,
    /// Batches whose checksum is wrong, and messages that nobody sent like that.
    pub damaged: u64,
}

impl Verified {
    /// Whether everything is as it was acknowledged.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost + self.duplicated + self.moved + self.damaged == 0
    }

    /// Adds what was found in another run.
    pub fn add(&mut self, other: Self) {
        self.acked += other.acked;
        self.found += other.found;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.moved += other.moved;
        self.damaged += other.damaged;
    }
}
