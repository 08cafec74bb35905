//! The disk as the journal needs it: what is volatile and what is durable is part of the contract.
//!
//! Paths are relative to the journal's directory, with `/` between the parts. A name that was
//! created, renamed or removed is durable after [`Disk::sync_dir`] of its directory; bytes are
//! durable after [`File::sync_data`]; a size that changed, after [`File::sync_all`]. Nothing is
//! durable before. After an error of a sync nothing is known about the bytes it covered, and a
//! second sync proves nothing.

mod real;
#[cfg(feature = "simulation")]
pub mod simulated;

use std::io;
use std::sync::Arc;

pub use real::RealDisk;
#[cfg(feature = "simulation")]
pub use simulated::SimulatedDisk;

/// A directory tree.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Creates a file that must not exist yet, empty, for reading and writing.
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>>;

    /// Opens a file that exists, for reading and writing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn File>>;

    /// Creates a directory; one that exists is as good.
    fn create_dir(&self, path: &str) -> io::Result<()>;

    /// The names in a directory, sorted; "" is the journal's own.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// Gives a file another name; a file that has it is replaced, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
}

/// An open file. It may be used from several threads; writes that overlap are the caller's fault.
pub trait File: Send + Sync + std::fmt::Debug {
    /// Bytes in the file.
    fn size(&self) -> io::Result<u64>;

    /// Fills the buffer from there; an end before it is full is [`io::ErrorKind::UnexpectedEof`].
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes from there on and says how many bytes; fewer than asked for is a short write.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Takes room for the bytes up to there ahead of their being written; the size stays. Without
    /// an error there may still be no room: it is there to make writing cheap.
    fn take_room(&self, size: u64) -> io::Result<()> {
        let _ = size;
        Ok(())
    }

    /// Sends bytes that were written to the device and waits until it has them, so that the sync
    /// behind it, and everybody else's meanwhile, is short. It promises nothing.
    fn write_out(&self, offset: u64, size: u64) -> io::Result<()> {
        let _ = (offset, size);
        Ok(())
    }

    /// Cuts the file or extends it with zeros.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Makes the bytes durable, and the size if it is needed to read them: `fdatasync`.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes everything about the file durable: `fsync`.
    fn sync_all(&self) -> io::Result<()>;
}

/// What went wrong, and with which file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
struct PathError {
    path: String,
    source: io::Error,
}

/// The same error, of the same kind, that names the file.
fn at(path: impl Into<String>, source: io::Error) -> io::Error {
    let path = path.into();
    io::Error::new(source.kind(), PathError { path, source })
}

/// It is not known which names of a directory are durable, and another sync would prove nothing.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct UnsyncedDirectory(io::Error);

/// Makes the names in a directory durable. An error for which [`is_unsynced`] holds must not be
/// followed by another try.
pub(crate) fn sync_names(disk: &dyn Disk, path: &str) -> io::Result<()> {
    disk.sync_dir(path).map_err(|error| match error.kind() {
        // Nothing was written, and there may be room later.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => error,
        kind => io::Error::new(kind, UnsyncedDirectory(error)),
    })
}

/// Whether an error says that the sync of a directory failed.
pub(crate) fn is_unsynced(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else {
        return false;
    };
    let nested = || inner.downcast_ref::<io::Error>();
    inner.is::<UnsyncedDirectory>() || nested().is_some_and(is_unsynced)
}
