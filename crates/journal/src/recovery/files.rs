//! The files of the unfiled line, and what can be known of one that has no header.
//!
//! What a header says is known without it: where the segment stands follows from its neighbours,
//! how far the shards were from the blocks before it, and its epoch stands in every block. So a
//! segment whose header is damaged loses nothing else if its first block is whole; otherwise, or
//! if the file is missing, all of it is lost. Nothing is changed before the loss is accepted.

use std::io;
use std::sync::Arc;

use super::{LineError, contradiction, io_error};
use crate::Position;
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader};
use crate::disk::{Disk, File};
use crate::line::Epochs;
use crate::manifest::Manifest;
use crate::segment::{self, SEGMENT_HEADER_SIZE, Scan, Segment, SegmentError, SegmentHeader};

/// A file that is being made in the place of a missing one; a later start removes it.
const RESTORED: &str = "line/spare-0.new";

/// Bytes that are written again at once.
const COPY_SIZE: u64 = 1 << 20;

/// The line's names.
pub(super) struct Names {
    /// Paths of segments that are filed.
    pub(super) filed: Vec<String>,
    /// Sequences of those that are not, ascending.
    pub(super) unfiled: Vec<u64>,
}

/// A segment that must be there.
pub(super) struct Found {
    /// What its header says, or must have said.
    pub(super) header: Arc<SegmentHeader>,
    file: Option<Arc<dyn File>>,
    evidence: Evidence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// It has a header.
    Header,
    /// It has none, and its first block is whole.
    Blocks,
    /// Nothing of it can be used.
    None,
}

impl Found {
    pub(super) fn has_header(&self) -> bool {
        self.evidence == Evidence::Header
    }

    /// To read blocks from, if there are any.
    pub(super) fn segment(&self) -> Option<Segment> {
        let file = self.file.clone()?;
        let header = self.header.clone();
        (self.evidence != Evidence::None).then_some(Segment { file, header })
    }

    /// Gives it the header that it must have, and a file if it has none.
    pub(super) fn restore(self, disk: &dyn Disk) -> Result<Segment, LineError> {
        let header = self.header.clone();
        self.try_restore(disk)
            .map_err(|error| io_error(&header, error))
    }

    fn try_restore(self, disk: &dyn Disk) -> io::Result<Segment> {
        let Found {
            header,
            file,
            evidence,
        } = self;
        let Some(file) = file else {
            // It may be there from a start that was stopped.
            let file = disk.create(RESTORED).or_else(|_| disk.open(RESTORED))?;
            file.set_size(0)?;
            file.set_size(header.size)?;
            file.sync_all()?;
            return segment::begin(disk, file, RESTORED, SegmentHeader::clone(&header));
        };
        if evidence != Evidence::Header {
            file.set_size(header.size)?;
            segment::write_at_once(&*file, &header.encode(), 0)?;
            file.sync_all()?;
        }
        Ok(Segment { file, header })
    }
}

/// Lists the line.
pub(super) fn list(disk: &dyn Disk, manifest: &Manifest) -> Result<Names, LineError> {
    sync_names_before_trust(disk)?;
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
    Ok(Names {
        filed: sequences.into_iter().map(segment::path).collect(),
        unfiled,
    })
}

/// Opens the segments and checks that each continues the one before it. One that is missing
/// between two others, or whose header is damaged, is taken for what it must have been.
pub(super) fn find(
    disk: &dyn Disk,
    manifest: &Manifest,
    sequences: &[u64],
    epochs: Epochs,
) -> Result<Vec<Found>, LineError> {
    let mut found: Vec<Found> = Vec::new();
    let mut doubt: Option<Doubt> = None;
    for &sequence in sequences {
        let expected = manifest.sequence + 1 + (found.len() + usize::from(doubt.is_some())) as u64;
        if sequence > expected {
            if sequence > expected + 1 || doubt.is_some() {
                return Err(side_by_side(doubt.map_or(expected, |doubt| doubt.sequence)));
            }
            doubt = Some(Doubt::missing(expected));
        }
        match open(disk, manifest, sequence)? {
            Opened::Segment(segment) => {
                if let Some(doubt) = doubt.take() {
                    let base = found
                        .last()
                        .map_or(manifest.filed, |last| last.header.limit());
                    found.push(doubt.resolve(manifest, base, segment.header.base, epochs)?);
                }
                check_continues(manifest, found.last(), &segment)?;
                found.push(Found {
                    header: segment.header,
                    file: Some(segment.file),
                    evidence: Evidence::Header,
                });
            }
            Opened::Damaged(file) => match doubt {
                None => {
                    doubt = Some(Doubt {
                        sequence,
                        file: Some(file),
                    })
                }
                Some(doubt) => return Err(side_by_side(doubt.sequence)),
            },
        }
    }
    if let Some(doubt) = doubt {
        let base = found
            .last()
            .map_or(manifest.filed, |last| last.header.limit());
        let limit = Position(base.0 + doubt.size()?);
        found.push(doubt.resolve(manifest, base, limit, epochs)?);
    }
    Ok(found)
}

fn side_by_side(sequence: u64) -> LineError {
    LineError::SideBySide {
        path: segment::path(sequence),
    }
}

enum Opened {
    Segment(Segment),
    Damaged(Arc<dyn File>),
}

fn open(disk: &dyn Disk, manifest: &Manifest, sequence: u64) -> Result<Opened, LineError> {
    let path = segment::path(sequence);
    let file = disk
        .open(&path)
        .map_err(|error| LineError::Io { path, error })?;
    match Segment::read(file.clone(), sequence, manifest.journal_id) {
        Ok(segment) => Ok(Opened::Segment(segment)),
        Err(SegmentError::Damaged { .. }) => Ok(Opened::Damaged(file)),
        Err(error) => Err(error.into()),
    }
}

fn check_continues(
    manifest: &Manifest,
    last: Option<&Found>,
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
    let what = "it does not continue the segment before";
    Err(contradiction(header, header.base, what))
}

/// A segment without a header.
struct Doubt {
    sequence: u64,
    file: Option<Arc<dyn File>>,
}

impl Doubt {
    fn missing(sequence: u64) -> Doubt {
        Doubt {
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

    /// What it must have been, between two positions. How far the shards were is added later.
    fn resolve(
        self,
        manifest: &Manifest,
        base: Position,
        limit: Position,
        epochs: Epochs,
    ) -> Result<Found, LineError> {
        let size = limit.0.saturating_sub(base.0);
        let mut header = SegmentHeader {
            journal_id: manifest.journal_id,
            sequence: self.sequence,
            base,
            size,
            epoch: epochs.of(self.sequence),
            previous_end: base,
            shards: Vec::new(),
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
        Ok(Found {
            header: Arc::new(header),
            file: self.file,
            evidence: epoch.map_or(Evidence::None, |_| Evidence::Blocks),
        })
    }
}

/// The epoch that the first block says it was written in, if the block is whole.
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

/// A name may be there and not on disk: whoever gave it was stopped before it was synced.
fn sync_names_before_trust(disk: &dyn Disk) -> Result<(), LineError> {
    disk.sync_dir(segment::LINE_DIR)
        .map_err(|error| LineError::Io {
            path: segment::LINE_DIR.into(),
            error,
        })
}

/// Writes a part of a segment again as it is read, and syncs it. After a sync that failed, what was
/// to be synced may be readable and count as written without being on disk, and only what is
/// written anew is taken up by the next sync.
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
