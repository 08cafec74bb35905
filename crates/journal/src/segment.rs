//! Segments: the files of the line.
//!
//! ```text
//!    0 | magic "TLSG"  | crc u32             |
//!    8 | version u8 | 0 u8 | shards u16 | 0 u32 |
//!   16 | journal u64                         |
//!   24 | sequence u64                        |
//!   32 | base u64                            |   position of the file's first byte
//!   40 | size u64                            |
//!   48 | epoch u64                           |   random, never used twice
//!   56 | previous_end u64                    |   where the segment before it ends
//!   64 | per shard: last index u64, term u64 |   before this segment
//! 1088 | per shard: last vote                |   before this segment: term u64, size u8, 15 bytes
//! 4096 | blocks ...                          |
//! ```
//!
//! A segment's size never changes: the file is filled with zeros, or recycled, and synced before it
//! gets a header. The header is durable before the file gets its name, and the previous segment is
//! synced before that. So *the existence of a segment proves that the previous one is whole up to
//! `previous_end`*.
//!
//! The size of a vote is 0 if the shard has never voted, and 255 if the last vote is lost.

mod scan;

use std::io;
use std::sync::Arc;

pub use scan::{BlockView, Scan};

use crate::block::{FORMAT_VERSION, Seed};
use crate::disk::{Disk, File, MeasuredDisk};
use crate::record::{u16_at, u32_at, u64_at};
use crate::votes::{LastVote, SLOT_SIZE};
use crate::{Index, Position};

/// Size of a segment's header.
pub const SEGMENT_HEADER_SIZE: u64 = 4096;

/// Directory of segments and spares.
pub const LINE_DIR: &str = "line";

/// Shards per journal at most: a segment's header has room for so many.
pub const SHARD_COUNT_MAX: u16 = 64;

const MAGIC: [u8; 4] = *b"TLSG";
const SHARDS_AT: usize = 64;
const SHARD_SIZE: usize = 16;
const VOTES_AT: usize = SHARDS_AT + SHARD_COUNT_MAX as usize * SHARD_SIZE;

/// Last block of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardEnd {
    /// Index of the block.
    pub index: Index,
    /// Term of the block.
    pub term: u64,
}

/// A segment's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Id of the journal.
    pub journal_id: u64,
    /// Sequence of the segment in the line, from 1.
    pub sequence: u64,
    /// Position of the file's first byte.
    pub base: Position,
    /// Size of the file in bytes.
    pub size: u64,
    /// Random id of this use of the file, never reused.
    pub epoch: u64,
    /// End of the previous segment; for the first segment its own base.
    pub previous_end: Position,
    /// Each shard's last block before the segment.
    pub shards: Vec<ShardEnd>,
    /// Each shard's last vote before the segment.
    pub votes: Vec<LastVote>,
}

/// Reasons to refuse a file as a segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// An I/O error.
    #[error("cannot read {path}: {error}")]
    Io {
        /// Path of the file.
        path: String,
        /// The error.
        error: io::Error,
    },
    /// The magic, the CRC or a field of the header is wrong.
    #[error("the header of {path} is damaged")]
    Damaged {
        /// Path of the file.
        path: String,
    },
    /// A later version wrote the file.
    #[error("{path} has format version {found}; this program knows up to {known}")]
    Newer {
        /// Path of the file.
        path: String,
        /// Format version of the file.
        found: u8,
        /// Highest supported format version.
        known: u8,
    },
    /// The file belongs to another journal.
    #[error("{path} belongs to journal {found:016x}, not to {expected:016x}")]
    OtherJournal {
        /// Path of the file.
        path: String,
        /// Id of the journal that the file belongs to.
        found: u64,
        /// Id of this journal.
        expected: u64,
    },
}

impl SegmentHeader {
    /// Returns the position of the first block.
    pub fn first(&self) -> Position {
        Position(self.base.0 + SEGMENT_HEADER_SIZE)
    }

    /// Returns the position after the last byte: the base of the next segment.
    pub fn limit(&self) -> Position {
        Position(self.base.0 + self.size)
    }

    /// Returns the start value of the blocks' CRCs.
    pub fn seed(&self) -> Seed {
        Seed::new(self.journal_id, self.epoch)
    }

