//! Resource usage of a server with several processes.
//!
//! A process that has ended and was waited for leaves its CPU time to its parent (`cutime` and
//! `cstime`, proc(5)), so no time is lost when a worker ends. Memory that processes share is
//! counted once (`Pss`).

use std::collections::BTreeMap;
use std::fs;

use bench::process::{Memory, Role, RoleUsage, proc_size};
use meter::clock::{self, CpuClock};

/// Start of a measurement of a process and its descendants.
pub(super) struct ProcessTree {
    root: u32,
    cpu_ns: u64,
    started_ns: u64,
}

impl ProcessTree {
    /// Starts to measure the tree of `root`.
    pub(super) fn watch(root: u32) -> Self {
        Self {
            root,
            cpu_ns: cpu_ns(&members(root)),
            started_ns: clock::now_ns(),
        }
    }

    /// Returns its usage since the start. CPU time is absent when the root has ended.
    pub(super) fn stop(self) -> RoleUsage {
        let members = members(self.root);
        let used_ns = cpu_ns(&members).checked_sub(self.cpu_ns);
        let wall_ns = clock::now_ns() - self.started_ns;
        let (rss_bytes, rss_peak_bytes) = memory(&members);
        RoleUsage {
            role: Role::Node,
            name: Role::Node.name().to_owned(),
            cpu_ns: used_ns.filter(|_| !members.is_empty()),
            wall_ns,
            cpu_step_ns: clock::cpu_step_ns(),
            rss_bytes,
            rss_peak_bytes,
        }
    }
}

/// A process of the tree.
struct Member {
    pid: u32,
    /// CPU time inherited from its ended children.
    inherited_ns: u64,
}

/// Fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    inherited_ticks: u64,
}

/// Parses the fields after the name, which may contain any character: state, parent, …, `cutime`
/// and `cstime`.
fn parse(stat: &str) -> Option<Stat> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        inherited_ticks: number(13)? + number(14)?,
    })
}

fn members(root: u32) -> Vec<Member> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stats: BTreeMap<u32, Stat> = pids
        .filter_map(|pid| {
            Some((
                pid,
                parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?,
            ))
        })
        .collect();
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let is_member = |pid: u32| {
        let mut at = pid;
        while at != root {
            match stats.get(&at) {
                Some(stat) if stat.parent != at => at = stat.parent,
                _ => return false,
            }
        }
        true
    };
    stats
        .iter()
        .filter(|(pid, _)| is_member(**pid))
        .map(|(pid, stat)| Member {
            pid: *pid,
            inherited_ns: stat.inherited_ticks * tick_ns,
        })
        .collect()
}

/// Sums the CPU time. A member that ends meanwhile appears in its parent's time at the next
/// reading.
fn cpu_ns(members: &[Member]) -> u64 {
    let own = |pid| CpuClock::of(pid).and_then(CpuClock::read_ns).unwrap_or(0);
    members
        .iter()
        .map(|member| member.inherited_ns + own(member.pid))
        .sum()
}

/// Returns the current resident memory, and the highest one, which is known for a single process
/// only.
fn memory(members: &[Member]) -> (Option<u64>, Option<u64>) {
    if let [only] = members {
        let memory = Memory::of(only.pid);
        return (
            memory.map(|one| one.rss_bytes),
            memory.map(|one| one.rss_peak_bytes),
        );
    }
    let shares: Vec<u64> = members
        .iter()
        .filter_map(|member| share(member.pid))
        .collect();
    let sum = (!shares.is_empty()).then(|| shares.iter().sum());
    (sum, sum)
}

/// Returns the process's own memory plus its share of common memory.
fn share(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    proc_size(&text, "Pss")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use bench::workload::child::{Actor, Pin};

    #[test]
    fn a_stat_line_is_parsed_after_any_process_name() {
        let stat = "42 (a) R (x) S 7 42 42 0 -1 4194304 10 20 0 0 11 12 13 14 20 0 1 0 99 1 1";
        assert_eq!(
            parse(stat),
            Some(Stat {
                parent: 7,
                inherited_ticks: 27
            })
        );
        assert_eq!(parse("42 (short) S 7"), None);
    }

    #[test]
    fn the_work_of_running_and_ended_children_counts() {
        // Two children work, one of them to its end; the other prints a line when both have.
        let work = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
        let script =
            format!("read _; (exec sh -c '{work}'); (({work}); echo done; cat) & cat <&0; wait");
        let mut shell = Actor::start(Path::new("/bin/sh"), ["-c", &script], Pin::Nowhere).unwrap();
        let tree = ProcessTree::watch(shell.pid());
        shell.write_line("go").unwrap();
        assert_eq!(shell.line().unwrap(), "done");
        let own_ns = CpuClock::of(shell.pid()).unwrap().read_ns().unwrap();
        let used = tree.stop();
        let used_ns = used.cpu_ns.unwrap();
        assert!(
            used_ns > own_ns && used_ns < used.wall_ns * 16,
            "{used_ns} of {own_ns}"
        );
        assert!(used.rss_bytes.unwrap() > 100_000, "{used:?}");
    }

    #[test]
    fn a_process_tree_that_has_ended_has_no_usage() {
        let mut shell = Actor::start(Path::new("/bin/true"), [""], Pin::Nowhere).unwrap();
        let tree = ProcessTree::watch(shell.pid());
        assert!(shell.line().is_err());
        drop(shell);
        let used = tree.stop();
        assert_eq!((used.cpu_ns, used.rss_bytes), (None, None));
    }
}
