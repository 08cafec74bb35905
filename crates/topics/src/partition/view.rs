//! The description of a producer.

use crate::ProducerId;

/// A producer, as `DescribeProducers` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerView {
    /// The producer id.
    pub id: ProducerId,
    /// Its newest epoch.
    pub epoch: i16,
    /// The sequence of its newest record in that epoch; -1 for none.
    pub last_sequence: i32,
    /// When it wrote last, in milliseconds since 1970-01-01 UTC.
    pub last_ms: i64,
    /// The epoch of the coordinator that ended its last transaction; -1 for none.
    pub coordinator_epoch: i32,
    /// The first offset of its open transaction.
    pub transaction_start: Option<u64>,
}
