//! Where what is in a partition, and how much.

use ::topics::{Find, Isolation, ProducerView};

use super::Topics;
use super::error::{FetchError, UnknownPartition};
use super::pending::Pending;
use super::state::Topic;

/// Where an offset is that somebody looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The offset.
    pub offset: u64,
    /// Of that record, where it was looked for by its time; else -1.
    pub timestamp: i64,
    /// Of the leader that wrote it.
    pub leader_epoch: i32,
}

/// How a partition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// The first offset there is.
    pub log_start: u64,
    /// Up to where everything is durable.
    pub high_watermark: u64,
    /// Up to where every transaction is over.
    pub last_stable: u64,
    /// The next offset.
    pub end: u64,
    /// Bytes of its batches.
    pub size: u64,
    /// Of the leader.
    pub leader_epoch: i32,
}

impl Topics {
    /// Where an offset is (ListOffsets); `None` if there is none.
    pub fn locate(
        &self,
        topic: &Topic,
        partition: u32,
        what: Find,
        isolation: Isolation,
    ) -> Pending<Result<Option<Located>, FetchError>> {
        let _ = (topic, partition, what, isolation);
        Pending::now(Err(UnknownPartition.into()))
    }

    /// The newest epoch not newer than `epoch`, and the offset behind its last (OffsetForLeaderEpoch);
    /// `None` if that is not known.
    pub fn end_of_epoch(
        &self,
        topic: &Topic,
        partition: u32,
        epoch: i32,
    ) -> Result<Option<(i32, u64)>, UnknownPartition> {
        let _ = (topic, partition, epoch);
        Err(UnknownPartition)
    }

    /// Deletes what is before an offset, or all that is durable; answered with the first offset that
    /// is left, when that is on disk.
    pub fn delete_records(
        &self,
        topic: &Topic,
        partition: u32,
        before: Option<u64>,
    ) -> Pending<Result<u64, FetchError>> {
        let _ = (topic, partition, before);
        Pending::now(Err(UnknownPartition.into()))
    }

    /// How a partition stands.
    pub fn view(&self, topic: &Topic, partition: u32) -> Result<PartitionView, UnknownPartition> {
        let _ = (topic, partition);
        Err(UnknownPartition)
    }

    /// The producers that a partition knows again (DescribeProducers).
    pub fn producers(
        &self,
        topic: &Topic,
        partition: u32,
    ) -> Result<Vec<ProducerView>, UnknownPartition> {
        let _ = (topic, partition);
        Err(UnknownPartition)
    }
}
