//! What is shown of a producer.

use crate::ProducerId;

/// One producer, as `DescribeProducers` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerView {
    /// Who.
    pub id: ProducerId,
    /// Its newest epoch.
    pub epoch: i16,
    /// Of its newest record in that epoch; -1 for none.
    pub last_sequence: i32,
    /// When it was last heard of.
    pub last_ms: i64,
    /// Of the coordinator that ended its last transaction; -1 for none.
    pub coordinator_epoch: i32,
    /// The first offset of its transaction.
    pub transaction_start: Option<u64>,
}
