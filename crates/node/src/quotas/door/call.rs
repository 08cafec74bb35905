//! Calls that are held until their charge is durable.
//!
//! A reply goes from the responder to the caller without passing the queue of answers that wait for
//! the disk; so the call itself waits, in order with the caller's answers. Invariant: *a held call
//! ends like any other, exactly once*: handed on, cancelled, or refused if the journal fails.

use std::sync::Arc;

use model::ErrorCode;
use routing::Ticket;

use super::InFlight;
use crate::ports::{Failure, Message};
use crate::turn::Turn;

/// An owned copy of a call, which outlives its frame.
pub(crate) struct HeldCall {
    route: u16,
    is_streamed: bool,
    deadline_ms: Option<u32>,
    metadata: Box<[u8]>,
    body: Box<[u8]>,
    since_ns: u64,
    in_flight: Option<Arc<InFlight>>,
}

impl HeldCall {
    /// Returns the message, with its remaining time reduced by the wait.
    fn message(&self, now_ns: u64) -> Message<'_> {
        let passed_ms = now_ns.saturating_sub(self.since_ns) / 1_000_000;
        let passed_ms = u32::try_from(passed_ms).unwrap_or(u32::MAX);
        let left = |ms: u32| ms.saturating_sub(passed_ms);
        Message {
            deadline_ms: self.deadline_ms.map(left),
            metadata: &self.metadata,
            body: &self.body,
        }
    }
}

impl Turn<'_> {
    /// Holds a call that was charged.
    pub(crate) fn hold_call(
        &mut self,
        route: u16,
        tag: Ticket,
        is_streamed: bool,
        message: Message<'_>,
        in_flight: Option<Arc<InFlight>>,
    ) {
        let call = HeldCall {
            route,
            is_streamed,
            deadline_ms: message.deadline_ms,
            metadata: message.metadata.into(),
            body: message.body.into(),
            since_ns: self.now_ns,
            in_flight,
        };
        self.local.answers.push_call(tag, call, message.size());
    }

    /// Hands a call on, or refuses it with the reason.
    pub(crate) fn let_go(&mut self, tag: Ticket, call: HeldCall, is_charged: bool) {
        if !is_charged {
            let message = "the journal has failed: the call was not handed on";
            return self.fail(tag, Failure::new(ErrorCode::Unavailable, message));
        }
        let (message, in_flight) = (call.message(self.now_ns), call.in_flight.clone());
        self.hand_on(call.route, tag, call.is_streamed, message, in_flight);
    }
}
