//! The replies to the call of one request, as they arrive from the responder.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use messaging::{Client, Inbox, Outgoing, Pushed};
use model::{ErrorCode, Failure};
use parking_lot::Mutex;

/// Bounds of the items that wait for the client. A responder may be 64 items ahead; one that does not
/// keep to that is cut off.
const ITEMS_MAX: usize = 1_024;
const BYTES_MAX: usize = 64 << 20;

/// An answer, or one item of it.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) metadata: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// True if more items follow.
    pub(crate) more: bool,
}

/// The failure of a call.
#[derive(Debug)]
pub(crate) struct CallFailure {
    code: ErrorCode,
    sent: bool,
    retry_after_ms: u32,
    message: String,
    details: Vec<u8>,
}

/// The replies to a call; the node pushes into it.
#[derive(Default)]
pub(crate) struct Replies(Mutex<State>);

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    bytes: usize,
    failure: Option<CallFailure>,
    /// True once the call has ended: nothing more is accepted.
    is_over: bool,
    waker: Option<Waker>,
}

impl CallFailure {
    fn new(failure: Failure<'_>) -> Self {
        Self {
            code: failure.code,
            sent: failure.sent,
            retry_after_ms: failure.retry_after_ms,
            message: failure.message.to_owned(),
            details: failure.details.to_vec(),
        }
    }

    /// Returns the failure.
    pub(crate) fn failure(&self) -> Failure<'_> {
        Failure {
            code: self.code,
            sent: self.sent,
            retry_after_ms: self.retry_after_ms,
            message: &self.message,
            details: &self.details,
        }
    }
}

impl Replies {
    /// Returns empty replies.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the next item, or the failure that ends the call; otherwise registers the waker.
    pub(crate) fn poll_next(&self, waker: &Waker) -> Poll<Result<Item, CallFailure>> {
        let mut state = self.0.lock();
        if let Some(item) = state.items.pop_front() {
            state.bytes -= item.metadata.len() + item.body.len();
            return Poll::Ready(Ok(item));
        }
        match state.failure.take() {
            Some(failure) => Poll::Ready(Err(failure)),
            None => {
                state.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> Pushed {
        let mut state = self.0.lock();
        if state.is_over {
            return Pushed::Closed;
        }
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Pushed::Queued
    }

    fn fail(&self, failure: Failure<'_>) -> Pushed {
        self.change(|state| state.end(failure))
    }
}

impl State {
    fn end(&mut self, failure: Failure<'_>) {
        self.failure = Some(CallFailure::new(failure));
        self.is_over = true;
    }

    fn push(&mut self, item: Item) {
        let bytes = self.bytes + item.metadata.len() + item.body.len();
        if self.items.len() >= ITEMS_MAX || (bytes > BYTES_MAX && !self.items.is_empty()) {
            let message = "the responder sent items faster than the client reads them";
            return self.end(Failure::new(ErrorCode::Unconfirmed, message).after_sending());
        }
        self.bytes = bytes;
        self.is_over = !item.more;
        self.items.push_back(item);
    }
}

impl Client for Replies {
    /// A request in flight is finished while the node drains.
    fn goaway(&self, _: u32, _: &str) {}

    fn dismiss(&self, failure: Failure<'_>) {
        self.fail(failure.after_sending());
    }

    fn close(&self) {
        let message = "the node closed the connection";
        self.fail(Failure::new(ErrorCode::Unconfirmed, message).after_sending());
    }

    fn queued_size(&self) -> usize {
        self.0.lock().bytes
    }
}

impl Inbox for Replies {
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed {
        match outgoing {
            Outgoing::Reply { more, message, .. } => {
                let item = Item {
                    metadata: message.metadata.to_vec(),
                    body: message.body.to_vec(),
                    more,
                };
                self.change(|state| state.push(item))
            }
            Outgoing::Failure { failure, .. } => self.fail(failure),
            // Each request sends one message, so it needs neither credit nor pauses.
            Outgoing::Credit { .. } | Outgoing::Flow { .. } => Pushed::Queued,
            // The connection has no subscriptions.
            Outgoing::Request { .. }
            | Outgoing::Delivery { .. }
            | Outgoing::Send { .. }
            | Outgoing::Sends { .. }
            | Outgoing::Cancel { .. }
            | Outgoing::StreamCredit { .. }
            | Outgoing::Ended { .. } => Pushed::Closed,
        }
    }

    /// Items are read as soon as they are pushed.
    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use messaging::Message;
    use routing::Ticket;

    use super::*;

    fn push(replies: &Replies, more: bool) -> Pushed {
        let tag = Ticket {
            slot: 0,
            generation: 1,
        };
        let message = Message {
            body: b"x",
            ..Message::default()
        };
        replies.push(Outgoing::Reply { tag, more, message })
    }

    #[test]
    fn items_above_the_bound_end_the_call() {
        let replies = Replies::new();
        for _ in 0..=ITEMS_MAX {
            assert_eq!(push(&replies, true), Pushed::Queued);
        }
        assert_eq!(push(&replies, true), Pushed::Closed);
        for _ in 0..ITEMS_MAX {
            assert!(matches!(
                replies.poll_next(Waker::noop()),
                Poll::Ready(Ok(_))
            ));
        }
        let Poll::Ready(Err(failure)) = replies.poll_next(Waker::noop()) else {
            panic!("the call has not failed");
        };
        assert_eq!(failure.failure().code, ErrorCode::Unconfirmed);
    }

    #[test]
    fn nothing_is_accepted_after_the_last_item() {
        let replies = Replies::new();
        push(&replies, false);
        replies.close();
        assert_eq!(push(&replies, true), Pushed::Closed);
        assert!(matches!(
            replies.poll_next(Waker::noop()),
            Poll::Ready(Ok(Item { more: false, .. }))
        ));
        assert!(replies.poll_next(Waker::noop()).is_pending());
    }
}
