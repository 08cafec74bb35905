//! `bench store --soak`: the same load for minutes, with a check that memory does not grow.
//!
//! Users move from one conversation to the next, as in practice: a conversation in use needs 10 to
//! 20 bytes for the id of each of its messages, and releases them when it is idle.

use serde::Serialize;

use bench_storage::store::Matrix;

use crate::space;
use bench::measurement::MemoryPoint;
use bench::model::Results;
use bench::workload::error::WorkloadError;

/// Messages per second for which the disk must have space.
const RATE_MAX: u64 = 60_000;

/// Allowed growth of memory from the middle to the end: the larger of a share and a number of
/// bytes.
const PART_MAX: f64 = 0.10;
const BYTES_MAX: f64 = (8 << 20) as f64;

/// Memory in the middle and at the end of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Course {
    /// Mean of the middle fifth of the points.
    pub middle_bytes: f64,
    /// Mean of the last fifth of the points.
    pub end_bytes: f64,
}

impl Course {
    /// Computes the means of a run's points. `None` for fewer than five points.
    #[must_use]
    pub fn of(points: &[MemoryPoint]) -> Option<Self> {
        let fifth = points.len() / 5;
        let mean = |points: &[MemoryPoint]| {
            let sum: f64 = points.iter().map(|point| point.rss_bytes as f64).sum();
            sum / points.len() as f64
        };
        (fifth > 0).then(|| Self {
            middle_bytes: mean(&points[2 * fifth..3 * fifth]),
            end_bytes: mean(&points[points.len() - fifth..]),
        })
    }

    /// Returns true if the growth is no more than noise.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        let grown = self.end_bytes - self.middle_bytes;
        grown <= (self.middle_bytes * PART_MAX).max(BYTES_MAX)
    }
}

/// Checks that the disk has space for what the load may write.
///
/// # Errors
/// When it has too little.
pub fn check_space(matrix: &Matrix) -> Result<(), WorkloadError> {
    let seconds = (matrix.ramp + matrix.window).as_secs() + 1;
    let messages = RATE_MAX.saturating_mul(seconds);
    space::check(
        &matrix.directory,
        space::needed_bytes(messages, matrix.size),
    )
}

/// Returns the course of memory of each run, with the key of its case.
#[must_use]
pub fn courses(results: &Results) -> Vec<(String, Course)> {
    let mut courses = Vec::new();
    for one in &results.cases {
        for run in &one.runs {
            let course = run
                .measured
                .as_ref()
                .and_then(|measured| Course::of(&measured.memory));
            courses.extend(course.map(|course| (one.case.key(), course)));
        }
    }
    courses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(rss: impl Fn(u64) -> u64) -> Course {
        let point = |at_ms| MemoryPoint {
            at_ms,
            rss_bytes: rss(at_ms),
        };
        Course::of(&(0..100).map(point).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn growing_memory_is_not_flat_and_settled_memory_is() {
        assert!(course(|at| (100 << 20) + at).is_flat());
        assert!(course(|at| at.min(30) << 22).is_flat());
        assert!(!course(|at| (100 << 20) + (at << 20)).is_flat());
        // Memory may shrink.
        assert!(course(|at| (200 << 20) - (at << 20)).is_flat());
        assert_eq!(Course::of(&[]), None);
    }
}
