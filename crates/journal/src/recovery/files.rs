//! The files of the unfiled line, and the reconstruction of missing headers.
//!
//! The contents of a header follow from other data: the position from the neighbours, the shards'
//! ends from earlier blocks, and the epoch from any of its blocks. So if only a header is damaged,
//! and the first block is whole, nothing else is lost. Otherwise, or if the file is missing, the
//! whole segment is lost. Nothing is changed on disk before the loss is accepted.

use std::io;
use std::sync::Arc;

use super::{LineError, contradiction, io_error};
use crate::Position;
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader};
use crate::disk::{Disk, File};
use crate::line::Epochs;
use crate::manifest::Manifest;
use crate::segment::{self, SEGMENT_HEADER_SIZE, Scan, Segment, SegmentError, SegmentHeader};
use crate::votes::LastVote;

/// Path of the replacement of a missing segment while it is made; a later start removes it.
const RESTORED: &str = "line/spare-0.new";

/// Bytes per rewrite.
const COPY_SIZE: u64 = 1 << 20;

/// Names of the line's segments.
pub(super) struct SegmentNames {
    /// Sequences of filed segments, ascending.
    pub(super) filed: Vec<u64>,
    /// Sequences of unfiled segments, ascending.
    pub(super) unfiled: Vec<u64>,
}

/// A segment that exists or must have existed.
pub(super) struct FoundSegment {
    /// The header, read or reconstructed.
    pub(super) header: Arc<SegmentHeader>,
    file: Option<Arc<dyn File>>,
    evidence: HeaderEvidence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HeaderEvidence {
    /// The header is valid.
    Header,
    /// The header is invalid, but the first block is whole.
    Blocks,
    /// Nothing of the segment is usable.
    None,
}

impl FoundSegment {
    pub(super) fn has_header(&self) -> bool {
        self.evidence == HeaderEvidence::Header
    }

    /// Returns the segment to read blocks from, if it has any.
    pub(super) fn segment(&self) -> Option<Segment> {
        let file = self.file.clone()?;
        let header = self.header.clone();
        (self.evidence != HeaderEvidence::None).then_some(Segment { file, header })
    }

    /// Writes the reconstructed header, and creates the file if it is missing.
    pub(super) fn restore(self, disk: &dyn Disk) -> Result<Segment, LineError> {
        let header = self.header.clone();
        self.try_restore(disk)
            .map_err(|error| io_error(&header, error))
    }

    fn try_restore(self, disk: &dyn Disk) -> io::Result<Segment> {
        let FoundSegment {
            header,
            file,
            evidence,
        } = self;
        let Some(file) = file else {
            // The file may exist from an interrupted start.
            let file = disk.create(RESTORED).or_else(|_| disk.open(RESTORED))?;
            file.set_size(0)?;
            file.set_size(header.size)?;
            file.sync_all()?;
            return segment::begin(disk, file, RESTORED, SegmentHeader::clone(&header));
        };
        if evidence != HeaderEvidence::Header {
            file.set_size(header.size)?;
            segment::write_at_once(&*file, &header.encode(), 0)?;
            file.sync_all()?;
        }
        Ok(Segment { file, header })
    }
}

/// Lists the segments of the line.
pub(super) fn list(disk: &dyn Disk, manifest: &Manifest) -> Result<SegmentNames, LineError> {
    sync_names(disk)?;
    let names = disk
        .list(segment::LINE_DIR)
        .map_err(|error| LineError::Io {
            path: segment::LINE_DIR.into(),
            error,
        })?;
    let mut sequences: Vec<u64> = names
        .iter()
        .filter_map(|name| segment::sequence_of(name))
        .collect();
    sequences.sort_unstable();
    let unfiled = sequences.split_off(sequences.partition_point(|one| *one <= manifest.sequence));
    Ok(SegmentNames {
        filed: sequences,
        unfiled,
    })
}

/// Opens the segments and checks that each continues the previous one. Reconstructs a segment that
/// is missing between two others, or whose header is damaged.
pub(super) fn find(
    disk: &dyn Disk,
    manifest: &Manifest,
    sequences: &[u64],
    epochs: Epochs,
) -> Result<Vec<FoundSegment>, LineError> {
    let mut found: Vec<FoundSegment> = Vec::new();
    let mut headerless: Option<HeaderlessSegment> = None;
    for &sequence in sequences {
        let expected =
            manifest.sequence + 1 + (found.len() + usize::from(headerless.is_some())) as u64;
        if sequence > expected {
            if sequence > expected + 1 || headerless.is_some() {
                return Err(two_missing(
                    headerless.map_or(expected, |headerless| headerless.sequence),
                ));
            }
            headerless = Some(HeaderlessSegment::missing(expected));
        }
        match open(disk, manifest, sequence)? {
            OpenedSegment::Segment(segment) => {
                if let Some(headerless) = headerless.take() {
                    let base = found
                        .last()
                        .map_or(manifest.filed, |last| last.header.limit());
                    found.push(headerless.resolve(manifest, base, segment.header.base, epochs)?);
                }
                check_continues(manifest, found.last(), &segment)?;
                found.push(FoundSegment {
                    header: segment.header,
                    file: Some(segment.file),
                    evidence: HeaderEvidence::Header,
                });
            }
            OpenedSegment::Damaged(file) => match headerless {
                None => {
                    headerless = Some(HeaderlessSegment {
                        sequence,
                        file: Some(file),
                    })
                }
                Some(headerless) => return Err(two_missing(headerless.sequence)),
            },
        }
    }
    if let Some(headerless) = headerless {
        let base = found
            .last()
            .map_or(manifest.filed, |last| last.header.limit());
        let limit = Position(base.0 + headerless.size()?);
        found.push(headerless.resolve(manifest, base, limit, epochs)?);
    }
    Ok(found)
}

fn two_missing(sequence: u64) -> LineError {
    LineError::TwoMissing {
        path: segment::path(sequence),
    }
}

enum OpenedSegment {
    Segment(Segment),
    Damaged(Arc<dyn File>),
}

fn open(disk: &dyn Disk, manifest: &Manifest, sequence: u64) -> Result<OpenedSegment, LineError> {
    let path = segment::path(sequence);
    let file = disk
        .open(&path)
        .map_err(|error| LineError::Io { path, error })?;
    match Segment::read(file.clone(), sequence, manifest.journal_id) {
        Ok(segment) => Ok(OpenedSegment::Segment(segment)),
        Err(SegmentError::Damaged { .. }) => Ok(OpenedSegment::Damaged(file)),
        Err(error) => Err(error.into()),
    }
}

fn check_continues(
    manifest: &Manifest,
    last: Option<&FoundSegment>,
    segment: &Segment,
) -> Result<(), LineError> {
    let header = &segment.header;
    let continues = last.is_none_or(|last| {
        let ends = last.header.first()..=last.header.limit();
        header.base == last.header.limit() && ends.contains(&header.previous_end)
    });
    if continues && header.shards.len() == manifest.shards.len() {
        return Ok(());
    }
    let what = "it does not continue the previous segment";
    Err(contradiction(header, header.base, what))
}

/// A segment without a valid header.
struct HeaderlessSegment {
    sequence: u64,
    file: Option<Arc<dyn File>>,
}

impl HeaderlessSegment {
    fn missing(sequence: u64) -> HeaderlessSegment {
        HeaderlessSegment {
            sequence,
            file: None,
        }
    }

