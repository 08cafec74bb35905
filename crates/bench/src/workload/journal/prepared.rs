//! Waiting until a journal has made what it keeps ahead, so that its zeros are not measured.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::clock::now_ns;
use crate::workload::role::Failure;

/// How long it may take to prepare spare segments, which is writing zeros.
const LIMIT: Duration = Duration::from_secs(60);

/// The directory is looked at so often, and must be seen at rest so often in a row.
const LOOK: Duration = Duration::from_millis(10);
const CALM_LOOKS: u32 = 20;

/// Waits until the journal in a directory is at rest.
pub(in crate::workload) fn wait(directory: &Path) -> Result<(), Failure> {
    let limit_ns = now_ns() + LIMIT.as_nanos() as u64;
    let mut calm = 0;
    while calm < CALM_LOOKS {
        calm = if is_at_rest(directory)? { calm + 1 } else { 0 };
        if now_ns() > limit_ns {
            return Err("the journal prepares no spare segments: is the disk full?".into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Whether there is a spare, and nothing is being made.
fn is_at_rest(directory: &Path) -> io::Result<bool> {
    let (line, all) = (names(&directory.join("line"))?, names(directory)?);
    let is_unfinished = |name: &String| name.ends_with(".new");
    let is_spare = |name: &String| name.starts_with("spare-") && !is_unfinished(name);
    Ok(line.iter().any(is_spare) && !line.iter().chain(&all).any(is_unfinished))
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = directory.read_dir()?;
    let name = |entry: io::Result<std::fs::DirEntry>| {
        Ok(entry?.file_name().to_string_lossy().into_owned())
    };
    entries.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_at_rest_with_a_spare_and_nothing_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        let line = dir.path().join("line");
        std::fs::create_dir(&line).unwrap();
        assert!(!is_at_rest(dir.path()).unwrap());
        std::fs::write(line.join("spare-1.seg"), "").unwrap();
        assert!(is_at_rest(dir.path()).unwrap());
        std::fs::write(line.join("spare-2.new"), "").unwrap();
        assert!(!is_at_rest(dir.path()).unwrap());
    }
}
