//! Machine and command of a suite, stored once per result.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use meter::clock;

use crate::process::proc_size;

/// Machine, versions and command of a suite. A fact that could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The full command line.
    pub command: String,
    /// Model of the first CPU.
    pub cpu_model: Option<String>,
    /// Online logical CPUs.
    pub cpu_count: Option<usize>,
    /// CPUs this process may use: `0-1`.
    pub cpus_allowed: Option<String>,
    /// CPU limit of the container: `max 100000` or `150000 100000` (quota and period in µs).
    pub cpu_limit: Option<String>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Load average over 1, 5 and 15 minutes when the suite began.
    pub load_average: Option<[f64; 3]>,
    /// Smallest step in which a CPU clock was seen to advance, in nanoseconds.
    pub cpu_step_ns: u64,
    /// Placement of the roles: `same CPU`, `sender 0, node 1`, `unpinned`.
    pub placement: Option<String>,
    /// Versions of all programs that took part, including ours.
    pub versions: BTreeMap<String, String>,
    /// Commit our binary was built from.
    pub commit: Option<String>,
}

impl Environment {
    /// Reads the facts of the machine. The command is `arguments`, quoted for a shell as needed.
    #[must_use]
    pub fn gather(arguments: impl IntoIterator<Item = String>) -> Self {
        let read = |path: &str| {
            fs::read_to_string(path)
                .ok()
                .map(|text| text.trim().to_owned())
        };
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let field = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        Self {
            command: arguments
                .into_iter()
                .map(quoted)
                .collect::<Vec<_>>()
                .join(" "),
            cpu_model: field(&cpuinfo, "model name"),
            cpu_count: Some(
                cpuinfo
                    .lines()
                    .filter(|line| line.starts_with("processor"))
                    .count(),
            )
            .filter(|count| *count > 0),
            cpus_allowed: read("/proc/self/status")
                .and_then(|text| field(&text, "Cpus_allowed_list")),
            cpu_limit: read("/sys/fs/cgroup/cpu.max"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            kernel: read("/proc/sys/kernel/osrelease"),
            memory_bytes: read("/proc/meminfo").and_then(|text| proc_size(&text, "MemTotal")),
            load_average: read("/proc/loadavg").and_then(|text| load_average(&text)),
            cpu_step_ns: clock::cpu_step_ns(),
            ..Self::default()
        }
    }

    /// Adds the version of a program that took part.
    #[must_use]
    pub fn version(mut self, of: &str, version: impl Into<String>) -> Self {
        self.versions.insert(of.to_owned(), version.into());
        self
    }

    /// Sets the commit of our binary.
    #[must_use]
    pub fn commit(self, commit: impl Into<String>) -> Self {
        Self {
            commit: Some(commit.into()),
            ..self
        }
    }

    /// Sets the placement of the roles.
    #[must_use]
    pub fn placement(self, placement: impl Into<String>) -> Self {
        Self {
            placement: Some(placement.into()),
            ..self
        }
    }

    /// Returns the facts for a report, as name and value.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let mut facts: Vec<(String, String)> = Vec::new();
        let mut fact = |name: &str, value: Option<String>| {
            facts.push((name.to_owned(), value.unwrap_or_else(|| "n/a".to_owned())));
        };
        fact("CPU", self.cpu_model.clone());
        fact("CPUs", self.cpu_count.map(|count| count.to_string()));
        fact("CPUs allowed", self.cpus_allowed.clone());
        fact("CPU limit", self.cpu_limit.clone());
        fact("Governor", self.governor.clone());
        fact("Kernel", self.kernel.clone());
        fact("Memory", self.memory_bytes.map(crate::format::bytes));
        let load = self
            .load_average
            .map(|load| load.map(|one| format!("{one:.2}")).join(" "));
        fact("Load average at start", load);
        fact("CPU clock step", Some(format!("{} ns", self.cpu_step_ns)));
        fact("Placement", self.placement.clone());
        for (of, version) in &self.versions {
            fact(&format!("Version of {of}"), Some(version.clone()));
        }
        fact("Commit", self.commit.clone());
        fact("Command", Some(self.command.clone()));
        facts
    }
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let loads: Vec<f64> = text
        .split(' ')
        .take(3)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    loads.try_into().ok()
}

fn quoted(argument: String) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument;
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_command_is_quoted_for_the_shell() {
        let arguments = ["telpher", "bench", "a b", "it's", ""].map(String::from);
        let environment = Environment::gather(arguments);
        assert_eq!(environment.command, r"telpher bench 'a b' 'it'\''s' ''");
    }

    #[test]
    fn facts_of_the_machine_are_read_and_missing_ones_are_marked() {
        let environment = Environment::gather([]).version("telpher", "0.1.0");
        assert!(environment.kernel.is_some() && environment.memory_bytes.is_some());
        assert!(environment.cpu_step_ns > 0);
        let facts = environment.facts();
        assert!(facts.contains(&("Commit".into(), "n/a".into())));
        assert!(facts.contains(&("Version of telpher".into(), "0.1.0".into())));
    }

    #[test]
    fn the_load_is_three_numbers() {
        assert_eq!(
            load_average("0.50 1.25 2.00 1/100 42"),
            Some([0.5, 1.25, 2.0])
        );
        assert_eq!(load_average("nonsense"), None);
    }
}
