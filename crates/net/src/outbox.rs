//! The bounded queue of bytes in front of a [`Sink`].
//!
//! It has two buffers: one is filled while the other is written. A flush takes the filled one and
//! writes it outside the lock. Writers that come meanwhile only append, and the flushing thread
//! writes their bytes too before it returns. No byte waits for another task unless the peer does
//! not read; then the connection's own task continues when the sink is writable.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::file_bytes::is_unreadable;
use crate::output::Output;
use crate::stream::Sink;

/// Size limit of buffers in the thread's pool; larger ones are freed.
const POOLED_SIZE_MAX: usize = 256 << 10;
const POOL_LENGTH_MAX: usize = 16;

thread_local! {
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

fn take_buffer() -> Vec<u8> {
    POOL.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn give_buffer(mut buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > POOLED_SIZE_MAX {
        return;
    }
    buffer.clear();
    POOL.with_borrow_mut(|pool| {
        if pool.len() < POOL_LENGTH_MAX {
            pool.push(buffer);
        }
    });
}

/// Outcome of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Queued, and no flush is pending: the caller must flush at the end of its turn.
    First,
    /// Queued; a flush is pending.
    Queued,
    /// The connection has ended; nothing was queued.
    Closed,
}

/// Numbers of parts in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedFiles {
    /// Parts that were pushed since the start.
    pub pushed: u64,
    /// The newest of them, which are not sent completely.
    pub unsent: u64,
}

#[derive(Default)]
struct State {
    filling: Output,
    /// Bytes being written. Empty while `is_writing`, because the writer holds them.
    current: Output,
    /// Unwritten bytes that the writer took.
    held: usize,
    /// Parts in files that the writer took.
    held_files: usize,
    /// Parts in files that were pushed since the start.
    files_pushed: u64,
    /// A writer will flush the bytes in `filling`.
    is_flush_pending: bool,
    is_writing: bool,
    /// The sink would block; the connection's task waits until it is writable.
    is_blocked: bool,
    is_closed: bool,
    /// The error of a file whose bytes were to be sent. It ended the connection.
    failure: Option<io::Error>,
    waker: Option<Waker>,
}

/// The queue of one connection.
pub struct Outbox {
    state: Mutex<State>,
    sink: Arc<dyn Sink>,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outbox({} bytes)", self.queued_size())
    }
}

impl Outbox {
    /// Creates an empty outbox in front of `sink`.
    pub fn new(sink: Arc<dyn Sink>) -> Self {
        Self {
            state: Mutex::default(),
            sink,
        }
    }

    /// Appends bytes with `write`, which is not called if the outbox is closed.
    pub fn push(&self, write: impl FnOnce(&mut Vec<u8>)) -> Pushed {
        self.push_if(|_| true, write).unwrap_or(Pushed::Closed)
    }

    /// Appends bytes like [`Outbox::push`], and parts that are not copied.
    pub fn push_output(&self, write: impl FnOnce(&mut Output)) -> Pushed {
        let pushed = self.append(|_| true, write);
        pushed.unwrap_or(Pushed::Closed)
    }

