//! Extents: the records of one shard from a range of the line, clustered by stream.
//!
//! ```text
//! ┌────────┬───────────────────┬──────────────────────┬───────┬────────┐
//! │ header │ pages of records  │ pages of the stream  │ index │ footer │
//! │ 64 B   │ by stream, offset │ table, by stream     │       │ 128 B  │
//! └────────┴───────────────────┴──────────────────────┴───────┴────────┘
//! ```
//!
//! The line is written in order of arrival; an extent is read by stream. An extent is written once,
//! under a temporary name, and never changes; merging replaces it. Every byte is covered by a CRC
//! that is checked on every read, except for long records that are only located (`located.rs`), of
//! which it is checked on the first one. The CRC is seeded, so that a page of another extent, or of
//! another place in the same extent, does not pass.
//!
//! An extent *in place* has no pages of records: its index refers to pieces of a segment, which stays in
//! the line's directory as long as an extent refers to it. Each piece has the consecutive records of one
//! stream in one block, as the line has written them. Of segments, this module knows no more than their
//! files and the layout of records; it knows nothing about blocks and threads.

use std::io;

use crate::disk::File;
use crate::{Index, Position, ShardId};

mod check;
mod cursor;
mod frame;
mod index;
mod located;
mod page;
mod reader;
mod records;
mod retained;
mod set;
mod streams;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub use check::DamagedPage;
pub use cursor::{Cursor, CursorRecord, Entries};
pub use located::{HEAD_SIZE, LocatedRecord, Reach, Visited};
pub(crate) use located::{LOCATED_SIZE_MIN, head_of, is_cached};
pub use reader::{Extent, segment_of};
pub use records::RecordRef;
pub use retained::{RetainedSegments, SegmentRef};
pub use set::{ExtentSet, FiledRecord, StreamSummary, Streams};
pub use streams::Entry;
pub use writer::{PIECE_SIZE, PieceSummary, Writer};

/// Directory of all extents.
pub const DIRECTORY: &str = "extents";

/// Size limit of an extent: offsets of pages are stored in units of 64 bytes, in 32 bits, with a
/// margin.
pub const SIZE_MAX: u64 = 128 << 30;

/// Identifies an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Id of the journal.
    pub journal_id: u64,
    /// Shard of the records.
    pub shard: ShardId,
    /// Number of the extent, unique in the journal.
    pub number: u64,
    /// Start of the range of the line.
    pub begin: Position,
    /// End of the range of the line.
    pub end: Position,
    /// Index of the shard's last block before `end`.
    pub index: Index,
    /// Term of that block.
    pub term: u64,
}

impl Identity {
    /// Returns the path of the extent.
    pub fn path(&self) -> String {
        path(self.shard, self.number)
    }

    /// Returns the path of the extent while it is being written.
    pub fn path_unfinished(&self) -> String {
        format!("{}.new", self.path())
    }
}

/// Returns the path of an extent.
pub fn path(shard: ShardId, number: u64) -> String {
    format!("{DIRECTORY}/{:04}-{number:012}.ext", shard.0)
}

/// A description of invalid data.
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

/// An error of an extent.
#[derive(Debug, thiserror::Error)]
pub enum ExtentError {
    /// The contents are invalid.
    #[error("{path} is damaged at byte {place}: {what}")]
    Damaged {
        /// Path of the file, relative to the journal's directory.
        path: String,
        /// Byte in the file.
        place: u64,
        /// Description of the damage.
        what: &'static str,
    },
    /// A newer build wrote the extent.
    #[error("{path} has format version {found}, and this build reads up to {supported}")]
    Version {
        /// Path of the file.
        path: String,
        /// Format version of the file.
        found: u32,
        /// Newest version that this build reads.
        supported: u32,
    },
    /// An I/O error.
    #[error("{path} cannot be read: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// The error.
        source: io::Error,
    },
}

impl ExtentError {
    /// Returns the path of the file, relative to the journal's directory.
    pub fn path(&self) -> &str {
        match self {
            ExtentError::Damaged { path, .. }
            | ExtentError::Version { path, .. }
            | ExtentError::Io { path, .. } => path,
        }
    }
}

/// Fills the buffer from a file.
fn read(file: &dyn File, path: &str, buffer: &mut [u8], place: u64) -> Result<(), ExtentError> {
    file.read_at(buffer, place)
        .map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => Damage("the file ends early").at(path, place),
            _ => ExtentError::Io {
                path: path.to_owned(),
                source,
            },
        })
}
