//! An extent: what a shard wrote over a stretch of the line, clustered by stream.
//!
//! ```text
//! ┌────────┬───────────────────┬──────────────────────┬───────┬────────┐
//! │ header │ pages of records  │ pages of the stream  │ index │ footer │
//! │ 64 B   │ by stream, offset │ table, by stream     │       │ 128 B  │
//! └────────┴───────────────────┴──────────────────────┴───────┴────────┘
//! ```
//!
//! It is apart from the line because the two want opposite things: the line takes what comes in the
//! order in which it comes, an extent is read by stream. It is written once, under a temporary
//! name, and never changes; merging replaces it. Every byte of it is covered by a CRC that is
//! checked on every read, seeded so that no other extent's page, and no page from another place,
//! passes. It knows nothing of segments, blocks and threads.

use std::io;

use crate::{Index, Position, ShardId};

mod check;
mod cursor;
mod frame;
mod index;
mod page;
mod reader;
mod records;
mod set;
mod streams;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub use check::DamagedPage;
pub use cursor::{Cursor, Entries, Taken};
pub use reader::Extent;
pub use records::RecordRef;
pub use set::{ExtentSet, FiledRecord, StreamSummary, Streams};
pub use streams::Entry;
pub use writer::Writer;
pub(crate) use writer::write_all;

/// The directory of all extents.
pub const DIRECTORY: &str = "extents";

/// An extent is never made larger than this: places in it are counted in 32 bits.
pub const SIZE_MAX: u64 = 128 << 30;

/// What makes an extent this one and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The journal it belongs to.
    pub journal_id: u64,
    /// The shard whose records it holds.
    pub shard: ShardId,
    /// Its number, unique in the journal.
    pub number: u64,
    /// Where the stretch of the line begins.
    pub begin: Position,
    /// Where it ends.
    pub end: Position,
    /// The shard's last block in the stretch or before it.
    pub index: Index,
    /// The term of that block.
    pub term: u64,
}

impl Identity {
    /// Where the extent lies.
    pub fn path(&self) -> String {
        path(self.shard, self.number)
    }

    /// Where it lies while it is being written.
    pub fn path_unfinished(&self) -> String {
        format!("{}.new", self.path())
    }
}

/// Where an extent lies.
pub fn path(shard: ShardId, number: u64) -> String {
    format!("{DIRECTORY}/{:04}-{number:012}.ext", shard.0)
}

/// Something is not as it was written, and in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);

impl Damage {
    fn at(self, path: &str, place: u64) -> ExtentError {
        ExtentError::Damaged {
            path: path.to_owned(),
            place,
            what: self.0,
        }
    }
}

/// An extent that cannot be used, or a place in it.
#[derive(Debug, thiserror::Error)]
pub enum ExtentError {
    /// It is not what was written.
    #[error("{path} is damaged at byte {place}: {what}")]
    Damaged {
        /// The file, relative to the journal's directory.
        path: String,
        /// Where in it.
        place: u64,
        /// In which way.
        what: &'static str,
    },
    /// A newer build wrote it.
    #[error("{path} has format version {found}, and this build reads up to {supported}")]
    Version {
        /// The file.
        path: String,
        /// Its version.
        found: u32,
        /// The newest that this build reads.
        supported: u32,
    },
    /// The disk did not read it.
    #[error("{path} cannot be read: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the disk said.
        source: io::Error,
    },
}
