//! The engine of topics: which batch gets which offsets, whose batch it is, what a transaction
//! makes of it, and which member of a consumer group reads it.
//!
//! A topic is a number of partitions, each a list of record batches with dense offsets from 0. The
//! engine only decides. It is handed *facts* about a batch (how many offsets, which producer, how
//! large) and never sees its bytes; where batches are and when they are durable is the shell's to
//! say, and so is the time. Answers are in our own words: what the Kafka protocol calls an error
//! stands beside each.
//!
//! | engine | one for each | decides |
//! |---|---|---|
//! | [`Partition`] | partition | offsets, duplicates, what readers see, retention |
//! | [`compaction`] | run | which records survive |
//! | [`Coordinator`] | shard of names | transactions: producers, epochs, ends |
//! | [`Catalogue`] | node | topics and their configuration |
//! | [`Users`] | node | who comes in by a password |
//! | [`groups`] | shard of names | consumer groups and their offsets |
//!
//! Invariants: *an offset that was given to a record is never given to another; a batch that was
//! written once is not written twice; a reader of what is committed sees all of a transaction or
//! nothing.*
//!
//! What must outlive the memory are [`record`]s, which streams keep in order.

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
    Batch, Change, Decision, Ending, Find, Found, Isolation, Limits, Marker, OutOfRange, Partition,
    Place, ProducerView, Refusal, Retention, Sequenced,
};
pub use producer_ids::{Exhausted, Fresh, ProducerIds, Reserved};
pub use users::{
    Credential, Hash, ITERATIONS_MAX, ITERATIONS_MIN, User, UserChange, UserError, Users,
};
