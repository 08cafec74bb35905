//! Latency summary that another program measured.
//!
//! The summary replaces a histogram only in the figures of its run. A figure that it lacks is
//! absent, it is never pooled with other runs, and no histogram is derived from it.

use serde::{Deserialize, Serialize};

/// The summary of one run, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReportedLatency {
    /// Number of values: one for each completed message.
    pub count: u64,
    /// Arithmetic mean, if reported.
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
    /// 99.9th percentile, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<u64>,
    /// Largest value.
    pub max_ns: u64,
}
