//! The records of topics in their streams, byte by byte. Those of consumer groups are in
//! [`crate::groups`].
//!
//! The tag of a stream record tells them apart. All numbers are little-endian; a `text` is a length
//! (u16) and UTF-8; `bytes` are a length (u32) and the content; `count ×` is a u32 and as many of
//! what follows. A layout is never changed: a new layout gets a new tag.
//!
//! ```text
//! a partition       1 BATCH        a record batch as Kafka has it, from its base offset on
//!                   2 CHANGE       what u8: 1 log start | offset u64
//!                                           2 leader | epoch i32 | start u64
//!                                           3 cleaned | offset u64
//!                   3 PARTITION_UNDATED   see `partition`; read, and not written any more
//!                   4 COMPACTED    first u64 | end u64 | rest u64: what was compacted is those records
//!                                  of the stream beside, what was not begins with record `rest`
//!                   5 PARTITION    see `partition`
//! the catalogue     1 TOPIC        id 16 | name text | partitions u32 | created_ms i64
//!                                  | count × (key u8 | value text)
//!                   2 TOPIC_GONE   id 16
//! the coordinator   1 TRANSACTION  name text | producer i64 | epoch i16 | last producer i64 (-1 none)
//!                                  | last epoch i16 | timeout_ms i32 | state u8 | started_ms i64
//!                                  | updated_ms i64 | count × participant
//!                                  participant: 1 u8 | topic 16 | partition u32, or 2 u8 | group text
//!                   2 TRANSACTION_GONE  the name
//!                   3 PRODUCER_IDS      all before this one are given away i64
//! the users         1 USER         name text | count × (mechanism u8 | iterations u32 | salt bytes
//!                                  | stored key bytes | server key bytes)
//!                   2 USER_GONE    the name
//! ```
//!
//! The newest record of a topic, a transaction or a user replaces earlier ones. BATCH and CHANGE
//! apply in their order, from the position that the PARTITION or PARTITION_UNDATED names.

mod catalogue;
mod coordinator;
mod partition;
mod users;

pub use partition::{Compacted, Snapshot};

/// Tag of a record batch.
pub const BATCH: u8 = 1;
/// Tag of a [`crate::Change`].
pub const CHANGE: u8 = 2;
/// Tag of a [`Snapshot`] of a version that stored no append times.
pub const PARTITION_UNDATED: u8 = 3;
/// Tag of a [`Compacted`].
pub const COMPACTED: u8 = 4;
/// Tag of a [`Snapshot`].
pub const PARTITION: u8 = 5;
/// Tag of a [`crate::Topic`].
pub const TOPIC: u8 = 1;
/// Tag of the [`crate::TopicId`] of a topic that was deleted: its 16 bytes.
pub const TOPIC_GONE: u8 = 2;
/// Tag of a [`crate::Transaction`].
pub const TRANSACTION: u8 = 1;
/// Tag of the name of a transaction that was forgotten: only its bytes.
pub const TRANSACTION_GONE: u8 = 2;
/// Tag of [`crate::Reserved`] ids of producers.
pub const PRODUCER_IDS: u8 = 3;
/// Tag of a [`crate::User`].
pub const USER: u8 = 1;
/// Tag of the name of a user that was removed: only its bytes.
pub const USER_GONE: u8 = 2;

/// The bytes are not a record of their tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what}")]
pub struct Malformed {
    /// The kind of record.
    pub what: &'static str,
}

#[cfg(test)]
mod tests;
