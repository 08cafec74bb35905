//! Statistics of every figure in a report: description of one sample, comparison of two.
//!
//! Pure arithmetic on slices of `f64`. The module does not know runs or units; the caller states
//! which direction is better. Invariant: no result exceeds what the sample supports. Below two
//! values there is no variance, no interval and no verdict, and those are `None` rather than zero.

mod compare;
mod describe;

pub use compare::{Better, Comparison, Verdict, compare};
pub use describe::{Description, Interval, describe};

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Two-sided confidence used throughout: 95 %.
pub const CONFIDENCE: f64 = 0.95;

/// The two-sided 95 % quantile of the normal distribution, the limit of Student's t.
const NORMAL: f64 = 1.959_963_984_540_054;

/// Degrees of freedom above which the normal quantile with its first correction is used, which is
/// right to 3·10⁻⁸ there (Abramowitz and Stegun, 26.7.5). The library's inverse loses digits (seen:
/// 7·10⁻⁶ off at 10⁵).
const DEGREES_MANY: f64 = 1e4;

/// Returns the two-sided 95 % quantile of Student's t: the number of standard errors from the mean
/// to each end of the interval. `None` unless `degrees` is positive.
#[must_use]
pub fn student_t(degrees: f64) -> Option<f64> {
    if degrees.is_nan() || degrees <= 0.0 {
        return None;
    }
    if degrees > DEGREES_MANY {
        return Some(NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * degrees));
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees).ok()?;
    Some(distribution.inverse_cdf(1.0 - (1.0 - CONFIDENCE) / 2.0))
}

#[cfg(test)]
mod tests;
