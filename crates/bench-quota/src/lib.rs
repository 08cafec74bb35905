//! `bench quota`: takes, and the answers of a rate limiter.
//!
//! | target | server |
//! |---|---|
//! | `telpher` | a node |
//! | `url` | a server that is already running, with the node's API, in place of the node |
//! | `express` | Express, ioredis and a Lua script in a Redis of its own |
//! | `throttlecrab` | that crate's server over HTTP |
//! | `http-floor` | a server with one fixed answer to every request |
//! | `redis-script` | a function in Redis, called for each take |
//!
//! A load is one process with one thread. Over HTTP it writes requests from templates and parses
//! answers no further than necessary; over the native protocol it is our own client. Its CPU per
//! request is reported next to the server's. A refused take is an answer, not an error. One
//! decision counts as one message, independent of how many share a request.
//!
//! Nodes may share a Redis. Then leases are compared with a Redis call for each take, and together
//! the nodes must not allow more than the shared bucket has.
//!
//! Every run has a server of its own; the server's usage is the sum of all its processes.

mod agents;
mod answer;
mod caller;
mod counts;
pub mod fill;
mod limits;
mod load;
mod matrix;
mod native;
mod pace;
mod plan;
mod request;
mod role;
mod script;
mod server;
mod spec;
mod suite;
pub mod target;

pub use limits::Limits;
pub(crate) use limits::{CAPACITY, REFILL_PER_S, TOKENS, TakeCost};
pub use matrix::{Busy, Door, Matrix, Subject, Work};
pub use role::play;
pub(crate) use spec::{Dialect, LoadCounts, Pace, STEADY, TakeClient};
pub use spec::{LoadSpec, Reuse, Step};
pub use suite::{misses, run};
