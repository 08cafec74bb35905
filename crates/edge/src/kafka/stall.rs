//! Requests that wait and that nothing behind them on their connection may overtake.

use std::task::{Context, Poll, Waker};

use super::client::Client;
use super::dispatch::Fatal;
use super::reply::Answer;

/// A request that waits. Its connection takes in nothing behind it; other connections go on.
pub(super) trait Stall: Send {
    /// The answer, once it is there. Until then the task is woken by `cx`, or by `disk` where it waits for
    /// the disk.
    fn poll(
        &mut self,
        client: &mut Client,
        cx: &mut Context<'_>,
        disk: &Waker,
    ) -> Poll<Result<Answer, Fatal>>;
}
