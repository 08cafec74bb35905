//! A file that is only ever overwritten: filled with zeros and synced before it is used, so that a
//! later sync has data to write and no metadata.
//!
//! Appends go on from where the last one ended and start over at the front before the file would
//! grow. The buffer's address is congruent to the file's offset modulo the page, because copying
//! into the page cache is many times slower when the two are a few bytes apart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process;

use super::{Failure, Flags, Outcome, monotonic_ns};

const PAGE_SIZE: usize = 4096;
/// Bytes that one write carries at most.
const WRITE_SIZE_MAX: usize = 1 << 20;

/// The file. It is removed when the value is dropped.
pub struct ZeroedFile {
    file: File,
    path: PathBuf,
    size: u64,
    offset: u64,
    buffer: Vec<u8>,
    /// Where in the buffer a page begins.
    page_start: usize,
}

impl ZeroedFile {
    /// The path the file will have, so that it can be removed whatever happens.
    pub fn path_in(dir: &Path) -> PathBuf {
        dir.join(format!("floors-{}.zeroed", process::id()))
    }

    /// Creates, fills and syncs a file of `size` bytes.
    pub fn create(path: PathBuf, size: u64) -> Outcome<ZeroedFile> {
        match fill(&path, size) {
            Ok(file) => {
                let buffer = vec![0; WRITE_SIZE_MAX + 2 * PAGE_SIZE];
                let page_start = buffer.as_ptr().align_offset(PAGE_SIZE);
                Ok(ZeroedFile {
                    file,
                    path,
                    size,
                    offset: 0,
                    buffer,
                    page_start,
                })
            }
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(Failure::run(
                    format!("cannot fill {}: {error}", path.display()),
                    "give --dir a directory with room for --file-mib MiB",
                ))
            }
        }
    }

    /// Appends all bytes and syncs once. Returns the nanoseconds that the sync took.
    pub fn append(&mut self, mut bytes: &[u8]) -> io::Result<u64> {
        while !bytes.is_empty() {
            if self.offset == self.size {
                self.offset = 0;
            }
            let room = (self.size - self.offset).min(WRITE_SIZE_MAX as u64) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            let start = self.page_start + self.offset as usize % PAGE_SIZE;
            let aligned = &mut self.buffer[start..start + now.len()];
            aligned.copy_from_slice(now);
            self.file.write_all_at(aligned, self.offset)?;
            self.offset += now.len() as u64;
            bytes = later;
        }
        let start_ns = monotonic_ns();
        self.file.sync_data()?;
        Ok(monotonic_ns() - start_ns)
    }

    /// Ends the program with 1, having removed the file: what was handed over is not on disk.
    pub fn fail(&self, error: &io::Error) -> ! {
        let _ = writeln!(
            io::stderr(),
            "floors: cannot append or sync: {error}\nhint: is the disk of --dir healthy and not full?"
        );
        let _ = fs::remove_file(&self.path);
        process::exit(1)
    }
}

impl Drop for ZeroedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes `--dir` and `--file-mib`: where the file goes and how many bytes it has.
pub fn take_place(flags: &mut Flags) -> Outcome<(PathBuf, u64)> {
    let dir: PathBuf = flags.require("dir")?;
    let size = flags.number("file-mib", 256, 1, 64 << 10)? << 20;
    Ok((ZeroedFile::path_in(&dir), size))
}

fn fill(path: &Path, size: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    let mut left = size;
    while left > 0 {
        let part = left.min(zeros.len() as u64) as usize;
        file.write_all(&zeros[..part])?;
        left -= part as u64;
    }
    file.sync_all()?;
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all()?,
        _ => File::open(".")?.sync_all()?,
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn appends_follow_each_other_and_start_over_without_growing_the_file() {
        let path = env::temp_dir().join(format!("floors-test-{}.zeroed", process::id()));
        let size = 3 << 20;
        let mut zeroed = ZeroedFile::create(path.clone(), size).unwrap();
        assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 0));

        let mut expected = vec![0u8; size as usize];
        let mut offset = 0;
        for round in 1..40u8 {
            let bytes = vec![round; 100_003 * usize::from(round % 17) + 1];
            zeroed.append(&bytes).unwrap();
            for byte in bytes {
                if offset == expected.len() {
                    offset = 0;
                }
                expected[offset] = byte;
                offset += 1;
            }
        }
        assert!(
            fs::read(&path).unwrap() == expected,
            "the file holds something else"
        );
        drop(zeroed);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let failure = ZeroedFile::create("/nowhere/file".into(), 1 << 20)
            .map(drop)
            .unwrap_err();
        assert!(failure.to_string().contains("cannot fill /nowhere/file"));
    }
}
