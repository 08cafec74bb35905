//! Wait until a journal has prepared its spare segments, so that writing their zeros is not
//! measured.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::workload::role::Failure;
use meter::clock::now_ns;

/// Maximum time to prepare spare segments, which means writing zeros.
const LIMIT: Duration = Duration::from_secs(60);

/// Interval between two checks of the directory, and the number of idle checks in a row that are
/// required.
const LOOK: Duration = Duration::from_millis(10);
const CALM_LOOKS: u32 = 20;

/// Waits until the journal in a directory is idle.
///
/// # Errors
/// When the directory cannot be read, or has no spare segment in time.
pub fn wait(directory: &Path) -> Result<(), Failure> {
    let limit_ns = now_ns() + LIMIT.as_nanos() as u64;
    let mut calm = 0;
    while calm < CALM_LOOKS {
        calm = if is_at_rest(directory)? { calm + 1 } else { 0 };
        if now_ns() > limit_ns {
            return Err("the journal prepared no spare segment in 60 s: is the disk full?".into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Returns true if there is a spare segment and no unfinished file.
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
