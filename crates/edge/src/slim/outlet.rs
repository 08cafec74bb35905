//! The queue in front of one client, filled by whoever has something for it.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Waker};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use node::{Failure, Outgoing, Outlet, Pushed};
use parking_lot::Mutex;
use slim::Link;
use slim::websocket::Opcode;

use super::status::{Code, Status};

/// The largest message that SLIM's library takes over gRPC; it has no option to take more, and ends its stream at
/// a larger one.
const GRPC_MESSAGE_SIZE_MAX: usize = 4 << 20;

/// From this size on the end of a message is shared by its receivers, not copied.
const SHARED_SIZE_MIN: usize = 16 << 10;

/// Bytes that go out in one piece, if they are not one message.
const PIECE_SIZE_MAX: usize = 64 << 10;

/// What stands in front of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A prefix of five bytes.
    Grpc,
    /// The head of a frame.
    WebSocket,
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Queued; the client's task must be woken.
    First,
    /// Queued.
    Behind,
    /// The client does not read: not queued.
    Full,
}

/// See the module's documentation.
pub(super) struct SlimOutlet {
    /// Where the client is.
    remote: String,
    /// Messages handed over, and those that it was too full for.
    delivered: AtomicU64,
    dropped: AtomicU64,
    size_max: usize,
    link: OnceLock<Link>,
    queue: Mutex<Queue>,
    /// Bytes queued, to look at without the lock.
    size: AtomicUsize,
    /// The client has taken nothing for so long that nobody waits for it any more.
    is_stalled: AtomicBool,
    task: AtomicWaker,
    ending: OnceLock<Status>,
    /// The client had its time to negotiate its link.
    is_negotiation_over: AtomicBool,
    framing: Framing,
    /// That a message was too large for the client was logged.
    has_logged_oversize: AtomicBool,
}

struct Queue {
    framing: Framing,
    pieces: VecDeque<Bytes>,
    /// The end of the queue, still growing.
    open: BytesMut,
    size: usize,
    /// Counts bytes that went out.
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
            ending: OnceLock::new(),
            is_negotiation_over: AtomicBool::new(false),
            framing,
            has_logged_oversize: AtomicBool::new(false),
        }
    }

    /// Where the client is.
    pub(super) fn remote(&self) -> &str {
        &self.remote
    }

    /// Counts what became of a copy.
    pub(super) fn count(&self, is_delivered: bool) {
        let counter = match is_delivered {
            true => &self.delivered,
            false => &self.dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Copies that were handed over, and those that were dropped.
    pub(super) fn counted(&self) -> (u64, u64) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (of(&self.delivered), of(&self.dropped))
    }

    /// The link, once it was negotiated.
    pub(super) fn link(&self) -> Option<&Link> {
        self.link.get()
    }

    /// From now on there is a link.
    pub(super) fn set_link(&self, link: Link) {
        // A stream negotiates once.
        let _ = self.link.set(link);
    }

    /// Whether a message of that size would be queued.
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

    /// Queues an answer. A client that lets them pile up is given up.
    pub(super) fn answer(&self, message: &[u8]) -> Put {
        self.check_answers();
        self.queue.lock().put(message, &Bytes::new(), &self.size)
    }

    /// Queues a frame that is no message.
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

    /// The next bytes to go out.
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

    /// Bytes that have gone out.
    pub(super) fn taken(&self) -> u64 {
        self.queue.lock().taken
    }

    /// Whether a sender should wait for this client; its task is woken when it need not any more.
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

    /// Whether it has so much to take that its senders should wait, and takes it.
    pub(super) fn is_half_full(&self) -> bool {
        let is_stalled = self.is_stalled.load(Ordering::Relaxed);
        !is_stalled && self.size.load(Ordering::Relaxed) > self.size_max / 2
    }

    /// Nobody waits for it until it has caught up.
    pub(super) fn give_up_waiting(&self) {
        self.is_stalled.store(true, Ordering::Relaxed);
        self.queue.lock().waiting.drain(..).for_each(Waker::wake);
    }

    /// The task to wake when there is something to send.
    pub(super) fn register(&self, cx: &Context<'_>) {
        self.task.register(cx.waker());
    }

    /// Wakes the client's task.
    pub(super) fn wake(&self) {
        self.task.wake();
    }

    /// Ends the stream, behind what is queued.
    pub(super) fn end(&self, status: Status) {
        // The first reason is the reason.
        let _ = self.ending.set(status);
        self.queue.lock().waiting.drain(..).for_each(Waker::wake);
        self.task.wake();
    }

    /// Why the stream ends, if it does. UNAVAILABLE waits until the link is negotiated: a client whose link is
    /// not agreed on gives up for good, and comes back when its stream ends later.
    pub(super) fn ending(&self) -> Option<&Status> {
        let is_over = self.link.get().is_some() || self.is_negotiation_over.load(Ordering::Relaxed);
        let ending = self.ending.get();
        ending.filter(|status| is_over || status.code != Code::Unavailable)
    }

    /// The client had its time to negotiate its link.
    pub(super) fn give_up_negotiation(&self) {
        self.is_negotiation_over.store(true, Ordering::Relaxed);
    }

    /// Whether the client takes a message of that size. Logs the first one that is too large.
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
                // The door takes no message that is larger.
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

/// What the node has to say to any client.
impl Outlet for SlimOutlet {
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed {
        if let Outgoing::Goaway { message, .. } = outgoing {
            self.end(Status::new(Code::Unavailable, message));
        }
        // A client of this door has no subscriptions and no calls at the node.
        Pushed::Closed
    }

    fn flush(&self) {}

    fn queued_size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    fn dismiss(&self, failure: Failure<'_>) {
        // A client that hears this does not come back.
        self.end(Status::new(Code::PermissionDenied, failure.message));
    }

    fn close(&self) {
        self.end(Status::new(Code::Unavailable, "the connection is closed"));
    }
}
