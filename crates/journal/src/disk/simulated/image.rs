//! One file twice: as it is read, and as a crash would leave it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::crash::{Fate, Unsynced};

/// What a disk writes as a whole, unless it is torn. Bytes.
pub(super) const SECTOR_SIZE: u64 = 512;

/// Whoever decides what becomes of something that is not durable.
pub(super) type Choose<'a> = &'a mut dyn FnMut(&Unsynced) -> Fate;

/// Both images. Outside of `dirty` and of a lost sync they hold the same bytes as far as both go.
#[derive(Clone, Default)]
pub(super) struct Image {
    volatile: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors that were changed and are not synced.
    dirty: BTreeSet<u64>,
    /// End of the bytes that were written and are not synced: a sync of data needs the size.
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

    /// The bytes, and no more of the size than they need.
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

    /// A sync that says it did: what it covered stays readable until the power goes.
    pub(super) fn forget(&mut self) {
        self.dirty.clear();
        self.written_end = 0;
    }

    /// A sync that failed: each sector is durable, or only seems to be, or is what it was before,
    /// or waits on as if nobody had asked.
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

    /// Makes the first bytes of a sector durable, as far as the durable size goes.
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

    /// Some of what is dirty becomes durable by itself, as it may at any time.
    pub(super) fn write_back(&mut self, file: u64, choose: Choose<'_>) {
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

    /// The power goes.
    pub(super) fn crash(&mut self, file: u64, choose: Choose<'_>) {
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

    /// Turns one bit over, in both images.
    pub(super) fn flip(&mut self, bit: u64) {
        let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        for image in [&mut self.volatile, &mut self.durable] {
            if let Some(byte) = image.get_mut(byte) {
                *byte ^= mask;
            }
        }
    }
}
