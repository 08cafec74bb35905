//! All flags, with their names and meanings.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A reason to read a figure with care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// At least 98 % of the offered rate was achieved.
    PacingLimited,
    /// Window below one second or fewer than 1,000 messages.
    TooShort,
    /// The generator used over 90 % of a core, or left over 1 ms late at p99.
    GeneratorLimited,
    /// Coefficient of variation over 10 %.
    Unstable,
    /// Fewer than five runs.
    LowN,
    /// Closed loop off Little's law by over 5 %.
    LittleMismatch,
    /// Over 2 % of CPU time stolen, or over 20 % used by others.
    NoisyHost,
    /// Fewer than 100 steps of the CPU clock in the window.
    CpuTicks,
    /// The median sync took over 0.5 ms.
    SlowDisk,
}

impl Flag {
    /// All flags in the order of the reports.
    pub const ALL: [Self; 9] = [
        Self::PacingLimited,
        Self::TooShort,
        Self::GeneratorLimited,
        Self::Unstable,
        Self::LowN,
        Self::LittleMismatch,
        Self::NoisyHost,
        Self::CpuTicks,
        Self::SlowDisk,
    ];

    /// The flag's name in lines, tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PacingLimited => "pacing-limited",
            Self::TooShort => "too-short",
            Self::GeneratorLimited => "generator-limited",
            Self::Unstable => "unstable",
            Self::LowN => "low-n",
            Self::LittleMismatch => "little-mismatch",
            Self::NoisyHost => "noisy-host",
            Self::CpuTicks => "cpu-ticks",
            Self::SlowDisk => "slow-disk",
        }
    }

    /// Explains the flag to the reader in one or two sentences.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::PacingLimited => {
                "The rate achieved is at least 98 % of the rate offered, so the throughput is the \
                 schedule's, not the system's: the system kept up, but its capacity is unknown. \
                 Read the latency and the CPU; capacity comes from a sweep or an unpaced run."
            }
            Self::TooShort => {
                "The window is shorter than one second or holds fewer than 1,000 messages: start-up \
                 effects weigh in, and a high percentile rests on a handful of messages."
            }
            Self::GeneratorLimited => {
                "A sender used more than 90 % of a core, or left more than 1 ms late at its 99th \
                 percentile though it was free to send: the figure may be the generator's ceiling."
            }
            Self::Unstable => {
                "The runs differ by more than 10 % of their mean (coefficient of variation): look at \
                 the run order before trusting the mean."
            }
            Self::LowN => {
                "Fewer than five runs: the interval is wide. With fewer than two runs there is no interval."
            }
            Self::LittleMismatch => {
                "In a closed loop the messages in flight equal throughput × mean latency (Little's \
                 law). Here they differ by more than 5 %: clients were idle, or something was counted \
                 twice or not at all."
            }
            Self::NoisyHost => {
                "During the window more than 2 % of the machine's CPU time was stolen by the \
                 hypervisor, or processes outside the run used more than 20 % of it."
            }
            Self::CpuTicks => {
                "The CPU clock is so coarse that the window holds fewer than 100 of its steps: CPU \
                 figures are mostly rounding."
            }
            Self::SlowDisk => {
                "The median sync took more than 0.5 ms: the figure is the disk's, and a ratio between two \
                 systems that wait for it says little about either."
            }
        }
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A flag with the figure that raised it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaisedFlag {
    /// The flag.
    pub flag: Flag,
    /// The figure that raised it, in words; for a case, of its first run that did.
    pub detail: String,
    /// Number of runs that raised it; absent for flags of the case as a whole.
    pub runs: Option<usize>,
}

/// Flags in a few words for a line or a table: `pacing-limited,low-n`, or `none`.
#[must_use]
pub fn list(raised: &[RaisedFlag]) -> String {
    if raised.is_empty() {
        return "none".to_owned();
    }
    raised
        .iter()
        .map(|raised| raised.flag.name())
        .collect::<Vec<_>>()
        .join(",")
}

/// Flags with their figures: `pacing-limited in 25 runs (99.9 % of 100/s offered)`.
#[must_use]
pub fn sentence(raised: &[RaisedFlag]) -> String {
    let words = raised.iter().map(|raised| match raised.runs {
        Some(1) => format!("{} in 1 run ({})", raised.flag, raised.detail),
        Some(runs) => format!("{} in {runs} runs ({})", raised.flag, raised.detail),
        None => format!("{} ({})", raised.flag, raised.detail),
    });
    words.collect::<Vec<_>>().join(", ")
}
