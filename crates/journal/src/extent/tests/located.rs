//! Locating records finds what reading finds, and reads a page only until it was checked.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::in_place::{Block, write_extent, write_segment};
use super::*;
use crate::disk::{File, StoredBytes};

/// A disk whose files are in the page cache, or not.
#[derive(Clone, Debug)]
struct CachedDisk {
    disk: SimulatedDisk,
    is_cached: Arc<AtomicBool>,
    /// Bytes that were read from the device.
    read: Arc<AtomicU64>,
}

#[derive(Debug)]
struct CachedFile {
    file: Arc<dyn File>,
    disk: CachedDisk,
}

impl CachedDisk {
    fn new() -> CachedDisk {
        CachedDisk {
            disk: super::in_place::disk(),
            is_cached: Arc::default(),
            read: Arc::default(),
        }
    }

    fn set_cached(&self, is_cached: bool) {
        self.is_cached.store(is_cached, Ordering::Relaxed);
    }

    /// Returns the bytes read from the device since the last call.
    fn take_read(&self) -> u64 {
        self.read.swap(0, Ordering::Relaxed)
    }
}

impl Disk for CachedDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.disk.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(CachedFile {
            file: self.disk.open(path)?,
            disk: self.clone(),
        }))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
}

impl File for CachedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk
            .read
            .fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.file.read_at(buffer, offset)
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        match self.disk.is_cached.load(Ordering::Relaxed) {
            true => self.file.read_at(buffer, offset).map(|()| true),
            false => Ok(false),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.file.allocate(size)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_size(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

fn located(
    extent: &Extent,
    stream: u64,
    from: u64,
    reach: Reach,
) -> Result<Option<Vec<LocatedRecord>>, ExtentError> {
    let mut found = Vec::new();
    let visited = extent.locate(StreamId(stream), from, reach, &mut |record| {
        assert_eq!(record.tag, 9);
        found.push(record);
        ControlFlow::Continue(())
    })?;
    Ok((visited == Visited::All).then_some(found))
}

/// Reads what was located.
fn bytes(records: Vec<LocatedRecord>) -> Records {
    let bytes = |record: LocatedRecord| {
        let payload = record.payload.into_bytes().unwrap();
        assert_eq!(record.head, head_of(&payload));
        (record.offset, record.time_ms, payload.to_vec())
    };
    records.into_iter().map(bytes).collect()
}

fn filled(count: usize, size: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |number| (0..size).map(|at| (number + at) as u8).collect())
}

/// Streams of long and short records, and of both.
fn blocks() -> Vec<Block> {
    let run = |stream: u64, count, size| filled(count, size).map(move |bytes| (stream, bytes));
    vec![
        (1_000, run(2, 3, 5).chain(run(7, 5, 30_000)).collect()),
        (500, run(7, 1, 300_000).chain(run(7, 1, 70)).collect()),
        (2_001, run(7, 2, 9_000).chain(run(9, 1, 8_300)).collect()),
        (3_000, run(11, 1, 0).chain(run(11, 40, 20_000)).collect()),
    ]
}

const STREAMS: [(u64, u64); 5] = [(2, 6), (7, 17), (9, 11), (11, 53), (12, 1)];

/// An extent in place, and one with the same records in pages of its own.
fn extents(disk: &CachedDisk) -> [Identity; 2] {
    let written = write_segment(&disk.disk, 2 << 20, &blocks());
    write_extent(&disk.disk, &written);
    let paged = Identity {
        number: 8,
        ..IDENTITY
    };
    write(&disk.disk, paged, &written.streams);
    [IDENTITY, paged]
}

#[test]
fn locating_finds_what_reading_finds() {
    let disk = CachedDisk::new();
    for identity in extents(&disk) {
        let extent = open(&disk, identity).unwrap();
        for is_cached in [false, true] {
            disk.set_cached(is_cached);
            for (stream, end) in STREAMS {
                for from in 0..end + 1 {
                    let found = located(&extent, stream, from, Reach::Disk).unwrap();
                    assert_eq!(bytes(found.unwrap()), read(&extent, stream, from));
                }
            }
        }
    }
}

#[test]
fn long_records_stay_in_their_file_and_short_ones_are_read() {
    let disk = CachedDisk::new();
    for identity in extents(&disk) {
        let extent = open(&disk, identity).unwrap();
        for record in located(&extent, 7, 0, Reach::Disk).unwrap().unwrap() {
            let is_in_file = matches!(record.payload, StoredBytes::File(_));
            let size = record.payload.size();
            // Pages of 16 KiB may have several records.
            if !(8 << 10..16 << 10).contains(&size) {
                assert_eq!(is_in_file, size > 16 << 10, "{size}");
            }
        }
        let short = located(&extent, 2, 0, Reach::Disk).unwrap().unwrap();
        let is_in_memory = |it: &LocatedRecord| matches!(it.payload, StoredBytes::Memory(_));
        assert!(short.len() == 3 && short.iter().all(is_in_memory));
    }
}

#[test]
fn checked_pages_are_located_without_the_device_while_they_are_cached() {
    let disk = CachedDisk::new();
    let [in_place, paged] = extents(&disk);
    for (identity, stream) in [(in_place, 11), (paged, 11), (in_place, 7)] {
        let extent = open(&disk, identity).unwrap();
        disk.set_cached(true);
        let first = located(&extent, stream, 12, Reach::Memory).unwrap();
        assert_eq!(first, None, "it was not checked yet");
        let expected = read(&extent, stream, 12);
        disk.take_read();
        let found = located(&extent, stream, 12, Reach::Disk).unwrap();
        assert!(found.is_some());
        let size: usize = expected.iter().map(|(_, _, payload)| payload.len()).sum();
        assert!(disk.take_read() >= size as u64);
        assert_eq!(located(&extent, stream, 12, Reach::Memory).unwrap(), found);
        assert_eq!(disk.take_read(), 0);
        assert_eq!(located(&extent, stream, 12, Reach::Disk).unwrap(), found);
        // A piece of a short record is read again.
        assert!(disk.take_read() < 100);
        assert_eq!(bytes(found.unwrap()), expected);
        disk.set_cached(false);
        assert_eq!(located(&extent, stream, 12, Reach::Memory).unwrap(), None);
        assert!(located(&extent, stream, 12, Reach::Disk).unwrap().is_some());
        disk.take_read();
    }
}

#[test]
fn flipped_bit_is_an_error_when_a_record_is_located_from_the_device() {
    let disk = CachedDisk::new();
    for identity in extents(&disk) {
        let places: Vec<_> = {
            let extent = open(&disk, identity).unwrap();
            let found = located(&extent, 7, 0, Reach::Disk).unwrap().unwrap();
            let place = |it: LocatedRecord| match it.payload {
                StoredBytes::File(range) => Some((range.offset, range.size as u64)),
                StoredBytes::Memory(_) => None,
            };
            let path = extent.records_path().to_owned();
            let places = found.into_iter().filter_map(place);
            places.map(|(at, size)| (path.clone(), at, size)).collect()
        };
        assert!(places.len() >= 6);
        for (path, at, size) in places {
            for bit in [at * 8, (at + size / 2) * 8 + 3, (at + size) * 8 - 1] {
                let extent = open(&disk, identity).unwrap();
                disk.disk.flip(&path, bit).unwrap();
                let error = located(&extent, 7, 0, Reach::Disk).unwrap_err();
                assert_eq!(error.path(), path);
                disk.disk.flip(&path, bit).unwrap();
                located(&extent, 7, 0, Reach::Disk).unwrap();
                // It was checked, and comes from the device again.
                disk.disk.flip(&path, bit).unwrap();
                let error = located(&extent, 7, 0, Reach::Disk).unwrap_err();
                assert_eq!(error.path(), path);
                disk.disk.flip(&path, bit).unwrap();
            }
        }
    }
}

#[test]
fn located_bytes_stay_readable_when_the_file_is_removed() {
    let disk = CachedDisk::new();
    for identity in extents(&disk) {
        let extent = open(&disk, identity).unwrap();
        let expected = read(&extent, 11, 0);
        let found = located(&extent, 11, 0, Reach::Disk).unwrap().unwrap();
        disk.disk.remove(extent.records_path()).unwrap();
        drop(extent);
        assert_eq!(bytes(found), expected);
    }
}
