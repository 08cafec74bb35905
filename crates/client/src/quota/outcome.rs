//! What became of takes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::ErrorCode;

use super::{Hold, Quota, malformed};
use crate::CallError;

/// What became of a take that was decided.
#[derive(Clone, Debug)]
#[must_use = "a take that was denied has taken nothing"]
pub enum Outcome {
    /// It was taken, from every limit.
    Admitted(Admitted),
    /// It was not, from any.
    Denied(Denied),
}

/// A take that passed.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// What settles it, if it was to be held.
    pub hold: Option<Hold>,
    /// It was taken before, by a take with the same id.
    pub is_repeat: bool,
    /// It was decided without the store that the buckets lie in.
    pub is_degraded: bool,
    /// How every limit stands now that covers the subject and counts what was taken.
    pub limits: Vec<Standing>,
}

/// How a limit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The limit.
    pub limit: Arc<str>,
    /// What it counts.
    pub unit: Arc<str>,
    /// What is left; less than nothing is debt.
    pub have: i64,
    /// What there is at most.
    pub capacity: u64,
    /// When everything is there again, if that is known.
    pub reset_after: Option<Duration>,
    /// The bucket is one that subjects share there is no room for.
    pub is_shared: bool,
    /// It would have denied the take, and only says so.
    pub is_shadowed: bool,
}

/// A take that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The limit that will let it pass last.
    pub limit: Arc<str>,
    /// What that counts.
    pub unit: Arc<str>,
    /// What is left; less than nothing is debt.
    pub have: i64,
    /// What was wanted.
    pub need: u64,
    /// When it would pass if nobody else took, to the nanosecond; `None` for nobody knows, or never.
    pub retry_after: Option<Duration>,
    /// There is nothing to wait for: a budget is spent, or what is gone does not come back.
    pub is_exhausted: bool,
}

impl Outcome {
    /// What was admitted; a denial as an error, `throttled` or, if there is nothing to wait for,
    /// `denied`, with [`retry_after`](crate::CallErrorParts::retry_after).
    pub fn admitted(self) -> Result<Admitted, CallError> {
        match self {
            Self::Admitted(admitted) => Ok(admitted),
            Self::Denied(denied) => Err(denied.into()),
        }
    }
}

impl Denied {
    /// What would have passed.
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
        write!(f, "limit `{limit}` has {have} of the {need} {unit} left")?;
        match self.is_exhausted {
            true => f.write_str(", and is spent"),
            false => Ok(()),
        }
    }
}

/// Reads an answer to takes: what became of each.
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
                .standings()
                .map(|one| standing(&one, &limits))
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

fn standing(standing: &wire::Standing, limits: &[(Arc<str>, Arc<str>)]) -> Standing {
    let (limit, unit) = limits[usize::from(standing.limit)].clone();
    Standing {
        limit,
        unit,
        have: standing.have,
        capacity: standing.capacity,
        reset_after: standing.reset_after_ns.map(Duration::from_nanos),
        is_shared: standing.is_shared,
        is_shadowed: standing.is_shadowed,
    }
}
