//! The engine of topics: offsets, duplicates, transactions and consumer groups.
//!
//! A topic is a number of partitions, each a list of record batches with dense offsets from 0. The
//! engine only decides. It gets *facts* about a batch (number of offsets, producer, size) and never
//! sees its bytes. The shell provides the time, stores the batches and knows when they are durable.
//! Errors are our own types; each names the Kafka error that it stands for.
//!
//! | engine | one for each | decides |
//! |---|---|---|
//! | [`Partition`] | partition | offsets, duplicates, visibility, retention |
//! | [`compaction`] | run | which records survive |
//! | [`Coordinator`] | shard of names | transactions: producers, epochs, ends |
//! | [`Catalogue`] | node | topics and their configuration |
//! | [`Users`] | node | users with a password |
//! | [`groups`] | shard of names | consumer groups and their offsets |
//!
//! Invariants: *an offset is used for one record only; a batch that was written once is not written
//! twice; a reader of committed records sees all of a transaction or nothing.*
//!
//! The state that must survive a restart is written as [`record`]s, which streams keep in order.

mod bytes;
mod catalogue;
pub mod compaction;
mod config;
mod coordinator;
mod epochs;
pub mod groups;
mod ids;
mod index;
mod keys;
mod names;
mod partition;
mod producer_ids;
mod producers;
pub mod record;
mod transactions;
mod users;

pub use catalogue::{Catalogue, Room, Topic, TopicError};
pub use config::{
    Alter, BadConfig, Cleanup, Codec, CompactionPolicy, Config, Durability, Key, Kind, Timestamps,
};
pub use coordinator::{
    Answer, Bounds, Claim, Coordinator, Denied, Expected, Init, Participant, State, Step,
    Transaction,
};
pub use ids::{NO_EPOCH, NO_SEQUENCE, ProducerId, TopicId, sequence_after};
pub use index::Peak;
pub use keys::partition_of;
pub use names::{BadName, NAME_LENGTH_MAX, check_name};
pub use partition::{
    Batch, BatchPosition, Change, Decision, Ending, Find, Isolation, Limits, Marker, OutOfRange,
    Partition, ProducerView, Refusal, Retention, SearchResult, Sequenced,
};
pub use producer_ids::{Exhausted, Fresh, ProducerIds, Reserved};
pub use users::{
    Credential, Hash, ITERATIONS_MAX, ITERATIONS_MIN, User, UserChange, UserError, Users,
};
