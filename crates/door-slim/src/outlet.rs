//! The send queue of one SLIM client. Any thread may fill it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{OnceLock, Weak};
use std::task::{Context, Waker};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use model::Failure;
use parking_lot::Mutex;
use slim::Link;
use slim::websocket::Opcode;

use super::status::{Code, Status};

/// The largest message that SLIM's library accepts over gRPC, in bytes. It has no option for more,
/// and ends its stream at a larger one.
const GRPC_MESSAGE_SIZE_MAX: usize = 4 << 20;

/// The size from which the tail of a message is shared by its receivers instead of copied.
const SHARED_SIZE_MIN: usize = 16 << 10;

/// The size of a piece that contains several messages.
const PIECE_SIZE_MAX: usize = 64 << 10;

/// The size up to which a queue is written by the thread that filled it. Beyond it, a wake of the
/// client's task costs little beside the messages, and two threads share the work.
const DIRECT_SIZE_MAX: usize = 16 << 10;

/// The client behind a queue.
pub(super) trait Receiver: Send + Sync {
    /// Sends what is queued, unless another thread is at work for the client. Returns whether
    /// nothing is left to do for the client's task.
    fn try_send(&self, outlet: &SlimOutlet) -> bool;
}

/// The framing of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A prefix of five bytes, as in gRPC.
    Grpc,
    /// The header of a WebSocket frame.
    WebSocket,
}

/// The outcome of queueing a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Queued, and nothing was before: the queue must be flushed.
    First,
    /// Queued.
    Behind,
    /// Not queued, because the client does not read.
    Full,
}

/// The send queue of one client.
pub(super) struct SlimOutlet {
    /// The client's address.
    remote: String,
    /// The number of copies that were queued, and that were dropped because the queue was full.
    delivered: AtomicU64,
    dropped: AtomicU64,
    size_max: usize,
    link: OnceLock<Link>,
    queue: Mutex<Queue>,
    /// The number of queued bytes, readable without the lock.
    size: AtomicUsize,
    /// The client has read nothing for so long that senders do not wait for it.
    is_stalled: AtomicBool,
    task: AtomicWaker,
    /// The client, if other threads may send for it.
    receiver: OnceLock<Weak<dyn Receiver>>,
    ending: OnceLock<Status>,
    /// The time for the negotiation of the link is over.
    is_negotiation_over: AtomicBool,
    framing: Framing,
    /// A message that was too large for the client was logged.
    has_logged_oversize: AtomicBool,
}

struct Queue {
    framing: Framing,
    pieces: VecDeque<Bytes>,
    /// The last piece of the queue, which still grows.
    open: BytesMut,
    size: usize,
    /// The number of bytes that were sent.
    taken: u64,
    /// Senders that wait for room.
    waiting: Vec<Waker>,
}

impl SlimOutlet {
    pub(super) fn new(remote: String, size_max: usize, framing: Framing) -> Self {
        Self {
            remote,
            delivered: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            size_max,
            link: OnceLock::new(),
            queue: Mutex::new(Queue::new(framing)),
            size: AtomicUsize::new(0),
            is_stalled: AtomicBool::new(false),
            task: AtomicWaker::new(),
            receiver: OnceLock::new(),
            ending: OnceLock::new(),
            is_negotiation_over: AtomicBool::new(false),
            framing,
            has_logged_oversize: AtomicBool::new(false),
        }
    }

    /// Returns the client's address.
    pub(super) fn remote(&self) -> &str {
        &self.remote
    }

