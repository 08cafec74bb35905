//! Calls that are held until their charge is on disk.
//!
//! A reply goes from the responder to the caller without passing the queue of answers that wait for
//! the disk; so the call itself waits, in order with the caller's answers. Invariant: *a held call
//! ends like any other, exactly once*: handed on, cancelled, or refused if the journal fails.

use std::sync::Arc;

use quota_service::InFlight;

use crate::outlet::Message;

/// An owned copy of a call, which outlives its frame.
pub struct HeldCall {
    is_streamed: bool,
    deadline_ms: Option<u32>,
    metadata: Box<[u8]>,
    body: Box<[u8]>,
    since_ns: u64,
    in_flight: Option<Arc<InFlight>>,
}

impl HeldCall {
    pub(crate) fn new(
        is_streamed: bool,
        message: Message<'_>,
        in_flight: Option<Arc<InFlight>>,
        now_ns: u64,
    ) -> Self {
        Self {
            is_streamed,
            deadline_ms: message.deadline_ms,
            metadata: message.metadata.into(),
            body: message.body.into(),
            since_ns: now_ns,
            in_flight,
        }
    }

    /// Returns the message, with its remaining time reduced by the wait.
    pub(crate) fn message(&self, now_ns: u64) -> Message<'_> {
        let passed_ms = now_ns.saturating_sub(self.since_ns) / 1_000_000;
        let passed_ms = u32::try_from(passed_ms).unwrap_or(u32::MAX);
        let left = |ms: u32| ms.saturating_sub(passed_ms);
        Message {
            deadline_ms: self.deadline_ms.map(left),
            metadata: &self.metadata,
            body: &self.body,
        }
    }

    pub(crate) fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// Returns the guard that counts the call as in flight.
    pub(crate) fn in_flight(&self) -> Option<Arc<InFlight>> {
        self.in_flight.clone()
    }
}
