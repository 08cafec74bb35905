//! The journal: every ack means it is on disk.
//!
//! Every durable stream of a node appends to one *line*, a sequence of segment files, so that one
//! `fdatasync` covers everybody who waits. Records of one shard that were decided while the last
//! sync was under way form a *block*; the line orders blocks, writes them at once, syncs once and
//! publishes how far it is durable. Sealed segments are *filed* into *extents*, clustered by
//! stream, in the background.
//!
//! It knows what a record's stream and offset are and nothing of what is in it; it knows no
//! network, no async runtime and no clock: time is handed in, files are a [`disk::Disk`], and the
//! threads around its two cores, the line and the filing, are a loop that calls `step`.

pub mod block;
pub mod disk;
pub mod extent;
mod ids;
pub mod manifest;
pub mod record;
pub mod segment;

pub use ids::{Index, Position, ShardId, StreamId};
