//! Check of free disk space before a load.

use std::path::Path;

use bench::format::bytes;
use bench::workload::error::WorkloadError;

/// Returns the maximum bytes of disk for `messages` messages: text and overhead, in the write-ahead
/// log, in the extent, and in the copy made by merging.
pub(crate) fn needed_bytes(messages: u64, size: u64) -> u64 {
    /// Overhead: name, role, facts, event and headers.
    const AROUND: u64 = 250;
    messages.saturating_mul((size + AROUND) * 3)
}

/// Fails unless there are `needed` bytes of free space, and some spare.
pub(crate) fn check(directory: &Path, needed: u64) -> Result<(), WorkloadError> {
    let free = free_bytes(directory)?;
    let needed = needed.saturating_add(SPARE);
    match free >= needed {
        true => Ok(()),
        false => Err(WorkloadError::Nothing(
            format!(
                "the disk of --dir has {} free, the load may need {}",
                bytes(free),
                bytes(needed)
            ),
            "give --dir on a larger disk, or reduce the load",
        )),
    }
}

/// Space that is left for other programs.
const SPARE: u64 = 1 << 30;

/// Returns the free space at a directory.
pub(crate) fn free_bytes(directory: &Path) -> Result<u64, WorkloadError> {
    let stats = rustix::fs::statvfs(directory);
    let stats = stats.map_err(|error| WorkloadError::Directory(error.into()))?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}

/// Returns the disk usage of the files below a directory.
pub(crate) fn used_bytes(directory: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut sum = 0;
    for entry in directory.read_dir()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        sum += match (kind.is_dir(), kind.is_file()) {
            (true, _) => used_bytes(&entry.path())?,
            // `st_blocks` is in units of 512 bytes, independent of the file system (stat(2)).
            (_, true) => entry.metadata()?.blocks() * 512,
            _ => 0,
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_disk_space_is_an_error_before_any_write() {
        let directory = tempfile::tempdir().unwrap();
        check(directory.path(), 0).unwrap();
        let error = check(directory.path(), u64::MAX / 2)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(" free, the load may need ") && error.contains("hint: "),
            "{error}"
        );
        assert!(check(Path::new("/no/such/place"), 0).is_err());
    }

    #[test]
    fn disk_usage_is_summed_over_all_directories() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("below")).unwrap();
        assert_eq!(used_bytes(directory.path()).unwrap(), 0);
        std::fs::write(directory.path().join("below/file"), vec![1; 100_000]).unwrap();
        assert!(used_bytes(directory.path()).unwrap() >= 100_000);
    }
}
