//! The queue of answers of one connection, in the order of the requests.
//!
//! A request is decided when it is read; only its answer waits here. Only the oldest answer is
//! polled, so that its data is read when it can be sent: a connection that does not read its
//! answers holds the memory of one.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::reply::{Answer, Reply};

/// The limits of a connection on waiting answers, and on the bytes of their requests and of
/// finished answers. Above either, no more requests are read.
const COUNT_MAX: usize = 8_192;
const SIZE_MAX: usize = 16 << 20;

/// The size at which a finished answer is counted: it may list all topics.
const MADE_SIZE: usize = 128 << 10;

/// The queue of answers; see the module's documentation.
#[derive(Default)]
pub(super) struct Answers {
    /// The answers, each with the bytes that it counts as.
    waiting: VecDeque<(Answer, usize)>,
    size: usize,
}

impl Answers {
    /// Adds the newest answer; its request has `size` bytes.
    pub(super) fn push(&mut self, answer: Answer, size: usize) {
        let size = match answer {
            Answer::Now(_) => size + MADE_SIZE,
            Answer::Later(_) | Answer::Never => size,
        };
        self.waiting.push_back((answer, size));
        self.size += size;
    }

    /// Returns whether no more requests should be read for now.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= COUNT_MAX || self.size >= SIZE_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the next answer once it is finished; `None` if none waits.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Reply>> {
        while let Some((oldest, size)) = self.waiting.front_mut() {
            let Poll::Ready(answer) = oldest.poll(cx) else {
                return Poll::Pending;
            };
            self.size -= *size;
            self.waiting.pop_front();
            if answer.is_some() {
                return Poll::Ready(answer);
            }
        }
        Poll::Ready(None)
    }
}
