//! Checks behind the flags of `telpher bench`: a node that is killed with `kill -9` under load,
//! starts with much data, memory of what is idle, memory over a long load, and cost by the number of
//! items.
//!
//! A check judges a node that runs as a process of its own: it counts what differs from the
//! acknowledged data, or measures memory and start-up times. It has no repeats and no intervals,
//! which are those of a benchmark. It knows nothing of the inside of a node.
//!
//! Invariant: *an acknowledged record that is missing, changed or out of order is counted.*

pub mod growth;
mod idle_memory;
pub mod journal;
pub mod kafka;
pub mod kill;
pub mod quota;
pub mod slim;
mod space;
pub mod store;
