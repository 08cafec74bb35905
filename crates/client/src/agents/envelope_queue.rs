//! Queue of messages received by a subscription and not yet taken.
//!
//! The window that this client grants to the node bounds the queue: taking an envelope returns its
//! credit.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use model::ErrorCode;
use parking_lot::Mutex;

use crate::Envelope;

/// Queue between the connection's task and one subscription.
#[derive(Default)]
pub(crate) struct EnvelopeQueue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arrived: VecDeque<QueuedEnvelope>,
    reader: Option<Waker>,
    /// Reason for the end of the subscription.
    ended: Option<ErrorCode>,
    /// True once the subscription was dropped.
    is_closed: bool,
}

/// An envelope and the bytes of window that it uses.
#[derive(Debug)]
pub(crate) struct QueuedEnvelope {
    pub(crate) envelope: Envelope,
    pub(crate) size: usize,
}

impl QueuedEnvelope {
    /// Returns the envelope and its credit.
    pub(crate) fn consume(self) -> Envelope {
        if self.envelope.is_one_way() {
            let port = &self.envelope.context().binding.port;
            port.consume(1, self.size as u64);
        }
        self.envelope
    }
}

impl EnvelopeQueue {
    /// Adds an envelope and wakes the reader.
    pub(crate) fn push(&self, envelope: Envelope, size: usize) {
        let queued = QueuedEnvelope { envelope, size };
        let reader = {
            let mut state = self.state.lock();
            if state.is_closed {
                drop(state);
                queued.consume();
                return;
            }
            state.arrived.push_back(queued);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Swaps `empty` with the received envelopes. Ready with `false` at the end of the
    /// subscription.
    pub(crate) fn poll_arrived(
        &self,
        cx: &mut Context<'_>,
        empty: &mut VecDeque<QueuedEnvelope>,
    ) -> Poll<bool> {
        let mut state = self.state.lock();
        if !state.arrived.is_empty() {
            std::mem::swap(&mut state.arrived, empty);
            return Poll::Ready(true);
        }
        if state.ended.is_some() {
            return Poll::Ready(false);
        }
        if !state
            .reader
            .as_ref()
            .is_some_and(|reader| reader.will_wake(cx.waker()))
        {
            state.reader = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Ends the subscription: no more envelopes will arrive.
    pub(crate) fn end(&self, code: ErrorCode) {
        let reader = {
            let mut state = self.state.lock();
            state.ended.get_or_insert(code);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    pub(crate) fn ended(&self) -> Option<ErrorCode> {
        self.state.lock().ended
    }

    /// Closes the reading side and returns the credit of all queued envelopes.
    pub(crate) fn close(&self) {
        let arrived = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.arrived)
        };
        for queued in arrived {
            queued.consume();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}
