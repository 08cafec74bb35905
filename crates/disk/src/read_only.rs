//! A disk adapter that refuses changes.

use std::fs::File as StdFile;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Disk, File};

/// A directory on which every changing call is an error. Syncs do nothing.
#[derive(Clone, Debug)]
pub struct ReadOnlyDisk {
    root: PathBuf,
}

#[derive(Debug)]
struct ReadOnlyFile(StdFile);

impl ReadOnlyDisk {
    /// Creates a disk with this directory as "".
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn named(&self, path: &str, error: io::Error) -> io::Error {
        let path = self.root.join(path);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for ReadOnlyDisk {
    fn create(&self, _path: &str) -> io::Result<Arc<dyn File>> {
        refused()
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let file = StdFile::open(self.root.join(path)).map_err(|error| self.named(path, error))?;
        Ok(Arc::new(ReadOnlyFile(file)))
    }

    fn create_dir(&self, _path: &str) -> io::Result<()> {
        refused()
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = self.root.join(path).read_dir();
        let names = entries.and_then(|entries| {
            let name = |entry: io::Result<std::fs::DirEntry>| {
                Ok(entry?.file_name().to_string_lossy().into_owned())
            };
            entries.map(name).collect::<io::Result<Vec<String>>>()
        });
        let mut names = names.map_err(|error| self.named(path, error))?;
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _path: &str) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
}

impl File for ReadOnlyFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<usize> {
        refused()
    }

    fn allocate(&self, _size: u64) -> io::Result<()> {
        refused()
    }

    fn set_size(&self, _size: u64) -> io::Result<()> {
        refused()
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}
