//! Comparison of an old result with a new one, and the rules by which a change fails.
//!
//! A rule such as `p99 > +10%` fails when the mean over runs rose by more than ten percent *and* Welch's
//! test shows a difference. A change beyond the limit that the test does not confirm is *unclear*,
//! neither a pass nor a failure: more repeats would decide it.

use std::fmt;
use std::str::FromStr;

use crate::model::{CaseComparison, CaseResult, Metric, Results};
use crate::stats::Verdict;

/// Compares every case of both results by its headline metrics and its CPU per message; the new one is
/// the subject.
#[must_use]
pub fn changes(old: &Results, new: &Results) -> Vec<CaseComparison> {
    let pairs = new
        .cases
        .iter()
        .filter_map(|one| Some((one, old.case(&one.case.key())?)));
    pairs
        .flat_map(|(new, old)| {
            let metrics = new
                .case
                .headline()
                .iter()
                .chain(&[Metric::NodeCpuPerMessage]);
            metrics.filter_map(move |metric| CaseComparison::of(*metric, new, old))
        })
        .collect()
}

/// Applies every rule to every case of the old result.
#[must_use]
pub fn judge(old: &Results, new: &Results, rules: &[Rule]) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for rule in rules {
        let cases = old
            .cases
            .iter()
            .filter(|one| one.summary.get(rule.metric).is_some());
        let before = judgements.len();
        judgements.extend(cases.map(|old| {
            let key = old.case.key();
            let outcome = match new.case(&key) {
                Some(new) => rule.judge(old, new),
                None => Outcome::Unclear("the new result lacks the case".to_owned()),
            };
            Judgement {
                rule: *rule,
                case: key,
                outcome,
            }
        }));
        if judgements.len() == before {
            let reason = format!("no case of the old result has {}", rule.metric.label());
            let (case, outcome) = ("-".to_owned(), Outcome::Unclear(reason));
            judgements.push(Judgement {
                rule: *rule,
                case,
                outcome,
            });
        }
    }
    judgements
}

/// A limit on the change of a metric: `p99 > +10%`, `throughput < -5%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The metric.
    pub metric: Metric,
    /// The side of the limit that fails.
    pub fails: FailingSide,
    /// The limit, as a share of the old mean: 0.1 is ten percent more.
    pub limit: f64,
}

/// The side of a limit that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailingSide {
    /// A change above the limit.
    Above,
    /// A change below the limit.
    Below,
}

/// Result of a rule for one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The rule.
    pub rule: Rule,
    /// [`crate::model::Case::key`] of the case.
    pub case: String,
    /// The outcome.
    pub outcome: Outcome,
}

/// Pass, fail, or don't know.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The change, as a share, is within the limit.
    Pass(f64),
    /// The change, as a share, is beyond the limit and statistically shown.
    Fail(f64),
    /// No judgement is possible, for this reason.
    Unclear(String),
}

impl Rule {
    fn judge(&self, old: &CaseResult, new: &CaseResult) -> Outcome {
        let Some(found) = CaseComparison::of(self.metric, new, old) else {
            return Outcome::Unclear(format!("the new result lacks {}", self.metric.label()));
        };
        let Some(ratio) = found.comparison.ratio else {
            return Outcome::Unclear(format!("the old mean of {} is zero", self.metric.label()));
        };
        let change = ratio - 1.0;
        let beyond = match self.fails {
            FailingSide::Above => change > self.limit,
            FailingSide::Below => change < self.limit,
        };
        match found.comparison.verdict {
            _ if !beyond => Outcome::Pass(change),
            Verdict::Faster | Verdict::Slower => Outcome::Fail(change),
            Verdict::NoDifferenceShown => Outcome::Unclear(format!(
                "{:+.1} %, but no difference is shown",
                100.0 * change
            )),
            Verdict::NotComparable => {
                Outcome::Unclear(format!("{:+.1} % from a single run", 100.0 * change))
            }
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let error = || RuleError(text.to_owned());
        let position = text.find(['<', '>']).ok_or_else(error)?;
        let (name, rest) = text.split_at(position);
        let fails = if rest.starts_with('>') {
            FailingSide::Above
        } else {
            FailingSide::Below
        };
        let percent = rest[1..].trim().strip_suffix('%').ok_or_else(error)?;
        let percent: f64 = percent.trim().parse().map_err(|_| error())?;
        let metric = Metric::named(name.trim()).ok_or_else(error)?;
        if !percent.is_finite() {
            return Err(error());
        }
        Ok(Self {
            metric,
            fails,
            limit: percent / 100.0,
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.fails {
            FailingSide::Above => '>',
            FailingSide::Below => '<',
        };
        write!(f, "{} {sign} {:+}%", self.metric.key(), 100.0 * self.limit)
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            case,
            outcome,
        } = self;
        match outcome {
            Outcome::Pass(change) => write!(f, "pass    {case}: {rule}: {:+.1} %", 100.0 * change),
            Outcome::Fail(change) => write!(f, "FAIL    {case}: {rule}: {:+.1} %", 100.0 * change),
            Outcome::Unclear(reason) => write!(f, "unclear {case}: {rule}: {reason}"),
        }
    }
}

/// A text that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a rule\nhint: write METRIC, < or >, and a change in percent, such as \"p99 > +10%\" or \
     \"throughput < -5%\"; metrics are those of results.json, or mean, p50, p90, p95, p99, p999, max, \
     throughput"
)]
pub struct RuleError(String);

#[cfg(test)]
mod tests;
