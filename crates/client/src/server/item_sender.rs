//! `ItemSender`: sends the items of a streaming handler.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use model::ErrorCode;
use parking_lot::Mutex;
use wire::{Correlation, Flags, Kind, Payload};

use crate::Fault;
use crate::connection::port::Port;
use crate::connection::reply_frames::too_large;
use crate::state::items::WINDOW;

/// Sends the items of a streaming reply.
///
/// The caller sets the pace: [`ItemSender::send`] waits while the caller is 64 items behind or does
/// not read its connection. If the caller drops its stream, the handler is dropped.
#[derive(Clone)]
pub struct ItemSender {
    stream: Arc<Stream>,
}

/// State of one stream, shared by the sender and the connection.
pub(crate) struct Stream {
    port: Arc<Port>,
    correlation: Correlation,
    frame_size_max: u32,
    state: Mutex<State>,
}

struct State {
    credit: u32,
    waiting: Vec<Waker>,
    is_open: bool,
}

impl ItemSender {
    pub(crate) fn new(stream: Arc<Stream>) -> Self {
        Self { stream }
    }

    /// Sends one item as soon as the caller has room. Fails with `cancelled` when the caller is
    /// gone, and with `too_large` when the item exceeds the caller's limit.
    pub async fn send(&self, item: impl Into<Bytes>) -> Result<(), Fault> {
        let item = item.into();
        let limit = self.stream.frame_size_max;
        if item.len() > limit as usize {
            return Err(too_large("an item", item.len(), limit));
        }
        poll_fn(|cx| self.stream.poll_send(cx, &item)).await
    }
}

impl std::fmt::Debug for ItemSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ItemSender({:?})", self.stream.correlation)
    }
}

impl Stream {
    pub(crate) fn new(port: Arc<Port>, correlation: Correlation, frame_size_max: u32) -> Self {
        let state = State {
            credit: WINDOW,
            waiting: Vec::new(),
            is_open: true,
        };
        Self {
            port,
            correlation,
            frame_size_max,
            state: Mutex::new(state),
        }
    }

    fn poll_send(&self, cx: &mut Context<'_>, item: &[u8]) -> Poll<Result<(), Fault>> {
        ready!(self.port.poll_room(cx));
        // Holding the lock while the item is queued keeps the end of the stream behind it.
        let mut state = self.state.lock();
        if !state.is_open {
            return Poll::Ready(Err(caller_gone()));
        }
        if state.credit == 0 {
            state.waiting.push(cx.waker().clone());
            return Poll::Pending;
        }
        state.credit -= 1;
        let payload = Payload::body(item);
        let is_queued = self
            .port
            .push(|out| payload.encode(Kind::REPLY, Flags::MORE, 0, self.correlation, out));
        Poll::Ready(if is_queued {
            Ok(())
        } else {
            Err(caller_gone())
        })
    }

    /// Adds credit for items that the caller consumed.
    pub(crate) fn credit(&self, count: u32) {
        let waiting = {
            let mut state = self.state.lock();
            state.credit = state.credit.saturating_add(count);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Closes the stream, because the handler completed or was dropped.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_open = false;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

fn caller_gone() -> Fault {
    Fault::with_code(ErrorCode::Cancelled, "the caller is gone")
}
