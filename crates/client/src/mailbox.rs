//! What has arrived for a subscription and was not taken yet.
//!
//! Bounded by the window that this side grants to the node: credit goes back only when an envelope
//! is taken.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use model::ErrorCode;
use parking_lot::Mutex;

use crate::Envelope;

#[derive(Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arrived: VecDeque<Delivery>,
    reader: Option<Waker>,
    /// Why nothing more will arrive.
    ended: Option<ErrorCode>,
    /// Nobody reads any more.
    is_closed: bool,
}

/// An envelope, and the bytes of window it occupies.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) envelope: Envelope,
    pub(crate) size: usize,
}

impl Delivery {
    /// Takes the envelope out and returns its credit.
    pub(crate) fn consume(self) -> Envelope {
        if self.envelope.is_one_way() {
            let port = &self.envelope.context().binding.port;
            port.consume(1, self.size as u64);
        }
        self.envelope
    }
}

impl Mailbox {
    pub(crate) fn push(&self, envelope: Envelope, size: usize) {
        let delivery = Delivery { envelope, size };
        let reader = {
            let mut state = self.state.lock();
            if state.is_closed {
                drop(state);
                delivery.consume();
                return;
            }
            state.arrived.push_back(delivery);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Exchanges `empty` for everything that has arrived; ready with `false` at the end.
    pub(crate) fn poll_arrived(
        &self,
        cx: &mut Context<'_>,
        empty: &mut VecDeque<Delivery>,
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

    /// Nothing more will arrive.
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

    /// Nobody reads any more: what has arrived goes back.
    pub(crate) fn close(&self) {
        let arrived = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.arrived)
        };
        for delivery in arrived {
            delivery.consume();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}
