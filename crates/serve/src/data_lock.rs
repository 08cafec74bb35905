//! Checks, without changing anything, which process uses a data directory.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::Path;

/// The file that a running node holds locked.
pub(super) const NAME: &str = "node.lock";

/// The use of a data directory.
#[derive(Debug)]
pub enum DirectoryUse {
    /// No node uses the directory.
    Free(Guard),
    /// A node uses the directory.
    Held {
        /// The node's process id, if the lock file has it.
        pid: Option<u32>,
    },
}

/// A shared lock that prevents a node from starting in the directory. It is empty if the directory
/// has never been used.
#[derive(Debug)]
pub struct Guard {
    _file: Option<File>,
}

/// Checks the lock of a data directory.
pub fn check(data: &Path) -> io::Result<DirectoryUse> {
    let mut file = match File::open(data.join(NAME)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(DirectoryUse::Free(Guard { _file: None }));
        }
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(DirectoryUse::Free(Guard { _file: Some(file) })),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.read_to_string(&mut text);
            let pid = read.ok().and_then(|_| text.trim().parse().ok());
            Ok(DirectoryUse::Held { pid })
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Describes the process that holds the lock.
pub fn holder(pid: Option<u32>) -> String {
    pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
}

#[cfg(test)]
mod tests {
    use platform::{Disk, RealDisk};

    use super::*;

    #[test]
    fn data_lock_check_names_the_holder_or_blocks_new_nodes() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(check(dir.path()).unwrap(), DirectoryUse::Free(_)));
        let path = dir.path().join(NAME);
        let lock = RealDisk.lock(&path).unwrap();
        let pid = Some(std::process::id());
        assert!(
            matches!(check(dir.path()).unwrap(), DirectoryUse::Held { pid: found } if found == pid)
        );
        drop(lock);
        let free = check(dir.path()).unwrap();
        assert!(
            RealDisk.lock(&path).is_err(),
            "no node can start while the guard is held"
        );
        let DirectoryUse::Free(guard) = free else {
            panic!("the directory is free");
        };
        drop(guard);
        RealDisk.lock(&path).unwrap();
    }
}
