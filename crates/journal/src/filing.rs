//! Filing: the background work that moves sealed segments into extents.
//!
//! A sealed segment is read back, sorted and written as one extent per shard. Then a new manifest
//! names the extents, readers switch to them, and the file becomes a spare. Records that lie in long
//! pieces, as those of busy topics do, are not copied: the extents of their shards are *in place*, and
//! refer to the segment, which stays until none of them is left. Such a segment is not even read if
//! it was summarized while it was written. The filing also merges neighbouring extents, drops trimmed records, removes erased bytes, zeroes spares ahead and
//! maintains the reserve of disk space.
//!
//! [`Filer::step`] does one bounded piece of that and returns. Invariants: no file is removed
//! before its replacement is durable and named by a durable manifest. A record is dropped only if
//! its stream's start is durably after it. The start and next offset of a stream outlive its
//! records. The filing knows no clock and no threads, and of the line only the [`Line`] trait.

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
mod marks;
mod memory;
mod merge;
mod pace;
mod pieces;
mod plan;
mod retained;
mod retries;
mod round;
mod summary;
#[cfg(test)]
mod tests;

pub use erasures::{EraseBacklog, Erasures};
pub use filer::{Filer, Options, Step, Totals};
pub(crate) use summary::SummaryBuilder;
pub use summary::{Mark, SegmentSummary, ShardSummary};

/// The line, as seen by the filing.
pub trait Line: Send + Sync {
    /// Returns the oldest sealed segment that is not filed, if all of its blocks are committed or
    /// void.
    fn sealed(&self) -> Option<SealedSegment>;

    /// Returns the number of sealed segments that are not filed.
    fn sealed_count(&self) -> usize;

    /// Returns the durable bytes of the active segment.
    fn active_size(&self) -> u64;

    /// Returns true if the syncs of the last full segment covered many bytes each, so that it does not
    /// matter if they have metadata to write as well.
    fn is_in_bulk(&self) -> bool;

    /// Returns the durable and committed start of a stream; 0 if it is unknown.
    fn start(&self, shard: ShardId, stream: StreamId) -> u64;

    /// Returns the number of durable trims and erases. Only its changes matter.
    fn trims(&self) -> u64;

    /// Asks for the end of the active segment. Everything before the returned position will soon be
    /// in sealed segments, whose files were taken from the spares before this call.
    fn seal(&self) -> Position;

    /// Publishes new extents and, per shard, how far it is filed.
    fn publish(&self, extents: &Arc<ExtentSet>, manifest: &Manifest);

    /// Enters or leaves the disk-full state, in which appends are refused but trims and erases are
    /// not.
    fn set_disk_full(&self, is_full: bool);
}

/// A sealed segment, whole up to its end.
#[derive(Clone, Debug)]
pub struct SealedSegment {
    /// The segment.
    pub segment: Segment,
    /// End of its last block.
    pub end: Position,
    /// Last block of each shard.
    pub shards: Vec<ShardEnd>,
    /// Cuts that may void blocks in it; the cuts themselves may be later in the line.
    pub cuts: Vec<Cut>,
    /// The segment is of an earlier run, so the bytes that its file held before are unknown.
    pub is_inherited: bool,
    /// Its summary, if it was gathered while the segment was written.
    pub summary: Option<Arc<SegmentSummary>>,
}

/// A cut: voids the blocks of a shard with this index or a higher one that are before the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Shard of the blocks.
    pub shard: ShardId,
    /// First void index.
    pub index: Index,
    /// Position of the cut.
    pub position: Position,
}

/// Reasons for which the filing stops.
#[derive(Debug, thiserror::Error)]
pub enum FilingError {
    /// Acknowledged data in a sealed segment is damaged.
    #[error("{path} is damaged at position {}", position.0)]
    Damaged {
        /// Path of the segment.
        path: String,
        /// Position of the first invalid block.
        position: Position,
    },
    /// An extent cannot be read.
    #[error(transparent)]
    Extent(#[from] ExtentError),
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Replacing the manifest failed, so it is unknown which one is on disk.
    #[error("cannot replace MANIFEST: {0}")]
    Unconfirmed(io::Error),
}

impl FilingError {
    /// Returns true if a retry may succeed: the disk or the system refused a call, and nothing is
    /// known to be damaged. A file that ends too early is damaged. After a failed sync of a
    /// directory, it is unknown what is durable.
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

    /// Returns true if there was no disk space, so that a retry makes sense when there is.
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
