//! Topics: the engines' partitions, groups and transactions as streams of the journal.
//!
//! A partition is a stream whose records are the producers' batches, byte for byte. What becomes of a
//! batch is decided under the partition's lock, by the thread that brought it, and appended under the
//! same lock; it is answered when the journal says that it is durable, and readers see it then. Readers
//! get the journal's bytes. What is in memory is handed out at once, what lies on the disk is read
//! elsewhere.
//!
//! Whoever waits holds a [`Pending`], a [`Durable`] or a [`Fetching`]: futures that are dropped without
//! harm. Time passes by [`Handle::sweep`].
//!
//! Invariants: *what was acknowledged is there after any stop; nobody is shown what is not durable;
//! what is answered by an error was not appended.* Where a topic says `telpher.durability=memory`, what
//! is appended is acknowledged and shown at once, from memory until it is durable; a stop may take the
//! newest of it, and what is left is a beginning of what there was.
//!
//! It does not know Kafka's messages, nor who may do what.
//!
//! Locks, in the order in which they may be held together: the one that changes the catalogue, the
//! coordinator's, a partition's, a share of the groups or the users, those of the journal.

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
mod pending;
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

use crate::Handle;
use crate::handle::Inner;

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
pub use pending::Pending;
pub use prepare::{NotPrepared, PreparedBatch};
pub use produce::{Placed, Producing};
pub use recordbatch::{BadRecord, Malformed, Rejected};
pub use state::{OpenError, Topic};
pub use transactions::{InitProducer, MarkerToWrite};
pub use users::Farewell;

pub use crate::durable::{Durable, Unconfirmed};

pub(crate) use state::State;

/// How topics are kept and what bounds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether a topic that nobody made is made when it is asked for by name.
    pub auto_create: bool,
    /// Partitions of a topic of which nobody said how many.
    pub partitions: u32,
    /// Partitions of all topics, at most.
    pub partitions_max: u32,
    /// Producers that each partition knows again, at most.
    pub producers_max: usize,
    /// How long a producer is known again that says nothing, in milliseconds.
    pub producer_silent_ms: i64,
    /// How long a `transactional.id` is known that is not used, in milliseconds.
    pub transactional_id_unused_ms: i64,
    /// How long a transaction may ask for at most, in milliseconds.
    pub transaction_timeout_ms_max: i32,
    /// How long a record stays after its append whatever its timestamp says, in milliseconds.
    pub retention_check_interval_ms: i64,
    /// Groups.
    pub groups: ::topics::groups::Options,
    /// Bytes of keys that one compaction holds at most.
    pub compaction_size_max: usize,
    /// Bytes that batches take at most which are unpacked for readers, all together.
    pub unpacked_size_max: u64,
    /// How topics are configured of which nobody said otherwise, where that is not Kafka's default.
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

/// What a topic is asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRef<'a> {
    /// As clients call it.
    Name(&'a str),
    /// As it is called for good.
    Id(TopicId),
}

/// The topics of a node. Cheap to clone. See the module's documentation.
#[derive(Clone)]
pub struct Topics {
    inner: Arc<Inner>,
    state: Arc<State>,
}

impl Handle {
    /// Begins with topics: what is kept of them is read. Called once, before anybody asks for them; a
    /// node that keeps nothing has none.
    pub fn open_topics(&self, options: Options) -> Result<(), OpenError> {
        state::open(&self.inner, options)
    }

    /// The topics, if the node has begun with them.
    pub fn topics(&self) -> Option<Topics> {
        let state = self.inner.topics.get()?;
        Some(Topics {
            inner: self.inner.clone(),
            state: state.clone(),
        })
    }
}

impl Topics {
    /// What they were begun with.
    pub fn options(&self) -> &Options {
        &self.state.options
    }

    /// What is counted of them.
    pub fn counts(&self) -> &Counts {
        &self.state.counts
    }

    /// The memory of unpacked batches.
    pub(crate) fn unpacked(&self) -> &Arc<crate::records::Unpacked> {
        &self.state.unpacked
    }

    /// Bytes that batches take which were unpacked for readers.
    pub fn unpacked_bytes(&self) -> u64 {
        self.state.unpacked.held_bytes()
    }

    /// Names the data directory's topics: random when it was formed, and the same ever since.
    pub fn cluster_id(&self) -> u64 {
        self.state.journal.id()
    }

    fn now_ms(&self) -> u64 {
        self.inner.ports.clock.unix_ms()
    }

    /// Milliseconds on a clock that never steps; as much as the wall clock when the topics were opened.
    /// Sessions, rebalances and transactions end by it.
    fn steady_ms(&self) -> u64 {
        let (unix_ms, ns) = self.state.opened;
        let since_ns = self.inner.ports.clock.now_ns().saturating_sub(ns);
        unix_ms.saturating_add(since_ns / 1_000_000)
    }

    /// The time by which records, offsets and transactional ids expire: the wall clock without steps
    /// that are not confirmed.
    fn expiry_ms(&self) -> i64 {
        i64::try_from(self.inner.expiry_ms()).unwrap_or(i64::MAX)
    }

    /// As the engines count it.
    fn time_ms(&self) -> i64 {
        i64::try_from(self.now_ms()).unwrap_or(i64::MAX)
    }
}

impl std::fmt::Debug for Topics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Topics")
    }
}
