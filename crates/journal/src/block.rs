//! Blocks: the records of one shard in one write, with the fields that recovery needs to validate
//! them.
//!
//! ```text
//!  0 | magic "TLBK"       | crc u32            |
//!  8 | version u8 | kind u8 | shard u16 | length u32 |   length: header and body
//! 16 | position u64                            |
//! 24 | epoch u64                               |
//! 32 | hint u64                                |   everything before it was durable
//! 40 | count u32          | 0 u32              |
//! 48 | term u64                                |
//! 56 | index u64                               |
//! 64 | time_ms u64                             |
//! 72 | body ...                                |
//! ```
//!
//! Little endian. A block begins at a multiple of 8; zeros fill the gap to the next. The CRC-32C
//! covers all bytes after it. It is seeded with the journal's id and the segment's epoch, so that
//! stale bytes of a recycled file, or a file of another journal, never pass as a valid block. For a
//! block of kind [`BlockKind::Lost`] it covers the header only.
//!
//! The body of a block that is an [entry](BlockKind::is_entry) consists of records. That of a vote
//! has 1 to 15 bytes that only the caller understands; the term is the vote's, and the index is 0.

use std::fmt;

use crate::record::{shard_at, u32_at, u64_at};
use crate::{Index, Position, ShardId, checksum};

/// Format version of segments and blocks.
pub const FORMAT_VERSION: u8 = 1;

/// Size of a block's header.
pub const BLOCK_HEADER_SIZE: usize = 72;

/// Alignment of blocks in a segment.
pub const BLOCK_ALIGNMENT: u64 = 8;

/// Magic bytes at the start of a block.
pub const BLOCK_MAGIC: [u8; 4] = *b"TLBK";

/// Offset of the first byte that the CRC covers.
const COVERED_FROM: usize = 8;

/// The purpose of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Records of a shard.
    Records = 1,
    /// Only a hint; belongs to no shard.
    Idle = 2,
    /// Voids the shard's blocks from this index on.
    Cut = 3,
    /// Replaces a range of lost bytes after an operator accepted the loss; its body is meaningless.
    Lost = 4,
    /// A vote of the shard; has no index.
    Vote = 5,
    /// The members of the shard's replication group: one record.
    Members = 6,
    /// Nothing: a leader appends it at the beginning of its term.
    Blank = 7,
}

impl BlockKind {
    /// Returns true if blocks of this kind have an index: they are the entries of a shard's log.
    pub fn is_entry(self) -> bool {
        matches!(self, Self::Records | Self::Members | Self::Blank)
    }

    /// Returns the number of the kind in a block's header.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the kind with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        use BlockKind::{Blank, Cut, Idle, Lost, Members, Records, Vote};
        let all = [Records, Idle, Cut, Lost, Vote, Members, Blank];
        all.into_iter().find(|kind| kind.number() == number)
    }
}

/// Start value of the CRCs of one segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(u32);

impl Seed {
    /// Derives the seed from the journal's id and the segment file's epoch.
    pub fn new(journal_id: u64, epoch: u64) -> Self {
        let journal = crc32c::crc32c(&journal_id.to_le_bytes());
        Seed(crc32c::crc32c_append(journal, &epoch.to_le_bytes()))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed({:08x})", self.0)
    }
}

/// A block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The block's purpose.
    pub kind: BlockKind,
    /// The block's shard; 0 if the kind belongs to no shard.
    pub shard: ShardId,
    /// Bytes of header and body, without the padding after it.
    pub length: u32,
    /// Position of the block in the line.
    pub position: Position,
    /// Epoch of the segment file.
    pub epoch: u64,
    /// The line was durable up to this position when the block was written.
    pub hint: Position,
    /// Number of records in the body.
    pub count: u32,
    /// The Raft term; 0 without a cluster.
    pub term: u64,
    /// Index of the block in its shard.
    pub index: Index,
    /// Time of the block's last record, in milliseconds since 1970.
    pub time_ms: u64,
}

