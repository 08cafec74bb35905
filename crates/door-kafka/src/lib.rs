//! The Kafka listener: serves topics to any Kafka client (`docs/kafka.md`).
//!
//! As in the codec, there is a file for each API: it turns requests into calls of the node, and
//! their results into answers. The codec's table lists the APIs and versions; clients learn them
//! from it, and others are not answered.
//!
//! It does not know the content of records, and decides nothing about offsets, groups or
//! transactions. Invariant: *requests are decided in the order in which they arrive, and answered in
//! that order.*

mod accept;
mod api;
mod client;
mod deadline;
mod dispatch;
mod errors;
mod inbox;
mod listener;
mod metrics;
mod outcome;
mod outlet;
mod quota;
mod reply;
mod sasl;
mod secrets;
mod serve;
mod session;
mod users;

pub use accept::{Acceptor, Arrived, accept};
pub use listener::{BrokerAddress, Door, Options};
pub use metrics::encode_metrics;
pub use users::{Nobody, Users};
