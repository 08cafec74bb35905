//! Pages: the units of an extent that are read and checked as a whole.
//!
//! ```text
//! ┌──────┬────────┬──────┬───────┬───────┬────────┬──────────────┬─────────────────┐
//! │ crc  │ length │ kind │ 0 0 0 │ count │ before │ body         │ 0 … to 64 bytes │
//! │ u32  │ u32    │ u8   │       │ u32   │ u64    │ count items  │                 │
//! └──────┴────────┴──────┴───────┴───────┴────────┴──────────────┴─────────────────┘
//! ```
//!
//! `length` is that of the whole page. The CRC-32C covers everything after itself, including the
//! padding. It is seeded with the journal, the extent and the page's position in it, so a misplaced
//! page is detected like a flipped bit. The meaning of `count` and `before` depends on the kind.

use super::Damage;
use crate::record::{u32_at, u64_at};

/// Bytes of a page's header.
pub(super) const HEADER_SIZE: usize = 24;

/// Alignment of a page's position and length.
pub(super) const ALIGNMENT: usize = 64;

/// Size from which on a page takes no further item. A single item may be longer.
pub(super) const PAGE_SIZE: usize = 16 * 1024;

/// The contents of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Records = 1,
    Streams = 2,
    Index = 3,
    /// The index of an extent in place.
    Pieces = 4,
}

/// Seed of the CRCs of one extent's pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Salt {
    pub(super) journal_id: u64,
    pub(super) number: u64,
}

impl Salt {
    fn crc(self, place: u64, bytes: &[u8]) -> u32 {
        let mut seed = crc32c::crc32c(&self.journal_id.to_le_bytes());
        seed = crc32c::crc32c_append(seed, &self.number.to_le_bytes());
        seed = crc32c::crc32c_append(seed, &place.to_le_bytes());
        crc32c::crc32c_append(seed, bytes)
    }
}

/// The header fields whose meaning depends on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) count: u32,
    pub(super) before: u64,
}

/// Finishes the page that `out` holds from `start` on: pads it and writes the header into its first
/// [`HEADER_SIZE`] bytes, which must be free.
pub(super) fn seal(out: &mut Vec<u8>, start: usize, head: Head, salt: Salt, place: u64) {
    out.resize(start + (out.len() - start).next_multiple_of(ALIGNMENT), 0);
    let page = &mut out[start..];
    let length = u32::try_from(page.len()).expect("a page is bounded by the largest record");
    page[4..8].copy_from_slice(&length.to_le_bytes());
    page[8..12].copy_from_slice(&[head.kind as u8, 0, 0, 0]);
    page[12..16].copy_from_slice(&head.count.to_le_bytes());
    page[16..24].copy_from_slice(&head.before.to_le_bytes());
    let crc = salt.crc(place, &page[4..]);
    page[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Checks a page that was read from `place`. The body begins at [`HEADER_SIZE`].
pub(super) fn check(page: &[u8], kind: Kind, salt: Salt, place: u64) -> Result<Head, Damage> {
    if page.len() < HEADER_SIZE {
        return Err(Damage("a page is shorter than its header"));
    }
    if u32_at(page, 0) != salt.crc(place, &page[4..]) {
        return Err(Damage("the checksum of a page does not match"));
    }
    if u32_at(page, 4) as usize != page.len() || page[8] != kind as u8 {
        return Err(Damage("a page does not match the index"));
    }
    Ok(head(page, kind))
}

/// Returns the header fields of a page that was checked before.
pub(super) fn head(page: &[u8], kind: Kind) -> Head {
    Head {
        kind,
        count: u32_at(page, 12),
        before: u64_at(page, 16),
    }
}
