//! The SLIM door over loopback, spoken to in bare messages.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod agent;
mod bad_input;
mod bindings;
#[path = "../it/counting.rs"]
mod counting;
mod exchange;
mod links;
mod slow;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use edge::Gate;
use edge::slim::{Door, Options};
use node::{Clock, Counter, Handle, Limits, Ports};
use tokio::net::TcpListener;

pub(crate) use agent::Agent;
use counting::Counting;

/// How long anything is waited for before a test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

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
    pub(crate) node: Handle,
    pub(crate) door: Door,
    pub(crate) address: SocketAddr,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default(), Limits::default(), Arc::new(edge::Open)).await
    }

    pub(crate) async fn with_options(options: Options) -> Self {
        Self::with(options, Limits::default(), Arc::new(edge::Open)).await
    }

    pub(crate) async fn with(options: Options, limits: Limits, gate: Arc<dyn Gate>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test's clock is the real one")]
        let started = Instant::now();
        let ports = Ports {
            clock: Arc::new(Running(started)),
            entropy: Arc::new(Counting(AtomicU64::new(0x0001_0000_0000_0000))),
        };
        let node = Handle::new(limits, ports);
        let door = Door::new(node.clone(), gate, options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = door.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let door = accepting.clone();
                tokio::spawn(async move { door.serve(net::split_tcp(socket).unwrap()).await });
            }
        });
        Self {
            node,
            door,
            address,
        }
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.node.counters().get(counter)
    }

    /// Waits until something has been counted so often.
    pub(crate) async fn counted(&self, counter: Counter, count: u64) {
        let what = format!("{counter:?} to be {count}");
        until(&what, || self.count(counter) == count).await;
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}
