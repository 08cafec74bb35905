//! An established connection: requests of both sides, and their answers.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use futures_util::stream::{FuturesUnordered, StreamExt};
use journal::ShardId;
use net::{Outbox, Pushed, Source, Stream};
use parking_lot::Mutex;

use super::Channel;
use super::answer::Answer;
use super::frame::{HEADER_SIZE, Head, Operation, next_frame};
use super::serve::Server;

/// Bytes of the buffer for reads while no large frame is incomplete.
const ROOM_SIZE: usize = 64 << 10;

/// Bytes per read at most into the buffer of a large frame.
const READ_SIZE_MAX: usize = 256 << 10;

/// A connection to a peer.
pub(super) struct Connection {
    outbox: Outbox,
    channel: Channel,
    /// The peer's id.
    peer: u64,
    ids: AtomicU32,
    /// Callers that wait for answers, by the upper half of the id; `None` when the connection has
    /// ended.
    callers: Mutex<Option<BTreeMap<u32, Arc<Answers>>>>,
}

/// Answers for one caller, with the lower half of their ids.
#[derive(Default)]
pub(super) struct Answers(Mutex<Received>);

#[derive(Default)]
struct Received {
    answers: VecDeque<(u32, Bytes)>,
    is_over: bool,
    waker: Option<Waker>,
}

impl Answers {
    /// Takes the next answer; `None` when the connection has ended.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<(u32, Bytes)>> {
        let mut received = self.0.lock();
        if let Some(answer) = received.answers.pop_front() {
            return Poll::Ready(Some(answer));
        }
        if received.is_over {
            return Poll::Ready(None);
        }
        match &received.waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            _ => received.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn put(&self, answer: Option<(u32, Bytes)>) {
        let mut received = self.0.lock();
        match answer {
            Some(answer) => received.answers.push_back(answer),
            None => received.is_over = true,
        }
        let waker = received.waker.take();
        drop(received);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Connection {
    /// Creates a connection over a stream after its handshake. Returns the half to read too.
    pub(super) fn new(
        stream: Stream,
        peer: u64,
        channel: Channel,
    ) -> (Arc<Connection>, Box<dyn Source>) {
        let connection = Arc::new(Connection {
            outbox: Outbox::new(stream.sink),
            channel,
            peer,
            ids: AtomicU32::new(0),
            callers: Mutex::new(Some(BTreeMap::new())),
        });
        (connection, stream.source)
    }

    /// Returns true if the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.callers.lock().is_none()
    }

    /// Ends the connection.
    pub(super) fn close(&self) {
        self.outbox.close();
        let callers = self.callers.lock().take();
        for answers in callers.unwrap_or_default().into_values() {
            answers.put(None);
        }
    }

    /// Registers a caller.
    pub(super) fn call(self: &Arc<Self>) -> io::Result<Caller> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let answers = Arc::new(Answers::default());
        match &mut *self.callers.lock() {
            Some(callers) => callers.insert(id, answers.clone()),
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        Ok(Caller {
            connection: self.clone(),
            id,
            answers,
        })
    }

    /// Reads frames until the connection ends or the peer sends garbage, and serves requests. The
    /// first poll of a request passes it on, so requests keep their order.
    pub(super) async fn run(self: Arc<Self>, mut source: Box<dyn Source>, server: Arc<Server>) {
        let mut room = vec![0; ROOM_SIZE];
        let mut input = BytesMut::new();
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = std::future::poll_fn(|cx| self.outbox.poll_drain(cx)) => break,
                Some((head, answer)) = running.next() => {
                    self.answer(head, answer);
                    continue;
                }
                received = receive(&mut *source, &mut room, &mut input) => {
                    if received.is_err() {
                        break;
                    }
                }
            }
            loop {
                let (head, body) = match next_frame(&mut input, self.channel.body_size_max()) {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(_) => return self.close(),
                };
                if head.is_answer {
                    self.pass_on(head, body);
                    continue;
                }
                // Without a budget of polls: a request that waits for it would be overtaken by
                // the next, which its leader takes for a log that went back.
                let serving = server.serve(self.peer, head, body);
                let mut serving = tokio::task::unconstrained(serving);
                match futures_util::FutureExt::now_or_never(&mut serving) {
                    Some(answer) => self.answer(head, answer),
                    None => running.push(async move { (head, serving.await) }),
                }
            }
        }
        self.close();
    }

    fn pass_on(&self, head: Head, body: Bytes) {
        let callers = self.callers.lock();
        let caller = (head.id >> 32) as u32;
        let answers = callers.as_ref().and_then(|all| all.get(&caller)).cloned();
        drop(callers);
        if let Some(answers) = answers {
            answers.put(Some((head.id as u32, body)));
        }
    }

    fn answer(&self, head: Head, answer: Answer) {
        if let Some(write) = answer {
            let head = Head {
                is_answer: true,
                ..head
            };
            self.send(head, write);
        }
    }

    /// Sends a frame. A peer that does not read loses the connection.
    fn send(&self, head: Head, write: impl FnOnce(&mut Vec<u8>)) {
        let limit = 2 * (self.channel.body_size_max() + HEADER_SIZE);
        let pushed = self
            .outbox
            .push_if(|queued| queued <= limit, |out| head.frame(out, write));
        match pushed {
            Some(Pushed::First) => self.outbox.flush(),
            Some(Pushed::Queued | Pushed::Closed) => {}
            None => self.close(),
        }
    }
}

/// A caller that is registered with a connection until it is dropped.
pub(super) struct Caller {
    connection: Arc<Connection>,
    id: u32,
    pub(super) answers: Arc<Answers>,
}

impl Caller {
    /// Sends the request `number` of this caller.
    pub(super) fn send(
        &self,
        operation: Operation,
        shard: ShardId,
        number: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let head = Head {
            operation,
            is_answer: false,
            shard,
            id: (u64::from(self.id) << 32) | u64::from(number),
        };
        self.connection.send(head, write);
    }

    /// Returns the id of the peer.
    pub(super) fn peer(&self) -> u64 {
        self.connection.peer
    }

    /// Ends the connection.
    pub(super) fn close_connection(&self) {
        self.connection.close();
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(callers) = &mut *self.connection.callers.lock() {
            callers.remove(&self.id);
        }
    }
}

/// Reads once, waiting for bytes, and appends them to `input`: directly if there is room for the rest
/// of a large frame, else through `room`. An end is an error. Nothing is lost if the future is
/// dropped.
async fn receive(source: &mut dyn Source, room: &mut [u8], input: &mut BytesMut) -> io::Result<()> {
    let read = std::future::poll_fn(|cx| {
        let (filled, spare) = (input.len(), input.capacity() - input.len());
        if spare < room.len() {
            let read = source.poll_read(cx, room);
            if let Poll::Ready(Ok(size)) = read {
                input.extend_from_slice(&room[..size]);
            }
            return read;
        }
        input.resize(filled + spare.min(READ_SIZE_MAX), 0);
        let read = source.poll_read(cx, &mut input[filled..]);
        let size = match read {
            Poll::Ready(Ok(size)) => size,
            _ => 0,
        };
        input.truncate(filled + size);
        read
    });
    match read.await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