impl BlockHeader {
    /// Returns the position of the next block.
    pub fn end(&self) -> Position {
        Position(self.position.0 + aligned(u64::from(self.length)))
    }

    /// Writes the header with its CRC in front of the body. `block` must begin with
    /// [`BLOCK_HEADER_SIZE`] bytes of room. The length is that of `block`.
    pub fn seal(&self, block: &mut [u8], seed: Seed) {
        self.put(&mut block[..BLOCK_HEADER_SIZE]);
        let crc = checksum(self.kind, block, seed);
        block[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// Returns the header with its CRC, for a body that is elsewhere. The length is that of both.
    pub fn sealed(&self, body: &[u8], seed: Seed) -> [u8; BLOCK_HEADER_SIZE] {
        let mut header = [0; BLOCK_HEADER_SIZE];
        self.put(&mut header);
        let crc = match self.kind {
            BlockKind::Lost => checksum(self.kind, &header, seed),
            _ => crc32c::crc32c_append(checksum(self.kind, &header, seed), body),
        };
        header[4..8].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// Returns the header with its CRC, for a body with this size and CRC-32C. The block must not be of
    /// kind [`BlockKind::Lost`].
    pub fn sealed_over(&self, size: u32, body: u32, seed: Seed) -> [u8; BLOCK_HEADER_SIZE] {
        let mut header = [0; BLOCK_HEADER_SIZE];
        self.put(&mut header);
        let crc = checksum::join(checksum(self.kind, &header, seed), body, size);
        header[4..8].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// Writes all fields but the CRC.
    fn put(&self, header: &mut [u8]) {
        header[0..4].copy_from_slice(&BLOCK_MAGIC);
        header[8] = FORMAT_VERSION;
        header[9] = self.kind.number();
        header[10..12].copy_from_slice(&self.shard.0.to_le_bytes());
        header[12..16].copy_from_slice(&self.length.to_le_bytes());
        header[16..24].copy_from_slice(&self.position.0.to_le_bytes());
        header[24..32].copy_from_slice(&self.epoch.to_le_bytes());
        header[32..40].copy_from_slice(&self.hint.0.to_le_bytes());
        header[40..44].copy_from_slice(&self.count.to_le_bytes());
        header[44..48].fill(0);
        header[48..56].copy_from_slice(&self.term.to_le_bytes());
        header[56..64].copy_from_slice(&self.index.0.to_le_bytes());
        header[64..72].copy_from_slice(&self.time_ms.to_le_bytes());
    }

    /// Parses the header at the front of `bytes`; returns `None` if they do not look like a block.
    /// Until [`BlockHeader::is_whole`] returns true, the fields are untrusted: `length` must not be
    /// allocated.
    pub fn parse(bytes: &[u8]) -> Option<BlockHeader> {
        let header = bytes.get(..BLOCK_HEADER_SIZE)?;
        let length = u32_at(header, 12);
        let begins = header[0..4] == BLOCK_MAGIC
            && header[8] == FORMAT_VERSION
            && length as usize >= BLOCK_HEADER_SIZE
            && u32_at(header, 44) == 0;
        begins.then_some(())?;
        Some(BlockHeader {
            kind: BlockKind::from_number(header[9])?,
            shard: shard_at(header, 10),
            length,
            position: Position(u64_at(header, 16)),
            epoch: u64_at(header, 24),
            hint: Position(u64_at(header, 32)),
            count: u32_at(header, 40),
            term: u64_at(header, 48),
            index: Index(u64_at(header, 56)),
            time_ms: u64_at(header, 64),
        })
    }

    /// Returns true if the CRC of `block` matches. `block` must have the length that the header
    /// states.
    pub fn is_whole(&self, block: &[u8], seed: Seed) -> bool {
        block.len() == self.length as usize && u32_at(block, 4) == checksum(self.kind, block, seed)
    }
}

/// Rounds a length up to the block alignment.
pub fn aligned(length: u64) -> u64 {
    length.next_multiple_of(BLOCK_ALIGNMENT)
}

fn checksum(kind: BlockKind, block: &[u8], seed: Seed) -> u32 {
    let covered = match kind {
        BlockKind::Lost => &block[COVERED_FROM..BLOCK_HEADER_SIZE],
        _ => &block[COVERED_FROM..],
    };
    crc32c::crc32c_append(seed.0, covered)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEED: (u64, u64) = (0x1122_3344_5566_7788, 42);

    fn sealed(kind: BlockKind, body: &[u8]) -> (BlockHeader, Vec<u8>) {
        let header = BlockHeader {
            kind,
            shard: ShardId(3),
            length: (BLOCK_HEADER_SIZE + body.len()) as u32,
            position: Position(4096),
            epoch: SEED.1,
            hint: Position(4000),
            count: 1,
            term: 5,
            index: Index(9),
            time_ms: 1_700_000_000_000,
        };
        let mut block = vec![0xAA; BLOCK_HEADER_SIZE];
        block.extend_from_slice(body);
        header.seal(&mut block, Seed::new(SEED.0, SEED.1));
        (header, block)
    }

    #[test]
    fn sealed_block_parses_and_is_whole() {
        let (header, block) = sealed(BlockKind::Records, b"body");
        assert_eq!(BlockHeader::parse(&block), Some(header));
        assert!(header.is_whole(&block, Seed::new(SEED.0, SEED.1)));
        assert_eq!(header.end(), Position(4096 + 80));
    }

    #[test]
    fn a_block_of_another_epoch_or_journal_does_not_match() {
        let (header, block) = sealed(BlockKind::Records, b"body");
        assert!(!header.is_whole(&block, Seed::new(SEED.0, SEED.1 + 1)));
        assert!(!header.is_whole(&block, Seed::new(SEED.0 + 1, SEED.1)));
    }

    #[test]
    fn header_of_a_lost_block_is_valid_with_any_body() {
        let (header, mut block) = sealed(BlockKind::Lost, b"body");
        block[BLOCK_HEADER_SIZE] ^= 1;
        assert!(header.is_whole(&block, Seed::new(SEED.0, SEED.1)));
    }

    #[test]
    fn header_is_the_same_if_the_body_is_elsewhere() {
        for kind in (1..=7).filter_map(BlockKind::from_number) {
            let (header, block) = sealed(kind, b"body");
            let seed = Seed::new(SEED.0, SEED.1);
            let elsewhere = header.sealed(b"body", seed);
            assert_eq!(elsewhere, block[..BLOCK_HEADER_SIZE], "{kind:?}");
            if kind != BlockKind::Lost {
                let known = header.sealed_over(4, crc32c::crc32c(b"body"), seed);
                assert_eq!(known, elsewhere, "{kind:?}");
            }
            assert_eq!(BlockKind::from_number(kind.number()), Some(kind));
        }
    }

    proptest! {
        #[test]
        fn flipped_bit_in_a_block_is_detected(body in proptest::collection::vec(any::<u8>(), 0..64), place in any::<proptest::sample::Index>()) {
            let (header, mut block) = sealed(BlockKind::Records, &body);
            let bit = place.index(block.len() * 8);
            block[bit / 8] ^= 1 << (bit % 8);
            let seen = BlockHeader::parse(&block) != Some(header)
                || !header.is_whole(&block, Seed::new(SEED.0, SEED.1));
            prop_assert!(seen);
            // The fields of a damaged header are not accepted either.
            if let Some(claimed) = BlockHeader::parse(&block) {
                prop_assert!(!claimed.is_whole(&block, Seed::new(SEED.0, SEED.1)));
            }
        }

        #[test]
        fn parsing_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = BlockHeader::parse(&bytes);
        }
    }
}
