//! Appending record batches.

use journal::Round;

use super::Topics;
use super::error::{ProduceError, UnknownPartition};
use super::pending::Durable;
use super::state::Topic;

/// Appends batches that one sync is to serve: made for what one read brought, dropped when that is
/// done with. Nothing that was appended is sure to become durable before that.
#[derive(Debug)]
pub struct Producing {
    topics: Topics,
    round: Round,
}

/// A batch that is in its partition.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Of its first record.
    pub offset: u64,
    /// What its records were stamped with, where that is the topic's affair; in milliseconds since
    /// 1970-01-01 UTC.
    pub append_time_ms: Option<i64>,
    /// The first offset of the partition.
    pub log_start: u64,
    /// It was there before: this is where.
    pub is_duplicate: bool,
    /// The answer may be told when this says so. Who wants no answer need not look.
    pub durable: Durable,
}

impl Topics {
    /// Begins to append.
    pub fn producing(&self) -> Producing {
        Producing {
            topics: self.clone(),
            round: self.state.journal.round(),
        }
    }
}

impl Producing {
    /// Appends one record batch, as its producer made it. A batch of a transaction comes with whose it
    /// is, and is refused without.
    pub fn append(
        &self,
        topic: &Topic,
        partition: u32,
        batch: &[u8],
        transactional_id: Option<&str>,
    ) -> Result<Placed, ProduceError> {
        let _ = (
            topic,
            partition,
            batch,
            transactional_id,
            &self.topics,
            &self.round,
        );
        Err(UnknownPartition.into())
    }
}
