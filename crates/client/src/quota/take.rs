//! `Take`: a request to take from quotas.

use std::time::Duration;

use model::ErrorCode;
use wire::{Costs, Wait};

use crate::{CallError, Sent};

/// A take: subject, costs and options. It can be used several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    subject: String,
    costs: Vec<(String, u64)>,
    hold: Option<Duration>,
    wait: Option<Duration>,
    priority: u8,
    id: Option<String>,
}

impl Take {
    /// Creates a take for a subject: `org/namespace/agent`, with `?run=…` after it for the limits
    /// of a run.
    pub fn of(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            costs: Vec::new(),
            hold: None,
            wait: None,
            priority: 0,
            id: None,
        }
    }

    /// Adds a cost of `count` units: `requests`, `tokens`, `usd_micros`, or another unit of a
    /// limit.
    #[must_use]
    pub fn cost(mut self, unit: impl Into<String>, count: u64) -> Self {
        self.costs.push((unit.into(), count));
        self
    }

    /// Reserves the costs until the hold is [settled](crate::quota::Hold::settle), for at most this
    /// time (1 ms to 49 days; the node may allow less). After that time the hold costs what was
    /// reserved.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = Some(hold);
        self
    }

    /// Waits up to this time (at most 49 days) until the take passes. A take that cannot pass
    /// within that time is denied at once.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets the priority. A waiting take goes before those of lower priority. Default 0.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets an id of at most 255 bytes, which makes retries safe: a second take of the subject with
    /// this id takes nothing and gets the first answer.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Returns how long the take may wait.
    pub(super) fn waiting(&self) -> Duration {
        self.wait.unwrap_or_default()
    }

    /// Appends the encoded take; fails if a field exceeds its maximum size.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), CallError> {
        check_subject(&self.subject)?;
        if self.id.as_ref().is_some_and(|id| id.len() > SHORT_MAX) {
            return Err(invalid("the id of a take has at most 255 bytes"));
        }
        let costs = encode_costs(self.costs.iter().map(|(unit, count)| (&**unit, *count)))?;
        wire::Take {
            subject: &self.subject,
            hold_ms: self.hold.map(milliseconds),
            wait: self.wait.map(|wait| Wait {
                wait_ms: milliseconds(wait),
                priority: self.priority,
            }),
            id: self.id.as_deref(),
            costs: Costs::decode(&costs).map_err(malformed)?,
        }
        .encode(out);
        Ok(())
    }
}

/// Maximum size of a short text in bytes.
const SHORT_MAX: usize = u8::MAX as usize;

pub(super) fn check_subject(subject: &str) -> Result<(), CallError> {
    match subject.len() <= usize::from(u16::MAX) {
        true => Ok(()),
        false => Err(invalid("a subject has at most 65,535 bytes")),
    }
}

pub(super) fn encode_costs<'a>(
    costs: impl Iterator<Item = (&'a str, u64)>,
) -> Result<Vec<u8>, CallError> {
    let mut bytes = Vec::new();
    for (unit, count) in costs {
        if unit.len() > SHORT_MAX {
            return Err(invalid("the name of a unit has at most 255 bytes"));
        }
        Costs::encode(unit, count, &mut bytes);
    }
    match bytes.len() <= Costs::SIZE_MAX {
        true => Ok(bytes),
        false => Err(invalid("a take has too many costs")),
    }
}

/// The error for an answer that cannot be decoded; the node has received the request.
pub(super) fn malformed(error: wire::Malformed) -> CallError {
    CallError::malformed(&error).with_sent(Sent::Yes)
}

fn invalid(message: &str) -> CallError {
    CallError::new(ErrorCode::InvalidArgument, message)
}

/// Rounds up to milliseconds, never to less than was asked for.
fn milliseconds(duration: Duration) -> u32 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    ms.clamp(1, u128::from(u32::MAX)) as u32
}
