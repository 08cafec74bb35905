//! Online backup: copies a journal that is in use into a consistent directory.
//!
//! The caller seals the line ([`Journal::seal`]), waits until everything before that position is
//! filed ([`Journal::is_filed`]), and then copies. The copy has the manifest, the extents that it
//! names, the filed segments to which these refer, none of which ever changes, and an empty segment that
//! continues after the filed data. Records
//! appended meanwhile are not in the copy. A merge may remove an extent before it is copied; then
//! there is a newer manifest, and the copy starts over with it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use crate::disk::{Disk, File, write_all, write_zeros};
use crate::extent::{self, ExtentError};
use crate::filing::Line as _;
use crate::manifest::{Manifest, ManifestError};
use crate::segment::{self, LINE_DIR, SEGMENT_HEADER_SIZE, Segment, SegmentError, ShardEnd};
use crate::votes::LastVote;
use crate::{Journal, Position};

/// Bytes per read and write.
const CHUNK_SIZE: u64 = 1 << 20;

/// Limit on restarts of a copy.
const ATTEMPTS_MAX: usize = 100;

/// Path of the copy's segment until it is complete.
const SEGMENT_UNFINISHED: &str = "line/spare-1.new";

/// Statistics of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Files hard-linked to the journal's, which never change.
    pub linked: u64,
    /// Files copied byte by byte.
    pub copied: u64,
    /// Bytes of all extents and of the segments to which they refer.
    pub bytes: u64,
    /// Everything before this position is in the copy.
    pub filed: Position,
}

/// A failed copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The segment after the filed data cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// An extent is damaged.
    #[error(transparent)]
    Extent(#[from] ExtentError),
    /// An I/O error.
    #[error("cannot copy {path}: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// The error.
        source: io::Error,
    },
    /// Merges removed extents faster than they could be copied.
    #[error("the journal changed faster than it could be copied")]
    TooManyRestarts,
}

impl Journal {
    /// Asks for the end of the active segment. Everything acknowledged before the call is before
    /// the returned position.
    pub fn seal(&self) -> Position {
        self.shared().seal()
    }

    /// Returns true if everything before the position is in extents that a durable manifest names.
    pub fn is_filed(&self, position: Position) -> bool {
        let segments = self.shared().segments.lock();
        let oldest = segments.open.front();
        oldest.is_some_and(|oldest| oldest.header.first() >= position)
    }
}

/// Copies the filed data into an empty directory. `link` hard-links a file to the same path there;
/// if it fails, the bytes are copied.
pub fn copy(
    source: &dyn Disk,
    target: &dyn Disk,
    link: &dyn Fn(&str) -> io::Result<()>,
) -> Result<CopyStats, BackupError> {
    for directory in ["", LINE_DIR, extent::DIRECTORY] {
        target
            .create_dir(directory)
            .map_err(copy_error(directory))?;
    }
    for _ in 0..ATTEMPTS_MAX {
        let Some(manifest) = Manifest::load(source)? else {
            return Err(copy_error(crate::manifest::PATH)(
                io::ErrorKind::NotFound.into(),
            ));
        };
        if let Some(copied) = copy_manifest(source, target, link, &manifest)? {
            return Ok(copied);
        }
    }
    Err(BackupError::TooManyRestarts)
}

