//! The manifest: names the extents of every shard and states how far the line is filed.
//!
//! ```text
//!  0 │ "TLMF"         │ version u32
//!  8 │ crc u32        │ shards u16 │ flags u16: 1 has lost, 2 has holes
//! 16 │ journal id u64 │ filed u64
//! 32 │ sequence u64   │ extent next u64
//! 48 │ shards × ( index u64 │ term u64 │ extents u64
//!    │            × ( number u64 │ begin u64 │ end u64 │ index u64 │ term u64 ) )
//! ```
//!
//! Little endian; the CRC-32C covers everything but itself. The manifest is replaced as a whole by
//! a rename of a synced file, so it is always the old or the new one. Files of the journal that it
//! does not name are garbage. It knows nothing about the contents of extents.

use std::io;

use crate::disk::{Disk, write_all};
use crate::extent::Identity;
use crate::record::{u16_at, u32_at, u64_at};
use crate::{Index, Position, ShardId};

/// Format version that this build writes, and the newest one that it reads. The manifest has the
/// same layout in versions 1 to 3. Its version is that of the whole journal: an older build refuses
/// a newer one before it reads or removes anything else. A build of version 1 would misread the
/// streams of version 2, and one of version 2 would remove segments to which extents refer.
pub const VERSION: u32 = 3;

/// Path of the manifest.
pub const PATH: &str = "MANIFEST";

/// Path of the next manifest until it is durable.
const PATH_UNFINISHED: &str = "MANIFEST.new";

const MAGIC: [u8; 4] = *b"TLMF";
const HAS_LOST: u16 = 1;
const HAS_HOLES: u16 = 2;
const HEAD_SIZE: usize = 48;
const SHARD_SIZE: usize = 24;
const EXTENT_SIZE: usize = 40;

/// The state of the journal, apart from the unfiled part of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Format version of the journal, from 1.
    pub version: u32,
    /// Id of the journal; it is in every file of the journal.
    pub journal_id: u64,
    /// Everything before this position is in extents.
    pub filed: Position,
    /// Sequence of the last filed segment; 0 before the first.
    pub sequence: u64,
    /// Number of the next extent.
    pub extent_next: u64,
    /// A lost part of the line was accepted and filed. Therefore, the unfiled part may not continue
    /// the filed one.
    pub has_lost: bool,
    /// Filed records are missing, and that was accepted. Never becomes false again.
    pub has_holes: bool,
    /// The shards. Their number never changes.
    pub shards: Vec<Shard>,
}

