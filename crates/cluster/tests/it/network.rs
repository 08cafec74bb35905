//! A simulated network between nodes: bytes arrive in order and late, or not while the direction is
//! blocked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cluster::{Acceptor, Dialer};
use futures_util::future::BoxFuture;
use net::{Sink, Source, Stream};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};

/// Bytes in one direction before its writer must wait.
const IN_FLIGHT_MAX: usize = 256 << 10;

/// Time until an attempt to connect over a blocked direction ends.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// The network. A clone is the same network.
#[derive(Clone)]
pub(crate) struct Network(Arc<Mutex<Shared>>);

struct Shared {
    rng: fastrand::Rng,
    delay_us_max: u64,
    acceptors: BTreeMap<u64, Acceptor>,
    /// Directions, from and to, in which nothing arrives.
    blocked: BTreeSet<(u64, u64)>,
    connections: Vec<Connection>,
}

struct Connection {
    nodes: (u64, u64),
    directions: [Arc<Mutex<Direction>>; 2],
    serving: AbortHandle,
}

/// Returns the address of a node.
pub(crate) fn address(node: u64) -> String {
    format!("node-{node}:7402")
}

impl Network {
    pub(crate) fn new(seed: u64) -> Network {
        Network(Arc::new(Mutex::new(Shared {
            rng: fastrand::Rng::with_seed(seed),
            delay_us_max: 500,
            acceptors: BTreeMap::new(),
            blocked: BTreeSet::new(),
            connections: Vec::new(),
        })))
    }

    /// Sets the longest delay of bytes.
    pub(crate) fn set_delay(&self, delay: Duration) {
        self.0.lock().delay_us_max = delay.as_micros() as u64;
    }

    /// Lets a node accept connections.
    pub(crate) fn set_acceptor(&self, node: u64, acceptor: Acceptor) {
        self.0.lock().acceptors.insert(node, acceptor);
    }

    /// Ends all connections of a node, which accepts no more.
    pub(crate) fn remove(&self, node: u64) {
        let mut shared = self.0.lock();
        shared.acceptors.remove(&node);
        let is_its = |it: &mut Connection| it.nodes.0 == node || it.nodes.1 == node;
        let removed: Vec<_> = shared.connections.extract_if(.., is_its).collect();
        drop(shared);
        for connection in removed {
            connection.directions.iter().for_each(|it| it.lock().cut());
            connection.serving.abort();
        }
    }

    /// Blocks one direction.
    pub(crate) fn block(&self, from: u64, to: u64) {
        self.0.lock().blocked.insert((from, to));
    }

    /// Unblocks all directions.
    pub(crate) fn heal(&self) {
        let mut shared = self.0.lock();
        shared.blocked.clear();
        let directions = shared.connections.iter().flat_map(|it| &it.directions);
        directions.for_each(|it| it.lock().wake());
    }

    /// Returns the dialer of a node.
    pub(crate) fn dialer(&self, node: u64) -> Box<dyn Dialer> {
        let network = self.clone();
        Box::new(SimDialer { node, network })
    }

    fn is_blocked(&self, from: u64, to: u64) -> bool {
        self.0.lock().blocked.contains(&(from, to))
    }

    fn delay(&self) -> Duration {
        let mut shared = self.0.lock();
        let max = shared.delay_us_max;
        Duration::from_micros(shared.rng.u64(20..=max.max(20)))
    }

    async fn connect(self, from: u64, to: u64) -> io::Result<Stream> {
        if self.is_blocked(from, to) || self.is_blocked(to, from) {
            tokio::time::sleep(CONNECT_MAX).await;
            return Err(io::ErrorKind::TimedOut.into());
        }
        tokio::time::sleep(self.delay()).await;
        let acceptor = self.0.lock().acceptors.get(&to).cloned();
        let acceptor = acceptor.ok_or(io::ErrorKind::ConnectionRefused)?;
        let directions: [Arc<Mutex<Direction>>; 2] = Default::default();
        let end = |read: usize, write: usize, nodes: (u64, u64)| Stream {
            source: Box::new(SimSource {
                network: self.clone(),
                nodes: (nodes.1, nodes.0),
                direction: directions[read].clone(),
                timer: None,
            }),
            sink: Arc::new(SimSink {
                network: self.clone(),
                direction: directions[write].clone(),
                other: directions[read].clone(),
            }),
            peer: address(nodes.1),
        };
        let (near, far) = (end(1, 0, (from, to)), end(0, 1, (to, from)));
        let serving = tokio::spawn(async move { drop(acceptor.accept(far).await) });
        self.0.lock().connections.push(Connection {
            nodes: (from, to),
            directions,
            serving: serving.abort_handle(),
        });
        Ok(near)
    }
}

struct SimDialer {
    node: u64,
    network: Network,
}

impl Dialer for SimDialer {
    fn dial(&self, to: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let number = to.trim_start_matches("node-").trim_end_matches(":7402");
        let to = number.parse().unwrap();
        Box::pin(self.network.clone().connect(self.node, to))
    }
}

/// A direction of a connection.
#[derive(Default)]
struct Direction {
    segments: VecDeque<(Instant, VecDeque<u8>)>,
    in_flight: usize,
    is_finished: bool,
    is_cut: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Direction {
    fn wake(&mut self) {
        let wakers = [self.reader.take(), self.writer.take()];
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn cut(&mut self) {
        self.is_cut = true;
        self.segments.clear();
        self.in_flight = 0;
        self.wake();
    }
}

struct SimSource {
    network: Network,
    nodes: (u64, u64),
    direction: Arc<Mutex<Direction>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Source for SimSource {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let is_blocked = self.network.is_blocked(self.nodes.0, self.nodes.1);
        loop {
            let mut direction = self.direction.lock();
            if direction.is_cut {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            direction.reader = Some(cx.waker().clone());
            if is_blocked {
                return Poll::Pending;
            }
            let Some((arrives, bytes)) = direction.segments.front_mut() else {
                return match direction.is_finished {
                    true => Poll::Ready(Ok(0)),
                    false => Poll::Pending,
                };
            };
            let arrives = *arrives;
            if arrives <= Instant::now() {
                let count = io::Read::read(bytes, buffer)?;
                if bytes.is_empty() {
                    direction.segments.pop_front();
                }
                direction.in_flight -= count;
                direction.writer.take().into_iter().for_each(Waker::wake);
                return Poll::Ready(Ok(count));
            }
            drop(direction);
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(arrives)));
            timer.as_mut().reset(arrives);
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

struct SimSink {
    network: Network,
    direction: Arc<Mutex<Direction>>,
    other: Arc<Mutex<Direction>>,
}

impl Sink for SimSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let delay = self.network.delay();
        let mut direction = self.direction.lock();
        if direction.is_cut || direction.is_finished {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(IN_FLIGHT_MAX - direction.in_flight);
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let last = direction.segments.back().map(|(arrives, _)| *arrives);
        let arrives = last.into_iter().fold(Instant::now() + delay, Ord::max);
        let segment = bytes[..count].iter().copied().collect();
        direction.segments.push_back((arrives, segment));
        direction.in_flight += count;
        direction.reader.take().into_iter().for_each(Waker::wake);
        Ok(count)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut direction = self.direction.lock();
        if direction.is_cut || direction.in_flight < IN_FLIGHT_MAX {
            return Poll::Ready(Ok(()));
        }
        direction.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn finish(&self) {
        let mut direction = self.direction.lock();
        direction.is_finished = true;
        direction.wake();
    }

    fn close(&self) {
        self.direction.lock().cut();
        self.other.lock().cut();
    }
}
