//! Cost of the processes of a run, and load of the machine by others.
//!
//! A [`Watch`] reads every role's CPU clock at both edges of the measured window and its memory at
//! the end. It also reads the machine's CPU counters, to detect foreign load. A figure that could
//! not be read is absent, never zero. The module does not know what the processes are for.

mod disk_writes;
mod host;

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

pub use disk_writes::written_bytes;
use host::CpuTimes;
pub use host::HostLoad;
use meter::clock::{self, CpuClock};

/// Role of a process in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Offers the load.
    Sender,
    /// Receives the messages, and answers where the mode requires it.
    Responder,
    /// The node or server between them.
    Node,
}

impl Role {
    /// All roles in the order of the reports.
    pub const ALL: [Self; 3] = [Self::Sender, Self::Responder, Self::Node];

    /// Returns the role's name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Responder => "responder",
            Self::Node => "node",
        }
    }
}

/// Resources that one process used between the edges of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleUsage {
    /// Role of the process.
    pub role: Role,
    /// Name of the process, numbered if several have the role: `node-2`.
    pub name: String,
    /// CPU time of all threads, user and system. Absent when the process had ended.
    pub cpu_ns: Option<u64>,
    /// Length of the window on the monotonic clock.
    pub wall_ns: u64,
    /// Smallest step of the CPU clock.
    pub cpu_step_ns: u64,
    /// Resident memory at the end of the window.
    pub rss_bytes: Option<u64>,
    /// Highest resident memory since the process started.
    pub rss_peak_bytes: Option<u64>,
}

/// Resource usage of all processes during one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// One entry per process.
    pub roles: Vec<RoleUsage>,
    /// Load of the machine; absent where its counters cannot be read.
    pub host: Option<HostLoad>,
}

/// A measurement in progress.
#[derive(Debug)]
pub struct Watch {
    processes: Vec<WatchedProcess>,
    host: Option<CpuTimes>,
    /// CPU time of the benchmark process itself when it plays no role: its work is not foreign
    /// load.
    own_cpu_ns: Option<u64>,
    started_ns: u64,
}

#[derive(Debug)]
struct WatchedProcess {
    role: Role,
    name: String,
    pid: u32,
    clock: CpuClock,
    cpu_ns: u64,
}

impl Watch {
    /// Starts measuring: call it at the opening edge of the send window.
    ///
    /// # Errors
    /// When one of the processes does not run.
    pub fn start(processes: &[(Role, u32)]) -> Result<Self, WatchError> {
        // The first call spins, which must not happen inside a window.
        clock::cpu_step_ns();
        let mut watched = Vec::with_capacity(processes.len());
        for (position, &(role, pid)) in processes.iter().enumerate() {
            let earlier = processes[..position]
                .iter()
                .filter(|(other, _)| *other == role)
                .count();
            let several = processes.iter().filter(|(other, _)| *other == role).count() > 1;
            let name = if several {
                format!("{}-{}", role.name(), earlier + 1)
            } else {
                role.name().into()
            };
            let error = |source| WatchError {
                name: name.clone(),
                pid,
                source,
            };
            let clock = CpuClock::of(pid).map_err(error)?;
            let cpu_ns = clock.read_ns().map_err(error)?;
            watched.push(WatchedProcess {
                role,
                name,
                pid,
                clock,
                cpu_ns,
            });
        }
        let takes_part = processes.iter().any(|(_, pid)| *pid == std::process::id());
        Ok(Self {
            processes: watched,
            host: CpuTimes::read(),
            own_cpu_ns: (!takes_part).then(clock::own_cpu_ns),
            started_ns: clock::now_ns(),
        })
    }

    /// Ends the measurement: call it at the closing edge of the send window, while the processes run.
    #[must_use]
    pub fn stop(self) -> Usage {
        self.stop_with(Vec::new())
    }

    /// Ends the measurement of a run with other participants, whose reported usage is `reported`.
    #[must_use]
    pub fn stop_with(self, reported: Vec<RoleUsage>) -> Usage {
        // Read the clocks first: slow readings come after the window.
        let cpu_ns: Vec<_> = self.processes.iter().map(WatchedProcess::used_ns).collect();
        let own_ns = self
            .own_cpu_ns
            .map_or(0, |before| clock::own_cpu_ns() - before);
        let wall_ns = clock::now_ns() - self.started_ns;
        let after = CpuTimes::read();
        let processes = self.processes.iter().zip(cpu_ns);
        let watched = processes.map(|(one, cpu_ns)| one.usage(cpu_ns, wall_ns));
        let roles: Vec<_> = reported.into_iter().chain(watched).collect();
        let ours_ns = own_ns + roles.iter().filter_map(|role| role.cpu_ns).sum::<u64>();
        let host = self.host.zip(after).and_then(|(before, after)| {
            // The work of a role whose clock is gone would count as foreign.
            let known = roles.iter().all(|role| role.cpu_ns.is_some());
            known
                .then(|| before.until(after, ours_ns, wall_ns))
                .flatten()
        });
        Usage { roles, host }
    }
}

impl Watch {
    /// Returns the start of the measurement on the monotonic clock.
    #[must_use]
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }
}

impl WatchedProcess {
    /// Returns the CPU time since the start; absent when the process has ended.
    fn used_ns(&self) -> Option<u64> {
        self.clock
            .read_ns()
            .ok()
            .map(|after| after.saturating_sub(self.cpu_ns))
    }

    fn usage(&self, cpu_ns: Option<u64>, wall_ns: u64) -> RoleUsage {
        let memory = Memory::of(self.pid);
        RoleUsage {
            role: self.role,
            name: self.name.clone(),
            cpu_ns,
            wall_ns,
            cpu_step_ns: clock::cpu_step_ns(),
            rss_bytes: memory.map(|memory| memory.rss_bytes),
            rss_peak_bytes: memory.map(|memory| memory.rss_peak_bytes),
        }
    }
}

/// Error of reading the CPU clock of a process.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the CPU clock of the {name}, process {pid}: {source}")]
pub struct WatchError {
    name: String,
    pid: u32,
    source: io::Error,
}

/// Resident memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Current resident memory (`VmRSS`).
    pub rss_bytes: u64,
    /// Highest resident memory since the process started (`VmHWM`).
    pub rss_peak_bytes: u64,
}

impl Memory {
    /// Reads the memory of a running process. `None` when it has ended.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        Some(Self {
            rss_bytes: proc_size(status, "VmRSS")?,
            rss_peak_bytes: proc_size(status, "VmHWM")?,
        })
    }
}

/// Returns a size in bytes from a file of `/proc` with lines such as `MemFree:  312332 kB`.
#[must_use]
pub fn proc_size(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib = value.trim().strip_suffix(" kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests;
