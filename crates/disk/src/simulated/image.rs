//! A file in two versions: as it is read, and as a crash would leave it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::crash::{Fate, Unsynced};

/// Sector size in bytes. A sector is written as a whole, unless it is torn.
pub(super) const SECTOR_SIZE: u64 = 512;

/// Decides what a crash does to an unsynced change.
pub(super) type ChooseFate<'a> = &'a mut dyn FnMut(&Unsynced) -> Fate;

/// Both versions. Except for `dirty` sectors and lost syncs they have the same bytes, up to the
/// smaller size.
#[derive(Clone, Default)]
pub(super) struct Image {
    volatile: Vec<u8>,
    durable: Vec<u8>,
    /// Changed sectors that are not synced.
    dirty: BTreeSet<u64>,
    /// End of the written, unsynced bytes. `sync_data` makes the size durable up to here.
    written_end: usize,
}

impl Image {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.volatile
    }

    pub(super) fn durable(&self) -> &[u8] {
        &self.durable
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        if self.volatile.len() < end {
            self.set_size(end);
        }
        self.volatile[offset..end].copy_from_slice(bytes);
        self.written_end = self.written_end.max(end);
        self.touch(offset..end);
    }

    pub(super) fn set_size(&mut self, size: usize) {
        let old = self.volatile.len();
        self.volatile.resize(size, 0);
        self.written_end = self.written_end.min(size);
        self.touch(old.min(size)..old.max(size));
    }

    fn touch(&mut self, bytes: Range<usize>) {
        if !bytes.is_empty() {
            let sectors = bytes.start as u64 / SECTOR_SIZE..=(bytes.end as u64 - 1) / SECTOR_SIZE;
            self.dirty.extend(sectors);
        }
    }

    /// Makes the bytes durable, and as much of the size as they need.
    pub(super) fn sync_data(&mut self) {
        let size = self.durable.len().max(self.written_end);
        self.durable.resize(size, 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.keep(sector, SECTOR_SIZE as usize);
        }
        self.written_end = 0;
    }

    pub(super) fn sync_all(&mut self) {
        self.sync_data();
        self.durable.resize(self.volatile.len(), 0);
    }

    /// Simulates a sync that lies: the covered bytes stay readable until the next crash, and are
    /// lost then.
    pub(super) fn forget(&mut self) {
        self.dirty.clear();
        self.written_end = 0;
    }

    /// Simulates a failed sync. Each sector becomes durable, only seems to, reverts to its old
    /// bytes, or stays dirty.
    pub(super) fn lose(&mut self, rng: &mut fastrand::Rng) {
        let sectors: Vec<u64> = self.dirty.iter().copied().collect();
        let written_end = self.written_end;
        self.forget();
        for sector in sectors {
            match rng.u8(..4) {
                0 => self.keep(sector, SECTOR_SIZE as usize),
                1 => {}
                2 => self.revert(sector),
                _ => {
                    self.dirty.insert(sector);
                    self.written_end = written_end;
                }
            }
        }
    }

    /// Makes the first `bytes` of a sector durable, up to the durable size.
    fn keep(&mut self, sector: u64, bytes: usize) {
        let range = self.common(sector, bytes);
        self.durable[range.clone()].copy_from_slice(&self.volatile[range]);
    }

    fn revert(&mut self, sector: u64) {
        let range = self.common(sector, SECTOR_SIZE as usize);
        self.volatile[range.clone()].copy_from_slice(&self.durable[range]);
    }

    fn common(&self, sector: u64, bytes: usize) -> Range<usize> {
        let size = self.volatile.len().min(self.durable.len());
        let start = ((sector * SECTOR_SIZE) as usize).min(size);
        start..(start + bytes).min(size)
    }

    /// Makes some dirty sectors durable, as a kernel may at any time.
    pub(super) fn write_back(&mut self, file: u64, choose: ChooseFate<'_>) {
        let sectors: Vec<u64> = self.dirty.iter().copied().collect();
        for sector in sectors {
            let end = ((sector + 1) * SECTOR_SIZE) as usize;
            let whole = self.durable.len() >= end.min(self.volatile.len());
            if whole && choose(&Unsynced::Sector { file, sector }) == Fate::Kept {
                self.keep(sector, SECTOR_SIZE as usize);
                self.dirty.remove(&sector);
            }
        }
    }

    /// Applies a power failure.
    pub(super) fn crash(&mut self, file: u64, choose: ChooseFate<'_>) {
        let (old, new) = (self.durable.len(), self.volatile.len());
        let size = match (old == new).then_some(Fate::Kept) {
            Some(_) => new,
            None => match choose(&Unsynced::Size { file }) {
                Fate::Kept => new,
                Fate::Lost => old,
                Fate::Torn(bytes) => (old.min(new) + usize::from(bytes)).min(old.max(new)),
            },
        };
        self.durable.resize(old.max(size), 0);
        for sector in std::mem::take(&mut self.dirty) {
            match choose(&Unsynced::Sector { file, sector }) {
                Fate::Kept => self.keep(sector, SECTOR_SIZE as usize),
                Fate::Torn(bytes) => self.keep(sector, usize::from(bytes)),
                Fate::Lost => {}
            }
        }
        self.durable.resize(size, 0);
        self.volatile.clone_from(&self.durable);
        self.written_end = 0;
    }

    /// Flips one bit in both versions.
    pub(super) fn flip(&mut self, bit: u64) {
        let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        for image in [&mut self.volatile, &mut self.durable] {
            if let Some(byte) = image.get_mut(byte) {
                *byte ^= mask;
            }
        }
    }
}
