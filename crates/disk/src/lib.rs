//! A directory of files on a disk. The contract states what is volatile and what is durable.
//!
//! Paths are relative to the directory, with `/` between the parts. A name that was
//! created, renamed or removed is durable after [`Disk::sync_dir`] of its directory; bytes are
//! durable after [`File::sync_data`]; a size that changed, after [`File::sync_all`]. Nothing is
//! durable before. After an error of a sync nothing is known about the bytes it covered, and a
//! second sync proves nothing.

mod measured;
mod read_only;
mod real;
pub mod reserve;
#[cfg(feature = "simulation")]
pub mod simulated;
pub mod spares;
mod stored_bytes;
mod zeros;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

pub use measured::{MeasuredDisk, SyncCounts, SyncTimes};
pub use read_only::ReadOnlyDisk;
pub use real::RealDisk;
#[cfg(feature = "simulation")]
pub use simulated::SimulatedDisk;
pub use stored_bytes::StoredBytes;
pub use zeros::write_zeros;

/// A directory tree.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Creates a file that must not exist yet, empty, for reading and writing.
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn File>>;

    /// Creates a directory, unless it exists.
    fn create_dir(&self, path: &str) -> io::Result<()>;

    /// Lists the names in a directory, sorted; "" is the directory itself.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// Renames a file atomically. An existing file at `to` is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
}

/// An open file. Threads may share it, but must not write overlapping ranges concurrently.
pub trait File: Send + Sync + std::fmt::Debug {
    /// Returns the size in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills the buffer from `offset` on. If the file ends before, the error is
    /// [`io::ErrorKind::UnexpectedEof`].
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Fills the buffer like [`File::read_at`], but without waiting for the device. Returns false if
    /// the bytes are not in memory, or if that is not known.
    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        let _ = (buffer, offset);
        Ok(false)
    }

    /// Returns the descriptor, from which the operating system can send bytes; `None` if it is not a
    /// file of the operating system.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Writes at `offset` and returns the number of bytes written; fewer than given is a short
    /// write.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Allocates disk space for the first `size` bytes, without changing the file's size. It only
    /// makes writing cheaper: success does not guarantee space.
    fn take_room(&self, size: u64) -> io::Result<()> {
        let _ = size;
        Ok(())
    }

    /// Extends the file to `size` bytes, for which it allocates disk space without writing to it:
    /// bytes that were never written read as zeros, as after [`File::set_size`]. A sync of bytes
    /// that are written there for the first time has metadata to write as well.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] if the file system cannot do that.
    fn allocate(&self, size: u64) -> io::Result<()>;

    /// Sends written bytes to the device and waits until it has them. That shortens the next sync
    /// of this file, and concurrent syncs of others. It does not make anything durable.
    fn write_out(&self, offset: u64, size: u64) -> io::Result<()> {
        let _ = (offset, size);
        Ok(())
    }

    /// Begins to send written bytes to the device, without waiting until it has them: the next sync of
    /// this file finds less to do. It does not make anything durable, and an error of the device is
    /// reported by that sync.
    fn begin_write_out(&self, offset: u64, size: u64) -> io::Result<()> {
        let _ = (offset, size);
        Ok(())
    }

    /// Truncates the file, or extends it with zeros.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Makes the bytes durable, and the size if it is needed to read them: `fdatasync`.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes everything about the file durable: `fsync`.
    fn sync_all(&self) -> io::Result<()>;
}

/// A range of bytes of an open file. A file that is removed stays readable as long as it is open.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The file.
    pub file: Arc<dyn File>,
    /// The place of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: usize,
}

impl FileRange {
    /// Reads the bytes.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.size];
        self.file.read_at(&mut bytes, self.offset)?;
        Ok(bytes)
    }
}

impl PartialEq for FileRange {
    fn eq(&self, other: &FileRange) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
            && (self.offset, self.size) == (other.offset, other.size)
    }
}

impl Eq for FileRange {}

/// An I/O error with the path of its file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
struct PathError {
    path: String,
    source: io::Error,
}

/// Adds the path to an error. The error's kind stays.
fn with_path(path: impl Into<String>, source: io::Error) -> io::Error {
    let path = path.into();
    io::Error::new(source.kind(), PathError { path, source })
}

/// Writes all bytes, or fails. A short write is continued, because callers discard the file on any
/// error.
pub fn write_all(file: &dyn File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = file.write_at(bytes, offset)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(count..).unwrap_or_default();
        offset += count as u64;
    }
    Ok(())
}

/// Lists a directory; a missing one is empty.
pub fn list_existing(disk: &dyn Disk, path: &str) -> io::Result<Vec<String>> {
    match disk.list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

/// A failed directory sync: it is unknown which names are durable, and another sync would prove
/// nothing.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct UnsyncedDirectory(io::Error);

/// Makes the names in a directory durable. After an error for which [`is_unsynced`] is true, there
/// must be no retry.
pub fn sync_names(disk: &dyn Disk, path: &str) -> io::Result<()> {
    disk.sync_dir(path).map_err(|error| match error.kind() {
        // Nothing was written; a retry is safe when there is space.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => error,
        kind => io::Error::new(kind, UnsyncedDirectory(error)),
    })
}

/// Returns true if the error is a failed directory sync.
pub fn is_unsynced(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else {
        return false;
    };
    let nested = || inner.downcast_ref::<io::Error>();
    inner.is::<UnsyncedDirectory>() || nested().is_some_and(is_unsynced)
}
