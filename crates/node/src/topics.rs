//! Topics: partitions, consumer groups and transactions, stored as streams of the journal.
//!
//! A partition is a stream whose records are the producers' batches, byte for byte. The thread that
//! received a batch decides on it and appends it under the partition's lock. The batch is
//! acknowledged, and visible to readers, when the journal reports it durable. Readers get the
//! journal's bytes: data in memory is returned at once, data on disk is read on another thread.
//!
//! Pending results are futures ([`Pending`], [`Durable`], [`Fetching`]) that may be dropped at any
//! time. Timeouts are driven by [`Node::sweep`].
//!
//! Invariants: *acknowledged data survives any stop; readers see durable data only; a request that
//! is answered with an error appended nothing.* In a topic with `telpher.durability=memory`,
//! appended data is acknowledged and visible at once, from memory until it is durable; a crash may
//! lose the newest data, and the rest is a prefix of the log.
//!
//! This module does not know Kafka's messages or authorization.
//!
//! Lock order: the catalogue's writing lock, the coordinator, a partition, a share of the groups or
//! the users, the journal's locks.

mod admin;
mod compacting;
mod coordinating;
mod counts;
mod error;
mod events;
mod fetch;
mod fetching;
mod groups;
mod hints;
mod keys;
mod lag;
mod loading;
mod offsets;
mod partition;
mod places;
mod prepare;
mod produce;
mod reader;
mod state;
mod tail;
mod tend;
#[cfg(test)]
mod tests;
mod transactions;
mod users;
mod watchers;

use std::sync::Arc;

use crate::Node;
use crate::node::Inner;

pub use ::topics::groups::{
    Caller, Candidate, Described, Description, Join, Joined, Leaver, Mark, Protocol, Refused,
    State as GroupState, Synced, Synchronize,
};
pub use ::topics::{
    Alter, Answer as Producer, BadConfig, BadName, Claim, Cleanup, Codec, CompactionPolicy, Config,
    Credential, Denied, Durability as TopicDurability, Ending, Expected, Find, Hash,
    ITERATIONS_MAX, ITERATIONS_MIN, Isolation, Key, Kind, OutOfRange, Participant, ProducerId,
    ProducerView, Refusal, State as TransactionState, Timestamps, Topic as About, TopicError,
    TopicId, Transaction, User, UserChange, UserError, check_name, partition_of,
};
pub use admin::{Execution, NewTopic};
pub use counts::{Count, Counts};
pub use error::{
    AdminError, FetchError, GroupError, ProduceError, Storage, TransactionError, UnknownPartition,
    UserChangeError,
};
pub use events::{ReadOnly, Tell};
pub use fetch::{Ask, FetchLimits, Fetched};
pub use fetching::Fetching;
pub use groups::{Committed, GroupView};
pub use lag::GroupLag;
pub use offsets::{Located, PartitionView};
pub use platform::{Durable, Pending, Unconfirmed};
pub use prepare::{NotPrepared, PreparedBatch};
pub use produce::{Placed, Producing};
pub use recordbatch::{BadRecord, Malformed, Rejected};
pub use state::{OpenError, Topic};
pub use transactions::{InitProducer, MarkerToWrite};
pub use users::Farewell;

pub(crate) use state::State;

/// Limits and defaults of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether a request that names an unknown topic creates it.
    pub auto_create: bool,
    /// Partitions of a topic that is created without a partition count.
    pub partitions: u32,
    /// Maximum number of partitions of all topics together.
    pub partitions_max: u32,
    /// Maximum number of idempotent producers that each partition remembers.
    pub producers_max: usize,
    /// Time after which an inactive producer is forgotten, in milliseconds.
    pub producer_silent_ms: i64,
    /// Time after which an unused `transactional.id` is forgotten, in milliseconds.
    pub transactional_id_unused_ms: i64,
    /// Maximum transaction timeout that a producer may request, in milliseconds.
    pub transaction_timeout_ms_max: i32,
    /// Minimum time that a record is retained after its append, even if its timestamp is older, in
    /// milliseconds.
    pub retention_check_interval_ms: i64,
    /// Options of consumer groups.
    pub groups: ::topics::groups::Options,
    /// Maximum memory for the keys of one compaction, in bytes.
    pub compaction_size_max: usize,
    /// Maximum memory for batches that are unpacked for readers, all together, in bytes.
    pub unpacked_size_max: u64,
    /// Default topic configuration, where it differs from Kafka's defaults.
    pub defaults: Config,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            auto_create: true,
            partitions: 3,
            partitions_max: 100_000,
            producers_max: 10_000,
            producer_silent_ms: 24 * 3600 * 1000,
            transactional_id_unused_ms: 7 * 24 * 3600 * 1000,
            transaction_timeout_ms_max: 15 * 60 * 1000,
            retention_check_interval_ms: 5 * 60 * 1000,
            groups: ::topics::groups::Options::default(),
            compaction_size_max: 64 << 20,
            unpacked_size_max: 256 << 20,
            defaults: Config::default(),
        }
    }
}

/// A reference to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRef<'a> {
    /// The name, as clients use it.
    Name(&'a str),
    /// The permanent id.
    Id(TopicId),
}

/// The topics of a node. Cheap to clone. See the module docs.
#[derive(Clone)]
pub struct Topics {
    inner: Arc<Inner>,
    state: Arc<State>,
}

impl Node {
    /// Returns the topics; `None` for a node without storage.
    pub fn topics(&self) -> Option<Topics> {
        let state = &self.inner.stored.as_ref()?.topics;
        Some(Topics {
            inner: self.inner.clone(),
            state: state.clone(),
        })
    }
}

impl Topics {
    /// Returns the options that the topics were opened with.
    pub fn options(&self) -> &Options {
        &self.state.options
    }

    /// Returns the counters.
    pub fn counts(&self) -> &Counts {
        &self.state.counts
    }

    /// Returns the budget for batches that are unpacked for readers.
    pub(crate) fn unpacked(&self) -> &Arc<crate::records::Unpacked> {
        &self.state.unpacked
    }

    /// Returns the bytes of all batches that are currently unpacked for readers.
    pub fn unpacked_bytes(&self) -> u64 {
        self.state.unpacked.held_bytes()
    }

    /// Returns the cluster id: random when the data directory was created, then constant.
    pub fn cluster_id(&self) -> u64 {
        self.state.journal.id()
    }

    fn now_ms(&self) -> u64 {
        self.inner.platform.unix_ms()
    }

    /// Returns milliseconds of a clock that never steps; it starts at the wall-clock time when the
    /// topics were opened. Sessions, rebalances and transactions time out by it.
    fn steady_ms(&self) -> u64 {
        let (unix_ms, ns) = self.state.opened;
        let since_ns = self.inner.platform.now_ns().saturating_sub(ns);
        unix_ms.saturating_add(since_ns / 1_000_000)
    }

    /// Returns the time by which records, offsets and transactional ids expire: the wall clock
    /// without unconfirmed steps.
    fn expiry_ms(&self) -> i64 {
        i64::try_from(self.inner.platform.expiry_ms()).unwrap_or(i64::MAX)
    }

    /// Returns the wall-clock time in milliseconds, in the engines' type.
    fn time_ms(&self) -> i64 {
        i64::try_from(self.now_ms()).unwrap_or(i64::MAX)
    }
}

impl std::fmt::Debug for Topics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Topics")
    }
}
