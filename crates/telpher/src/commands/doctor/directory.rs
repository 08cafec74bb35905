//! The data directory: who uses it, what it is on, how much room there is.

use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use serde_json::json;

use super::{Finding, bytes, mounts};
use crate::data_lock::{self, Use};

/// Less than this, and a node cannot even prepare its first segments.
const FREE_FAIL: u64 = 512 << 20;

/// Less than this is soon used up.
const FREE_WARN: u64 = 4 << 30;

/// Whether a node runs with the directory: then its ports are taken, and rightly so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InUse {
    Yes,
    No,
}

pub(super) fn check_use(dir: &Path) -> (Finding, InUse) {
    const CHECK: &str = "lock";
    match data_lock::look(dir) {
        Ok(Use::Free(guard)) => {
            // A node may begin to while the rest is checked.
            drop(guard);
            (Finding::ok(CHECK, "no node uses the directory"), InUse::No)
        }
        Ok(Use::Held { pid }) => {
            let detail = format!("{} uses the directory", data_lock::holder(pid));
            let hint =
                "that is a running node; a second one needs a directory of its own: --data PATH";
            (Finding::warn(CHECK, detail, hint), InUse::Yes)
        }
        Err(error) => {
            let detail = format!("cannot look at the lock of {}: {error}", dir.display());
            let hint = "the node must run as the user that the directory belongs to";
            (Finding::fail(CHECK, detail, hint), InUse::No)
        }
    }
}

/// The directory, or the one above it that would hold it.
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
                "choose a directory that this user may write to: --data PATH",
            )
        }
        Ok(_) if dir.is_dir() => {
            Finding::ok(CHECK, format!("{shown} is there and can be written to"))
        }
        Ok(_) => Finding::ok(CHECK, format!("{shown} is not there yet and can be made")),
    }
}

fn check_file_system(place: &Path) -> Finding {
    const CHECK: &str = "file system";
    let Some(mount) = mounts::of(place) else {
        return Finding::warn(
            CHECK,
            format!("the mount of {} is not known", place.display()),
            "/proc/self/mountinfo cannot be read: is /proc mounted?",
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
            "nothing there survives a restart of the machine, whatever was acknowledged",
        ),
        mounts::Nature::Elsewhere => Finding::warn(
            CHECK,
            format!("{detail}: another machine or program keeps it"),
            "a sync is worth what that side makes of it; a local disk is the safe choice",
        ),
        mounts::Nature::Layered => Finding::warn(
            CHECK,
            format!("{detail}: a container's own layer"),
            "it goes with the container: mount a volume for --data",
        ),
    };
    finding.figures(figures)
}

fn check_room(place: &Path) -> Finding {
    const CHECK: &str = "room";
    let stat = match statvfs(place) {
        Ok(stat) => stat,
        Err(error) => {
            let detail = format!("cannot ask how much room {} has: {error}", place.display());
            return Finding::warn(CHECK, detail, "look with `df`");
        }
    };
    let unit = stat.f_frsize.max(1);
    let (free, size) = (
        stat.f_bavail.saturating_mul(unit),
        stat.f_blocks.saturating_mul(unit),
    );
    let no_names = stat.f_files > 0 && stat.f_favail == 0;
    let detail = format!("{} free of {}", bytes(free), bytes(size));
    let hint =
        "make room, or choose another disk with --data: when it is full, appends are refused";
    let finding = match free {
        _ if no_names => Finding::fail(CHECK, "no inode is free", "remove files that nobody needs"),
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
    fn a_directory_that_is_not_there_is_judged_by_the_one_that_will_hold_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nearest(&dir.path().join("a/b")), dir.path());
        assert_eq!(
            nearest(Path::new("no-such-directory-here/b")),
            Path::new(".")
        );
        let missing = dir.path().join("a/b");
        let finding = check_directory(&missing, &nearest(&missing));
        assert!(
            finding.detail.ends_with("can be made"),
            "{}",
            finding.detail
        );
        assert!(
            dir.path().read_dir().unwrap().next().is_none(),
            "nothing is left behind"
        );
    }
}
