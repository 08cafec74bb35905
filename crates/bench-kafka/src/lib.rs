//! `bench kafka`: messages to topics of any broker over the Kafka protocol.
//!
//! | mode | load |
//! |---|---|
//! | `produce` | producers that share one connection, which batches for all of them |
//! | `connections` | the same producers with a connection each |
//! | `bulk` | eight connections that always have more to send than fits into a batch |
//! | `consume` | no producer: a topic that was filled before is read repeatedly |
//! | `end-to-end` | one producer; a latency ends when the message reaches a waiting consumer |
//!
//! | target | server |
//! |---|---|
//! | `telpher` | a node; `durability=disk` acknowledges after a sync, `durability=memory` before it |
//! | `telpher-cluster` | a cluster of nodes on loopback |
//! | `kafka-cluster`, `kafka-cluster-flush` | as many brokers of Apache Kafka, which differ as the two below |
//! | `kafka` | Apache Kafka with its defaults: acknowledged messages are in the page cache |
//! | `kafka-flush` | Apache Kafka with `flush.messages=1`: acknowledged messages are on disk |
//! | `broker` | a broker that is already running |
//! | `disk-floor`, `durable-echo`, `floor`, `stream-floor`, `quorum-floor` | the minimum work that such messages need |
//!
//! The client is our own, on our own codec: one thread, one `epoll`. A producer is a slot that
//! waits for the ack of its message before it sends the next. Messages become batches by the rules
//! of librdkafka and the Java client (linger time, batch size, requests in flight). Every latency
//! is recorded, the window closes with the last ack, an ack without an offset is a failure, and
//! nothing is retried. After the window all acknowledged messages are read back.
//!
//! [`log`] writes a log as fast as possible and reads it back, for checks that kill the broker.
//!
//! The crate knows no other protocol and nothing of the inside of a node. It computes no figure.

mod acknowledged;
mod batches;
mod brokers;
mod cluster;
mod compare;
mod consume;
mod end_to_end;
#[cfg(test)]
mod fake;
mod faults;
pub mod fetch;
mod floors;
mod link;
pub mod log;
mod matrix;
mod message;
mod produce;
mod role;
pub mod session;
mod socket;
mod spec;
mod suite;
pub mod topic;
mod verify;

pub use compare::misses;
pub use faults::{
    Fault, FaultReport, FaultRun, FaultTimes, IdleNode, Milliseconds, run as run_faults,
};
pub use matrix::{Doing, Durability, Matrix, Subject, Topic};
pub use message::{ID_SIZE, KeyPattern, PayloadPattern};
pub use role::play;
pub use spec::{Acks, LoadSpec, Packing};
pub(crate) use spec::{ConsumeCounts, ProduceCounts, ProduceSpec, Work};
pub use suite::run;
