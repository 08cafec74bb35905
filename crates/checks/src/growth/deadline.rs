//! Time limits of steps and of the whole measurement.

use std::time::Duration;

use meter::clock::now_ns;

use super::step::StepError;

/// A point in time on the monotonic clock, and the option that set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    at_ns: u64,
    limit: Duration,
    option: &'static str,
}

impl Deadline {
    /// Starts the time limit of the whole measurement.
    pub(super) fn after(limit: Duration) -> Self {
        Self {
            at_ns: now_ns() + limit.as_nanos() as u64,
            limit,
            option: "--limit",
        }
    }

    /// Starts the time limit of a step, which ends no later than this one.
    pub(super) fn at_most(self, limit: Duration) -> Self {
        let at_ns = now_ns() + limit.as_nanos() as u64;
        match at_ns < self.at_ns {
            true => Self {
                at_ns,
                limit,
                option: "--step-limit",
            },
            false => self,
        }
    }

    pub(super) fn has_passed(self) -> bool {
        now_ns() >= self.at_ns
    }

    /// Fails if the limit has passed. `work` names what did not fit.
    pub(super) fn check(self, work: &str) -> Result<(), StepError> {
        match self.has_passed() {
            true => Err(self.exceeded(work)),
            false => Ok(()),
        }
    }

    /// Makes the reason of a step that did not fit.
    pub(super) fn exceeded(self, work: &str) -> StepError {
        StepError::LeftOut(format!(
            "{work} did not fit into {:?} ({})",
            self.limit, self.option
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_no_later_than_the_whole() {
        let whole = Deadline::after(Duration::from_secs(60));
        let step = whole.at_most(Duration::from_secs(1));
        assert!(!step.has_passed() && step.at_ns < whole.at_ns);
        assert_eq!(whole.at_most(Duration::from_secs(600)), whole);
        let passed = whole.at_most(Duration::ZERO);
        match passed.check("the load") {
            Err(StepError::LeftOut(reason)) => {
                assert_eq!(reason, "the load did not fit into 0ns (--step-limit)");
            }
            other => panic!("{other:?}"),
        }
    }
}
