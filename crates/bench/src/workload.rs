//! Benchmarks and the processes that run them: the trait [`Workload`](driver::Workload), its driver,
//! roles, nodes and peers.
//!
//! Every role is a process of its own, started from our own executable (`telpher bench-role`) or
//! from a peer's. Roles communicate over standard input and output: a line of JSON when ready, `go`
//! to begin, a line of JSON with the counts. A role ends when its standard input closes, so no
//! process outlives the suite. Workloads compute no figure: measurements go to a
//! [`Suite`](crate::suite::Suite).

pub mod child;
pub mod disk_counters;
pub mod disk_floor;
pub mod driver;
pub mod error;
pub mod memory;
pub mod node;
pub mod peer;
pub mod placement;
pub mod poll;
pub mod rival_server;
pub mod role;
pub mod spare_segments;
pub mod surroundings;
pub mod transport;