/// The filed part of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shard {
    /// Index of the last filed block; 0 before the first.
    pub index: Index,
    /// Term of that block.
    pub term: u64,
    /// Extents of the shard, oldest first.
    pub extents: Vec<Identity>,
}

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The contents are invalid.
    #[error("MANIFEST is damaged: {0}")]
    Damaged(&'static str),
    /// A newer build wrote the manifest.
    #[error("MANIFEST has format version {found}, and this build reads up to {supported}")]
    Version {
        /// Version of the manifest.
        found: u32,
        /// Newest version that this build reads.
        supported: u32,
    },
    /// An I/O error.
    #[error("MANIFEST cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl Manifest {
    /// Creates the manifest of a journal in which nothing is filed.
    pub fn new(journal_id: u64, shard_count: u16) -> Manifest {
        Manifest {
            version: VERSION,
            journal_id,
            filed: Position(0),
            sequence: 0,
            extent_next: 1,
            has_lost: false,
            has_holes: false,
            shards: vec![Shard::default(); usize::from(shard_count)],
        }
    }

    /// Reads the manifest of a directory, if there is one. Syncs it first, because files are
    /// removed if it does not name them.
    pub fn load(disk: &dyn Disk) -> Result<Option<Manifest>, ManifestError> {
        let file = match disk.open(PATH) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        file.sync_all()?;
        disk.sync_dir("")?;
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
        file.read_at(&mut bytes, 0)?;
        Manifest::decode(&bytes).map(Some)
    }

    /// Writes and syncs the next manifest under a temporary name. An error has changed nothing.
    pub fn prepare(&self, disk: &dyn Disk) -> io::Result<()> {
        match disk.remove(PATH_UNFINISHED) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(PATH_UNFINISHED)?;
        write_all(&*file, &self.encode(), 0)?;
        file.sync_all()
    }

    /// Replaces the manifest with the prepared one. After an error it is unknown which of the two
    /// is durable.
    pub fn commit(disk: &dyn Disk) -> io::Result<()> {
        disk.rename(PATH_UNFINISHED, PATH)?;
        disk.sync_dir("")
    }

    /// Returns the extents of each shard.
    pub fn extents(&self) -> impl Iterator<Item = &[Identity]> {
        self.shards.iter().map(|shard| &shard.extents[..])
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; HEAD_SIZE];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..8].copy_from_slice(&self.version.to_le_bytes());
        out[12..14].copy_from_slice(&(self.shards.len() as u16).to_le_bytes());
        let flags = (u16::from(self.has_lost) * HAS_LOST) | (u16::from(self.has_holes) * HAS_HOLES);
        out[14..16].copy_from_slice(&flags.to_le_bytes());
        let words = [
            self.journal_id,
            self.filed.0,
            self.sequence,
            self.extent_next,
        ];
        for (slot, word) in out[16..].chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        for shard in &self.shards {
            put(
                &mut out,
                &[shard.index.0, shard.term, shard.extents.len() as u64],
            );
            for extent in &shard.extents {
                let Identity {
                    number,
                    begin,
                    end,
                    index,
                    term,
                    ..
                } = extent;
                put(&mut out, &[*number, begin.0, end.0, index.0, *term]);
            }
        }
        let crc = crc(&out);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        if bytes.len() < HEAD_SIZE || bytes[0..4] != MAGIC {
            return Err(ManifestError::Damaged("the magic bytes are wrong"));
        }
        let found = u32_at(bytes, 4);
        if found > VERSION {
            return Err(ManifestError::Version {
                found,
                supported: VERSION,
            });
        }
        if found == 0 || u32_at(bytes, 8) != crc(bytes) {
            return Err(ManifestError::Damaged("the checksum does not match"));
        }
        let journal_id = u64_at(bytes, 16);
        let mut rest = &bytes[HEAD_SIZE..];
        let shards =
            (0..u16_at(bytes, 12)).map(|number| take_shard(&mut rest, journal_id, ShardId(number)));
        let shards: Option<Vec<Shard>> = shards.collect();
        let shards = shards.filter(|_| rest.is_empty());
        let flags = u16_at(bytes, 14);
        if flags & !(HAS_LOST | HAS_HOLES) != 0 {
            return Err(ManifestError::Damaged("the flags are unknown"));
        }
        let manifest = Manifest {
            version: found,
            journal_id,
            has_lost: flags & HAS_LOST != 0,
            has_holes: flags & HAS_HOLES != 0,
            filed: Position(u64_at(bytes, 24)),
            sequence: u64_at(bytes, 32),
            extent_next: u64_at(bytes, 40),
            shards: shards.ok_or(ManifestError::Damaged("the sections do not fill the file"))?,
        };
        let sound = manifest.shards.iter().all(|shard| manifest.is_sound(shard));
        sound
            .then_some(manifest)
            .ok_or(ManifestError::Damaged("the extents contradict each other"))
    }

    fn is_sound(&self, shard: &Shard) -> bool {
        let each = shard.extents.iter().all(|extent| {
            extent.number < self.extent_next
                && extent.begin < extent.end
                && extent.end <= self.filed
        });
        each && shard
            .extents
            .windows(2)
            .all(|pair| pair[0].end <= pair[1].begin)
    }
}

fn take_shard(rest: &mut &[u8], journal_id: u64, shard: ShardId) -> Option<Shard> {
    let (head, behind) = rest.split_at_checked(SHARD_SIZE)?;
    let size = usize::try_from(u64_at(head, 16))
        .ok()?
        .checked_mul(EXTENT_SIZE)?;
    let (extents, behind) = behind.split_at_checked(size)?;
    *rest = behind;
    let extents = extents.chunks_exact(EXTENT_SIZE).map(|extent| Identity {
        journal_id,
        shard,
        number: u64_at(extent, 0),
        begin: Position(u64_at(extent, 8)),
        end: Position(u64_at(extent, 16)),
        index: Index(u64_at(extent, 24)),
        term: u64_at(extent, 32),
    });
    Some(Shard {
        index: Index(u64_at(head, 0)),
        term: u64_at(head, 8),
        extents: extents.collect(),
    })
}

fn put(out: &mut Vec<u8>, words: &[u64]) {
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..8]), &bytes[12..])
}

#[cfg(test)]
mod tests;
