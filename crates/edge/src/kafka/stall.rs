//! Requests that delay all later requests of their connection.

use std::task::{Context, Poll, Waker};

use super::client::Client;
use super::dispatch::Fatal;
use super::reply::Answer;

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
