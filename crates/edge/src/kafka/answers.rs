//! Answers of one connection, in the order of their requests.
//!
//! Whatever a request decides is decided when it is read; only its answer waits here. Only the oldest
//! is looked at, so that what must be read for an answer is read when it can be handed out: a
//! connection that does not take its answers holds the memory of one.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::reply::{Answer, Reply};

/// Requests of a connection that may wait for their answers, and bytes of those requests and of answers
/// that are made already; above either nothing more is read from it.
const COUNT_MAX: usize = 8_192;
const SIZE_MAX: usize = 16 << 20;

/// What an answer counts as that is made already: it may be as long as there are topics.
const MADE_SIZE: usize = 128 << 10;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Answers {
    /// Each with the bytes that it counts as.
    waiting: VecDeque<(Answer, usize)>,
    size: usize,
}

impl Answers {
    /// Adds the newest, to a request of that many bytes.
    pub(super) fn push(&mut self, answer: Answer, size: usize) {
        let size = match answer {
            Answer::Now(_) => size + MADE_SIZE,
            Answer::Later(_) | Answer::Never => size,
        };
        self.waiting.push_back((answer, size));
        self.size += size;
    }

    /// Whether nothing more should be asked until something is answered.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= COUNT_MAX || self.size >= SIZE_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next answer that goes out, once it is there; `None` when nothing waits.
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
