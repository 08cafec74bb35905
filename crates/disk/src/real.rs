//! A directory of this machine's file system.
//!
//! Only its owner can read it: directories have mode 0700, files 0600. Every error names the file.
//! Calls are repeated after EINTR; nothing else is retried here, least of all a failed sync.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File as StdFile, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::{Disk, File, with_path};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Descriptors held in reserve for the moment when the process has none left.
const RESERVE_COUNT: usize = 2;

/// A directory tree on the file system.
#[derive(Clone, Debug)]
pub struct RealDisk {
    root: PathBuf,
    descriptors: Arc<Descriptors>,
}

/// Descriptors held open, so that the disk still works when the process has none left.
#[derive(Debug, Default)]
struct Descriptors {
    /// Synced directories, by path: syncing them again needs no new descriptor.
    directories: Mutex<BTreeMap<PathBuf, Arc<StdFile>>>,
    /// Closed one by one when a file cannot be opened for lack of descriptors.
    reserve: Mutex<Vec<StdFile>>,
}

impl RealDisk {
    /// Creates a disk with this directory as "". The directory may be missing: `create_dir("")`
    /// creates it and its parents.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            descriptors: Arc::default(),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        match path {
            "" => self.root.clone(),
            path => self.root.join(path),
        }
    }

    fn open_with(&self, path: &str, options: &mut OpenOptions) -> io::Result<Arc<dyn File>> {
        let path = self.path(path);
        let options = options.read(true).write(true).mode(FILE_MODE);
        let file = self.with_descriptor(|| options.open(&path));
        let file = file.map_err(|error| named(&path, error))?;
        Ok(Arc::new(RealFile { file, path }))
    }

    /// Opens a file; uses a descriptor of the reserve if none is left.
    fn with_descriptor(&self, open: impl Fn() -> io::Result<StdFile>) -> io::Result<StdFile> {
        let opened = open();
        let mut reserve = self.descriptors.reserve.lock();
        match opened {
            Err(error) if is_out_of_descriptors(&error) => {
                if reserve.pop().is_none() {
                    return Err(error);
                }
                open()
            }
            Ok(opened) => {
                if reserve.len() < RESERVE_COUNT
                    && let Ok(kept) = StdFile::open(&self.root)
                {
                    reserve.push(kept);
                }
                Ok(opened)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns an open directory, which stays open from then on.
    fn directory(&self, path: &Path) -> io::Result<Arc<StdFile>> {
        let mut directories = self.descriptors.directories.lock();
        if let Some(directory) = directories.get(path) {
            return Ok(directory.clone());
        }
        let opened = self.with_descriptor(|| StdFile::open(path));
        let directory = Arc::new(opened.map_err(|error| named(path, error))?);
        directories.insert(path.to_owned(), directory.clone());
        Ok(directory)
    }

    /// Creates the root and syncs its parent, because the contract has no call that makes the
    /// root's own name durable.
    fn create_root(&self) -> io::Result<()> {
        let named = |error| named(&self.root, error);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY_MODE);
        builder.create(&self.root).map_err(named)?;
        let root = self.root.canonicalize().map_err(named)?;
        root.parent().map_or(Ok(()), sync_directory)
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.open_with(path, OpenOptions::new().create_new(true))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.open_with(path, &mut OpenOptions::new())
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        if path.is_empty() {
            return self.create_root();
        }
        let path = self.path(path);
        match DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            result => result.map_err(|error| named(&path, error))?,
        }
        // Open it now, so that its syncs need no descriptor later.
        self.directory(&path).map(drop)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let path = self.path(path);
        let names = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in path.read_dir()? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort_unstable();
            Ok(names)
        };
        names().map_err(|error| named(&path, error))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let path = self.path(from);
        std::fs::rename(&path, self.path(to)).map_err(|error| named(&path, error))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.path(path);
        std::fs::remove_file(&path).map_err(|error| named(&path, error))
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        let path = self.path(path);
        let directory = self.directory(&path)?;
        directory.sync_all().map_err(|error| named(&path, error))
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let synced = StdFile::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|error| named(path, error))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    with_path(path.to_string_lossy(), error)
}

#[derive(Debug)]
struct RealFile {
    file: StdFile,
    /// Path at which it was opened.
    path: PathBuf,
}

impl RealFile {
    fn named(&self, error: io::Error) -> io::Error {
        named(&self.path, error)
    }
}