fn copy_error(path: &str) -> impl Fn(io::Error) -> BackupError {
    move |source| BackupError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Copies the files of one manifest. Returns `None` if one of them has been removed meanwhile.
fn copy_manifest(
    source: &dyn Disk,
    target: &dyn Disk,
    link: &dyn Fn(&str) -> io::Result<()>,
    manifest: &Manifest,
) -> Result<Option<CopyStats>, BackupError> {
    let mut copied = CopyStats {
        filed: manifest.filed,
        ..CopyStats::default()
    };
    let sequence = manifest.sequence + 1;
    let Some(next) = unless_recycled(Segment::open(source, sequence, manifest.journal_id))? else {
        return Ok(None);
    };
    let mut paths = BTreeSet::new();
    for identity in manifest.extents().flatten() {
        let Some(segment) = unless_removed(extent::segment_of(source, identity))? else {
            return Ok(None);
        };
        paths.insert(identity.path());
        paths.extend(segment.map(|segment| segment.path()));
    }
    for path in &paths {
        if !copy_file(source, target, link, path, &mut copied)? {
            return Ok(None);
        }
    }
    for directory in [extent::DIRECTORY, LINE_DIR] {
        remove_others(target, directory, &paths).map_err(copy_error(directory))?;
        target.sync_dir(directory).map_err(copy_error(directory))?;
    }
    write_segment(target, &next, manifest).map_err(copy_error(&segment::path(sequence)))?;
    manifest
        .prepare(target)
        .and_then(|()| Manifest::commit(target))
        .map_err(copy_error(crate::manifest::PATH))?;
    Ok(Some(copied))
}

/// Returns the segment, unless it has been filed and recycled meanwhile.
fn unless_recycled(opened: Result<Segment, SegmentError>) -> Result<Option<Segment>, BackupError> {
    match opened {
        Ok(segment) => Ok(Some(segment)),
        Err(SegmentError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(SegmentError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns what was read of an extent, unless its file has been removed meanwhile.
fn unless_removed<T>(read: Result<T, ExtentError>) -> Result<Option<T>, BackupError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ExtentError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Copies an extent or a segment. Returns false if it has been removed.
fn copy_file(
    source: &dyn Disk,
    target: &dyn Disk,
    link: &dyn Fn(&str) -> io::Result<()>,
    path: &str,
    copied: &mut CopyStats,
) -> Result<bool, BackupError> {
    if let Ok(file) = target.open(path) {
        // An earlier attempt copied it.
        copied.bytes += file.size().map_err(copy_error(path))?;
        return Ok(true);
    }
    let file = match source.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(copy_error(path)(error)),
    };
    match link(path) {
        Ok(()) => copied.linked += 1,
        Err(_) => {
            // The link fails on another file system, without link support, or if the file has been
            // removed. The open file can still be read.
            copy_bytes(&*file, target, path).map_err(copy_error(path))?;
            copied.copied += 1;
        }
    }
    copied.bytes += file.size().map_err(copy_error(path))?;
    Ok(true)
}

fn copy_bytes(file: &dyn File, target: &dyn Disk, path: &str) -> io::Result<()> {
    let size = file.size()?;
    let copy = target.create(path)?;
    for offset in (0..size).step_by(CHUNK_SIZE as usize) {
        let mut bytes = vec![0; CHUNK_SIZE.min(size - offset) as usize];
        file.read_at(&mut bytes, offset)?;
        write_all(&*copy, &bytes, offset)?;
    }
    copy.sync_all()
}

/// Removes files of earlier attempts that do not belong to the copy.
fn remove_others(target: &dyn Disk, directory: &str, wanted: &BTreeSet<String>) -> io::Result<()> {
    for name in target.list(directory)? {
        let path = format!("{directory}/{name}");
        if !wanted.contains(&path) {
            target.remove(&path)?;
        }
    }
    Ok(())
}

/// Writes an empty segment that continues after the filed data. Its header has no votes: the copy is
/// not the node that gave them. Blocks before it may be void by a later cut, so that the shards end
/// where the manifest says.
fn write_segment(target: &dyn Disk, like: &Segment, manifest: &Manifest) -> io::Result<()> {
    let mut header = (*like.header).clone();
    for (end, filed) in header.shards.iter_mut().zip(&manifest.shards) {
        *end = ShardEnd {
            index: filed.index,
            term: filed.term,
        };
    }
    header.votes.fill(LastVote::default());
    let file: Arc<dyn File> = target.create(SEGMENT_UNFINISHED)?;
    write_zeros(&*file, 0, header.size)?;
    debug_assert!(header.size > SEGMENT_HEADER_SIZE);
    file.sync_all()?;
    segment::begin(target, file, SEGMENT_UNFINISHED, header)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimulatedDisk;
    use crate::filing::Step;
    use crate::{LineStep, Options, ReadLimit, ShardId, Status, SteppedJournal, StreamId};

    const SHARD: ShardId = ShardId(1);
    const STREAM: StreamId = StreamId(7);
    const ALL: ReadLimit = ReadLimit {
        records: usize::MAX,
        bytes: usize::MAX,
    };

    fn open(disk: &Arc<SimulatedDisk>, entropy: u64) -> SteppedJournal {
        open_with(disk, entropy, u64::MAX)
    }

    fn open_with(disk: &Arc<SimulatedDisk>, entropy: u64, piece_size_min: u64) -> SteppedJournal {
        let options = Options {
            journal_id: 0xC0FFEE,
            entropy,
            shard_count: 2,
            segment_size: 16 << 10,
            reserve_size: 0,
            piece_size_min,
            ..Options::default()
        };
        Journal::open_stepped(disk.clone(), &options).unwrap()
    }

    fn settle(stepped: &mut SteppedJournal) {
        loop {
            let line = stepped.line.step();
            let worked = stepped.background.step(1) == Step::Worked;
            if !worked && matches!(line, LineStep::Idle | LineStep::Failed) {
                return;
            }
        }
    }

    fn append(stepped: &mut SteppedJournal, number: u64) {
        let mut guard = stepped.journal.lock(SHARD, 1000);
        let appended = guard.append(STREAM, None, 3, &[number as u8; 900]).unwrap();
        drop(guard);
        settle(stepped);
        assert_eq!(stepped.journal.status(appended.ticket), Status::Durable);
    }

    fn no_link(_: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[test]
    fn a_backup_holds_all_acked_records_and_accepts_new_ones() {
        for (count, piece_size_min) in [(0, 0), (1, 0), (60, u64::MAX), (60, 0)] {
            let disk = Arc::new(SimulatedDisk::new(1));
            let mut stepped = open_with(&disk, 1, piece_size_min);
            (0..count).for_each(|number| append(&mut stepped, number));
            let position = stepped.journal.seal();
            settle(&mut stepped);
            assert!(stepped.journal.is_filed(position));
            append(&mut stepped, 99);

            let target = Arc::new(SimulatedDisk::new(2));
            let copied = copy(&*disk, &*target, &no_link).unwrap();
            assert_eq!(copied.linked, 0);
            let retained = stepped.journal.filing().retained_segments;
            assert_eq!(retained > 2, count == 60 && piece_size_min == 0);
            // Power failure directly after the copy.
            target.crash_with(|_| crate::disk::simulated::Fate::Lost);
            let mut restored = open(&target, 2);
            let read = restored.journal.read(SHARD, STREAM, 0, ALL).unwrap();
            assert_eq!(read.records.len() as u64, count);
            let is_right = |(place, record): (usize, &crate::Record)| {
                record.offset == place as u64 && record.payload[..] == [place as u8; 900]
            };
            assert!(read.records.iter().enumerate().all(is_right));
            (count..count + 40).for_each(|number| append(&mut restored, number));
            drop(restored);
            let again = open(&target, 3);
            let read = again.journal.read(SHARD, STREAM, 0, ALL).unwrap();
            assert_eq!(read.records.len() as u64, count + 40);
        }
    }

    #[test]
    fn linked_backup_stays_whole_when_the_journal_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let disk: Arc<dyn Disk> = Arc::new(crate::disk::RealDisk::new(&from));
        let options = Options {
            journal_id: 0xC0FFEE,
            entropy: 1,
            shard_count: 2,
            segment_size: 16 << 10,
            reserve_size: 0,
            piece_size_min: 0,
            ..Options::default()
        };
        let mut stepped = Journal::open_stepped(disk.clone(), &options).unwrap();
        (0..60).for_each(|number| append(&mut stepped, number));
        stepped.journal.seal();
        settle(&mut stepped);
        assert!(stepped.journal.filing().retained_segments > 2);
        let target: Arc<dyn Disk> = Arc::new(crate::disk::RealDisk::new(&to));
        let link = |path: &str| std::fs::hard_link(from.join(path), to.join(path));
        let copied = copy(&*disk, &*target, &link).unwrap();
        assert_eq!(copied.copied, 0);

        // The node reuses everything that it can, also after a restart.
        let trimmed = stepped.journal.lock(SHARD, 1000).trim(STREAM, 60).unwrap();
        (60..120).for_each(|number| append(&mut stepped, number));
        assert_eq!(stepped.journal.status(trimmed), Status::Durable);
        drop(stepped);
        let again = Options {
            entropy: 2,
            ..options
        };
        let mut stepped = Journal::open_stepped(disk, &again).unwrap();
        (120..200).for_each(|number| append(&mut stepped, number));
        drop(stepped);

        let restored = Journal::open_stepped(target, &again).unwrap();
        let read = restored.journal.read(SHARD, STREAM, 0, ALL).unwrap();
        assert_eq!(read.records.len(), 60);
        let mut records = read.records.iter().enumerate();
        assert!(records.all(|(place, record)| record.payload[..] == [place as u8; 900]));
    }

    #[test]
    fn backup_waits_until_the_position_is_filed() {
        let disk = Arc::new(SimulatedDisk::new(1));
        let mut stepped = open(&disk, 1);
        append(&mut stepped, 0);
        let position = stepped.journal.seal();
        assert!(!stepped.journal.is_filed(position));
        settle(&mut stepped);
        assert!(stepped.journal.is_filed(position));
    }

    #[test]
    fn a_missing_extent_restarts_the_backup() {
        let disk = Arc::new(SimulatedDisk::new(1));
        let mut stepped = open(&disk, 1);
        (0..40).for_each(|number| append(&mut stepped, number));
        stepped.journal.seal();
        settle(&mut stepped);
        let old = Manifest::load(&*disk).unwrap().unwrap();
        let target = Arc::new(SimulatedDisk::new(2));
        for directory in ["", LINE_DIR, extent::DIRECTORY] {
            target.create_dir(directory).unwrap();
        }
        let path = old.extents().flatten().next().unwrap().path();
        let moved = format!("{path}.moved");
        disk.rename(&path, &moved).unwrap();
        assert_eq!(
            copy_manifest(&*disk, &*target, &no_link, &old).unwrap(),
            None
        );
        assert!(matches!(
            copy(&*disk, &*target, &no_link),
            Err(BackupError::TooManyRestarts)
        ));
        disk.rename(&moved, &path).unwrap();
        copy(&*disk, &*target, &no_link).unwrap();
        drop(open(&target, 2));
    }
}
