//! The statistics every figure in a report goes through: one sample described, two samples compared.
//!
//! Pure arithmetic on slices of `f64`. It knows nothing of runs, units or which direction is better
//! than the caller says. Its invariant is that nothing is claimed that the sample cannot carry: below
//! two values there is no variance, no interval and no verdict, and those are `None` rather than zero.

mod compare;
mod describe;

pub use compare::{Better, Comparison, Verdict, compare};
pub use describe::{Description, Interval, describe};

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Two-sided confidence used throughout: 95 %.
pub const CONFIDENCE: f64 = 0.95;

/// The same quantile of the normal distribution, which Student's t approaches.
const NORMAL: f64 = 1.959_963_984_540_054;

/// Above this many degrees of freedom the library's inverse loses digits (seen: 7·10⁻⁶ off at 10⁵), and
/// the first correction to the normal quantile is right to 3·10⁻⁸ (Abramowitz and Stegun, 26.7.5).
const DEGREES_MANY: f64 = 1e4;

/// The two-sided 95 % quantile of Student's t: the number of standard errors an interval reaches
/// to either side. `None` unless `degrees` is positive.
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
