//! The bridge between agents and SLIM applications.
//!
//! A bridge is a client of a Telpher node and an application of a SLIM node. Either SLIM
//! applications call an agent (`inward`), or agents call a SLIM application (`outward`). One
//! task does all work of a bridge.
//!
//! The crate knows neither the command line nor how a node works. Invariant: *a request that is
//! accepted from one side ends with one answer, unless the link to that side is lost.*

mod bridge;
mod inward;
mod line;
mod messages;
mod node;
mod options;
mod outward;
mod sessions;
mod tally;
mod tls;

pub use bridge::Bridge;
pub use node::SlimNode;
pub use options::{Options, fill};
pub use tls::TlsFiles;
