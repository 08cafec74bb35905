//! Reading the line back after a stop, and judging where it ends.
//!
//! Nothing is trusted that may not be on disk. A segment that has a successor was synced and must be
//! whole up to where the successor says that it ends. What no hint in the last one tells to be
//! durable is written again and synced, because the sync that it waited for may have failed. There, the first place without a whole block
//! is the end, *unless* a whole block behind it says that this place was durable: then what is
//! missing was acked, and the journal is not opened unless the loss is accepted. So it is with a
//! segment that is missing or has no header. A loss that is accepted is marked in the line, so that
//! it is accepted once.

mod damage;
mod files;
mod gaps;
mod replay;

use std::collections::VecDeque;
use std::io;

pub use damage::{DamageReport, DamagedRange, LostBlocks, LostRecords};
use replay::Replay;

use crate::Position;
use crate::disk::Disk;
use crate::filing::Cut;
use crate::line::Epochs;
use crate::manifest::Manifest;
use crate::options::AcceptLoss;
use crate::segment::{self, Segment, SegmentError, SegmentHeader};
use crate::shard::Shard;

/// What was found when the journal was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments that were read back.
    pub segments: usize,
    /// Blocks in them.
    pub blocks: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Bytes at the end of the line that were being written when it stopped, and were not acked.
    pub torn_bytes: u64,
    /// What was damaged, if the loss was accepted.
    pub lost: DamageReport,
}

/// The line cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A file of it is not what it must be.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Two segments in a row are missing or have no header, so that it is not known where one ended.
    #[error("{path} and the segment behind it are missing, or their headers are damaged")]
    SideBySide {
        /// The first.
        path: String,
    },
    /// Data that was acked is damaged.
    #[error("data that was acked is damaged: {0}")]
    Damaged(Box<DamageReport>),
    /// Parts of it contradict each other, though every one of them is whole.
    #[error("{path} contradicts what is before it at byte {offset}: {what}")]
    Contradiction {
        /// The file.
        path: String,
        /// Where in it.
        offset: u64,
        /// In which way.
        what: &'static str,
    },
    /// The disk said so.
    #[error("cannot recover {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the disk said.
        error: io::Error,
    },
}

/// The line as it was read back.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Ascending; none is filed.
    pub(crate) segments: VecDeque<Segment>,
    /// Where the last one ends.
    pub(crate) end: Position,
    /// Nothing was ever written to the last one, so that it can be gone on with.
    pub(crate) is_last_empty: bool,
    /// Paths of segments that are filed already.
    pub(crate) filed: Vec<String>,
    pub(crate) cuts: Vec<Cut>,
    pub(crate) recovery: Recovery,
}

/// Reads the unfiled part of the line back into the shards. `epochs` are this start's.
pub(crate) fn recover(
    disk: &dyn Disk,
    manifest: &Manifest,
    shards: &[Shard],
    epochs: Epochs,
    accept_loss: AcceptLoss,
) -> Result<Recovered, LineError> {
    let names = files::list(disk, manifest)?;
    let mut found = files::find(disk, manifest, &names.unfiled, epochs)?;
    let mut replay = Replay::new(manifest, shards);
    let (mut end, mut is_last_empty) = (manifest.filed, false);
    if found.is_empty() && manifest.sequence > 0 {
        replay.nothing_behind(manifest);
    }
    for place in 0..found.len() {
        let next = found.get(place + 1).filter(|next| next.has_header());
        let sealed_end = next.map(|next| next.header.previous_end);
        replay.begin(place, &mut found[place], end)?;
        end = replay.segment(place, &found[place], sealed_end)?;
        if found.get(place + 1).is_some_and(|next| !next.has_header()) {
            end = replay.mark_end(place, &found[place].header, end);
        }
        let first = found[place].header.first();
        is_last_empty = end == first && replay.recovery.torn_bytes == 0;
    }
    replay.recovery.segments = found.len();
    if let Some(first) = found.first() {
        replay.check_void(&first.header)?;
    }
    let is_whole = replay.recovery.lost.is_empty();
    if !is_whole && accept_loss == AcceptLoss::No {
        let report = Box::new(replay.recovery.lost);
        return Err(LineError::Damaged(report));
    }
    let restored = found.into_iter().map(|one| one.restore(disk));
    let segments = restored.collect::<Result<VecDeque<Segment>, _>>()?;
    replay.mark_lost(&segments)?;
    if let Some(last) = segments.back() {
        let known = replay.durable.max(last.header.first());
        files::write_again(last, known, end)?;
    }
    Ok(Recovered {
        segments,
        end,
        is_last_empty,
        filed: names.filed,
        cuts: replay.cuts,
        recovery: replay.recovery,
    })
}

fn contradiction(header: &SegmentHeader, position: Position, what: &'static str) -> LineError {
    LineError::Contradiction {
        path: segment::path(header.sequence),
        offset: position.0 - header.base.0,
        what,
    }
}

fn io_error(header: &SegmentHeader, error: io::Error) -> LineError {
    LineError::Io {
        path: segment::path(header.sequence),
        error,
    }
}
