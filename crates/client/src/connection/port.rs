//! `Port`: output of a connection for code outside its task, such as streaming handlers and replies
//! to envelopes.
//!
//! That code appends whole frames here and wakes the task, which writes them together with its own.
//! The port also adds up the credit that subscribers and handlers consumed and returns it in
//! batches.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use wire::{Correlation, Credit, Window};

use crate::connection::buffers;

/// Size of queued bytes at which streaming handlers wait.
const HIGH_MARK: usize = 256 << 10;

/// Output of a connection for code outside its task.
pub(crate) struct Port {
    state: Mutex<State>,
    /// True if frames are queued; the task reads it once per turn without the lock.
    is_dirty: AtomicBool,
    /// Bytes of requests that subscribers have not answered yet.
    held_size: AtomicUsize,
    /// Drain time in milliseconds once GOAWAY is to be sent; [`u64::MAX`] before.
    drain_ms: AtomicU64,
    /// Total credit returned.
    returned_messages: AtomicU64,
    returned_bytes: AtomicU64,
}

struct State {
    out: Vec<u8>,
    task: Option<Waker>,
    is_closed: bool,
    /// Streaming handlers that wait for room in the queue.
    waiting: Vec<Waker>,
    consumed: Credit,
    /// Smallest credit worth a frame.
    batch: Credit,
}

impl Port {
    /// Creates the port of a connection on which this side grants `window`.
    pub(crate) fn new(window: &Window) -> Self {
        // A batch is 1/16 of the window. A node lets senders continue when 3/4 of the window are
        // free, so credit held back must stay small. A node also treats a client that returns no
        // credit for a while as stopped, which must not happen to a client that is only slow.
        let batch = Credit {
            messages: (window.credit_messages / 16).max(1),
            bytes: (window.credit_bytes / 16).max(1),
        };
        let state = State {
            out: Vec::new(),
            task: None,
            is_closed: false,
            waiting: Vec::new(),
            consumed: Credit {
                messages: 0,
                bytes: 0,
            },
            batch,
        };
        Self {
            state: Mutex::new(state),
            is_dirty: AtomicBool::new(false),
            held_size: AtomicUsize::new(0),
            drain_ms: AtomicU64::new(u64::MAX),
            returned_messages: AtomicU64::new(0),
            returned_bytes: AtomicU64::new(0),
        }
    }

    /// Lets `write` append frames. Returns false when the connection is gone.
    pub(crate) fn push(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.state.lock();
        if state.is_closed {
            return false;
        }
        self.append(&mut state, write);
        true
    }

    fn append(&self, state: &mut State, write: impl FnOnce(&mut Vec<u8>)) {
        if state.out.capacity() == 0 {
            state.out = buffers::take();
        }
        write(&mut state.out);
        if !self.is_dirty.swap(true, Ordering::AcqRel)
            && let Some(task) = &state.task
        {
            task.wake_by_ref();
        }
    }

    /// Counts consumed one-way messages and returns their credit once a batch is complete.
    pub(crate) fn consume(&self, messages: u32, bytes: u64) {
        let mut state = self.state.lock();
        state.consumed.messages += messages;
        state.consumed.bytes += bytes;
        let Credit { messages, bytes } = state.consumed;
        if state.is_closed || (messages < state.batch.messages && bytes < state.batch.bytes) {
            return;
        }
        state.consumed = Credit {
            messages: 0,
            bytes: 0,
        };
        let credit = Credit { messages, bytes };
        self.returned_messages
            .fetch_add(messages.into(), Ordering::Relaxed);
        self.returned_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.append(&mut state, |out| credit.encode(Correlation::NONE, out));
    }

    /// Returns the total credit returned: messages and bytes.
    pub(crate) fn returned(&self) -> (u64, u64) {
        let messages = self.returned_messages.load(Ordering::Relaxed);
        (messages, self.returned_bytes.load(Ordering::Relaxed))
    }

    /// Ready when there is room for another item, or the connection is gone.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.is_closed || state.out.len() < HIGH_MARK {
            return Poll::Ready(());
        }
        state.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    /// Counts a request of `size` bytes that a subscriber received and has not answered.
    pub(crate) fn hold(&self, size: usize) {
        self.held_size.fetch_add(size, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, size: usize) {
        self.held_size.fetch_sub(size, Ordering::Relaxed);
    }

    pub(crate) fn held_size(&self) -> usize {
        self.held_size.load(Ordering::Relaxed)
    }

    /// Asks the task to send GOAWAY with this drain time.
    pub(crate) fn send_goaway(&self, time: Duration) {
        let state = self.state.lock();
        let milliseconds = time.as_millis().min(u128::from(u32::MAX)) as u64;
        self.drain_ms.store(milliseconds, Ordering::Relaxed);
        if let Some(task) = &state.task {
            task.wake_by_ref();
        }
    }

    /// Returns the drain time if GOAWAY is to be sent.
    pub(crate) fn drain_time(&self) -> Option<Duration> {
        match self.drain_ms.load(Ordering::Relaxed) {
            u64::MAX => None,
            milliseconds => Some(Duration::from_millis(milliseconds)),
        }
    }

    /// Sets the waker of the task.
    pub(crate) fn register(&self, task: &Waker) {
        let mut state = self.state.lock();
        if !state
            .task
            .as_ref()
            .is_some_and(|known| known.will_wake(task))
        {
            state.task = Some(task.clone());
        }
    }

    /// True if frames are queued.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty.load(Ordering::Acquire)
    }

    /// Appends the queued frames to `out`.
    pub(crate) fn drain_into(&self, out: &mut Vec<u8>) {
        if !self.is_dirty() {
            return;
        }
        let (mut queued, waiting) = {
            let mut state = self.state.lock();
            self.is_dirty.store(false, Ordering::Release);
            (
                std::mem::take(&mut state.out),
                std::mem::take(&mut state.waiting),
            )
        };
        match out.is_empty() {
            true => buffers::give(std::mem::replace(out, queued)),
            false => {
                out.append(&mut queued);
                buffers::give(queued);
            }
        }
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Closes the port, because the connection is gone.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.task = None;
            state.out = Vec::new();
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> Port {
        Port::new(&Window {
            frame_size_max: 1 << 20,
            calls_max: 1,
            credit_messages: 32,
            credit_bytes: 16_000,
            keepalive_ms: 0,
        })
    }

    #[test]
    fn credit_is_returned_in_sixteenths_of_the_window() {
        let port = port();
        let mut out = Vec::new();
        port.consume(1, 10);
        port.drain_into(&mut out);
        assert!(out.is_empty());
        port.consume(1, 10);
        port.drain_into(&mut out);
        let payload = &out[wire::HEADER_SIZE..];
        let credit = Credit::decode(payload).unwrap();
        assert_eq!((credit.messages, credit.bytes), (2, 20));
        out.clear();
        port.consume(1, 1000);
        port.drain_into(&mut out);
        assert!(!out.is_empty());
    }

    #[test]
    fn a_full_port_has_room_after_its_queue_is_drained() {
        let port = port();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(port.push(|out| out.resize(HIGH_MARK, 0)));
        assert!(port.poll_room(&mut cx).is_pending());
        port.drain_into(&mut Vec::new());
        assert!(port.poll_room(&mut cx).is_ready());
    }

    #[test]
    fn a_closed_port_rejects_frames_and_wakes_waiters() {
        let port = port();
        port.close();
        assert!(!port.push(|out| out.push(1)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(port.poll_room(&mut cx).is_ready());
    }
}
