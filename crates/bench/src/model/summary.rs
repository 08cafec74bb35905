//! Statistics over all repeats of a case.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Case, Metric, Run};
use crate::flags::{self, RaisedFlag};
use crate::measurement::Measurement;
use crate::stats::{self, Description};
use meter::histogram::{Histogram, LatencySummary};

/// The statistics of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of runs.
    pub runs: usize,
    /// Description of each metric that at least one run has; its `count` is the number of these
    /// runs. Intervals are cut at zero, because no metric can be negative.
    pub metrics: BTreeMap<Metric, Description>,
    /// Percentiles over the messages of all runs; they are not the means of the runs' percentiles.
    pub pooled: PooledLatency,
    /// Failures by side and kind over all runs.
    pub errors: BTreeMap<String, u64>,
    /// Flags of the case, and the flags of its runs with the number of runs that raised them.
    pub flags: Vec<RaisedFlag>,
}

/// Latencies of the messages of all runs together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PooledLatency {
    /// Latency from the real send.
    pub service: Option<LatencySummary>,
    /// Latency from the intended send.
    pub response: Option<LatencySummary>,
}

impl Summary {
    /// Summarizes the runs of a case.
    #[must_use]
    pub fn of(case: &Case, runs: &[Run]) -> Self {
        let mut metrics = BTreeMap::new();
        for metric in Metric::ALL {
            let values: Vec<_> = runs
                .iter()
                .filter_map(|run| run.metrics.get(*metric))
                .collect();
            if let Some(mut description) = stats::describe(&values) {
                description.interval = description.interval.map(stats::Interval::from_zero);
                metrics.insert(*metric, description);
            }
        }
        let mut errors = BTreeMap::new();
        for (kind, count) in runs.iter().flat_map(|run| &run.errors) {
            *errors.entry(kind.clone()).or_default() += count;
        }
        let pooled = PooledLatency {
            service: pool(runs, |run| run.service.as_ref()).and_then(|pool| pool.summary()),
            response: pool(runs, |run| run.response.as_ref()).and_then(|pool| pool.summary()),
        };
        let flags = flags::of_case(case, runs, &metrics);
        Self {
            runs: runs.len(),
            metrics,
            pooled,
            errors,
            flags,
        }
    }

    /// Returns the statistics of one metric.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<&Description> {
        self.metrics.get(&metric)
    }

    /// Returns the mean of one metric.
    #[must_use]
    pub fn mean(&self, metric: Metric) -> Option<f64> {
        self.get(metric).map(|description| description.mean)
    }
}

/// Merges the histograms of all runs that have one.
pub(crate) fn pool(
    runs: &[Run],
    histogram: impl Fn(&Measurement) -> Option<&Histogram>,
) -> Option<Histogram> {
    let mut pooled: Option<Histogram> = None;
    for one in runs
        .iter()
        .filter_map(|run| histogram(run.measured.as_ref()?))
    {
        pooled.get_or_insert_default().merge(one);
    }
    pooled
}
