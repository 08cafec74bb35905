//! A latency that another program measured, of which only the summary is known.
//!
//! It stands in for a histogram in the figures of its run, and nowhere else: what a summary does not say
//! is absent, it is never pooled with others, and no histogram is made up from it.

use serde::{Deserialize, Serialize};

/// The summary of one run, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReportedLatency {
    /// Number of values: one for each completed message.
    pub count: u64,
    /// Arithmetic mean, where it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Smallest value.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile, where it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<u64>,
    /// Largest value.
    pub max_ns: u64,
}
