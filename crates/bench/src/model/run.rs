//! One repeat of a case.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Case, Metric, Metrics};
use crate::flags::{self, RaisedFlag};
use crate::measurement::Measurement;

/// One repeat.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// Number of the repeat in its case, from 1.
    pub repeat: u32,
    /// Number of the run in the whole suite, from 1: repeats of several cases may be interleaved.
    pub order: u32,
    /// Derived figures.
    pub metrics: Metrics,
    /// Failures by side and kind: `sender.deadline_exceeded`.
    pub errors: BTreeMap<String, u64>,
    /// Flags of figures that may mislead.
    pub flags: Vec<RaisedFlag>,
    /// Measurement from which the figures follow; absent for runs taken from a report.
    pub measured: Option<Measurement>,
}

impl Run {
    /// Derives a run from its measurement.
    #[must_use]
    pub fn of(case: &Case, repeat: u32, order: u32, measured: Measurement) -> Self {
        let metrics = measured.metrics(&case.mode);
        let flags = flags::of_run(case, &metrics, &measured);
        let mut errors = BTreeMap::new();
        let sink = measured
            .sink
            .iter()
            .flat_map(|sink| &sink.errors)
            .map(|kind| ("sink", kind));
        for (side, (kind, count)) in measured
            .errors
            .iter()
            .map(|kind| ("sender", kind))
            .chain(sink)
        {
            errors.insert(format!("{side}.{kind}"), *count);
        }
        Self {
            repeat,
            order,
            metrics,
            errors,
            flags,
            measured: Some(measured),
        }
    }

    /// Makes a run of which only the figures are known.
    #[must_use]
    pub fn reported(repeat: u32, order: u32, metrics: Metrics) -> Self {
        Self {
            repeat,
            order,
            metrics,
            errors: BTreeMap::new(),
            flags: Vec::new(),
            measured: None,
        }
    }

    /// Returns the failures on both sides.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        let count = |metric| self.metrics.get(metric).unwrap_or(0.0) as u64;
        count(Metric::SenderErrors) + count(Metric::SinkErrors)
    }
}
