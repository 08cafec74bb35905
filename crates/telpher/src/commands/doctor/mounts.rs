//! What a path is on, as the kernel lists it in `/proc/self/mountinfo` (proc(5)).

use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    /// `ext4`, `tmpfs`, ...
    pub(super) kind: String,
    /// What is mounted: a device, a server's path.
    pub(super) source: String,
    pub(super) read_only: bool,
}

/// What a sync on it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// A disk of this machine.
    Disk,
    /// Memory.
    Memory,
    /// A server, or a program that plays a file system.
    Elsewhere,
    /// A layer over others.
    Layered,
}

impl Mount {
    pub(super) fn nature(&self) -> Nature {
        match self.kind.as_str() {
            "tmpfs" | "ramfs" | "devtmpfs" => Nature::Memory,
            "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "virtiofs" | "ceph" | "glusterfs" => {
                Nature::Elsewhere
            }
            kind if kind == "fuse" || kind.starts_with("fuse.") => Nature::Elsewhere,
            "overlay" | "aufs" => Nature::Layered,
            _ => Nature::Disk,
        }
    }
}

/// The mount that holds a path.
pub(super) fn of(path: &Path) -> Option<Mount> {
    let path = path.canonicalize().ok()?;
    find(
        &std::fs::read_to_string("/proc/self/mountinfo").ok()?,
        &path,
    )
}

/// The longest mount point above the path; of several at one place the last covers the others.
fn find(mounts: &str, path: &Path) -> Option<Mount> {
    let all = mounts.lines().filter_map(parse);
    let above = all.filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

/// `id parent major:minor root point options [optional ...] - kind source options`.
fn parse(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(4);
    let (point, options) = (front.next()?, front.next()?);
    let mut back = back.split(' ');
    let (kind, source) = (back.next()?, back.next()?);
    let super_options = back.next().unwrap_or_default();
    let is_read_only = |options: &str| options.split(',').any(|one| one == "ro");
    Some(Mount {
        point: unescape(point).into(),
        kind: kind.to_owned(),
        source: unescape(source),
        read_only: is_read_only(options) || is_read_only(super_options),
    })
}

/// Blanks and the like are three octal digits behind a backslash.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1024k
31 22 0:26 / /srv/my\\040data ro,relatime master:3 - nfs4 host:/x rw,vers=4.2
32 22 0:27 / /srv rw - fuse.sshfs host: rw
33 32 254:2 / /srv rw - xfs /dev/vdb rw
";

    #[test]
    fn the_longest_mount_point_wins_and_the_last_of_several() {
        let of = |path: &str| find(MOUNTS, Path::new(path)).unwrap();
        assert_eq!(
            (of("/home/a").kind, of("/tmp/x").kind),
            ("ext4".into(), "tmpfs".into())
        );
        assert_eq!(of("/tmpfoo").point, Path::new("/"));
        let srv = of("/srv/b");
        assert_eq!((srv.kind.as_str(), srv.nature()), ("xfs", Nature::Disk));
        let data = of("/srv/my data/line");
        assert!(data.read_only);
        assert_eq!(
            (data.nature(), data.source.as_str()),
            (Nature::Elsewhere, "host:/x")
        );
        assert_eq!(find("nonsense\n\n - \n", Path::new("/")), None);
    }

    #[test]
    fn this_machine_knows_what_its_directories_are_on() {
        let here = of(Path::new(".")).unwrap();
        assert!(
            Path::new(".")
                .canonicalize()
                .unwrap()
                .starts_with(here.point)
        );
    }
}
