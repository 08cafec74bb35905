//! Requests for a stream that wait until the node has room for another connection.
//!
//! SLIM's library gives up permanently when a stream cannot be opened, but waits for the answer
//! without a limit. So an application that reconnects to a full node is answered when there is
//! room.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::Request;
use tokio::time::{Instant, Sleep};

/// The interval at which the node is checked for room.
const INTERVAL: Duration = Duration::from_millis(250);

/// A request that was not answered.
pub(super) struct WaitingStream {
    pub(super) request: Request<RecvStream>,
    pub(super) respond: SendResponse<Bytes>,
}

/// The waiting requests.
#[derive(Default)]
pub(super) struct WaitingStreams {
    waiting: Vec<WaitingStream>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl WaitingStreams {
    /// Adds a request.
    pub(super) fn push(&mut self, waiting: WaitingStream) {
        self.waiting.push(waiting);
    }

    /// Returns whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the waiting requests when they can be answered.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        can_be_answered: impl Fn() -> bool,
    ) -> Poll<Vec<WaitingStream>> {
        let is_there = |it: &mut WaitingStream| it.respond.poll_reset(cx).is_pending();
        self.waiting.retain_mut(is_there);
        if self.waiting.is_empty() {
            self.alarm = None;
            return Poll::Pending;
        }
        let sleep = || Box::pin(tokio::time::sleep(INTERVAL));
        let alarm = self.alarm.get_or_insert_with(sleep);
        loop {
            ready!(alarm.as_mut().poll(cx));
            alarm.as_mut().reset(Instant::now() + INTERVAL);
            if can_be_answered() {
                return Poll::Ready(std::mem::take(&mut self.waiting));
            }
        }
    }
}
