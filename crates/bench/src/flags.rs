//! Flags: warnings next to a figure that may mislead.
//!
//! A flag never changes a figure. Run flags follow from one measurement, case flags from all
//! repeats. The limits are rules of thumb; each flag's text states its limit and the reason, so
//! that a reader can disagree.

mod rules;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measurement::Measurement;
use crate::model::{Case, Metric, Metrics, Results, Run};
use crate::stats::Description;

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

/// Returns the flags of one run.
pub(crate) fn of_run(case: &Case, metrics: &Metrics, measured: &Measurement) -> Vec<RaisedFlag> {
    let found = [
        (Flag::PacingLimited, rules::pacing_limited(case, metrics)),
        (Flag::TooShort, rules::too_short(measured)),
        (
            Flag::GeneratorLimited,
            rules::generator_limited(metrics, measured),
        ),
        (Flag::LittleMismatch, rules::little_mismatch(case, metrics)),
        (Flag::NoisyHost, rules::noisy_host(metrics)),
        (Flag::CpuTicks, rules::cpu_ticks(measured)),
        (Flag::SlowDisk, rules::slow_disk(metrics)),
    ];
    let raise = |(flag, detail): (Flag, Option<String>)| {
        detail.map(|detail| RaisedFlag {
            flag,
            detail,
            runs: None,
        })
    };
    found.into_iter().filter_map(raise).collect()
}

/// Returns the flags of a case: those of its runs, and those that follow from all repeats together.
pub(crate) fn of_case(
    case: &Case,
    runs: &[Run],
    metrics: &BTreeMap<Metric, Description>,
) -> Vec<RaisedFlag> {
    let mut raised: BTreeMap<Flag, RaisedFlag> = BTreeMap::new();
    for flag in runs.iter().flat_map(|run| &run.flags) {
        let first = RaisedFlag {
            runs: Some(0),
            ..flag.clone()
        };
        let entry = raised.entry(flag.flag).or_insert(first);
        entry.runs = entry.runs.map(|count| count + 1);
    }
    let mut whole = |flag, detail: Option<String>| {
        if let Some(detail) = detail {
            raised.insert(
                flag,
                RaisedFlag {
                    flag,
                    detail,
                    runs: None,
                },
            );
        }
    };
    whole(
        Flag::LowN,
        (runs.len() < 5).then(|| format!("n = {}", runs.len())),
    );
    whole(Flag::Unstable, rules::unstable(case, metrics));
    raised.into_values().collect()
}

/// Returns the kinds of flags in the results, sorted.
pub(crate) fn kinds(results: &Results) -> Vec<Flag> {
    let mut raised: Vec<_> = results.flags().map(|(_, raised)| raised.flag).collect();
    raised.sort_unstable();
    raised.dedup();
    raised
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

/// Fails if any case is flagged (`--strict`).
///
/// # Errors
/// With every flag raised; the command then ends with exit code 1.
pub fn strict(results: &Results) -> Result<(), FlaggedCases> {
    let flagged: Vec<_> = results
        .cases
        .iter()
        .filter(|result| !result.summary.flags.is_empty())
        .map(|result| format!("{}: {}", result.case.key(), sentence(&result.summary.flags)))
        .collect();
    if flagged.is_empty() {
        Ok(())
    } else {
        Err(FlaggedCases { cases: flagged })
    }
}

/// Error of a strict suite: its flagged cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} of the cases are flagged\n  {}\nhint: run without --strict to accept flagged figures, or raise \
     --duration and --repeats",
    cases.len(), cases.join("\n  ")
)]
pub struct FlaggedCases {
    cases: Vec<String>,
}

#[cfg(test)]
mod tests;
