//! Checks of the data directory: lock, permissions, file system and free space.

use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use serde_json::json;

use super::finding::{Finding, bytes};
use super::mounts;
use crate::data_lock::{self, DirectoryUse};

/// Free bytes below which a node cannot allocate its first segments.
const FREE_FAIL: u64 = 512 << 20;

/// Free bytes below which a warning is given.
const FREE_WARN: u64 = 4 << 30;

/// Tells if a node runs with the directory. If so, its ports are in use by that node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InUse {
    Yes,
    No,
}

pub(super) fn check_use(dir: &Path) -> (Finding, InUse) {
    const CHECK: &str = "lock";
    match data_lock::check(dir) {
        Ok(DirectoryUse::Free(guard)) => {
            // A node may start while the other checks run.
            drop(guard);
            (Finding::ok(CHECK, "no node uses the directory"), InUse::No)
        }
        Ok(DirectoryUse::Held { pid }) => {
            let detail = format!("{} uses the directory", data_lock::holder(pid));
            let hint = "a node is running; a second node needs its own directory: --data PATH";
            (Finding::warn(CHECK, detail, hint), InUse::Yes)
        }
        Err(error) => {
            let detail = format!("cannot check the lock of {}: {error}", dir.display());
            let hint = "run as the user that owns the directory";
            (Finding::fail(CHECK, detail, hint), InUse::No)
        }
    }
}

/// Returns the directory, or its nearest existing parent.
pub(super) fn nearest(dir: &Path) -> PathBuf {
    let exists = dir.ancestors().find(|one| one.is_dir());
    match exists {
        Some(found) if found != Path::new("") => found.to_owned(),
        _ => PathBuf::from("."),
    }
}

pub(super) fn check(dir: &Path) -> Vec<Finding> {
    let place = nearest(dir);
    vec![
        check_directory(dir, &place),
        check_file_system(&place),
        check_room(&place),
    ]
}

fn check_directory(dir: &Path, place: &Path) -> Finding {
    const CHECK: &str = "directory";
    let probe = tempfile::Builder::new()
        .prefix(".telpher-doctor-")
        .tempfile_in(place);
    let shown = dir.display();
    match probe {
        Err(error) => {
            let detail = format!("cannot write in {}: {error}", place.display());
            Finding::fail(
                CHECK,
                detail,
                "choose a directory that is writable for this user: --data PATH",
            )
        }
        Ok(_) if dir.is_dir() => Finding::ok(CHECK, format!("{shown} exists and is writable")),
        Ok(_) => Finding::ok(CHECK, format!("{shown} does not exist and can be created")),
    }
}

fn check_file_system(place: &Path) -> Finding {
    const CHECK: &str = "file system";
    let Some(mount) = mounts::of(place) else {
        return Finding::warn(
            CHECK,
            format!("the mount of {} is unknown", place.display()),
            "cannot read /proc/self/mountinfo: check that /proc is mounted",
        );
    };
    let detail = format!(
        "{} at {} ({})",
        mount.kind,
        mount.point.display(),
        mount.source
    );
    let figures = json!({
        "kind": mount.kind,
        "mount": mount.point.display().to_string(),
        "source": mount.source,
        "read_only": mount.read_only,
    });
    let finding = match mount.nature() {
        _ if mount.read_only => Finding::fail(
            CHECK,
            format!("{detail}, read-only"),
            "mount it for writing, or choose another --data",
        ),
        mounts::Nature::Disk => Finding::ok(CHECK, detail),
        mounts::Nature::Memory => Finding::warn(
            CHECK,
            format!("{detail}: memory"),
            "all data is lost when the machine restarts, even acknowledged data",
        ),
        mounts::Nature::Remote => Finding::warn(
            CHECK,
            format!("{detail}: network or user-space file system"),
            "a sync may not reach a disk there; use a local disk",
        ),
        mounts::Nature::Layered => Finding::warn(
            CHECK,
            format!("{detail}: writable layer of a container"),
            "data is lost with the container: mount a volume for --data",
        ),
    };
    finding.figures(figures)
}

fn check_room(place: &Path) -> Finding {
    const CHECK: &str = "room";
    let stat = match statvfs(place) {
        Ok(stat) => stat,
        Err(error) => {
            let detail = format!("cannot read the free space of {}: {error}", place.display());
            return Finding::warn(CHECK, detail, "check it with `df`");
        }
    };
    let unit = stat.f_frsize.max(1);
    let (free, size) = (
        stat.f_bavail.saturating_mul(unit),
        stat.f_blocks.saturating_mul(unit),
    );
    let is_out_of_inodes = stat.f_files > 0 && stat.f_favail == 0;
    let detail = format!("{} free of {}", bytes(free), bytes(size));
    let hint = "free space, or choose another disk with --data: appends are refused on a full disk";
    let finding = match free {
        _ if is_out_of_inodes => {
            Finding::fail(CHECK, "no inode is free", "remove files you do not need")
        }
        0..FREE_FAIL => Finding::fail(CHECK, detail, hint),
        FREE_FAIL..FREE_WARN => Finding::warn(CHECK, detail, hint),
        _ => Finding::ok(CHECK, detail),
    };
    finding.figures(json!({ "free_bytes": free, "size_bytes": size }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_is_checked_by_its_existing_parent() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nearest(&dir.path().join("a/b")), dir.path());
        assert_eq!(
            nearest(Path::new("no-such-directory-here/b")),
            Path::new(".")
        );
        let missing = dir.path().join("a/b");
        let finding = check_directory(&missing, &nearest(&missing));
        assert!(
            finding.detail.ends_with("can be created"),
            "{}",
            finding.detail
        );
        assert!(
            dir.path().read_dir().unwrap().next().is_none(),
            "nothing is left behind"
        );
    }
}