    /// Encodes the header. There are at most [`SHARD_COUNT_MAX`] shards.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; SEGMENT_HEADER_SIZE as usize];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[8] = FORMAT_VERSION;
        bytes[10..12].copy_from_slice(&(self.shards.len() as u16).to_le_bytes());
        let numbers = [
            self.journal_id,
            self.sequence,
            self.base.0,
            self.size,
            self.epoch,
            self.previous_end.0,
        ];
        for (place, number) in bytes[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (place, shard) in bytes[SHARDS_AT..]
            .chunks_exact_mut(SHARD_SIZE)
            .zip(&self.shards)
        {
            place[0..8].copy_from_slice(&shard.index.0.to_le_bytes());
            place[8..16].copy_from_slice(&shard.term.to_le_bytes());
        }
        let slots = bytes[VOTES_AT..].chunks_exact_mut(SLOT_SIZE);
        for (slot, vote) in slots.zip(&self.votes) {
            vote.encode(slot);
        }
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header; `path` is used in errors.
    pub fn decode(bytes: &[u8], path: &str) -> Result<SegmentHeader, SegmentError> {
        let damaged = || SegmentError::Damaged { path: path.into() };
        let bytes = bytes
            .get(..SEGMENT_HEADER_SIZE as usize)
            .filter(|bytes| bytes[0..4] == MAGIC)
            .ok_or_else(damaged)?;
        if bytes[8] > FORMAT_VERSION {
            return Err(SegmentError::Newer {
                path: path.into(),
                found: bytes[8],
                known: FORMAT_VERSION,
            });
        }
        let count = u16_at(bytes, 10);
        let is_whole = u32_at(bytes, 4) == crc32c::crc32c(&bytes[8..]);
        if !is_whole || bytes[8] != FORMAT_VERSION || count > SHARD_COUNT_MAX {
            return Err(damaged());
        }
        let slots = bytes[VOTES_AT..].chunks_exact(SLOT_SIZE);
        let votes = slots.take(usize::from(count)).map(LastVote::decode);
        let votes: Option<Vec<LastVote>> = votes.collect();
        Ok(SegmentHeader {
            votes: votes.ok_or_else(damaged)?,
            journal_id: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            base: Position(u64_at(bytes, 32)),
            size: u64_at(bytes, 40),
            epoch: u64_at(bytes, 48),
            previous_end: Position(u64_at(bytes, 56)),
            shards: bytes[SHARDS_AT..]
                .chunks_exact(SHARD_SIZE)
                .take(usize::from(count))
                .map(|shard| ShardEnd {
                    index: Index(u64_at(shard, 0)),
                    term: u64_at(shard, 8),
                })
                .collect(),
        })
    }
}

/// An open segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The file.
    pub file: Arc<dyn File>,
    /// The header.
    pub header: Arc<SegmentHeader>,
}

impl Segment {
    /// Opens a segment and checks its header against its name.
    pub fn open(disk: &dyn Disk, sequence: u64, journal_id: u64) -> Result<Segment, SegmentError> {
        let path = path(sequence);
        let file = disk
            .open(&path)
            .map_err(|error| SegmentError::Io { path, error })?;
        Segment::read(file, sequence, journal_id)
    }

    /// Reads and checks the header of an open file.
    pub fn read(
        file: Arc<dyn File>,
        sequence: u64,
        journal_id: u64,
    ) -> Result<Segment, SegmentError> {
        let path = path(sequence);
        let io_error = |error| SegmentError::Io {
            path: path.clone(),
            error,
        };
        let size = file.size().map_err(io_error)?;
        let mut bytes = vec![0; SEGMENT_HEADER_SIZE.min(size) as usize];
        file.read_at(&mut bytes, 0).map_err(io_error)?;
        let header = SegmentHeader::decode(&bytes, &path)?;
        if header.journal_id != journal_id {
            return Err(SegmentError::OtherJournal {
                path,
                found: header.journal_id,
                expected: journal_id,
            });
        }
        if header.sequence != sequence || header.size != size {
            return Err(SegmentError::Damaged { path });
        }
        Ok(Segment {
            file,
            header: Arc::new(header),
        })
    }
}

/// Turns a spare into a segment. The file must be filled or recycled and durable under `spare`; the
/// previous segment must be whole and durable.
pub fn begin(
    disk: &dyn Disk,
    file: Arc<dyn File>,
    spare: &str,
    header: SegmentHeader,
) -> io::Result<Segment> {
    write_at_once(&*file, &header.encode(), 0)?;
    sync_header(&*file)?;
    disk.rename(spare, &path(header.sequence))?;
    sync_names(disk)?;
    Ok(Segment {
        file,
        header: Arc::new(header),
    })
}

/// Syncs the header before the file gets its name, so that no segment lacks a header.
fn sync_header(file: &dyn File) -> io::Result<()> {
    file.sync_data()
}

/// Syncs the rename before the segment takes data, so that it is still there after a crash.
fn sync_names(disk: &dyn Disk) -> io::Result<()> {
    disk.sync_dir(LINE_DIR)
}

/// Returns the path of a segment. Paths sort in the order of sequences.
pub fn path(sequence: u64) -> String {
    format!("{LINE_DIR}/{sequence:020}.seg")
}

/// Wraps a disk so that it measures how long syncs of segments take: acknowledgements wait for those.
pub fn measured(disk: Arc<dyn Disk>, now_ns: fn() -> u64) -> MeasuredDisk {
    MeasuredDisk::new(disk, now_ns, LINE_DIR, |path| {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        sequence_of(name).is_some()
    })
}

/// Parses the name of a segment within [`LINE_DIR`]; `None` for other names.
pub fn sequence_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg")?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

/// Writes all bytes in one call. A short write to the line is an error and is not continued.
pub(crate) fn write_at_once(file: &dyn File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let written = file.write_at(bytes, offset)?;
    if written == bytes.len() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::WriteZero,
        format!("wrote {written} of {} bytes", bytes.len()),
    ))
}

#[cfg(test)]
mod tests;
