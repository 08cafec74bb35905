//! The records in the streams of a conversation, byte by byte.
//!
//! The tag that a stream stores with each record identifies its layout. All numbers are
//! little-endian; a text is UTF-8 after its length, `text8` or `text16`. A layout is never changed:
//! a new one gets a new tag.
//!
//! ```text
//! the messages      1 MESSAGE   status u8 | flags u8 (1 tokens are estimated, 2 imported,
//!                               4 a retraction) | tokens u32
//!                               | event u64 | tokens before u64 | instruction u64
//!                               | imported: at_ms u64 | retraction: first u64 | count u64
//!                               | id text8 | role text8 | from text16 | metadata u32 + bytes
//!                               | facts u16 × (kind u8 | size u32 | call u64) | parts
//! the state         1 SNAPSHOT  see `state`
//!                   2 CHANGE    what u8 (1 a cursor) | who text16 | seq u64
//! the events        1 MESSAGE, 2 STATE, 3 ERASED
//!                               conversation u64 | offset u64
//! the drafts        1 OPEN      conversation u64 | opened_ms u64 | id text8 | role text8
//!                               | from text16 | metadata
//!                   2 CHUNKS    draft u64 | first u32 | lines, each with its \n
//!                   3 CLOSE     draft u64 | status u8 | seq u64
//!                   4 CARRIED   draft u64 | as 1 OPEN; replaces its earlier records
//!                   5 ERASE     empty: all records before it must leave the disk
//! an agent          1 SNAPSHOT, 2 CHANGE: see `agent` and `webhook`; 3 GONE: nothing
//! ```

mod agent;
mod bytes;
mod draft;
mod event;
mod message;
mod policy;
mod state;
mod webhook;

pub use agent::{AgentState, PendingState};
pub use draft::{DraftCarried, DraftChunks, DraftClose, DraftOpen};
pub use event::{EventRef, EventTag};
pub use message::{Facts, Links, MessageView, Retraction, retraction, set_links};
pub use state::StateChange;
pub use webhook::{WebhookSettings, WebhookTarget};

/// The tag of a [`MessageView`] in a stream of messages.
pub const MESSAGE: u8 = 1;
/// The tag of a [`crate::State`] in a stream of state, and of an [`AgentState`] in an agent's
/// stream.
pub const SNAPSHOT: u8 = 1;
/// The tag of a [`StateChange`] in a stream of state, and of a [`crate::delivery::Change`] in an
/// agent's stream.
pub const CHANGE: u8 = 2;
/// The tag of the end of an agent, in its stream.
pub const GONE: u8 = 3;
/// The tag of a [`DraftOpen`] in a log of drafts.
pub const DRAFT_OPEN: u8 = 1;
/// The tag of [`DraftChunks`] in a log of drafts.
pub const DRAFT_CHUNKS: u8 = 2;
/// The tag of a [`DraftClose`] in a log of drafts.
pub const DRAFT_CLOSE: u8 = 3;
/// The tag of a [`DraftCarried`] in a log of drafts.
pub const DRAFT_CARRIED: u8 = 4;
/// The tag of an empty record in a log of drafts: all records before it must leave the disk.
pub const DRAFT_ERASE: u8 = 5;

/// Bytes that are no valid record of their tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} of a conversation")]
pub struct Malformed {
    /// The kind of record.
    pub what: &'static str,
}

#[cfg(test)]
mod tests;
