//! Fills free memory with cached bytes of a file before a run.
//!
//! A hypervisor that takes free memory back from a virtual machine must give every page again when
//! it is used next. On such a machine a program that writes files pays for the memory that earlier
//! programs freed: its copy into the page cache was measured at a sixth of the normal speed. With
//! memory full of cached bytes, new pages are old ones, as on a server that has run for a while.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::process::proc_size;
use crate::workload::error::WorkloadError;

/// Part of the memory that may stay free.
const FREE_PART: u64 = 32;

/// Interval between two looks at free memory, and the number of looks in a row at which little must be free:
/// brokers delete the files of an earlier run while this reads.
const LOOK: Duration = Duration::from_secs(1);
const CALM_LOOKS: u32 = 3;

/// Maximum number of looks. A run then starts with the memory that is free.
const LOOKS_MAX: u32 = 60;

/// Bytes per read.
const PIECE_SIZE: usize = 16 << 20;

/// A file that fills memory. It consists of a hole: it takes no space on the disk, but memory when it is
/// read. It stays, since the memory of a deleted file is free.
#[derive(Debug)]
pub struct MemoryFill {
    path: PathBuf,
    file: File,
    piece: Vec<u8>,
}

impl MemoryFill {
    /// Opens the file, and creates it if it is missing. It must be on a disk.
    ///
    /// # Errors
    /// When it cannot be written, or the memory of the machine is unknown.
    pub fn open(path: &Path) -> Result<Self, WorkloadError> {
        let open = || {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).read(true).write(true);
            let file = options.open(path)?;
            // As much as there is memory may be cached already.
            file.set_len(2 * meminfo("MemTotal")?)?;
            Ok(file)
        };
        Ok(Self {
            path: path.to_owned(),
            file: open().map_err(|error| WorkloadError::Memory(path.to_owned(), error))?,
            piece: vec![0; PIECE_SIZE],
        })
    }

    /// Reads the file until little memory is free and stays so for some seconds.
    ///
    /// # Errors
    /// When it cannot be read, or the memory of the machine is unknown.
    pub fn fill(&mut self) -> Result<(), WorkloadError> {
        let filled = self.fill_until_calm();
        filled.map_err(|error| WorkloadError::Memory(self.path.clone(), error))
    }

    fn fill_until_calm(&mut self) -> io::Result<()> {
        let wanted = meminfo("MemTotal")? / FREE_PART;
        let mut calm = 0;
        for _ in 0..LOOKS_MAX {
            calm = match meminfo("MemFree")? <= wanted {
                true => calm + 1,
                false => 0,
            };
            if calm == CALM_LOOKS {
                break;
            }
            self.read(wanted)?;
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Reads on until no more than `wanted` bytes of memory are free, or the whole file was read: a
    /// container may not be allowed to use all memory.
    fn read(&mut self, wanted: u64) -> io::Result<()> {
        let mut left = self.file.metadata()?.len();
        while left > 0 && meminfo("MemFree")? > wanted {
            match self.file.read(&mut self.piece)? as u64 {
                0 => self.file.rewind()?,
                size => left = left.saturating_sub(size),
            }
        }
        Ok(())
    }
}

/// Returns a size of `/proc/meminfo` in bytes.
fn meminfo(name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let missing = || io::Error::other(format!("/proc/meminfo has no {name}"));
    proc_size(&text, name).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_takes_no_disk_and_ends_after_the_whole_file() {
        use std::os::unix::fs::MetadataExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fill");
        let mut fill = MemoryFill::open(&path).unwrap();
        assert_eq!(fill.file.metadata().unwrap().blocks(), 0);
        fill.file.set_len(3 * PIECE_SIZE as u64 / 2).unwrap();
        // There is always more free memory than that.
        fill.read(0).unwrap();
        fill.read(0).unwrap();
        // Nothing is read if enough memory is used.
        let position = fill.file.stream_position().unwrap();
        fill.read(u64::MAX).unwrap();
        assert_eq!(fill.file.stream_position().unwrap(), position);
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = MemoryFill::open(Path::new("/proc/none")).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("/proc/none") && text.contains("hint:"),
            "{text}"
        );
    }
}
