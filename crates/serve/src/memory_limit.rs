//! Fits the buffers to the memory limit of the container or service (cgroup), so that a small one is
//! not killed by the system under load.

use std::path::Path;

use config::{Config, Loaded};
use model::ByteSize;

/// Where the kernel shows control groups.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The smallest limit that the node is meant for, in bytes.
const LIMIT_MIN: u64 = 128 << 20;

/// A buffer, the share of the memory limit that it may have (one in so many), and its least size.
struct Buffer {
    key: &'static str,
    divisor: u64,
    least: u64,
    size: fn(&mut Config) -> &mut ByteSize,
}

const BUFFERS: [Buffer; 5] = [
    Buffer {
        key: "journal.queue_size_max",
        divisor: 8,
        least: 8 << 20,
        size: |config| &mut config.journal.queue_size_max,
    },
    Buffer {
        key: "journal.tail_size_max",
        divisor: 16,
        least: 4 << 20,
        size: |config| &mut config.journal.tail_size_max,
    },
    Buffer {
        key: "views.cache_size",
        divisor: 16,
        least: 1 << 20,
        size: |config| &mut config.views.cache_size,
    },
    Buffer {
        key: "topics.compaction_size_max",
        divisor: 8,
        least: 1 << 20,
        size: |config| &mut config.topics.compaction_size_max,
    },
    Buffer {
        key: "topics.unpacked_size_max",
        divisor: 4,
        least: 64 << 20,
        size: |config| &mut config.topics.unpacked_size_max,
    },
];

/// Lowers buffers that are not configured to their share of the memory limit, if there is one.
pub(super) fn fit(config: &mut Config, loaded: &Loaded) {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(limit) = limit(Path::new(CGROUPS), &own) else {
        return;
    };
    if limit < LIMIT_MIN {
        tracing::warn!(
            limit = %ByteSize::bytes(limit),
            least = %ByteSize::bytes(LIMIT_MIN),
            "the memory limit of the control group is low: the system may kill the node under load"
        );
    }
    let is_default = |key: &str| !loaded.is_configured(key);
    for key in lower(config, limit, is_default) {
        tracing::info!(key, limit = %ByteSize::bytes(limit), "lowered to fit the memory limit");
    }
}

/// Lowers the buffers for which `may_lower` is true, and returns the keys of those that had more than
/// their share.
fn lower(config: &mut Config, limit: u64, may_lower: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut lowered = Vec::new();
    for buffer in BUFFERS {
        let share = (limit / buffer.divisor).max(buffer.least);
        let size = (buffer.size)(config);
        if size.as_u64() > share && may_lower(buffer.key) {
            *size = ByteSize::bytes(share);
            lowered.push(buffer.key);
        }
    }
    lowered
}

/// Returns the lowest memory limit of a process's control group and of the groups around it, in
/// bytes. `own` is the process's `/proc/self/cgroup`, whose line for version 2 begins with `0::`; in
/// version 1 the line of the memory controller has its name.
fn limit(root: &Path, own: &str) -> Option<u64> {
    let mut limits = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
        let (directory, file) = match controllers {
            Some("") => (root.to_owned(), "memory.max"),
            Some(it) if it.split(',').any(|it| it == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // Inside a container the path may be that of the host, which is not visible here.
        let path = path.unwrap_or_default().trim_start_matches('/');
        for ancestor in Path::new(path).ancestors() {
            let text = std::fs::read_to_string(directory.join(ancestor).join(file));
            // Without a limit, version 2 says `max` and version 1 a number near 2^63.
            let bytes = text.ok().and_then(|it| it.trim().parse::<u64>().ok());
            limits.extend(bytes.filter(|bytes| *bytes < 1 << 60));
        }
    }
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let service = root.path().join("system.slice/telpher.service");
        std::fs::create_dir_all(&service).unwrap();
        let own = "0::/system.slice/telpher.service\n";
        assert_eq!(limit(root.path(), own), None);
        std::fs::write(service.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit(root.path(), own), None);
        std::fs::write(root.path().join("system.slice/memory.max"), "536870912\n").unwrap();
        assert_eq!(limit(root.path(), own), Some(512 << 20));
        std::fs::write(service.join("memory.max"), "268435456\n").unwrap();
        assert_eq!(limit(root.path(), own), Some(256 << 20));
        assert_eq!(limit(root.path(), "0::/\n"), None);
    }

    #[test]
    fn limit_of_version_1_is_that_of_the_memory_controller() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("memory/docker/1");
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(group.join("memory.limit_in_bytes"), "1073741824\n").unwrap();
        let none = root.path().join("memory/memory.limit_in_bytes");
        std::fs::write(none, "9223372036854771712\n").unwrap();
        let own = "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n";
        assert_eq!(limit(root.path(), own), Some(1 << 30));
        assert_eq!(limit(root.path(), "4:memory:/other\n"), None);
    }

    #[test]
    fn buffers_of_a_small_container_are_lowered_unless_configured() {
        let mut config = Config::default();
        assert!(lower(&mut config, 64 << 30, |_| true).is_empty());
        let lowered = lower(&mut config, 256 << 20, |key| key != "views.cache_size");
        assert_eq!(
            lowered,
            [
                "journal.queue_size_max",
                "journal.tail_size_max",
                "topics.compaction_size_max",
                "topics.unpacked_size_max"
            ]
        );
        assert_eq!(config.journal.queue_size_max, ByteSize::mebibytes(32));
        assert_eq!(config.views.cache_size, ByteSize::mebibytes(32));
    }
}
