//! Description of one sample: mean, sample variance, spread and the Student-t interval of its mean.

use serde::{Deserialize, Serialize};

use super::student_t;

/// A closed interval of the quantity's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns the interval without the part below zero, for quantities that cannot be negative.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self {
            low: self.low.max(0.0),
            high: self.high.max(0.0),
        }
    }

    /// Returns true if `value` lies inside, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Statistics of a quantity over `count` independent runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Number of values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Middle value, or the mean of the two middle ones.
    pub median: f64,
    /// Sample variance s² with divisor n − 1. `None` below two values.
    pub variance: Option<f64>,
    /// Sample standard deviation s. `None` below two values.
    pub deviation: Option<f64>,
    /// Coefficient of variation s / mean. `None` below two values or where the mean is zero.
    pub variation: Option<f64>,
    /// Student-t 95 % interval of the mean. `None` below two values.
    pub interval: Option<Interval>,
}

/// Describes a sample. `None` when it is empty or holds a value that is not finite.
#[must_use]
pub fn describe(values: &[f64]) -> Option<Description> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let count = values.len();
    let mean = mean(values);
    let variance = variance(values, mean);
    let deviation = variance.map(f64::sqrt);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Description {
        count,
        mean,
        min: sorted[0],
        max: sorted[count - 1],
        median: median(&sorted),
        variance,
        deviation,
        variation: deviation.filter(|_| mean != 0.0).map(|s| s / mean.abs()),
        interval: deviation.and_then(|s| interval(mean, s, count)),
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Computes the sample variance in two passes: deviations are summed around the known mean, so that
/// a large mean with a small spread loses no digits.
fn variance(values: &[f64], mean: f64) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / degrees as f64)
}

fn interval(mean: f64, deviation: f64, count: usize) -> Option<Interval> {
    let margin = student_t(count as f64 - 1.0)? * deviation / (count as f64).sqrt();
    Some(Interval {
        low: mean - margin,
        high: mean + margin,
    })
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}
