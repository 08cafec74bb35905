//! Load of the machine outside a run, from the kernel's counters.

use std::fs;

use serde::{Deserialize, Serialize};

/// Load of the machine outside the run, in percent of all its CPUs' time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HostLoad {
    /// Time the hypervisor gave to other guests.
    pub steal_percent: f64,
    /// CPU time of processes that are not part of the run.
    pub foreign_percent: f64,
}

/// The machine's CPU counters since boot, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuTimes {
    busy: u64,
    idle: u64,
    steal: u64,
    cpus: u64,
}

impl CpuTimes {
    pub(super) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest time is
    /// already part of user time (proc(5)).
    fn parse(stat: &str) -> Option<Self> {
        let ticks: Vec<u64> = stat
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let [user, nice, system, idle, iowait, irq, softirq, steal] =
            ticks.get(..8)?.try_into().ok()?;
        let cpus = stat
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with("cpu"))
            .count();
        Some(Self {
            busy: user + nice + system + irq + softirq,
            idle: idle + iowait,
            steal,
            cpus: cpus as u64,
        })
    }

    /// Returns the load between two readings, without `ours_ns` of CPU time in `wall_ns`. `None`
    /// when the window is too short for the kernel's ticks to have moved.
    pub(super) fn until(self, after: Self, ours_ns: u64, wall_ns: u64) -> Option<HostLoad> {
        let busy = after.busy.saturating_sub(self.busy) as f64;
        let idle = after.idle.saturating_sub(self.idle) as f64;
        let steal = after.steal.saturating_sub(self.steal) as f64;
        let all = busy + idle + steal;
        let capacity_ns = wall_ns as f64 * self.cpus as f64;
        (all > 0.0 && capacity_ns > 0.0).then(|| HostLoad {
            steal_percent: 100.0 * steal / all,
            foreign_percent: (100.0 * (busy / all - ours_ns as f64 / capacity_ns)).max(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  1000 0 500 8000 500 0 100 50 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5\n";
    const AFTER: &str = "cpu  1100 0 540 8040 500 0 110 60 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5\n";

    #[test]
    fn foreign_load_excludes_our_own_cpu_time() {
        let (before, after) = (
            CpuTimes::parse(BEFORE).unwrap(),
            CpuTimes::parse(AFTER).unwrap(),
        );
        assert_eq!(before.cpus, 2);
        // 150 of 200 ticks busy, 10 stolen; ours is half a second of two CPUs for one second.
        let load = before.until(after, 500_000_000, 1_000_000_000).unwrap();
        assert!((load.steal_percent - 5.0).abs() < 1e-9);
        assert!((load.foreign_percent - 50.0).abs() < 1e-9);
        assert_eq!(
            before
                .until(after, 1_900_000_000, 1_000_000_000)
                .unwrap()
                .foreign_percent,
            0.0
        );
        assert_eq!(before.until(before, 0, 1_000_000_000), None);
    }
}
