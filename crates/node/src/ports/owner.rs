//! Ownership of the data directory: another user who owns it could replace everything in it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The superuser may replace every file anyway.
const ROOT: u32 = 0;

/// The data directory is another user's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the directory {} belongs to user {owner}, the process runs as user {own}", path.display())]
pub struct Foreign {
    /// The directory.
    pub path: PathBuf,
    /// Its owner's number.
    pub owner: u32,
    /// The number of this process' user.
    pub own: u32,
}

/// Checks that a directory belongs to this process' user or to the superuser. One that cannot be
/// looked at is an error of whoever uses it.
pub fn check_owner(path: &Path) -> Result<(), Foreign> {
    let own = rustix::process::geteuid().as_raw();
    match std::fs::metadata(path) {
        Ok(metadata) if !is_trusted(metadata.uid(), own) => Err(Foreign {
            path: path.to_owned(),
            owner: metadata.uid(),
            own,
        }),
        _ => Ok(()),
    }
}

/// A superuser serves directories of other users, as containers do.
fn is_trusted(owner: u32, own: u32) -> bool {
    owner == own || owner == ROOT || own == ROOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_another_user_is_not_trusted() {
        for (owner, own, expected) in [
            (1000, 1000, true),
            (0, 1000, true),
            (1000, 0, true),
            (1001, 1000, false),
        ] {
            assert_eq!(is_trusted(owner, own), expected, "{owner} {own}");
        }
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(check_owner(dir.path()), Ok(()));
        assert_eq!(check_owner(&dir.path().join("missing")), Ok(()));
    }
}
