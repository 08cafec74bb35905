//! The links to other nodes: connections, and the answers that arrive on them.
//!
//! Between two nodes there is one connection for the append streams of all groups, and one for
//! votes and heartbeats, so that a full log connection delays no heartbeat. Requests are pipelined,
//! and an answer finds its caller by its id.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use openraft::BasicNode;
use openraft::network::RPCOption;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::timeout;

use crate::pipe::Pipe;
use crate::wire::{self, Head, Kind};

/// Bytes of room that are made when there is less than the other for a read.
const CHUNK_SIZE: usize = 256 << 10;
const ROOM_SIZE_MIN: usize = 16 << 10;

/// The links to other nodes, shared by all groups.
#[derive(Clone, Default)]
pub(crate) struct Links(Arc<Mutex<HashMap<u64, Peer>>>);

/// The links to one node.
#[derive(Clone)]
pub(crate) struct Peer {
    /// For append streams.
    pub(crate) log: Arc<Link>,
    /// For votes and heartbeats.
    pub(crate) pulse: Arc<Link>,
}

impl Links {
    /// The links to the node `target`.
    pub(crate) fn peer(&self, target: u64, node: &BasicNode) -> Peer {
        let mut peers = lock(&self.0);
        let peer = peers.entry(target).or_insert_with(|| Peer {
            log: Link::new(&node.addr),
            pulse: Link::new(&node.addr),
        });
        peer.clone()
    }
}

/// An address, and the connection to it once there is one.
pub(crate) struct Link {
    address: String,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
}

impl Link {
    fn new(address: &str) -> Arc<Link> {
        Arc::new(Link {
            address: address.to_owned(),
            connection: tokio::sync::Mutex::new(None),
        })
    }

    /// The connection; a new one if there is none, or it is broken.
    pub(crate) async fn connect(&self, option: &RPCOption) -> io::Result<Arc<Connection>> {
        let mut connection = self.connection.lock().await;
        if let Some(connection) = &*connection
            && !connection.is_broken()
        {
            return Ok(connection.clone());
        }
        let socket = timeout(option.soft_ttl(), TcpStream::connect(&self.address)).await??;
        let (reader, pipe) = Pipe::new(socket)?;
        let opened = Arc::new(Connection {
            pipe,
            ids: AtomicU64::new(0),
            callers: Mutex::new(Some(HashMap::new())),
        });
        tokio::spawn(opened.clone().read(reader));
        *connection = Some(opened.clone());
        Ok(opened)
    }
}

/// The asking end of a connection.
pub(crate) struct Connection {
    pipe: Arc<Pipe>,
    ids: AtomicU64,
    /// Callers that wait for answers, by the upper half of the id; `None` when the connection is
    /// broken.
    callers: Mutex<Option<HashMap<u32, Arc<Answers>>>>,
}

/// Answers that were read for one caller, with the lower half of their ids.
#[derive(Default)]
pub(crate) struct Answers(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    answers: VecDeque<(u32, Bytes)>,
    is_broken: bool,
    waker: Option<Waker>,
}

impl Answers {
    /// Takes the next answer; `None` when the connection is broken.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<(u32, Bytes)>> {
        let mut inner = lock(&self.0);
        if let Some(answer) = inner.answers.pop_front() {
            return Poll::Ready(Some(answer));
        }
        if inner.is_broken {
            return Poll::Ready(None);
        }
        match &inner.waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            _ => inner.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn put(&self, answer: Option<(u32, Bytes)>) {
        let mut inner = lock(&self.0);
        match answer {
            Some(answer) => inner.answers.push_back(answer),
            None => inner.is_broken = true,
        }
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }
}

impl Connection {
    fn is_broken(&self) -> bool {
        lock(&self.callers).is_none()
    }

    /// Registers a caller.
    pub(crate) fn call(self: &Arc<Connection>) -> io::Result<Caller> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) as u32;
        let answers = Arc::new(Answers::default());
        match &mut *lock(&self.callers) {
            Some(callers) => callers.insert(id, answers.clone()),
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        Ok(Caller {
            connection: self.clone(),
            id,
            answers,
        })
    }

    /// Hands answers to their callers until the connection breaks.
    async fn read(self: Arc<Connection>, mut reader: OwnedReadHalf) {
        let mut input = BytesMut::new();
        while receive(&mut reader, &mut input).await.is_ok() {
            if self.hand_out(&mut input).is_err() {
                break;
            }
        }
        self.pipe.close();
        for (_, answers) in lock(&self.callers).take().unwrap_or_default() {
            answers.put(None);
        }
    }
}

impl Connection {
    fn hand_out(&self, input: &mut BytesMut) -> io::Result<()> {
        while let Some((head, body)) = wire::next_frame(input)? {
            let callers = lock(&self.callers);
            let caller = (head.id >> 32) as u32;
            if let Some(answers) = callers.as_ref().and_then(|all| all.get(&caller)) {
                answers.put(Some((head.id as u32, body)));
            }
        }
        Ok(())
    }
}

/// A caller that is registered with a connection until it is dropped.
pub(crate) struct Caller {
    connection: Arc<Connection>,
    id: u32,
    pub(crate) answers: Arc<Answers>,
}

impl Caller {
    /// Sends the request `number` of this caller.
    pub(crate) fn send(
        &self,
        kind: Kind,
        group: u8,
        number: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let id = (u64::from(self.id) << 32) | u64::from(number);
        let head = Head { kind, group, id };
        self.connection.pipe.send(|out| head.frame(out, write));
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(callers) = &mut *lock(&self.connection.callers) {
            callers.remove(&self.id);
        }
    }
}

/// Reads once into `input`, waiting for bytes. An end is an error.
pub(crate) async fn receive(reader: &mut OwnedReadHalf, input: &mut BytesMut) -> io::Result<()> {
    if input.capacity() - input.len() < ROOM_SIZE_MIN {
        input.reserve(CHUNK_SIZE);
    }
    match reader.read_buf(input).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
