//! Outcomes of a request: an answer, the end of the connection, or a wait that delays all later
//! requests of the connection.

use std::task::{Context, Poll, Waker};

use super::client::Client;
use super::reply::Answer;

/// An error that ends the connection, because no answer is possible or allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fatal {
    pub(super) message: String,
}

impl Fatal {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// The result of handling a request.
pub(super) enum Handled {
    /// Everything is decided, and the answer follows.
    Answer(Answer),
    /// The request waits; later ones are not handled before it.
    Stalled(Box<dyn Stall>),
}

/// A waiting request. Its connection handles no later request meanwhile; other connections
/// continue.
pub(super) trait Stall: Send {
    /// Returns the answer, once it is finished. Until then `cx` wakes the task, or `disk` where it
    /// waits for the disk.
    fn poll(
        &mut self,
        client: &mut Client,
        cx: &mut Context<'_>,
        disk: &Waker,
    ) -> Poll<Result<Answer, Fatal>>;
}