impl File for RealFile {
    fn size(&self) -> io::Result<u64> {
        let metadata = self.file.metadata().map_err(|error| self.named(error))?;
        Ok(metadata.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.file.read_exact_at(buffer, offset);
        read.map_err(|error| self.named(error))
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        let size = buffer.len();
        match read_without_waiting(&self.file, buffer, offset) {
            // A part of it is in memory, or the file ends: the caller reads it with waiting.
            Ok(read) => Ok(read == size),
            // Not in memory; or the file system does not know.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => Ok(false),
            Err(error) => Err(self.named(error.into())),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.write_at(bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|error| self.named(error)),
            }
        }
    }

    fn take_room(&self, size: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, size) {
            // Some file systems do not support it.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::INTR) => Ok(()),
            Err(error) => Err(self.named(error.into())),
        }
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        loop {
            match fallocate(&self.file, FallocateFlags::empty(), 0, size) {
                Err(Errno::INTR) => {}
                // The kernel has two numbers for it.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    return Err(self.named(io::ErrorKind::Unsupported.into()));
                }
                result => return result.map_err(|error| self.named(error.into())),
            }
        }
    }

    fn write_out(&self, offset: u64, size: u64) -> io::Result<()> {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        write_out(&self.file, offset, size, flags).map_err(|error| self.named(error))
    }

    fn begin_write_out(&self, offset: u64, size: u64) -> io::Result<()> {
        // Without waiting, errors of the device stay for the sync.
        let flags = libc::SYNC_FILE_RANGE_WRITE;
        write_out(&self.file, offset, size, flags).map_err(|error| self.named(error))
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size).map_err(|error| self.named(error))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| self.named(error))
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all().map_err(|error| self.named(error))
    }
}

fn read_without_waiting(file: &StdFile, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let mut buffers = [IoSliceMut::new(buffer)];
    preadv2(file, &mut buffers, offset, ReadWriteFlags::NOWAIT)
}

/// Writes dirty pages out without flushing the device cache or committing the file system's
/// journal. A concurrent sync of another file waits for some more bytes, but not for an unrelated
/// commit.
#[expect(unsafe_code, reason = "no safe crate has the call")]
fn write_out(file: &StdFile, offset: u64, size: u64, flags: libc::c_uint) -> io::Result<()> {
    let number = |value: u64| {
        libc::off64_t::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
    };
    let (offset, size) = (number(offset)?, number(size)?);
    // SAFETY: it is given numbers only, and the descriptor is open as long as `file` is borrowed.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset, size, flags) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // The next sync writes them instead.
            error
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ESPIPE | libc::EINTR | libc::ENOSYS)
                ) =>
            {
                Ok(())
            }
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{FileRange, write_all};

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_directories_are_private_to_the_owner() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("above/journal");
        let disk = RealDisk::new(&root);
        disk.create_dir("").unwrap();
        disk.create_dir("line").unwrap();
        disk.create_dir("line").unwrap();
        disk.create("line/a").unwrap();
        assert_eq!(mode(&root), 0o700);
        assert_eq!(mode(&root.join("line")), 0o700);
        assert_eq!(mode(&root.join("line/a")), 0o600);
        for synced in ["", "line"] {
            disk.sync_dir(synced).unwrap();
        }
    }

    #[test]
    fn bytes_may_be_sent_to_the_device_before_their_sync() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(directory.path());
        let file = disk.create("a").unwrap();
        let bytes = vec![7; 300 << 10];
        write_all(&*file, &bytes, 5_000).unwrap();
        file.begin_write_out(4_096, 256 << 10).unwrap();
        write_all(&*file, b"more", 5_000).unwrap();
        file.write_out(0, 8_192).unwrap();
        file.sync_data().unwrap();
        let mut read = vec![0; bytes.len()];
        file.read_at(&mut read, 5_000).unwrap();
        assert_eq!(read[..4], *b"more");
        assert!(read[4..] == bytes[4..]);
    }

    #[test]
    fn cached_bytes_are_read_without_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(directory.path());
        let file = disk.create("a").unwrap();
        file.write_at(b"0123456789", 0).unwrap();
        let mut buffer = [0; 4];
        // Bytes that were just written are in memory, if the file system knows that.
        if file.read_cached(&mut buffer, 3).unwrap() {
            assert_eq!(&buffer, b"3456");
        }
        assert!(!file.read_cached(&mut buffer, 8).unwrap(), "it ends before");
        assert!(file.descriptor().is_some());
        let range = FileRange {
            file,
            offset: 2,
            size: 5,
        };
        assert_eq!(range.read().unwrap(), b"23456");
    }

    #[test]
    fn error_names_the_file_and_has_its_kind() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(directory.path());
        let error = disk.open("line/missing").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let path = directory.path().join("line/missing");
        assert!(
            error.to_string().starts_with(&*path.to_string_lossy()),
            "{error}"
        );
        let file = disk.create("short").unwrap();
        let error = file.read_at(&mut [0; 1], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("short"), "{error}");
    }
}
