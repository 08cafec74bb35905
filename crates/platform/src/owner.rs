//! The check of the data directory's owner: another user who owns it could replace its files.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The superuser, who can replace every file anyway.
const ROOT: u32 = 0;

/// The data directory belongs to another user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the directory {} belongs to user {owner}, the process runs as user {own}", path.display())]
pub struct ForeignOwner {
    /// The directory.
    pub path: PathBuf,
    /// The user id of its owner.
    pub owner: u32,
    /// The user id of this process.
    pub own: u32,
}

/// Checks that a directory belongs to this process's user or to the superuser. A directory that
/// cannot be examined passes; its use will fail.
pub fn check_owner(path: &Path) -> Result<(), ForeignOwner> {
    let own = rustix::process::geteuid().as_raw();
    match std::fs::metadata(path) {
        Ok(metadata) if !is_trusted(metadata.uid(), own) => Err(ForeignOwner {
            path: path.to_owned(),
            owner: metadata.uid(),
            own,
        }),
        _ => Ok(()),
    }
}

/// Returns whether the owner is trusted. A superuser may serve directories of other users, as
/// containers do.
fn is_trusted(owner: u32, own: u32) -> bool {
    owner == own || owner == ROOT || own == ROOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_directory_owned_by_another_user_is_not_trusted() {
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
