//! Benchmark workloads, and the processes that run them.
//!
//! Every role is a process of its own, started from our own executable (`telpher bench-role`) or
//! from a peer's. Roles communicate over standard input and output: a line of JSON when ready, `go`
//! to begin, a line of JSON with the counts. A role ends when its standard input closes, so no
//! process outlives the suite. Workloads compute no figure: measurements go to a
//! [`Suite`](crate::suite::Suite).

pub mod agent;
mod child;
mod disk_counters;
mod driver;
mod error;
mod idle_memory;
pub mod journal;
pub mod kafka;
mod killed_node;
mod node;
mod peer;
mod placement;
pub mod quota;
mod rival_server;
mod role;
pub mod roles;
pub mod rpc;
pub mod store;
mod surroundings;

pub use child::ChildError;
pub use error::WorkloadError;
pub use placement::Placement;
pub use surroundings::{OURS, Surroundings};
