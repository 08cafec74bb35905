//! Options of a sweep, and their validation.

use serde::{Deserialize, Serialize};

/// Options of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SweepOptions {
    /// First rate offered, per second; at least 1.
    pub start_rate: u64,
    /// Maximum rate to offer.
    pub rate_max: Option<u64>,
    /// Factor between coarse rates. The result is rounded up, and at least 1 more than the rate
    /// before.
    pub growth: f64,
    /// Minimum gain of a step over the best before, as a share: 0.05 is 5 %.
    pub plateau_threshold: f64,
    /// Number of coarse steps in a row without a gain that end the phase.
    pub plateau_steps: u32,
    /// Maximum number of coarse steps.
    pub steps_max: u32,
    /// Maximum number of refining steps; 0 skips the phase.
    pub refinement_steps: u32,
    /// Gap between the rates at which refining ends.
    pub rate_delta_min: u64,
    /// Number of runs of each step.
    pub repeats: u32,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self {
            start_rate: 1_000,
            rate_max: None,
            growth: 2.0,
            plateau_threshold: 0.05,
            plateau_steps: 2,
            steps_max: 8,
            refinement_steps: 4,
            rate_delta_min: 250,
            repeats: 1,
        }
    }
}

impl SweepOptions {
    pub(super) fn grown(&self, rate: u64) -> u64 {
        let grown = (rate as f64 * self.growth).ceil() as u64;
        grown
            .max(rate.saturating_add(1))
            .min(self.rate_max.unwrap_or(u64::MAX))
    }

    pub(super) fn check(&self) -> Result<(), SweepOptionsError> {
        let mut mistakes = Vec::new();
        let mut need = |holds: bool, mistake: &str| {
            if !holds {
                mistakes.push(mistake.to_owned());
            }
        };
        need(self.start_rate > 0, "the start rate must be at least 1");
        need(
            self.rate_max != Some(0),
            "the highest rate must be at least 1",
        );
        need(
            self.growth.is_finite() && self.growth >= 1.0,
            "growth must be at least 1",
        );
        need(
            self.plateau_threshold.is_finite() && self.plateau_threshold >= 0.0,
            "the plateau threshold must not be negative",
        );
        need(self.plateau_steps > 0, "plateau steps must be at least 1");
        need(self.steps_max > 0, "steps must be at least 1");
        need(self.repeats > 0, "repeats must be at least 1");
        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(SweepOptionsError { mistakes })
        }
    }
}

/// Error of invalid sweep options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the sweep cannot run: {}", mistakes.join("; "))]
pub struct SweepOptionsError {
    mistakes: Vec<String>,
}
