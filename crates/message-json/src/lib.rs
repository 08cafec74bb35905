//! The JSON of messages: facts about their parts, metadata and its labels, previews, streamed
//! answers that are assembled from chunks, and schemas of an agent's methods.
//!
//! The node stores parts and metadata as opaque bytes; listeners and the composition of a node
//! learn from here what they contain. It knows no protocol, no sockets and no clock.
//!
//! Invariant: *the bytes of a client's JSON are returned as they were written.*

pub mod chunks;
pub mod facts;
mod labels;
pub mod metadata;
mod preview;
pub mod schema;

pub use labels::labels;
pub use preview::preview;
