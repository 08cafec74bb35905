//! Who uses a data directory: looking without changing anything.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::Path;

/// The file that a running node holds locked.
const LOCK_NAME: &str = "node.lock";

/// Whether a node uses the directory.
#[derive(Debug)]
pub(crate) enum Use {
    /// Nobody does.
    Free(Guard),
    /// A node does.
    Held {
        /// Which process, when it said so.
        pid: Option<u32>,
    },
}

/// While this is held nobody can begin to use the directory, if it was ever used.
#[derive(Debug)]
pub(crate) struct Guard {
    _file: Option<File>,
}

/// Looks at the lock of a data directory.
pub(crate) fn look(data: &Path) -> io::Result<Use> {
    let mut file = match File::open(data.join(LOCK_NAME)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Use::Free(Guard { _file: None }));
        }
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Use::Free(Guard { _file: Some(file) })),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.read_to_string(&mut text);
            let pid = read.ok().and_then(|_| text.trim().parse().ok());
            Ok(Use::Held { pid })
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The holder in words.
pub(crate) fn holder(pid: Option<u32>) -> String {
    pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
}

#[cfg(test)]
mod tests {
    use node::ports::{Disk, RealDisk};

    use super::*;

    #[test]
    fn a_directory_that_a_node_uses_names_the_process_and_a_free_one_stays_free() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(look(dir.path()).unwrap(), Use::Free(_)));
        let path = dir.path().join(LOCK_NAME);
        let lock = RealDisk.lock(&path).unwrap();
        let pid = Some(std::process::id());
        assert!(matches!(look(dir.path()).unwrap(), Use::Held { pid: found } if found == pid));
        drop(lock);
        let free = look(dir.path()).unwrap();
        assert!(
            RealDisk.lock(&path).is_err(),
            "nobody begins while it is looked at"
        );
        let Use::Free(guard) = free else {
            panic!("nobody uses it");
        };
        drop(guard);
        RealDisk.lock(&path).unwrap();
    }
}
