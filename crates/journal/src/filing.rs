//! The background of the journal: what turns the line into extents and keeps the disk tidy.
//!
//! A sealed segment is read back, sorted and written as one extent per shard; the manifest then
//! names them, readers switch to them, and the file becomes a spare. Neighbouring extents are
//! merged, dead bytes dropped, erased ones driven out, spares zeroed ahead, a reserve of room kept.
//!
//! [`Filer::step`] does one bounded piece of that and returns. Its invariants: nothing is removed
//! before what replaces it is durable and named by a durable manifest; a record is dropped only if
//! its stream starts behind it durably; what a stream's start and next were outlives its records.
//! It knows no clock, no thread, and of the line only what [`Line`] says.

use std::io;
use std::sync::Arc;

use crate::disk::is_unsynced;
use crate::extent::{ExtentError, ExtentSet};
use crate::manifest::{Manifest, ManifestError};
use crate::segment::{Segment, ShardEnd};
use crate::{Index, Position, ShardId, StreamId};

mod census;
mod collect;
mod erasures;
mod filer;
mod job;
mod merge;
mod pace;
mod plan;
mod retries;
mod round;
#[cfg(test)]
mod tests;

pub use erasures::{Erasures, Pending};
pub use filer::{Filer, Options, Step, Totals};

/// What filing asks of the line, and tells it.
pub trait Line: Send + Sync {
    /// The oldest segment that is sealed, all of whose blocks are committed or void, and that was
    /// not yet filed.
    fn sealed(&self) -> Option<Sealed>;

    /// How many sealed segments there are that were not filed.
    fn waiting(&self) -> usize;

    /// Bytes of the active segment that are durable.
    fn used(&self) -> u64;

    /// Where a stream starts, as far as that is durable and committed; 0 if nobody ever said.
    fn start(&self, shard: ShardId, stream: StreamId) -> u64;

    /// How many trims and erases have become durable so far; only that it changed counts.
    fn trims(&self) -> u64;

    /// Asks for the end of the active segment. Everything before the position that is returned
    /// will be in sealed segments before long, in files that were taken from the spares before now.
    fn seal(&self) -> Position;

    /// These are the extents from now on, and this is how far each shard is filed.
    fn filed(&self, extents: &Arc<ExtentSet>, manifest: &Manifest);

    /// The disk is full, or no longer: appends are refused meanwhile, trims and erases are not.
    fn disk_full(&self, is_full: bool);
}

/// A segment that is whole up to its end.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The segment.
    pub segment: Segment,
    /// Where its last block ends.
    pub end: Position,
    /// How far each shard was there.
    pub shards: Vec<ShardEnd>,
    /// Cuts that may void blocks in it, wherever they stand.
    pub cuts: Vec<Cut>,
    /// It was there at the start: what its file held before is not known.
    pub is_inherited: bool,
}

/// Blocks of a shard from this index on, if they stand before the position, are void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The shard.
    pub shard: ShardId,
    /// The first index that is void.
    pub index: Index,
    /// Where the cut stands.
    pub position: Position,
}

/// Why the background has stopped.
#[derive(Debug, thiserror::Error)]
pub enum FilingError {
    /// A sealed segment is not what was acked.
    #[error("{path} is damaged at position {}", position.0)]
    Damaged {
        /// The segment.
        path: String,
        /// Where its blocks end early.
        position: Position,
    },
    /// An extent cannot be read.
    #[error(transparent)]
    Extent(#[from] ExtentError),
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The disk refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The next manifest may or may not have taken the place of the last.
    #[error("the manifest was not replaced: {0}")]
    Unconfirmed(io::Error),
}

impl FilingError {
    /// Whether the work may succeed when it is tried again: the disk or the system refused
    /// something, and nothing shows damage. That a file ends too early is damage; after a failed sync
    /// of a directory it is not known what is durable.
    fn is_transient(&self) -> bool {
        let kind = match self {
            FilingError::Io(error) if is_unsynced(error) => return false,
            FilingError::Io(error) => error.kind(),
            FilingError::Extent(ExtentError::Io { source, .. }) => source.kind(),
            FilingError::Manifest(ManifestError::Io(error)) => error.kind(),
            FilingError::Damaged { .. }
            | FilingError::Extent(_)
            | FilingError::Manifest(_)
            | FilingError::Unconfirmed(_) => return false,
        };
        !matches!(
            kind,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
        )
    }

    /// Whether there was no room, and trying again makes sense when there is.
    fn is_full(&self) -> bool {
        let kind = match self {
            FilingError::Io(error) => error.kind(),
            FilingError::Extent(ExtentError::Io { source, .. }) => source.kind(),
            _ => return false,
        };
        matches!(
            kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }
}
