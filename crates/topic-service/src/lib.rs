//! The topics of a node: partitions, consumer groups, transactions and SASL users, stored as streams
//! of the journal.
//!
//! A partition is a stream whose records are the producers' batches, byte for byte. The thread that
//! received a batch decides on it and appends it under the partition's lock. The batch is
//! acknowledged, and visible to readers, when the journal reports it durable. Readers get the
//! journal's bytes: data in memory is returned at once, data on disk is read on another thread.
//!
//! Pending results are futures ([`Pending`](platform::Pending), [`Durable`](platform::Durable),
//! [`Fetching`]) that may be dropped at any time. Timeouts are driven by [`Topics::sweep`].
//!
//! Invariants: *acknowledged data survives any stop; readers see durable data only; a request that
//! is answered with an error appended nothing.* In a topic with `telpher.durability=memory`,
//! appended data is acknowledged and visible at once, from memory until it is durable; a crash may
//! lose the newest data, and the rest is a prefix of the log.
//!
//! The crate knows streams, batches and users. It does not know Kafka's messages, authorization,
//! connections or conversations: their events are read through [`EventFeed`].
//!
//! Lock order: the catalogue's writing lock, the coordinator, a partition, a share of the groups or
//! the users, the journal's locks.

mod admin;
mod compacting;
mod coordinating;
mod counts;
mod error;
mod event_partitions;
mod events;
mod fetch;
mod fetching;
mod groups;
mod hints;
mod keys;
mod lag;
mod leaders;
mod loading;
mod offset_reset;
mod offsets;
mod options;
mod partition;
mod places;
mod prepare;
mod produce;
mod reader;
pub mod records;
mod service;
mod state;
mod tail;
mod tend;
#[cfg(test)]
mod tests;
mod topic;
mod transactions;
mod users;
mod watchers;

pub use admin::{Execution, NewTopic};
pub use counts::{Count, Counts};
pub use error::{
    AdminError, FetchError, GroupError, OpenError, ProduceError, ReadOnly, Storage,
    TransactionError, UnknownPartition, UserChangeError,
};
pub use event_partitions::{EventFeed, EventLimit, EventPartition, EventRecord};
pub use fetch::{Ask, BatchPlacement, FetchLimits, Fetched};
pub use fetching::Fetching;
pub use groups::{Committed, GroupView};
pub use journal::StoredBytes;
pub use journal::disk::FileRange;
pub use lag::GroupLag;
pub use leaders::catalogue_role;
pub use offset_reset::{OffsetChange, ResetError, ResetTarget};
pub use offsets::{Located, PartitionView};
pub use options::Options;
pub use prepare::{NotPrepared, PreparedBatch};
pub use produce::{FoundTopic, Placed, Producing};
pub use service::Topics;
pub use topic::{Topic, TopicRef};
pub use transactions::{InitProducer, MarkerToWrite};
pub use users::{Farewell, UserSessions};
