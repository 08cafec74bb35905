//! A durable node on a simulated disk, which restarts after power failures.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use client::{Builder, Client};
use edge::native::{Door, Options};
use journal::disk::SimulatedDisk;
use journal::{Journal, Line};
use node::{Limits, Node, Ports, StoreOptions, views};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::Network;
use crate::world::{SimClock, SimEntropy};

/// Longest time that the disk takes for a sync, in microseconds.
const SYNC_US_MAX: u64 = 3_000;

/// Interval at which the views catch up.
const TEND_INTERVAL: Duration = Duration::from_millis(50);

/// A durable node across restarts.
pub struct DurableNode {
    seed: u64,
    network: Network,
    disk: SimulatedDisk,
    starts: u64,
    running: RunningNode,
    /// Accepts connections; `None` while the node is down.
    door: Arc<Mutex<Option<Door>>>,
}

/// A run of the node.
struct RunningNode {
    handle: Node,
    tasks: [JoinHandle<()>; 3],
}

impl DurableNode {
    /// Starts a node with an empty disk. Everything about it follows from `seed`.
    pub fn start(seed: u64, network: &Network) -> Self {
        let disk = SimulatedDisk::new(seed);
        let running = start(seed, 0, &disk);
        let door = door(&running.handle);
        Self {
            seed,
            network: network.clone(),
            disk,
            starts: 1,
            running,
            door: Arc::new(Mutex::new(Some(door))),
        }
    }

    /// Returns the node as it is now.
    pub fn handle(&self) -> &Node {
        &self.running.handle
    }

    /// Simulates a power failure: ends the node without warning, loses a random part of the
    /// unsynced data, and restarts it after `pause`.
    pub async fn fail_power(&mut self, pause: Duration) {
        *self.door.lock() = None;
        // Nothing left of the process may reach a peer.
        self.network.cut_all();
        for task in &self.running.tasks {
            task.abort();
        }
        self.running.handle.close_all();
        let dice = self.seed.wrapping_mul(1_000).wrapping_add(self.starts);
        self.disk.crash(&mut fastrand::Rng::with_seed(dice));
        tokio::time::sleep(pause).await;
        self.running = start(self.seed, self.starts, &self.disk);
        self.starts += 1;
        *self.door.lock() = Some(door(&self.running.handle));
    }

    /// Returns a client builder whose connections cross the simulated network, from host `host`.
    pub fn client(&self, host: &'static str, seed: u64) -> Builder {
        let (network, door) = (self.network.clone(), self.door.clone());
        Client::builder().seed(seed).connector(move |_| {
            let Some(door) = door.lock().clone() else {
                let refused = io::ErrorKind::ConnectionRefused.into();
                return Box::pin(std::future::ready(Err(refused)));
            };
            let (near, far) = network.connect(host, "node");
            tokio::spawn(async move { door.serve(far).await });
            Box::pin(std::future::ready(Ok(near)))
        })
    }
}

fn start(seed: u64, starts: u64, disk: &SimulatedDisk) -> RunningNode {
    let ports = Ports {
        clock: Arc::new(SimClock::start()),
        entropy: Arc::new(SimEntropy::new(seed.wrapping_add(starts))),
    };
    let options = journal::Options {
        journal_id: seed,
        entropy: starts + 1,
        segment_size: 1 << 20,
        reserve_size: 0,
        ..journal::Options::default()
    };
    let opened = Journal::open_stepped(Arc::new(disk.clone()), &options)
        .expect("a journal can be opened after a crash");
    let journal = Arc::new(opened.journal);
    let store = StoreOptions {
        ack_timeout: Duration::from_secs(2),
        ..StoreOptions::default()
    };
    let handle = Node::with_journal(Limits::default(), ports, journal, store)
        .expect("the directory can be read after a crash");
    handle.keep_views(views::Options {
        place: views::Place::Memory,
        cache_size: 1 << 20,
        sync_interval: Duration::from_secs(10),
        watchers_max: 10,
        labels: edge::labels,
    });
    let dice = fastrand::Rng::with_seed(seed.wrapping_add(starts));
    let tasks = [
        tokio::spawn(edge::sweep(handle.clone())),
        tokio::spawn(sync(opened.line, dice)),
        tokio::spawn(tend(handle.clone())),
    ];
    RunningNode { handle, tasks }
}

/// Drives the write-ahead log, as its thread would.
async fn sync(mut line: Line, mut dice: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_micros(dice.u64(1..SYNC_US_MAX))).await;
        line.step();
    }
}

/// Keeps the views up to date.
async fn tend(handle: Node) {
    loop {
        tokio::time::sleep(TEND_INTERVAL).await;
        while handle.views().is_some_and(|views| views.tend() == Ok(true)) {}
    }
}

fn door(handle: &Node) -> Door {
    Door::new(handle.clone(), Arc::new(edge::Open), Options::default())
}
