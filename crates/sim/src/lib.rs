//! Simulation of whole nodes and clients from a seed: one thread, a clock that jumps, and a network
//! that delays, loses and cuts. The same seed gives the same run, to the byte.
//!
//! Nothing here uses real time or real sockets. Simulated parts implement the same traits as the
//! real ones: [`net::Source`], [`net::Sink`], [`platform::Clock`], [`platform::Entropy`].

mod cluster;
mod doors;
mod durable_node;
mod io;
mod node;
mod transcript;
mod world;

pub use cluster::{Cluster, ClusterClient};
pub use doors::Dialer;
pub use durable_node::{DurableNode, Settings};
pub use net::simulated::{Link, Network, Weather};
pub use node::Node;
pub use transcript::Transcript;
pub use world::{run, run_all};
