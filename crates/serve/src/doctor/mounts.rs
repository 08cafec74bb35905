//! The mount of a path, as the kernel lists it in `/proc/self/mountinfo` (proc(5)).

use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    /// `ext4`, `tmpfs`, ...
    pub(super) kind: String,
    /// The mounted device or the server's path.
    pub(super) source: String,
    pub(super) read_only: bool,
}

/// The kind of storage behind a mount, which decides if a sync makes data durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// A disk of this machine.
    Disk,
    /// Memory.
    Memory,
    /// A network file system, or one in user space.
    Remote,
    /// A layer of an overlay.
    Layered,
}

impl Mount {
    pub(super) fn nature(&self) -> Nature {
        match self.kind.as_str() {
            "tmpfs" | "ramfs" | "devtmpfs" => Nature::Memory,
            "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "virtiofs" | "ceph" | "glusterfs" => {
                Nature::Remote
            }
            kind if kind == "fuse" || kind.starts_with("fuse.") => Nature::Remote,
            "overlay" | "aufs" => Nature::Layered,
            _ => Nature::Disk,
        }
    }
}

/// Returns the mount that contains a path.
pub(super) fn of(path: &Path) -> Option<Mount> {
    let path = path.canonicalize().ok()?;
    find(
        &std::fs::read_to_string("/proc/self/mountinfo").ok()?,
        &path,
    )
}

/// Returns the mount with the longest mount point above the path. If several are mounted at the
/// same point, the last one covers the others.
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

/// Decodes escapes: a backslash and three octal digits.
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
            (Nature::Remote, "host:/x")
        );
        assert_eq!(find("nonsense\n\n - \n", Path::new("/")), None);
    }

    #[test]
    fn the_mount_of_the_current_directory_is_found() {
        let here = of(Path::new(".")).unwrap();
        assert!(
            Path::new(".")
                .canonicalize()
                .unwrap()
                .starts_with(here.point)
        );
    }
}