    fn size(&self) -> Result<u64, LineError> {
        let size = self.file.as_ref().map_or(Ok(0), |file| file.size());
        size.map_err(|error: io::Error| LineError::Io {
            path: segment::path(self.sequence),
            error,
        })
    }

    /// Reconstructs the header between two positions, except for the shards' ends, which are added
    /// later.
    fn resolve(
        self,
        manifest: &Manifest,
        base: Position,
        limit: Position,
        epochs: Epochs,
    ) -> Result<FoundSegment, LineError> {
        let size = limit.0.saturating_sub(base.0);
        let mut header = SegmentHeader {
            journal_id: manifest.journal_id,
            sequence: self.sequence,
            base,
            size,
            epoch: epochs.for_segment(self.sequence),
            previous_end: base,
            shards: Vec::new(),
            votes: vec![LastVote::Lost; manifest.shards.len()],
        };
        if size <= SEGMENT_HEADER_SIZE || !size.is_multiple_of(SEGMENT_HEADER_SIZE) {
            let path = segment::path(self.sequence);
            return Err(SegmentError::Damaged { path }.into());
        }
        let epoch = match &self.file {
            Some(file) => epoch_of(file, &header).map_err(|error| io_error(&header, error))?,
            None => None,
        };
        header.epoch = epoch.unwrap_or(header.epoch);
        Ok(FoundSegment {
            header: Arc::new(header),
            file: self.file,
            evidence: epoch.map_or(HeaderEvidence::None, |_| HeaderEvidence::Blocks),
        })
    }
}

/// Returns the epoch in the first block, if that block is whole.
fn epoch_of(file: &Arc<dyn File>, header: &SegmentHeader) -> io::Result<Option<u64>> {
    let mut bytes = [0; BLOCK_HEADER_SIZE];
    if file.size()? < header.size {
        return Ok(None);
    }
    file.read_at(&mut bytes, SEGMENT_HEADER_SIZE)?;
    let Some(BlockHeader { epoch, .. }) = BlockHeader::parse(&bytes) else {
        return Ok(None);
    };
    let header = SegmentHeader {
        epoch,
        ..header.clone()
    };
    let segment = Segment {
        file: file.clone(),
        header: Arc::new(header),
    };
    let mut scan = Scan::new(&segment, segment.header.limit());
    Ok(scan.next_block()?.map(|block| block.header.epoch))
}

/// Syncs the directory: a name may exist without being durable, if an earlier run crashed before
/// its sync.
fn sync_names(disk: &dyn Disk) -> Result<(), LineError> {
    disk.sync_dir(segment::LINE_DIR)
        .map_err(|error| LineError::Io {
            path: segment::LINE_DIR.into(),
            error,
        })
}

/// Rewrites a part of a segment with the bytes that it reads as, and syncs it. After a failed sync,
/// pages may be readable and marked clean without being on disk; only newly written pages are
/// covered by the next sync.
pub(super) fn write_again(
    segment: &Segment,
    from: Position,
    to: Position,
) -> Result<(), LineError> {
    try_write_again(segment, from, to).map_err(|error| io_error(&segment.header, error))
}

fn try_write_again(segment: &Segment, from: Position, to: Position) -> io::Result<()> {
    let mut bytes = vec![0; COPY_SIZE.min(to.0.saturating_sub(from.0)) as usize];
    let mut at = from.0;
    while at < to.0 {
        let length = COPY_SIZE.min(to.0 - at);
        let piece = &mut bytes[..length as usize];
        let offset = at - segment.header.base.0;
        segment.file.read_at(piece, offset)?;
        segment::write_at_once(&*segment.file, piece, offset)?;
        at += length;
    }
    segment.file.sync_data()
}
