//! The Kafka listener: serves topics to any Kafka client (`docs/kafka.md`).
//!
//! Each API has a file, as in the codec. The file turns requests into calls of the node, and their
//! results into answers. The codec's table lists the served APIs and versions, which clients read
//! by ApiVersions; requests of other APIs get no answer.
//!
//! The crate does not know the content of records, and makes no decision about offsets, groups or
//! transactions. Invariant: *requests are decided in the order in which they arrive, and answered in
//! that order.*

mod accept;
mod api;
mod brokers;
mod client;
mod deadline;
mod dispatch;
mod errors;
mod file_part;
mod follower;
mod inbox;
mod listener;
mod metrics;
mod outcome;
mod outlet;
mod postponed;
mod quota;
mod reply;
mod sasl;
mod secrets;
mod serve;
mod session;
mod spans;
mod users;

pub use accept::{Acceptor, Arrived, accept};
pub use follower::{Follower, KnownServices, KnownTopic, Leader, LeaderStream};
pub use listener::{BrokerAddress, Door, Options};
pub use metrics::encode_metrics;
pub use users::{NoUsers, Users};
