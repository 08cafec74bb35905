//! Retained segments: filed segments whose records extents in place refer to.
//!
//! A piece is a range of such a segment: consecutive records of one stream within one block. Its
//! CRC-32C is in the index of the extent. It is seeded with the journal, the use of the file and the
//! place, so that bytes of another use of the file, or of another place, do not pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::index::Piece;
use super::{Damage, ExtentError};
use crate::Position;
use crate::disk::{Disk, File};
use crate::segment::{self, SEGMENT_HEADER_SIZE, Segment, SegmentError};

/// Identifies a retained segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentRef {
    /// Sequence of the segment in the line.
    pub sequence: u64,
    /// Position of the file's first byte.
    pub base: Position,
    /// Size of the file in bytes.
    pub size: u64,
    /// Random id of this use of the file.
    pub epoch: u64,
    /// Number of extents that referred to the segment when it was filed. When there are fewer, the
    /// others are rewritten too, so that the file is removed.
    pub extents: u64,
}

impl SegmentRef {
    /// Identifies a segment to which this number of extents will refer.
    pub fn new(segment: &Segment, extents: u64) -> SegmentRef {
        let header = &segment.header;
        SegmentRef {
            sequence: header.sequence,
            base: header.base,
            size: header.size,
            epoch: header.epoch,
            extents,
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> String {
        segment::path(self.sequence)
    }

    /// Returns the start value of the CRC of a piece that begins at this byte of the file.
    pub(super) fn seed(&self, journal_id: u64, place: u64) -> u32 {
        let mut crc = crc32c::crc32c(&journal_id.to_le_bytes());
        crc = crc32c::crc32c_append(crc, &self.epoch.to_le_bytes());
        crc32c::crc32c_append(crc, &(self.base.0 + place).to_le_bytes())
    }

    /// Returns true if a range of bytes is in the part of the file that has blocks.
    pub(super) fn contains(&self, place: u64, length: u64) -> bool {
        place >= SEGMENT_HEADER_SIZE && place + length <= self.size
    }
}

/// An open retained segment. The extents of all shards share it, and the file stays readable for those
/// that hold it when it is removed.
#[derive(Debug)]
pub(super) struct RetainedSegment {
    journal_id: u64,
    pub(super) segment: SegmentRef,
    pub(super) path: String,
    pub(super) file: Arc<dyn File>,
}

impl RetainedSegment {
    /// Checks the bytes of a piece.
    pub(super) fn check(&self, place: u64, piece: &Piece, bytes: &[u8]) -> Result<(), ExtentError> {
        let seed = self.segment.seed(self.journal_id, place);
        if crc32c::crc32c_append(seed, bytes) != piece.crc {
            let damage = Damage("the checksum of the records does not match");
            return Err(damage.at(&self.path, place));
        }
        Ok(())
    }
}

/// The open retained segments, so that extents which are opened together share them.
#[derive(Debug, Default)]
pub struct RetainedSegments(BTreeMap<u64, Arc<RetainedSegment>>);

impl RetainedSegments {
    /// Adds a segment that is open already.
    pub fn insert(&mut self, segment: &Segment) {
        let header = &segment.header;
        let retained = RetainedSegment {
            journal_id: header.journal_id,
            segment: SegmentRef::new(segment, 0),
            path: segment::path(header.sequence),
            file: segment.file.clone(),
        };
        self.0.insert(header.sequence, Arc::new(retained));
    }

    /// Returns the segment, and opens it if it is not open.
    pub(super) fn get(
        &mut self,
        disk: &dyn Disk,
        journal_id: u64,
        wanted: &SegmentRef,
    ) -> Result<Arc<RetainedSegment>, ExtentError> {
        if !self.0.contains_key(&wanted.sequence) {
            let opened = Segment::open(disk, wanted.sequence, journal_id);
            self.insert(&opened.map_err(|error| unusable(wanted, error))?);
        }
        let found = self.0.get(&wanted.sequence).cloned();
        let is_same = |it: &Arc<RetainedSegment>| {
            SegmentRef {
                extents: wanted.extents,
                ..it.segment
            } == *wanted
        };
        let other = || Damage("it is not the segment that the extent refers to");
        found
            .filter(is_same)
            .ok_or_else(|| other().at(&wanted.path(), 0))
    }
}

fn unusable(wanted: &SegmentRef, error: SegmentError) -> ExtentError {
    let path = wanted.path();
    match error {
        SegmentError::Io { error, .. } => ExtentError::Io {
            path,
            source: error,
        },
        SegmentError::Damaged { .. } => Damage("the header is damaged").at(&path, 0),
        SegmentError::OtherJournal { .. } => {
            Damage("the segment belongs to another journal").at(&path, 0)
        }
        SegmentError::Newer { found, known, .. } => ExtentError::Version {
            path,
            found: found.into(),
            supported: known.into(),
        },
    }
}
