//! Histogram of sync durations.
//!
//! A [`MeasuredDisk`] wraps another disk and passes every call on. It times the syncs of files of one
//! directory, as long as they have certain names. It needs a clock, which the other disks do not
//! know.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::{Disk, File};

/// A disk that measures how long syncs of some files take.
#[derive(Debug)]
pub struct MeasuredDisk {
    disk: Arc<dyn Disk>,
    now_ns: fn() -> u64,
    times: Arc<SyncTimes>,
    directory: &'static str,
    is_measured: fn(&str) -> bool,
    /// Open files of the directory, by path.
    files: Mutex<HashMap<String, Weak<MeasuredFile>>>,
}

/// Histogram of sync durations since the start.
#[derive(Debug, Default)]
pub struct SyncTimes {
    counts: [AtomicU64; SyncTimes::BOUNDS_NS.len() + 1],
    sum_ns: AtomicU64,
}

/// A snapshot of [`SyncTimes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncCounts {
    /// Number of syncs per range, one more than there are bounds: each sync counts once, in the
    /// first range whose bound it does not exceed, or in the last.
    pub counts: Vec<u64>,
    /// Sum of all durations, in nanoseconds.
    pub sum_ns: u64,
}

#[derive(Debug)]
struct MeasuredFile {
    file: Arc<dyn File>,
    now_ns: fn() -> u64,
    times: Arc<SyncTimes>,
    is_measured: AtomicBool,
}

impl SyncTimes {
    /// Upper bounds of the histogram's ranges, in nanoseconds, inclusive.
    pub const BOUNDS_NS: [u64; 15] = [
        50_000,
        100_000,
        150_000,
        200_000,
        300_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        20_000_000,
        50_000_000,
        100_000_000,
        500_000_000,
        2_000_000_000,
    ];

    /// Returns a snapshot.
    pub fn counts(&self) -> SyncCounts {
        let counts = self.counts.iter();
        SyncCounts {
            counts: counts.map(|count| count.load(Ordering::Relaxed)).collect(),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
        }
    }

    fn add(&self, ns: u64) {
        let range = Self::BOUNDS_NS.partition_point(|bound| *bound < ns);
        self.counts[range].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl MeasuredDisk {
    /// Wraps `disk`. `now_ns` is a monotonic clock. Syncs are measured of files in `directory` whose
    /// path at that moment is one of those that `is_measured` returns true for.
    pub fn new(
        disk: Arc<dyn Disk>,
        now_ns: fn() -> u64,
        directory: &'static str,
        is_measured: fn(&str) -> bool,
    ) -> Self {
        Self {
            disk,
            now_ns,
            times: Arc::default(),
            directory,
            is_measured,
            files: Mutex::default(),
        }
    }

    /// Returns the histogram.
    pub fn times(&self) -> &Arc<SyncTimes> {
        &self.times
    }

    /// Wraps a file in the directory; other files are never measured.
    fn measured(&self, path: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        if !path.starts_with(self.directory) {
            return file;
        }
        let measured = Arc::new(MeasuredFile {
            file,
            now_ns: self.now_ns,
            times: self.times.clone(),
            is_measured: AtomicBool::new((self.is_measured)(path)),
        });
        let mut files = self.files.lock();
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(path.to_owned(), Arc::downgrade(&measured));
        measured
    }
}

impl Disk for MeasuredDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.measured(path, self.disk.create(path)?))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.measured(path, self.disk.open(path)?))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)?;
        let mut files = self.files.lock();
        if let Some(file) = files.remove(from) {
            if let Some(file) = file.upgrade() {
                let is_measured = (self.is_measured)(to);
                file.is_measured.store(is_measured, Ordering::Relaxed);
            }
            files.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.lock().remove(path);
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
}

impl File for MeasuredFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buffer, offset)
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        self.file.read_cached(buffer, offset)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn take_room(&self, size: u64) -> io::Result<()> {
        self.file.take_room(size)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.file.allocate(size)
    }

    fn write_out(&self, offset: u64, size: u64) -> io::Result<()> {
        self.file.write_out(offset, size)
    }

    fn begin_write_out(&self, offset: u64, size: u64) -> io::Result<()> {
        self.file.begin_write_out(offset, size)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_size(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        if !self.is_measured.load(Ordering::Relaxed) {
            return self.file.sync_data();
        }
        let begin_ns = (self.now_ns)();
        let synced = self.file.sync_data();
        self.times.add((self.now_ns)().saturating_sub(begin_ns));
        synced
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedDisk;

    /// A clock that advances by 40 µs per reading.
    fn now_ns() -> u64 {
        static NOW_NS: AtomicU64 = AtomicU64::new(0);
        NOW_NS.fetch_add(40_000, Ordering::Relaxed)
    }

    #[test]
    fn only_syncs_of_files_with_certain_names_are_measured() {
        let disk = Arc::new(SimulatedDisk::new(1));
        let disk = MeasuredDisk::new(disk, now_ns, "line", |path| path.ends_with(".seg"));
        let count = || disk.times().counts().counts.iter().sum::<u64>();
        disk.create_dir("line").unwrap();
        let file = disk.create("line/1.new").unwrap();
        file.write_at(b"zeros", 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(count(), 0);
        disk.rename("line/1.new", "line/1.seg").unwrap();
        file.sync_data().unwrap();
        file.sync_data().unwrap();
        assert_eq!((count(), disk.times().counts().counts[0]), (2, 2));
        assert!(disk.times().counts().sum_ns >= 80_000);
        disk.rename("line/1.seg", "line/2.used").unwrap();
        file.sync_data().unwrap();
        disk.create("MANIFEST.seg").unwrap().sync_data().unwrap();
        assert_eq!(count(), 2);
        disk.open("line/2.used").unwrap().sync_data().unwrap();
        assert_eq!(count(), 2);
    }

    #[test]
    fn duration_is_counted_in_its_range() {
        let times = SyncTimes::default();
        for ns in [1, 50_000, 50_001, u64::MAX / 2] {
            times.add(ns);
        }
        let counts = times.counts().counts;
        assert_eq!((counts[0], counts[1], counts[15]), (2, 1, 1));
    }
}
