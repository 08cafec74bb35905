//! Comparison of two samples: the ratio of their means, its interval, and a verdict.
//!
//! The interval is Fieller's: the set of ratios ρ for which a t test does not reject
//! `mean(subject) = ρ · mean(baseline)`, with unequal variances and the degrees of freedom of Welch and
//! Satterthwaite for the difference (Welch 1947; Fieller 1954). It therefore excludes 1 exactly when
//! Welch's t test finds the two means different, and it stays right where the spread of the baseline
//! is large, which a quotient of two intervals does not.

use serde::{Deserialize, Serialize};

use super::{Description, Interval, student_t};

/// Better direction of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Higher is better: throughput, for example.
    Higher,
    /// Lower is better: latency, for example.
    Lower,
}

/// Conclusion that a comparison supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The subject is better, and the interval excludes 1.
    Faster,
    /// The subject is worse, and the interval excludes 1.
    Slower,
    /// The interval includes 1. That is not a proof of equality.
    NoDifferenceShown,
    /// Fewer than two values on one side, or a baseline mean of zero.
    NotComparable,
}

impl Verdict {
    /// Returns the verdict in words, about speed.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifferenceShown => "no difference shown",
            Self::NotComparable => "not comparable",
        }
    }
}

/// Comparison of a subject with a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// mean(subject) / mean(baseline). `None` where the baseline mean is zero.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio. `None` below two values on a side, and when the baseline mean
    /// does not differ significantly from zero, which leaves the ratio unbounded.
    pub interval: Option<Interval>,
    /// Welch–Satterthwaite degrees of freedom.
    pub degrees: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Compares two samples of a quantity that is never negative.
#[must_use]
pub fn compare(subject: &Description, baseline: &Description, better: Better) -> Comparison {
    let ratio = (baseline.mean > 0.0).then(|| subject.mean / baseline.mean);
    let Some(errors) = Errors::of(subject, baseline).filter(|_| ratio.is_some()) else {
        let verdict = Verdict::NotComparable;
        return Comparison {
            ratio,
            interval: None,
            degrees: None,
            verdict,
        };
    };
    let degrees = errors.degrees();
    let interval = student_t(degrees).and_then(|t| errors.fieller(subject.mean, baseline.mean, t));
    let apart = student_t(degrees).is_some_and(|t| {
        (subject.mean - baseline.mean).abs() > t * (errors.subject + errors.baseline).sqrt()
    });
    let verdict = match (apart, subject.mean > baseline.mean, better) {
        (false, _, _) => Verdict::NoDifferenceShown,
        (true, true, Better::Higher) | (true, false, Better::Lower) => Verdict::Faster,
        (true, ..) => Verdict::Slower,
    };
    Comparison {
        ratio,
        interval,
        degrees: Some(degrees),
        verdict,
    }
}

/// Squared standard errors of the two means.
struct Errors {
    subject: f64,
    baseline: f64,
    subject_count: f64,
    baseline_count: f64,
}

impl Errors {
    fn of(subject: &Description, baseline: &Description) -> Option<Self> {
        let (subject_count, baseline_count) = (subject.count as f64, baseline.count as f64);
        Some(Self {
            subject: subject.variance? / subject_count,
            baseline: baseline.variance? / baseline_count,
            subject_count,
            baseline_count,
        })
    }

    fn degrees(&self) -> f64 {
        let both = self.subject + self.baseline;
        if both == 0.0 {
            return self.subject_count + self.baseline_count - 2.0;
        }
        both.powi(2)
            / (self.subject.powi(2) / (self.subject_count - 1.0)
                + self.baseline.powi(2) / (self.baseline_count - 1.0))
    }

    /// Solves for the ratios ρ with `(a − ρb)² ≤ t²(va + ρ²vb)`: the roots of a quadratic in ρ,
    /// whose leading coefficient is positive exactly when the baseline mean differs from zero.
    fn fieller(&self, subject: f64, baseline: f64, t: f64) -> Option<Interval> {
        let square = baseline.powi(2) - t.powi(2) * self.baseline;
        if square <= 0.0 {
            return None;
        }
        let middle = subject * baseline;
        let constant = subject.powi(2) - t.powi(2) * self.subject;
        let root = (middle.powi(2) - square * constant).max(0.0).sqrt();
        Some(
            Interval {
                low: (middle - root) / square,
                high: (middle + root) / square,
            }
            .from_zero(),
        )
    }
}
