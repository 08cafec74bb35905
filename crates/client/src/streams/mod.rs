//! Stored streams: conversations, topics, and streams of records.

pub(crate) mod conversation;
pub(crate) mod follow;
pub(crate) mod handle;
pub(crate) mod page;
pub(crate) mod record_stream;
pub mod topic;
