//! The listeners: decode bytes to calls of the node, and encode its answers. One module per
//! protocol.
//!
//! A listener (a *door* in the code) decides nothing: it decodes, calls [`node::Node`], and
//! encodes what the node pushes into its [`node::Outlet`]s. It does not know engines or disks.

mod accept;
mod answer_queue;
pub mod chunks;
pub mod facts;
mod gate;
pub mod http;
mod json;
pub mod kafka;
mod labels;
mod metadata;
pub mod native;
mod preview;
mod reading;
pub mod slim;
mod sweep;
mod topics;
mod wake_batch;

pub use gate::{Gate, Open, Pass, Refused, Role};
pub use labels::labels;
pub use sweep::sweep;
pub use wake_batch::WakeBatch;
