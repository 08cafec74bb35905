//! Changes of topics and users that wait until the members of a cluster have changed. Nothing is written
//! meanwhile, and many tools do not repeat such a change after an error.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::client::Client;
use super::outcome::{Fatal, Handled, Stall};
use super::reply::Answer;

/// Time for which a request waits at most. After that it is refused as when too much waits for the disk.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Calls `change` at once, or when the members have changed.
pub(super) fn when_resumed(
    client: &mut Client,
    change: impl FnOnce(&Client) -> Answer + Send + 'static,
) -> Handled {
    match client.topics().poll_resumed(Waker::noop()) {
        Poll::Ready(()) => Handled::Answer(change(client)),
        Poll::Pending => Handled::Stalled(Box::new(Postponed {
            change: Some(Box::new(change)),
            timer: Box::pin(sleep(WAIT_MAX)),
        })),
    }
}

type Change = dyn FnOnce(&Client) -> Answer + Send;

/// A waiting request.
struct Postponed {
    /// `None` once it is called.
    change: Option<Box<Change>>,
    timer: Pin<Box<Sleep>>,
}

impl Stall for Postponed {
    fn poll(
        &mut self,
        client: &mut Client,
        cx: &mut Context<'_>,
        disk: &Waker,
    ) -> Poll<Result<Answer, Fatal>> {
        let is_over = client.departure().has_come() || self.timer.as_mut().poll(cx).is_ready();
        if !is_over && client.topics().poll_resumed(disk).is_pending() {
            return Poll::Pending;
        }
        match self.change.take() {
            Some(change) => Poll::Ready(Ok(change(client))),
            None => Poll::Pending,
        }
    }
}
