//! Adaptive capacity sweep: chooses the next rate to try, and when to stop.
//!
//! Two phases. *Coarse* multiplies the offered rate until the observed throughput stops improving;
//! *refine* halves the gap between the last rate that improved and the last that did not. A step
//! improves when it observes more than the best step before it by over the plateau threshold. The
//! sweep is a state machine without a clock or a load generator: the caller runs the returned rate
//! and reports the observed throughput.
//!
//! ```text
//! ## Coarse => (Coarse | Refine | Done)
//! ## Refine => (Refine | Done)
//! ```

mod options;

use serde::{Deserialize, Serialize};

pub use options::{SweepOptions, SweepOptionsError};

/// The phases of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Multiplies the rate.
    Coarse,
    /// Halves the gap between the last two rates.
    Refine,
}

impl Phase {
    /// Returns the phase's name in lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Coarse => "coarse",
            Self::Refine => "refine",
        }
    }
}

/// A step to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Number of the step from 1, over both phases.
    pub step: u32,
    /// Phase of the step.
    pub phase: Phase,
    /// Messages per second to offer.
    pub rate: u64,
}

/// Effect of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepEffect {
    /// Gain over the best step before, in percent; absent for the first.
    pub gain_percent: Option<f64>,
    /// True if the step is the new best.
    pub improved: bool,
}

/// Result of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The step with the best observed throughput, by the threshold.
    pub best_step: u32,
    /// Offered rate of the best step.
    pub best_rate: u64,
    /// Throughput observed at the best step.
    pub best_observed: f64,
    /// Highest offered rate that improved.
    pub rate_lower: u64,
    /// Lowest rate above `rate_lower` that did not improve; absent when none was tried.
    pub rate_upper: Option<u64>,
    /// Reason why the sweep ended.
    pub stop_reason: String,
}

/// A sweep in progress.
#[derive(Debug, Clone)]
pub struct Sweep {
    options: SweepOptions,
    state: State,
    steps: u32,
    refined: u32,
    plateau: u32,
    best: Option<Best>,
    lower: u64,
    upper: Option<u64>,
    stop_reason: String,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Coarse { rate: u64 },
    Refine { rate: u64 },
    Done,
}

#[derive(Debug, Clone, Copy)]
struct Best {
    step: u32,
    rate: u64,
    observed: f64,
}

impl Sweep {
    /// Makes a sweep at its first step.
    ///
    /// # Errors
    /// With every invalid option.
    pub fn new(options: SweepOptions) -> Result<Self, SweepOptionsError> {
        options.check()?;
        let rate = options.start_rate.min(options.rate_max.unwrap_or(u64::MAX));
        Ok(Self {
            options,
            state: State::Coarse { rate },
            steps: 0,
            refined: 0,
            plateau: 0,
            best: None,
            lower: 0,
            upper: None,
            stop_reason: String::new(),
        })
    }

    /// Returns the step to run now, the same until it is observed. `None` when the sweep is over.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        let (phase, rate) = match self.state {
            State::Coarse { rate } => (Phase::Coarse, rate),
            State::Refine { rate } => (Phase::Refine, rate),
            State::Done => return None,
        };
        Some(Attempt {
            step: self.steps + 1,
            phase,
            rate,
        })
    }

    /// Reports the throughput that the current step observed, in messages per second. `None` when
    /// the sweep is over.
    pub fn observe(&mut self, observed: f64) -> Option<StepEffect> {
        let attempt = self.attempt()?;
        self.steps = attempt.step;
        let before = self.best.filter(|best| best.observed > 0.0);
        let gain = before.map(|best| observed / best.observed - 1.0);
        let improved = match before {
            Some(best) => observed > best.observed * (1.0 + self.options.plateau_threshold),
            None => observed > 0.0,
        };
        if improved {
            self.best = Some(Best {
                step: attempt.step,
                rate: attempt.rate,
                observed,
            });
            self.lower = attempt.rate;
            // An upper end below the new lower end was measurement noise.
            self.upper = self.upper.filter(|upper| *upper > attempt.rate);
            self.plateau = 0;
        } else {
            self.upper = Some(attempt.rate);
            self.plateau += 1;
        }
        let regressed = gain.is_some_and(|gain| gain < -self.options.plateau_threshold);
        self.advance(attempt, regressed);
        Some(StepEffect {
            gain_percent: gain.map(|gain| 100.0 * gain),
            improved,
        })
    }

    /// Returns the result. `None` before the end, and when no message ever arrived.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        let best = self.best.filter(|_| matches!(self.state, State::Done))?;
        Some(Outcome {
            best_step: best.step,
            best_rate: best.rate,
            best_observed: best.observed,
            rate_lower: self.lower,
            rate_upper: self.upper,
            stop_reason: match self.refined {
                0 => self.stop_reason.clone(),
                1 => format!("{}; refined in 1 step", self.stop_reason),
                steps => format!("{}; refined in {steps} steps", self.stop_reason),
            },
        })
    }

    fn advance(&mut self, attempt: Attempt, regressed: bool) {
        if attempt.phase == Phase::Refine {
            self.refined += 1;
            self.refine();
            return;
        }
        match self.coarse_end(attempt.rate, regressed) {
            Some(reason) => {
                self.stop_reason = reason;
                self.refine();
            }
            None => {
                self.state = State::Coarse {
                    rate: self.options.grown(attempt.rate),
                }
            }
        }
    }

    fn coarse_end(&self, rate: u64, regressed: bool) -> Option<String> {
        let options = &self.options;
        if options.rate_max.is_some_and(|rate_max| rate >= rate_max) {
            return Some(format!("reached the highest rate allowed, {rate}/s"));
        }
        if self.plateau >= options.plateau_steps {
            return Some(match (self.best, regressed) {
                (None, _) => "nothing came through at any rate".to_owned(),
                (Some(best), true) => format!("throughput regressed above {}/s", best.rate),
                (Some(best), false) => {
                    format!("throughput stopped improving above {}/s", best.rate)
                }
            });
        }
        (self.steps >= options.steps_max)
            .then(|| format!("reached the highest number of steps, {}", self.steps))
    }

    /// Halves the gap between the rates that improved and did not, or ends.
    fn refine(&mut self) {
        let gap = self
            .upper
            .filter(|_| self.best.is_some())
            .map(|upper| upper - self.lower);
        self.state = match gap {
            Some(gap)
                if self.refined < self.options.refinement_steps
                    && gap > self.options.rate_delta_min.max(1) =>
            {
                State::Refine {
                    rate: self.lower + gap / 2,
                }
            }
            _ => State::Done,
        };
    }
}

#[cfg(test)]
mod tests;
