//! `Outcome`: results of takes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::ErrorCode;

use super::take::malformed;
use super::{Hold, Quota};
use crate::CallError;

/// Result of a take.
#[derive(Clone, Debug)]
#[must_use = "a take that was denied has taken nothing"]
pub enum Outcome {
    /// The take passed every limit.
    Admitted(Admitted),
    /// At least one limit denied the take; nothing was taken.
    Denied(Denied),
}

/// Result of a take that passed.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// Hold to settle, if the take asked for one.
    pub hold: Option<Hold>,
    /// True if an earlier take with the same id took this.
    pub is_repeat: bool,
    /// True if the node decided without the shared store, because the store was not available.
    pub is_degraded: bool,
    /// State of every limit that covers the subject and counts a unit of the take.
    pub limits: Vec<LimitState>,
}

/// State of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitState {
    /// Name of the limit.
    pub limit: Arc<str>,
    /// Unit that the limit counts.
    pub unit: Arc<str>,
    /// Credit left; a negative value is debt.
    pub have: i64,
    /// Maximum credit.
    pub capacity: u64,
    /// Time until the bucket is full again, if known.
    pub reset_after: Option<Duration>,
    /// True if this is the bucket shared by all subjects for which there was no room for a bucket
    /// of their own.
    pub is_shared: bool,
    /// True if the limit would have denied the take but is configured only to report it.
    pub is_shadowed: bool,
}

/// Result of a take that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The limit that will admit the take last.
    pub limit: Arc<str>,
    /// Unit that the limit counts.
    pub unit: Arc<str>,
    /// Credit left; a negative value is debt.
    pub have: i64,
    /// Credit that the take needs.
    pub need: u64,
    /// Time until the take would pass if no other takes came, in nanoseconds; `None` if that is
    /// unknown or never.
    pub retry_after: Option<Duration>,
    /// True if waiting does not help, because the limit does not refill.
    pub is_exhausted: bool,
}

impl Outcome {
    /// Returns the admitted take, or the denial as an error with
    /// [`retry_after`](crate::CallErrorParts::retry_after): code `throttled`, or `denied` if
    /// waiting does not help.
    pub fn admitted(self) -> Result<Admitted, CallError> {
        match self {
            Self::Admitted(admitted) => Ok(admitted),
            Self::Denied(denied) => Err(denied.into()),
        }
    }
}

impl Denied {
    /// Returns the largest cost that would have passed.
    pub fn would_pass(&self) -> u64 {
        u64::try_from(self.have).unwrap_or(0)
    }
}

impl From<Denied> for CallError {
    fn from(denied: Denied) -> Self {
        let code = match denied.is_exhausted {
            true => ErrorCode::Denied,
            false => ErrorCode::Throttled,
        };
        let mut error = Self::new(code, denied.to_string());
        error.retry_after = denied.retry_after;
        error
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            limit,
            unit,
            have,
            need,
            ..
        } = self;
        write!(
            f,
            "limit `{limit}` has {have} {unit} left, the take needs {need}"
        )?;
        match self.is_exhausted {
            true => f.write_str(", and the limit does not refill"),
            false => Ok(()),
        }
    }
}

/// Decodes the answer to a batch of takes.
pub(super) fn decode(
    payload: &[u8],
    quota: &Quota,
) -> Result<Vec<Result<Outcome, CallError>>, CallError> {
    let outcomes = wire::Outcomes::decode(payload).map_err(malformed)?;
    let limits: Vec<(Arc<str>, Arc<str>)> = outcomes
        .limits()
        .map(|(name, unit)| (name.into(), unit.into()))
        .collect();
    let outcome = |outcome| match outcome {
        wire::Outcome::Admitted(admitted) => Ok(Outcome::Admitted(Admitted {
            hold: admitted.hold.map(|hold| {
                let ends_after = Some(hold.ends_after_ms).filter(|ms| *ms != u64::MAX);
                let ends_after = ends_after.map(Duration::from_millis);
                Hold::new(quota.clone(), hold.id, ends_after)
            }),
            is_repeat: admitted.is_repeat,
            is_degraded: admitted.is_degraded,
            limits: admitted
                .limit_states()
                .map(|one| limit_state(&one, &limits))
                .collect(),
        })),
        wire::Outcome::Denied(denied) => {
            let (limit, unit) = limits[usize::from(denied.limit)].clone();
            Ok(Outcome::Denied(Denied {
                limit,
                unit,
                have: denied.have,
                need: denied.need,
                retry_after: denied.retry_after_ns.map(Duration::from_nanos),
                is_exhausted: denied.is_exhausted,
            }))
        }
        wire::Outcome::Refused { code, message } => Err(CallError::new(code, message)),
    };
    Ok(outcomes.iter().map(outcome).collect())
}

fn limit_state(state: &wire::LimitState, limits: &[(Arc<str>, Arc<str>)]) -> LimitState {
    let (limit, unit) = limits[usize::from(state.limit)].clone();
    LimitState {
        limit,
        unit,
        have: state.have,
        capacity: state.capacity,
        reset_after: state.reset_after_ns.map(Duration::from_nanos),
        is_shared: state.is_shared,
        is_shadowed: state.is_shadowed,
    }
}