    /// Counts a copy as queued or dropped.
    pub(super) fn count(&self, is_delivered: bool) {
        let counter = match is_delivered {
            true => &self.delivered,
            false => &self.dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers of queued and dropped copies.
    pub(super) fn counted(&self) -> (u64, u64) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (of(&self.delivered), of(&self.dropped))
    }

    /// Returns the link, once it is negotiated.
    pub(super) fn link(&self) -> Option<&Link> {
        self.link.get()
    }

    /// Sets the link.
    pub(super) fn set_link(&self, link: Link) {
        // A stream negotiates once, so this cannot fail.
        let _ = self.link.set(link);
    }

    /// Returns whether a message of this size would be queued.
    pub(super) fn has_room(&self, size: usize) -> bool {
        let queued = self.size.load(Ordering::Relaxed);
        queued == 0 || queued + size <= self.size_max
    }

    /// Queues a copy of a message: its own head, and a tail that all copies share.
    pub(super) fn put(&self, head: &[u8], tail: &Bytes) -> Put {
        let size = head.len() + tail.len();
        if self.ending.get().is_some() || !self.has_room(size) {
            return Put::Full;
        }
        self.queue.lock().put(head, tail, &self.size)
    }

    /// Queues an answer. The stream of a client that does not read its answers is ended.
    pub(super) fn answer(&self, message: &[u8]) -> Put {
        self.check_answers();
        self.queue.lock().put(message, &Bytes::new(), &self.size)
    }

    /// Queues a control frame.
    pub(super) fn put_control(&self, opcode: Opcode, payload: &[u8]) {
        self.check_answers();
        let mut queue = self.queue.lock();
        let before = queue.open.len();
        opcode.put_head(payload.len(), &mut queue.open);
        queue.open.put_slice(payload);
        queue.size += queue.open.len() - before;
        self.size.store(queue.size, Ordering::Relaxed);
    }

    fn check_answers(&self) {
        if self.size.load(Ordering::Relaxed) > 2 * self.size_max {
            let message = "the client does not read its answers";
            self.end(Status::new(Code::ResourceExhausted, message));
        }
    }

    /// Takes the next bytes to send.
    pub(super) fn take(&self) -> Option<Bytes> {
        let mut queue = self.queue.lock();
        let piece = match queue.pieces.pop_front() {
            Some(piece) => piece,
            None if queue.open.is_empty() => return None,
            None => queue.open.split().freeze(),
        };
        queue.size -= piece.len();
        queue.taken += piece.len() as u64;
        self.size.store(queue.size, Ordering::Relaxed);
        if queue.size <= self.size_max / 2 {
            self.is_stalled.store(false, Ordering::Relaxed);
            queue.waiting.drain(..).for_each(Waker::wake);
        }
        Some(piece)
    }

    /// Returns the number of bytes that were sent.
    pub(super) fn taken(&self) -> u64 {
        self.queue.lock().taken
    }

    /// Returns whether a sender should wait for this client; if so, its task is woken when it can
    /// continue.
    pub(super) fn presses(&self, sender: &Waker) -> bool {
        if !self.is_half_full() {
            return false;
        }
        let mut queue = self.queue.lock();
        if queue.size <= self.size_max / 2 || self.ending.get().is_some() {
            return false;
        }
        if !queue.waiting.iter().any(|other| other.will_wake(sender)) {
            queue.waiting.push(sender.clone());
        }
        true
    }

    /// Returns whether so much is queued that senders should wait, and the client reads.
    pub(super) fn is_half_full(&self) -> bool {
        let is_stalled = self.is_stalled.load(Ordering::Relaxed);
        !is_stalled && self.size.load(Ordering::Relaxed) > self.size_max / 2
    }

    /// Stops senders from waiting for this client until it has caught up.
    pub(super) fn give_up_waiting(&self) {
        self.is_stalled.store(true, Ordering::Relaxed);
        self.queue.lock().waiting.drain(..).for_each(Waker::wake);
    }

    /// Registers the task to wake when there is something to send.
    pub(super) fn register(&self, cx: &Context<'_>) {
        self.task.register(cx.waker());
    }

    /// Wakes the client's task.
    pub(super) fn wake(&self) {
        self.task.wake();
    }

    /// Sets the client for which other threads may send.
    pub(super) fn set_receiver(&self, receiver: Weak<dyn Receiver>) {
        // A stream begins once, so this cannot fail.
        let _ = self.receiver.set(receiver);
    }

    /// Returns whether the queue is small enough to be sent by the thread that filled it.
    pub(super) fn is_direct(&self) -> bool {
        self.size.load(Ordering::Relaxed) <= DIRECT_SIZE_MAX && self.receiver.get().is_some()
    }

    /// Sends what is queued, on this thread if the client's task is idle. Otherwise the task is
    /// woken, which also comes if it is about to end its turn: it misses nothing.
    pub(super) fn flush(&self) {
        if self.size.load(Ordering::Relaxed) == 0 {
            // The client's task was at work and has sent it.
            return;
        }
        if self.is_direct()
            && let Some(receiver) = self.receiver.get().and_then(Weak::upgrade)
            && receiver.try_send(self)
        {
            return;
        }
        self.task.wake();
    }

    /// Ends the stream after the queued data.
    pub(super) fn end(&self, status: Status) {
        // The first reason stays.
        let _ = self.ending.set(status);
        self.queue.lock().waiting.drain(..).for_each(Waker::wake);
        self.task.wake();
    }

    /// Returns the reason why the stream ends, if it does. UNAVAILABLE waits until the link is
    /// negotiated: a client without a link gives up permanently, but reconnects when its stream
    /// ends later.
    pub(super) fn ending(&self) -> Option<&Status> {
        let is_over = self.link.get().is_some() || self.is_negotiation_over.load(Ordering::Relaxed);
        let ending = self.ending.get();
        ending.filter(|status| is_over || status.code != Code::Unavailable)
    }

    /// Notes that the time for the negotiation is over.
    pub(super) fn give_up_negotiation(&self) {
        self.is_negotiation_over.store(true, Ordering::Relaxed);
    }

    /// Returns whether the client accepts a message of this size. Logs the first one that is too
    /// large.
    pub(super) fn takes(&self, size: usize) -> bool {
        let takes = self.framing != Framing::Grpc || size <= GRPC_MESSAGE_SIZE_MAX;
        if !takes && !self.has_logged_oversize.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                remote = %self.remote,
                size,
                size_max = GRPC_MESSAGE_SIZE_MAX,
                "a SLIM message is too large for a gRPC client and is not delivered to it: \
                 larger ones need a WebSocket (ws://)"
            );
        }
        takes
    }
}

