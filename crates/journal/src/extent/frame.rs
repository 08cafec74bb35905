//! Header and footer of an extent.
//!
//! ```text
//! header   0 "TLEX"  4 version u32   8 crc u32  12 shard u16  14 0 u16  16 journal id u64
//!         24 number u64   32 begin u64   40 end u64   48 index u64   56 term u64
//! footer   0 "TLXE"  4 0 u32   8 crc u32  12 0 u32  16 journal id u64  24 number u64
//!         32 records end u64   40 streams end u64   48 index end u64
//!         56 records u64   64 bytes u64   72 streams u64
//!         80 the segment of an extent in place: sequence u64   88 base u64   96 size u64
//!        104 epoch u64   112 extents u64   120 zeros to 128
//! ```
//!
//! An extent with records of its own has version 1, an extent in place version 2. The CRC-32C covers
//! everything but itself. The footer must be at the end of the file and directly
//! after the index, which detects truncated and extended files.

use super::page::ALIGNMENT;
use super::{Damage, Identity, SegmentRef};
use crate::record::{shard_at, u32_at, u64_at};
use crate::{Index, Position};

/// The newest format version that this build reads.
pub(super) const VERSION: u32 = Layout::InPlace.version();

pub(super) const HEADER_SIZE: usize = 64;
pub(super) const FOOTER_SIZE: usize = 128;

const HEADER_MAGIC: [u8; 4] = *b"TLEX";
const FOOTER_MAGIC: [u8; 4] = *b"TLXE";

/// Where the records of an extent are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// In its own pages.
    Pages,
    /// In a segment of the line.
    InPlace,
}

impl Layout {
    /// Returns the format version of extents of this layout.
    const fn version(self) -> u32 {
        match self {
            Layout::Pages => 1,
            Layout::InPlace => 2,
        }
    }
}

/// A rejected header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Damaged(Damage),
    Version(u32),
}

/// Encodes the header of an extent.
pub(super) fn header(identity: &Identity, layout: Layout) -> [u8; HEADER_SIZE] {
    let mut out = [0; HEADER_SIZE];
    out[0..4].copy_from_slice(&HEADER_MAGIC);
    out[4..8].copy_from_slice(&layout.version().to_le_bytes());
    out[12..14].copy_from_slice(&identity.shard.0.to_le_bytes());
    let words = [
        identity.journal_id,
        identity.number,
        identity.begin.0,
        identity.end.0,
        identity.index.0,
        identity.term,
    ];
    put_words(&mut out, 16, &words);
    put_crc(&mut out);
    out
}

/// Decodes a header.
pub(super) fn open_header(bytes: &[u8; HEADER_SIZE]) -> Result<(Identity, Layout), Refusal> {
    if bytes[0..4] != HEADER_MAGIC {
        return Err(Refusal::Damaged(Damage("this is not an extent")));
    }
    let version = u32_at(bytes, 4);
    if version > VERSION {
        return Err(Refusal::Version(version));
    }
    if version == 0 || u32_at(bytes, 8) != crc(bytes) {
        return Err(Refusal::Damaged(Damage(
            "the checksum of the header does not match",
        )));
    }
    let layout = match version {
        1 => Layout::Pages,
        _ => Layout::InPlace,
    };
    let identity = Identity {
        journal_id: u64_at(bytes, 16),
        shard: shard_at(bytes, 12),
        number: u64_at(bytes, 24),
        begin: Position(u64_at(bytes, 32)),
        end: Position(u64_at(bytes, 40)),
        index: Index(u64_at(bytes, 48)),
        term: u64_at(bytes, 56),
    };
    Ok((identity, layout))
}

/// The footer of an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) records_end: u64,
    pub(super) streams_end: u64,
    pub(super) index_end: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) streams: u64,
    /// The segment with the records of an extent in place; zeros for another extent.
    pub(super) segment: SegmentRef,
}

impl Footer {
    pub(super) fn encode(&self, identity: &Identity) -> [u8; FOOTER_SIZE] {
        let mut out = [0; FOOTER_SIZE];
        out[0..4].copy_from_slice(&FOOTER_MAGIC);
        let words = [
            identity.journal_id,
            identity.number,
            self.records_end,
            self.streams_end,
            self.index_end,
            self.records,
            self.bytes,
            self.streams,
            self.segment.sequence,
            self.segment.base.0,
            self.segment.size,
            self.segment.epoch,
            self.segment.extents,
        ];
        put_words(&mut out, 16, &words);
        put_crc(&mut out);
        out
    }

    /// Decodes a footer that is at `place` in the file.
    pub(super) fn open(
        bytes: &[u8; FOOTER_SIZE],
        identity: &Identity,
        place: u64,
    ) -> Result<Footer, Damage> {
        if bytes[0..4] != FOOTER_MAGIC || u32_at(bytes, 8) != crc(bytes) {
            return Err(Damage("the checksum of the footer does not match"));
        }
        if (u64_at(bytes, 16), u64_at(bytes, 24)) != (identity.journal_id, identity.number) {
            return Err(Damage("the footer belongs to another extent"));
        }
        let footer = Footer {
            records_end: u64_at(bytes, 32),
            streams_end: u64_at(bytes, 40),
            index_end: u64_at(bytes, 48),
            records: u64_at(bytes, 56),
            bytes: u64_at(bytes, 64),
            streams: u64_at(bytes, 72),
            segment: SegmentRef {
                sequence: u64_at(bytes, 80),
                base: Position(u64_at(bytes, 88)),
                size: u64_at(bytes, 96),
                epoch: u64_at(bytes, 104),
                extents: u64_at(bytes, 112),
            },
        };
        let ends = [
            HEADER_SIZE as u64,
            footer.records_end,
            footer.streams_end,
            footer.index_end,
            place,
        ];
        let ordered = ends.is_sorted() && footer.index_end == place;
        let aligned = ends.iter().all(|end| end % ALIGNMENT as u64 == 0);
        (ordered && aligned)
            .then_some(footer)
            .ok_or(Damage("the parts do not fill the extent"))
    }
}

fn put_words(out: &mut [u8], at: usize, words: &[u64]) {
    for (slot, word) in out[at..].chunks_exact_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
}

fn put_crc(out: &mut [u8]) {
    let crc = crc(out);
    out[8..12].copy_from_slice(&crc.to_le_bytes());
}

fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..8]), &bytes[12..])
}
