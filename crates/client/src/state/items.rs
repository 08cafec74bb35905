//! `Items`: items of a stream that were received and not consumed.
//!
//! The responder may send at most [`WINDOW`] items ahead of the consumer, which bounds the memory
//! of a stream that is not read. More items are a protocol violation and end the stream.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use model::ErrorCode;

use crate::state::outcome::Answer;
use crate::{CallError, Sent};

/// Number of items that a responder may send before the consumer returns credit.
pub(crate) const WINDOW: u32 = 64;

/// Number of consumed items after which credit is returned.
pub(crate) const CREDIT_BATCH: u32 = WINDOW / 2;

/// End of a stream: success or an error.
pub(crate) type End = Result<(), CallError>;

/// Receive queue of one stream.
pub(crate) struct Items {
    pub(crate) queue: VecDeque<Bytes>,
    pub(crate) waker: Option<Waker>,
    /// Number of items that the responder may still send.
    allowed: u32,
    end: Option<End>,
}

impl Items {
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            queue: VecDeque::new(),
            waker: Some(waker),
            allowed: WINDOW,
            end: None,
        }
    }

    /// Adds an item. Returns false if it ended the stream.
    pub(crate) fn push(&mut self, item: Answer<'_>, wakers: &mut Vec<Waker>) -> bool {
        if self.is_ended() {
            return true;
        }
        let item = match item {
            Ok(body) if self.allowed > 0 => body,
            Ok(_) => {
                self.end(Err(over_credit()), wakers);
                return false;
            }
            Err(error) => {
                self.end(Err(error), wakers);
                return false;
            }
        };
        self.allowed -= 1;
        self.queue.push_back(Bytes::copy_from_slice(item));
        wakers.extend(self.waker.take());
        true
    }

    /// Ends the stream; no item follows.
    pub(crate) fn end(&mut self, end: End, wakers: &mut Vec<Waker>) {
        self.end.get_or_insert(end);
        wakers.extend(self.waker.take());
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the end of the stream, after the last item.
    pub(crate) fn take_end(&mut self) -> Option<End> {
        // The stream stays ended, without the error.
        self.end.as_mut().map(|end| std::mem::replace(end, Ok(())))
    }

    /// Allows the responder `count` more items.
    pub(crate) fn allow(&mut self, count: u32) {
        self.allowed = self.allowed.saturating_add(count);
    }
}

fn over_credit() -> CallError {
    let message = format!("the responder sent more than {WINDOW} items beyond its credit");
    CallError::new(ErrorCode::Protocol, message).with_sent(Sent::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_responder_that_ignores_its_credit_ends_the_stream() {
        let mut items = Items::new(Waker::noop().clone());
        let mut wakers = Vec::new();
        for _ in 0..WINDOW {
            assert!(items.push(Ok(b"x"), &mut wakers));
        }
        assert!(!items.push(Ok(b"x"), &mut wakers));
        assert_eq!(items.queue.len(), WINDOW as usize);
        let error = items.take_end().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::Protocol);
    }

    #[test]
    fn take_end_does_not_end_a_stream() {
        let mut items = Items::new(Waker::noop().clone());
        let mut wakers = Vec::new();
        assert!(items.take_end().is_none());
        assert!(items.push(Ok(b"x"), &mut wakers));
        assert_eq!(items.queue.len(), 1);
        items.end(Ok(()), &mut wakers);
        assert!(items.take_end().is_some() && items.is_ended());
    }

    #[test]
    fn stream_credit_allows_further_items() {
        let mut items = Items::new(Waker::noop().clone());
        let mut wakers = Vec::new();
        for _ in 0..WINDOW {
            items.push(Ok(b"x"), &mut wakers);
        }
        items.allow(1);
        assert!(items.push(Ok(b"y"), &mut wakers));
        assert!(!items.push(Ok(b"z"), &mut wakers));
    }
}
