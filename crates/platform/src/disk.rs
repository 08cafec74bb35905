//! Small files of the node: configuration, tokens and locks.
//!
//! A write is complete and durable when the call returns. A reader sees the old or the new bytes,
//! never a mixture, also after a power failure. Files and directories are accessible by their user
//! only (0600, directories 0700). Every error names the action and the path.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// A disk, real or simulated.
pub trait Disk: Send + Sync {
    /// Reads the whole file; `None` if it does not exist.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, DiskError>;

    /// Replaces the file, or creates it.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError>;

    /// Creates the directory and missing parents.
    fn create_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Removes the file; a missing file is no error.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// Returns the names in the directory, sorted.
    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, DiskError>;

    /// Takes the lock file for this process, without waiting. The lock ends when the guard is
    /// dropped or the process ends in any way.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, LockError>;
}

/// A lock that is held until it is dropped.
pub trait Lock: Send + Sync + std::fmt::Debug {}

/// A failed action on a path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {cause}", path.display())]
pub struct DiskError {
    /// The action: `read`, `write`, ...
    pub action: &'static str,
    /// The path.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub cause: io::Error,
}

/// The reason why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("{} is in use{}", path.display(), holder(*.pid))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, if the file names it.
        pid: Option<u32>,
    },
    /// The file cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" by process {pid}"))
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, DiskError> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(error("read", path, cause)),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let temporary = beside(path);
        let written = write_new(&temporary, bytes)
            .and_then(|()| std::fs::rename(&temporary, path))
            .and_then(|()| sync_dir(parent(path)));
        if written.is_err() {
            // The temporary file is useless; the first error is the one to report.
            let _ = std::fs::remove_file(&temporary);
        }
        written.map_err(|cause| error("write", path, cause))
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        if path.is_dir() {
            return Ok(());
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .and_then(|()| sync_dir(parent(path)))
            .map_err(|cause| error("create the directory", path, cause))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        match std::fs::remove_file(path).and_then(|()| sync_dir(parent(path))) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(error("remove", path, cause))
            }
            _ => Ok(()),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, DiskError> {
        let names = || -> io::Result<Vec<PathBuf>> {
            std::fs::read_dir(path)?
                .map(|entry| Ok(entry?.file_name().into()))
                .collect()
        };
        let mut names = names().map_err(|cause| error("list", path, cause))?;
        names.sort();
        Ok(names)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        let failed = |cause| error("lock", path, cause);
        let mut file = open(OpenOptions::new().read(true).create(true), path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                // The process id is only for display; the lock does not depend on it.
                file.set_len(0)
                    .and_then(|()| write!(file, "{}", std::process::id()))
                    .map_err(failed)?;
                Ok(Box::new(FileLock { _file: file }))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_| text.parse().ok());
                Err(LockError::Held {
                    path: path.to_owned(),
                    pid,
                })
            }
            Err(TryLockError::Error(cause)) => Err(failed(cause).into()),
        }
    }
}

#[derive(Debug)]
struct FileLock {
    _file: File,
}

impl Lock for FileLock {}

fn error(action: &'static str, path: &Path, cause: io::Error) -> DiskError {
    DiskError {
        action,
        path: path.to_owned(),
        cause,
    }
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // A symbolic link that another user created is not followed.
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    options
        .write(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Removes a temporary file of an earlier process with the same id.
    match std::fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    let mut file = open(OpenOptions::new().create_new(true), path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Returns a name in the same directory that only this process uses, so that the rename is atomic.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn written_file_reads_back_and_has_mode_0600() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/file");
        RealDisk.create_dir(path.parent().unwrap()).unwrap();
        assert_eq!(RealDisk.read(&path).unwrap(), None);
        RealDisk.write(&path, b"old and long").unwrap();
        RealDisk.write(&path, b"new").unwrap();
        assert_eq!(RealDisk.read(&path).unwrap().as_deref(), Some(&b"new"[..]));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        assert_eq!(
            RealDisk.list(path.parent().unwrap()).unwrap(),
            [PathBuf::from("file")]
        );
        RealDisk.remove(&path).unwrap();
        RealDisk.remove(&path).unwrap();
        assert_eq!(RealDisk.read(&path).unwrap(), None);
    }

    #[test]
    fn every_error_names_the_action_and_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        RealDisk.write(&file, b"").unwrap();
        let below = file.join("below");
        let text = below.display().to_string();
        let errors = [
            RealDisk.read(&below).map(drop).unwrap_err(),
            RealDisk.write(&below, b"").unwrap_err(),
            RealDisk.create_dir(&below).unwrap_err(),
            RealDisk.remove(&below).unwrap_err(),
            RealDisk.list(&below).map(drop).unwrap_err(),
        ];
        for error in errors {
            let message = error.to_string();
            assert!(
                message.contains(error.action) && message.contains(&text),
                "{message}"
            );
        }
        assert!(matches!(RealDisk.lock(&below), Err(LockError::Disk(_))));
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::create_dir(&target).unwrap();
        RealDisk.write(&target, b"bytes").unwrap_err();
        assert_eq!(
            RealDisk.list(dir.path()).unwrap(),
            [PathBuf::from("target")]
        );
    }

    #[test]
    fn links_are_neither_followed_nor_truncated() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "untouched").unwrap();
        let link = dir.path().join("node.lock");
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(matches!(RealDisk.lock(&link), Err(LockError::Disk(_))));
        let target = dir.path().join("tokens.toml");
        std::os::unix::fs::symlink(&victim, beside(&target)).unwrap();
        RealDisk.write(&target, b"new").unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"untouched");
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn held_lock_is_refused_with_the_holders_process_id() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = RealDisk.lock(&path).unwrap();
        let refused = RealDisk.lock(&path).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains(&std::process::id().to_string()),
            "{refused}"
        );
        drop(held);
        RealDisk.lock(&path).unwrap();
    }
}