impl Framing {
    pub(super) fn put_head(self, size: usize, out: &mut BytesMut) {
        match self {
            Self::Grpc => {
                out.put_u8(0);
                // The listener accepts no larger message.
                out.put_u32(u32::try_from(size).unwrap_or(u32::MAX));
            }
            Self::WebSocket => Opcode::Binary.put_head(size, out),
        }
    }
}

impl Queue {
    fn new(framing: Framing) -> Self {
        Self {
            framing,
            pieces: VecDeque::new(),
            open: BytesMut::new(),
            size: 0,
            taken: 0,
            waiting: Vec::new(),
        }
    }

    fn put(&mut self, head: &[u8], tail: &Bytes, shown: &AtomicUsize) -> Put {
        let is_first = self.size == 0;
        let size = head.len() + tail.len();
        if self.open.len() >= PIECE_SIZE_MAX {
            self.close_piece();
        }
        let before = self.open.len();
        self.framing.put_head(size, &mut self.open);
        self.size += self.open.len() - before + size;
        self.open.put_slice(head);
        if tail.len() < SHARED_SIZE_MIN {
            self.open.put_slice(tail);
        } else {
            self.close_piece();
            self.pieces.push_back(tail.clone());
        }
        shown.store(self.size, Ordering::Relaxed);
        match is_first {
            true => Put::First,
            false => Put::Behind,
        }
    }

    fn close_piece(&mut self) {
        let piece = self.open.split().freeze();
        self.pieces.push_back(piece);
    }
}

impl messaging::Client for SlimOutlet {
    fn goaway(&self, _drain_ms: u32, message: &str) {
        self.end(Status::new(Code::Unavailable, message));
    }

    fn dismiss(&self, failure: Failure<'_>) {
        // A client does not reconnect after this code.
        self.end(Status::new(Code::PermissionDenied, failure.message));
    }

    fn close(&self) {
        self.end(Status::new(Code::Unavailable, "the connection is closed"));
    }

    fn queued_size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