    /// Appends like [`Outbox::push`] if `admit` returns true for the number of queued bytes;
    /// otherwise returns `None`.
    pub fn push_if(
        &self,
        admit: impl FnOnce(usize) -> bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Pushed> {
        self.append(admit, |out| write(out.buffer()))
    }

    fn append(
        &self,
        admit: impl FnOnce(usize) -> bool,
        write: impl FnOnce(&mut Output),
    ) -> Option<Pushed> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Some(Pushed::Closed);
        }
        if !admit(state.queued_size()) {
            return None;
        }
        if state.filling.capacity() == 0 {
            *state.filling.buffer() = take_buffer();
        }
        let files = state.filling.files();
        write(&mut state.filling);
        state.files_pushed += (state.filling.files() - files) as u64;
        if state.is_blocked {
            state.filling.copy_shared();
        }
        Some(match std::mem::replace(&mut state.is_flush_pending, true) {
            true => Pushed::Queued,
            false => Pushed::First,
        })
    }

    /// Returns the number of bytes that are not written yet.
    pub fn queued_size(&self) -> usize {
        self.state.lock().queued_size()
    }

    /// Returns the numbers of parts in files. Those that are not sent keep their files open.
    pub fn files(&self) -> QueuedFiles {
        let state = self.state.lock();
        let current = state.held_files.max(state.current.files());
        QueuedFiles {
            pushed: state.files_pushed,
            unsent: (state.filling.files() + current) as u64,
        }
    }

    /// Takes the error that ended the connection, if a file could not be read whose bytes were to be
    /// sent.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.state.lock().failure.take()
    }

    /// Returns true if the sink would block and the connection's task waits for it.
    pub fn is_blocked(&self) -> bool {
        self.state.lock().is_blocked
    }

    /// Returns true if the outbox is closed.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Writes until the queue is empty or the sink would block.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        if state.is_writing || state.is_blocked || state.is_closed {
            // The current writer also writes what is queued; a blocked sink wakes the task.
            return;
        }
        while state.load() {
            let mut output = std::mem::take(&mut state.current);
            state.is_writing = true;
            state.held = output.size();
            state.held_files = output.files();
            drop(state);
            let written = output.write_to(&*self.sink);
            let outcome = written.and_then(|()| self.sink.try_flush());
            let is_blocked = would_block(&outcome);
            if is_blocked {
                output.copy_shared();
            }
            state = self.state.lock();
            state.is_writing = false;
            (state.held, state.held_files) = (0, 0);
            if state.is_closed {
                return;
            }
            match outcome {
                Ok(()) => give_buffer(output.into_buffer()),
                Err(_) if is_blocked => {
                    state.current = output;
                    state.filling.copy_shared();
                    state.is_blocked = true;
                    state.wake();
                    return;
                }
                Err(error) => {
                    state.failure = Some(error).filter(is_unreadable);
                    state.close();
                    drop(state);
                    self.sink.close();
                    return;
                }
            }
        }
    }

    /// Continues the write that a blocked sink interrupted, and registers the connection's task to
    /// be woken when the sink blocks or the outbox is closed. Ready when the outbox is closed.
    pub fn poll_drain(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut state = self.state.lock();
            if state.is_closed {
                return Poll::Ready(());
            }
            if !state
                .waker
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                state.waker = Some(cx.waker().clone());
            }
            if !state.is_blocked {
                return Poll::Pending;
            }
            drop(state);
            match self.sink.poll_writable(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => {
                    self.close();
                    return Poll::Ready(());
                }
                Poll::Ready(Ok(())) => {
                    self.state.lock().is_blocked = false;
                    match self.sink.try_flush() {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            self.state.lock().is_blocked = true;
                        }
                        _ => self.flush(),
                    }
                }
            }
        }
    }

    /// Wakes the connection's task so that it flushes.
    pub fn wake(&self) {
        let waker = self.state.lock().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Closes the outbox. The peer reads the bytes written so far and then the end.
    pub fn finish(&self) {
        self.state.lock().close();
        self.sink.finish();
    }

    /// Closes the outbox, discards queued bytes and ends the connection.
    pub fn close(&self) {
        self.state.lock().close();
        self.sink.close();
    }
}

fn would_block(outcome: &io::Result<()>) -> bool {
    let error = outcome.as_ref().err();
    error.is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock && !is_unreadable(error))
}

impl State {
    fn queued_size(&self) -> usize {
        self.filling.size() + self.held.max(self.current.size())
    }

    /// Makes `current` the next bytes to write. Returns false if there are none.
    fn load(&mut self) -> bool {
        if self.current.size() == 0 {
            self.is_flush_pending = false;
            let emptied = std::mem::replace(&mut self.current, std::mem::take(&mut self.filling));
            give_buffer(emptied.into_buffer());
        }
        if self.current.size() == 0 {
            give_buffer(std::mem::take(&mut self.current).into_buffer());
        }
        self.current.size() > 0
    }

    fn wake(&mut self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.filling = Output::default();
        self.current = Output::default();
        self.wake();
    }
}

#[cfg(test)]
pub(crate) mod tests;
