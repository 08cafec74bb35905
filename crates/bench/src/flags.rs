//! Flags: warnings next to a figure that may mislead.
//!
//! A flag never changes a figure. Run flags follow from one measurement, case flags from all
//! repeats. The limits are rules of thumb; each flag's text states its limit and the reason, so
//! that a reader can disagree.

mod flag;
mod rules;
mod suite;

use std::collections::BTreeMap;

pub use flag::{Flag, RaisedFlag, list, sentence};
pub use rules::{is_busy_generator, is_noisy_host, is_too_short, is_unstable};
pub(crate) use suite::kinds;
pub use suite::{FlaggedCases, strict};

use crate::measurement::Measurement;
use crate::model::{Case, Metric, Metrics, Run};
use crate::stats::Description;

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

#[cfg(test)]
mod tests;
