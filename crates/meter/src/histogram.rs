//! Latency histograms in nanoseconds with three significant figures: one per worker, merged at the
//! end.
//!
//! Every latency figure of a report comes from one histogram, including mean and extremes, so the
//! figures cannot contradict each other. Recording drops nothing and shares nothing: a worker owns
//! its histogram, which has exactly one value per completed message. This module does not know what
//! was timed.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2Serializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Significant decimal figures kept: a recorded value is off by at most 0.05 %.
const FIGURES: u8 = 3;

/// Cap of a recorded latency: one hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A latency histogram.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    ///
    /// # Panics
    /// Never: the bounds are constants that the library accepts.
    #[must_use]
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, FIGURES)
            .expect("constant bounds are valid");
        Self { counts }
    }

    /// Records one latency. Zero counts as 1 ns, more than an hour as an hour.
    pub fn record(&mut self, latency_ns: u64) {
        self.counts
            .saturating_record(latency_ns.clamp(1, HIGHEST_NS));
    }

    /// Adds the values of another worker's histogram.
    ///
    /// # Panics
    /// Never: all histograms share their bounds, also those read back from text.
    pub fn merge(&mut self, other: &Self) {
        self.counts
            .add(&other.counts)
            .expect("histograms share their bounds");
    }

    /// Number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Returns the figures a report shows, or `None` when nothing was recorded.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        (self.count() > 0).then(|| LatencySummary {
            count: self.count(),
            mean_ns: self.counts.mean(),
            deviation_ns: self.counts.stdev(),
            min_ns: self.quantile(0.0),
            p50_ns: self.quantile(0.50),
            p90_ns: self.quantile(0.90),
            p95_ns: self.quantile(0.95),
            p99_ns: self.quantile(0.99),
            p999_ns: self.quantile(0.999),
            max_ns: self.quantile(1.0),
        })
    }

    /// The smallest latency that at least `quantile` (0 to 1) of the values do not exceed; 0 when
    /// empty.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.counts.value_at_quantile(quantile)
    }

    /// Points of the latency-by-percentile curve: `(quantile, latency in ns)`, from the median of the
    /// fastest to the largest value, with `steps` points per halving of the distance to 1.
    pub fn curve(&self, steps: u32) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.counts
            .iter_quantiles(steps)
            .map(|point| (point.quantile_iterated_to(), point.value_iterated_to()))
    }

    /// Returns the library's histogram, for writers of its log format.
    #[must_use]
    pub fn inner(&self) -> &hdrhistogram::Histogram<u64> {
        &self.counts
    }

    /// Encodes the histogram in HdrHistogram's V2 format as base64, the form in which role
    /// processes hand it over in JSON.
    ///
    /// # Panics
    /// Never: the encoder only fails on counts above `i64::MAX`.
    #[must_use]
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.counts, &mut bytes)
            .expect("counts fit the encoding");
        BASE64.encode(bytes)
    }

    /// Decodes the output of [`Histogram::to_base64`], or of another HdrHistogram library that
    /// recorded nanoseconds.
    ///
    /// # Errors
    /// When the text is not base64, not HdrHistogram V2, or holds values above an hour.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = BASE64.decode(text).map_err(|_| HistogramError::NotBase64)?;
        let read: hdrhistogram::Histogram<u64> =
            Reader::new()
                .deserialize(&mut bytes.as_slice())
                .map_err(|error| HistogramError::NotHdr(error.to_string()))?;
        let mut histogram = Self::new();
        histogram
            .counts
            .add(&read)
            .map_err(|_| HistogramError::TooLong { max_ns: read.max() })?;
        Ok(histogram)
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(serde::de::Error::custom)
    }
}

/// Errors of decoding a histogram.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// The text is not standard base64 with padding.
    #[error("the histogram is not base64")]
    NotBase64,
    /// The bytes are not HdrHistogram V2.
    #[error("the histogram is not in HdrHistogram's V2 encoding: {0}")]
    NotHdr(String),
    /// A value is above one hour; latencies are in nanoseconds.
    #[error("the histogram holds {max_ns} ns, which is above one hour")]
    TooLong {
        /// The largest value of the histogram.
        max_ns: u64,
    },
}

/// The common figures of one histogram, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Standard deviation of the values (not of a mean over runs).
    pub deviation_ns: f64,
    /// Smallest value.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest value.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests;
