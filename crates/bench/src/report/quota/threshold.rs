//! The thresholds of the rate limiter's report.

use crate::model::{CaseResult, Metric};

/// A threshold with the measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// Name of the measured quantity.
    pub name: &'static str,
    /// Value that the quantity must stay below.
    pub limit: f64,
    /// Unit: percent, or milliseconds.
    pub unit: &'static str,
    /// Mean over the runs.
    pub found: f64,
}

impl Threshold {
    /// Returns true if the value is below the limit.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.found < self.limit
    }
}

/// Returns the thresholds of the report for which the case has a figure. A refused take is not an
/// error.
#[must_use]
pub fn thresholds(one: &CaseResult) -> Vec<Threshold> {
    let mean = |metric| one.summary.mean(metric);
    let failed = mean(Metric::SenderErrors).zip(mean(Metric::SenderMessages));
    let errors = failed.map(|(failed, answered)| Threshold {
        name: "Error rate",
        limit: 10.0,
        unit: "%",
        found: 100.0 * failed / (failed + answered).max(1.0),
    });
    let p95 = mean(Metric::LatencyP95).map(|found| Threshold {
        name: "P95 latency",
        limit: 500.0,
        unit: "ms",
        found,
    });
    errors.into_iter().chain(p95).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Area, Case, Metrics, Mode, Run};

    #[test]
    fn a_threshold_is_met_only_below_its_limit() {
        let case = |failed: f64, p95: f64| {
            let mut metrics = Metrics::new();
            metrics.set(Metric::SenderErrors, failed);
            metrics.set(Metric::SenderMessages, 100.0 - failed);
            metrics.set(Metric::LatencyP95, p95);
            let runs = vec![Run::reported(1, 1, metrics)];
            CaseResult::of(Case::new("telpher", Area::Quota, Mode::MIX), runs)
        };
        let are_met = |failed, p95| -> Vec<bool> {
            let found = thresholds(&case(failed, p95));
            found.iter().map(Threshold::is_met).collect()
        };
        assert_eq!(are_met(0.0, 11.73), [true, true]);
        assert_eq!(are_met(10.0, 499.9), [false, true]);
        assert_eq!(are_met(9.9, 500.0), [true, false]);
    }
}
