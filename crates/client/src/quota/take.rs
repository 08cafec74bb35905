//! What is asked for, before it is asked.

use std::time::Duration;

use model::ErrorCode;
use wire::{Costs, Wait};

use crate::CallError;

/// A take: who, how much of what, and how. It can be asked again.
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
    /// For that subject: `org/namespace/agent`, with `?run=…` behind it for what a run has of its own.
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

    /// Costs so much of a unit: `requests`, `tokens`, `usd_micros`, or whatever a limit counts.
    #[must_use]
    pub fn cost(mut self, unit: impl Into<String>, count: u64) -> Self {
        self.costs.push((unit.into(), count));
        self
    }

    /// Reserves it until it is [settled](crate::quota::Hold::settle), for so long at most (1 ms to 49
    /// days; the node may allow less): then it cost what was reserved.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = Some(hold);
        self
    }

    /// Waits for so long at most (49 days) until it passes. One that cannot pass within that time is
    /// denied at once.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Goes before those of lower priority that wait; 0 unless it is said otherwise.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Makes it safe to repeat: a second take of the subject with this id takes nothing and is
    /// answered like the first. At most 255 bytes.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// How long it may wait.
    pub(super) fn waiting(&self) -> Duration {
        self.wait.unwrap_or_default()
    }

    /// Appends it, unless that would change what it says.
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
            costs: Costs::decode(&costs).map_err(super::malformed)?,
        }
        .encode(out);
        Ok(())
    }
}

/// Bytes of a short text.
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

fn invalid(message: &str) -> CallError {
    CallError::new(ErrorCode::InvalidArgument, message)
}

/// Rounded up: nobody asked for less.
fn milliseconds(duration: Duration) -> u32 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    ms.clamp(1, u128::from(u32::MAX)) as u32
}
