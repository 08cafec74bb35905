//! The SLIM door over loopback, spoken to in bare messages.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod agent;
mod bad_input;
mod bindings;
mod exchange;
mod links;
mod log;
mod one_way;
mod python;
mod quota;
mod slow_subscribers;
mod spans;
mod stream_lifetime;
mod threads;
mod websocket;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use door::Gate;
use door_slim::{Door, Exchange, Options};
use door_testing::Counting;
use messaging::Limits;
use node::{Node, Parts};
use platform::{Clock, Counter, Ports, Tracer, TracerOptions};
use tokio::net::TcpListener;

pub(crate) use agent::Agent;
pub(crate) use door_testing::{PATIENCE, until};

struct Running(Instant);

impl Clock for Running {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn unix_ms(&self) -> u64 {
        1_700_000_000_000 + self.now_ns() / 1_000_000
    }
}

/// A node with a SLIM door on a free port.
pub(crate) struct Bench {
    pub(crate) node: Node,
    pub(crate) door: Door,
    pub(crate) address: SocketAddr,
    /// The connections, in the order in which they came.
    pub(crate) writes: Arc<Mutex<Vec<LimitConfig>>>,
}

/// How often the door has written to a connection and told it what has arrived, and whether its socket
/// sends what it has at once.
pub(crate) type LimitConfig = (Arc<AtomicUsize>, Arc<AtomicUsize>, bool);

/// Counts what is written to a socket.
struct CountingSink {
    sink: Arc<dyn net::Sink>,
    writes: Arc<AtomicUsize>,
    acknowledged: Arc<AtomicUsize>,
}

impl net::Sink for CountingSink {
    fn try_write(&self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.sink.try_write(bytes)
    }

    fn try_flush(&self) -> std::io::Result<()> {
        self.sink.try_flush()
    }

    fn poll_writable(
        &self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        self.sink.poll_writable(cx)
    }

    fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.sink.acknowledge();
    }

    fn finish(&self) {
        self.sink.finish();
    }

    fn close(&self) {
        self.sink.close();
    }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default(), Limits::default(), Arc::new(door::Open)).await
    }

    pub(crate) async fn with_options(options: Options) -> Self {
        Self::with(options, Limits::default(), Arc::new(door::Open)).await
    }

    pub(crate) async fn with(options: Options, limits: Limits, gate: Arc<dyn Gate>) -> Self {
        Self::start(options, limits, gate, None).await
    }

    /// A node that traces every message.
    pub(crate) async fn traced() -> Self {
        let options = TracerOptions {
            sampled_ppm: 1_000_000,
            queue_max: 100,
        };
        let (door_options, limits) = (Options::default(), Limits::default());
        Self::start(door_options, limits, Arc::new(door::Open), Some(options)).await
    }

    async fn start(
        options: Options,
        limits: Limits,
        gate: Arc<dyn Gate>,
        traced: Option<TracerOptions>,
    ) -> Self {
        log::record();
        #[expect(clippy::disallowed_methods, reason = "a test's clock is the real one")]
        let started = Instant::now();
        let ports = Ports {
            clock: Arc::new(Running(started)),
            entropy: Arc::new(Counting(AtomicU64::new(0x0001_0000_0000_0000))),
        };
        let exchange = Arc::new(Exchange::default());
        let tracer = |options| Arc::new(Tracer::new(ports.clone(), options));
        let node = Node::open(Parts {
            tracer: traced.map(tracer),
            limits,
            names: Some(exchange.clone()),
            ..Parts::in_memory(ports.clone())
        });
        let node = node.unwrap();
        let door = Door::new(node.clone(), gate, exchange, options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = door.clone();
        let writes: Arc<Mutex<Vec<_>>> = Arc::default();
        let counted = writes.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let door = accepting.clone();
                let socket = socket.into_std().unwrap();
                let twin = socket.try_clone().unwrap();
                let socket = tokio::net::TcpStream::from_std(socket).unwrap();
                let mut stream = net::split_tcp(socket).unwrap();
                let writes = Arc::new(AtomicUsize::new(0));
                let acknowledged = Arc::new(AtomicUsize::new(0));
                let is_eager = twin.nodelay().unwrap();
                let connection = (writes.clone(), acknowledged.clone(), is_eager);
                counted.lock().unwrap().push(connection);
                let sink = stream.sink;
                stream.sink = Arc::new(CountingSink {
                    sink,
                    writes,
                    acknowledged,
                });
                tokio::spawn(async move { door.serve(stream).await });
            }
        });
        Self {
            node,
            door,
            address,
            writes,
        }
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.node.counters().get(counter)
    }

    /// How often the door has written to a connection.
    pub(crate) fn written(&self, connection: usize) -> usize {
        self.writes.lock().unwrap()[connection]
            .0
            .load(Ordering::Relaxed)
    }

    /// How often the door has told a connection at once what has arrived.
    pub(crate) fn acknowledged(&self, connection: usize) -> usize {
        self.writes.lock().unwrap()[connection]
            .1
            .load(Ordering::Relaxed)
    }

    /// Whether the socket of a connection sends what it has at once.
    pub(crate) fn is_without_delay(&self, connection: usize) -> bool {
        self.writes.lock().unwrap()[connection].2
    }

    /// Waits until something has been counted so often.
    pub(crate) async fn counted(&self, counter: Counter, count: u64) {
        let what = format!("{counter:?} to be {count}");
        until(&what, || self.count(counter) == count).await;
    }
}
