//! Recovery: replays the unfiled part of the line after a stop and finds its end.
//!
//! A segment that has a successor was synced, so it must be whole up to the end that its successor
//! states. In the last segment, the first position without a whole block is the end of the line,
//! *unless* a later whole block has a hint that this position was durable. Then acknowledged data
//! is missing, and the journal is not opened unless the loss is accepted. A missing segment, or one
//! without a header, is treated the same way. An accepted loss is marked in the line, so that it
//! needs to be accepted only once.
//!
//! Bytes that may not be on disk are not trusted: the part of the last segment that no hint
//! declares durable is written again and synced, because the sync that covered it may have failed.

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

/// Report of the recovery when a journal was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Number of replayed segments.
    pub segments: usize,
    /// Number of replayed blocks.
    pub blocks: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Bytes at the end of the line that were torn by the stop, and never acknowledged.
    pub torn_bytes: u64,
    /// Damaged data, if its loss was accepted.
    pub lost: DamageReport,
    /// Format version of the journal before this opening, if it was an older one.
    pub upgraded_from: Option<u32>,
}

/// Errors of the recovery.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A file is not a valid segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Two consecutive segments are missing or have no header, so the end of the first is unknown.
    #[error("{path} and the segment after it are missing, or their headers are damaged")]
    TwoMissing {
        /// Path of the first one.
        path: String,
    },
    /// Acknowledged data is damaged.
    #[error("acknowledged data is damaged: {0}")]
    Damaged(Box<DamageReport>),
    /// Valid blocks contradict each other.
    #[error("{path} contradicts earlier data at byte {offset}: {what}")]
    Contradiction {
        /// Path of the segment.
        path: String,
        /// Byte in the file.
        offset: u64,
        /// Description of the contradiction.
        what: &'static str,
    },
    /// An I/O error.
    #[error("cannot recover {path}: {error}")]
    Io {
        /// Path of the segment.
        path: String,
        /// The error.
        error: io::Error,
    },
}

/// The replayed line.
#[derive(Debug)]
pub(crate) struct ReplayedLine {
    /// The unfiled segments, ascending.
    pub(crate) segments: VecDeque<Segment>,
    /// End of the last segment's blocks.
    pub(crate) end: Position,
    /// Nothing was ever written to the last segment, so it can be replaced.
    pub(crate) is_last_empty: bool,
    /// Sequences of segments that are filed already.
    pub(crate) filed: Vec<u64>,
    pub(crate) cuts: Vec<Cut>,
    pub(crate) recovery: Recovery,
}

/// Replays the unfiled part of the line into the shards. `epochs` are those of this start.
pub(crate) fn recover(
    disk: &dyn Disk,
    manifest: &Manifest,
    shards: &[Shard],
    epochs: Epochs,
    accept_loss: AcceptLoss,
) -> Result<ReplayedLine, LineError> {
    let names = files::list(disk, manifest)?;
    let mut found = files::find(disk, manifest, &names.unfiled, epochs)?;
    let mut replay = Replay::new(manifest, shards);
    let (mut end, mut is_last_empty) = (manifest.filed, false);
    if found.is_empty() && manifest.sequence > 0 {
        replay.report_missing_end(manifest);
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
    Ok(ReplayedLine {
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
