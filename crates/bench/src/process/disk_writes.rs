//! Bytes written to a disk, from the kernel's counters.
//!
//! The bytes that `/proc/PID/io` counts for a process are not usable: with large folios the kernel
//! counts up to megabytes for a write of a few hundred bytes. The device's counter has the real
//! bytes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Unit of the device's counter, independent of its sector size
/// (Documentation/admin-guide/iostats.rst).
const SECTOR_SIZE: u64 = 512;

/// Returns the bytes written so far, by all processes, to the device that holds a path. `None` if
/// there is no such device: in memory, over a network, on layered file systems.
#[must_use]
pub fn written_bytes(path: &Path) -> Option<u64> {
    let device = fs::metadata(path).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let sectors = parse(&fs::read_to_string("/proc/diskstats").ok()?, major, minor)?;
    Some(sectors * SECTOR_SIZE)
}

/// Parses `major minor name reads merged sectors ms writes merged sectors …`: the second `sectors`.
fn parse(stats: &str, major: u32, minor: u32) -> Option<u64> {
    let device = [major.to_string(), minor.to_string()];
    let is_it = |line: &&str| line.split_whitespace().take(2).eq(&device);
    let line = stats.lines().find(is_it)?;
    line.split_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sectors_that_were_written_are_those_of_the_device() {
        let stats = " 254       0 vda 10 1 200 5 30 4 4096 7 0 8 9\n 254       1 vda1 1 1 2 5 3 4 77 7 0 8 9\n";
        assert_eq!(parse(stats, 254, 0), Some(4096));
        assert_eq!(parse(stats, 254, 1), Some(77));
        assert_eq!(parse(stats, 8, 0), None);
        assert_eq!(parse("", 8, 0), None);
    }
}
