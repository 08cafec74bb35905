//! Encoding of the outcomes of takes.

use std::sync::Arc;

use model::ErrorCode;
use quota::{LimitState, Refused, Unit};
use quota_service::{DecidedTake, Denial, Desk, Outcome};
use wire::{Admitted, Correlation, Denied, Hold, Outcomes};

/// The answer in preparation; its memory is reused.
#[derive(Default)]
pub(super) struct Answer {
    /// The limits that the outcomes refer to.
    limits: Vec<(Arc<str>, Unit)>,
    pub(super) outcomes: Vec<u8>,
    /// The finished answer.
    pub(super) frame: Vec<u8>,
}

impl Answer {
    pub(super) fn clear(&mut self) {
        self.limits.clear();
        self.outcomes.clear();
        self.frame.clear();
    }

    /// Adds the outcome of a take; the desk has the states of its limits.
    pub(super) fn put(&mut self, desk: &Desk, taken: &DecidedTake) {
        match &taken.outcome {
            Outcome::Admitted { hold, is_repeat } => {
                let hold = hold.map(|hold| Hold {
                    id: hold.id.0,
                    ends_after_ms: hold.deadline_ns.saturating_sub(desk.now_ns()) / 1_000_000,
                });
                self.put_admitted(desk, Admitted::new(hold, *is_repeat, taken.is_degraded));
            }
            Outcome::Denied(denial) => self.put_denied(denial),
            Outcome::Halted { prefix, reason } => {
                let message = format!("`{prefix}` is halted: {reason}");
                self.put_refused(ErrorCode::Denied, &message);
            }
            Outcome::Refused(Refused::IdReused) => {
                self.put_refused(ErrorCode::IdReused, &Refused::IdReused.to_string());
            }
            Outcome::Refused(refused) => {
                self.put_refused(ErrorCode::InvalidArgument, &refused.to_string());
            }
            Outcome::Unavailable { reason } => self.put_refused(ErrorCode::Unavailable, reason),
            Outcome::Unconfirmed { reason } => self.put_refused(ErrorCode::Unconfirmed, reason),
        }
    }

    /// Adds the states of limits, without a take.
    pub(super) fn put_limit_states(&mut self, desk: &Desk) {
        self.put_admitted(desk, Admitted::new(None, false, false));
    }

    pub(super) fn put_refused(&mut self, code: ErrorCode, message: &str) {
        wire::Outcome::encode_refused(code, message, &mut self.outcomes);
    }

    /// Encodes the frame.
    pub(super) fn finish(&mut self, at: Correlation) {
        let limits = self.limits.iter();
        let limits = limits.map(|(name, unit)| (&**name, unit.as_str()));
        Outcomes::encode(limits, &self.outcomes, at, &mut self.frame);
    }

    fn put_admitted(&mut self, desk: &Desk, admitted: Admitted<'_>) {
        let now_ns = desk.now_ns();
        let limits = &mut self.limits;
        let states = desk.limit_states().map(|state| {
            let limit = place(limits, &state.limit.name, state.limit.unit);
            encoded(limit, &state, now_ns)
        });
        admitted.encode(states, &mut self.outcomes);
    }

    fn put_denied(&mut self, denial: &Denial) {
        let limit = place(&mut self.limits, &denial.limit.name, denial.limit.unit);
        Denied {
            limit,
            is_exhausted: denial.is_exhausted(),
            have: narrow(denial.have),
            need: denial.need,
            retry_after_ns: denial.retry_after_ns,
        }
        .encode(&mut self.outcomes);
    }
}

/// Returns the index of a limit in the answer. One version has at most 1,024 limits; an answer with
/// more than 65,535 limits of several versions does not fit into a frame.
fn place(limits: &mut Vec<(Arc<str>, Unit)>, name: &Arc<str>, unit: Unit) -> u16 {
    let known = limits
        .iter()
        .position(|(known, _)| Arc::ptr_eq(known, name));
    let index = known.unwrap_or_else(|| {
        limits.push((name.clone(), unit));
        limits.len() - 1
    });
    index as u16
}

fn encoded(limit: u16, state: &LimitState<'_>, now_ns: u64) -> wire::LimitState {
    wire::LimitState {
        limit,
        is_shared: state.is_shared,
        is_shadowed: state.shadowed.is_some(),
        have: narrow(state.have),
        capacity: state.capacity,
        reset_after_ns: state.reset_ns.map(|at_ns| at_ns.saturating_sub(now_ns)),
    }
}

/// Narrows a balance: a debt beyond the range is shown as the largest.
fn narrow(have: i128) -> i64 {
    have.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
