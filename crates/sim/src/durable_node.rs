//! A node as it ships, on a simulated disk, which restarts after power failures.

use std::sync::Arc;
use std::time::Duration;

use ::{views, webhooks};
use client::{Builder, Client};
use journal::disk::SimulatedDisk;
use journal::{Background, Journal, Line};
use message_json::chunks::Assembler;
use node::{Node, Parts, QuotaParts, StorageParts, StoreOptions};
use parking_lot::Mutex;
use platform::Ports;
use quota::Limit;
use tokio::task::JoinSet;
use webhooks::caller::{CallError, Caller, Calling, Request, WebhookPolicy};
use webhooks::{WebhookParts, WebhookSettings};

use crate::Network;
use crate::doors::{Dialer, Doors};
use crate::world::{SimClock, SimEntropy};

/// Longest time that the disk takes for a sync, in microseconds.
const SYNC_US_MAX: u64 = 3_000;

/// Longest pause between two steps of the journal's compaction, in milliseconds.
const COMPACTION_MS_MAX: u64 = 100;

/// Interval at which the views catch up.
const TEND_INTERVAL: Duration = Duration::from_millis(50);

/// Size of a segment of the journal, so small that worlds compact some.
const SEGMENT_SIZE: u64 = 256 << 10;

/// The settings of a simulated node.
#[derive(Clone)]
pub struct Settings {
    /// The configured limits of quotas.
    pub limits: Vec<Limit>,
    /// The caller of webhooks.
    pub webhooks: Arc<dyn Caller>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Vec::new(),
            webhooks: Arc::new(Unreachable),
        }
    }
}

/// A durable node across restarts.
pub struct DurableNode {
    seed: u64,
    settings: Settings,
    network: Network,
    disk: SimulatedDisk,
    clock: Arc<SimClock>,
    starts: u64,
    running: RunningNode,
    doors: Arc<Mutex<Option<Doors>>>,
}

/// A run of the node.
struct RunningNode {
    handle: Node,
    /// The background work and the connections, which end with the run.
    tasks: JoinSet<()>,
}

impl DurableNode {
    /// Starts a node with an empty disk. Everything about it follows from `seed`.
    pub fn start(seed: u64, network: &Network) -> Self {
        Self::start_with(seed, network, Settings::default())
    }

    /// Starts a node with an empty disk and these settings.
    pub fn start_with(seed: u64, network: &Network, settings: Settings) -> Self {
        let disk = SimulatedDisk::new(seed);
        let clock = Arc::new(SimClock::start());
        let running = start(seed, 0, &disk, &clock, &settings);
        let doors = Doors::open(&running.handle);
        Self {
            seed,
            settings,
            network: network.clone(),
            disk,
            clock,
            starts: 1,
            running,
            doors: Arc::new(Mutex::new(Some(doors))),
        }
    }

    /// Returns the node as it is now.
    pub fn handle(&self) -> &Node {
        &self.running.handle
    }

    /// Simulates a power failure: ends the node without warning, loses a random part of the
    /// unsynced data, and restarts it after `pause`.
    pub async fn fail_power(&mut self, pause: Duration) {
        *self.doors.lock() = None;
        // Nothing left of the process may reach a peer.
        self.network.cut_all();
        self.running.tasks.shutdown().await;
        self.running.handle.messaging().close_all();
        let dice = self.seed.wrapping_mul(1_000).wrapping_add(self.starts);
        self.disk.crash(&mut fastrand::Rng::with_seed(dice));
        tokio::time::sleep(pause).await;
        self.running = start(
            self.seed,
            self.starts,
            &self.disk,
            &self.clock,
            &self.settings,
        );
        self.starts += 1;
        *self.doors.lock() = Some(Doors::open(&self.running.handle));
    }

    /// Returns a dialer for connections across the simulated network, from host `host`. It reaches
    /// the node as long as the node runs, and every later run.
    pub fn dialer(&self, host: &'static str) -> Dialer {
        Dialer::new(self.network.clone(), host, self.doors.clone())
    }

    /// Returns a builder of native clients whose connections cross the simulated network.
    pub fn client(&self, host: &'static str, seed: u64) -> Builder {
        let dialer = self.dialer(host);
        Client::builder()
            .seed(seed)
            .connector(move |_| Box::pin(std::future::ready(dialer.native())))
    }
}

fn start(
    seed: u64,
    starts: u64,
    disk: &SimulatedDisk,
    clock: &Arc<SimClock>,
    settings: &Settings,
) -> RunningNode {
    let ports = Ports {
        clock: clock.clone(),
        entropy: Arc::new(SimEntropy::new(seed.wrapping_add(starts))),
    };
    let options = journal::Options {
        journal_id: seed,
        entropy: starts + 1,
        segment_size: SEGMENT_SIZE,
        reserve_size: 0,
        piece_size_min: piece_size_min(starts),
        ..journal::Options::default()
    };
    let opened = Journal::open_stepped(Arc::new(disk.clone()), &options)
        .expect("a journal can be opened after a crash");
    let parts = parts(ports, Arc::new(opened.journal), settings);
    let handle = Node::open(parts).expect("a node can be opened after a crash");
    let dice = fastrand::Rng::with_seed(seed.wrapping_add(starts));
    let mut tasks = JoinSet::new();
    tasks.spawn(door::sweep(handle.clone()));
    tasks.spawn(sync(opened.line, dice.clone()));
    tasks.spawn(compact(opened.background, clock.clone(), dice));
    tasks.spawn(tend(handle.clone()));
    let caller = settings.webhooks.clone();
    tasks.spawn(http_conversations::call_agents(handle.clone(), caller));
    RunningNode { handle, tasks }
}

/// Full segments are retained in every other run, and copied in the others unless their records are long.
fn piece_size_min(starts: u64) -> u64 {
    match starts % 2 {
        0 => 0,
        _ => journal::Options::default().piece_size_min,
    }
}

/// Returns the parts that `telpher serve` gives a node, with views in memory.
fn parts(ports: Ports, journal: Arc<Journal>, settings: &Settings) -> Parts {
    let views = views::Options {
        place: views::ViewsLocation::Memory,
        cache_size: 1 << 20,
        sync_interval: Duration::from_secs(10),
        watchers_max: 10,
        labels: message_json::labels,
    };
    let webhooks = WebhookParts {
        options: webhooks::Options::default(),
        policy: Arc::new(AnyAddress),
    };
    let storage = StorageParts {
        options: StoreOptions {
            mailboxes: messaging::mailboxes::Options {
                ack_timeout: Duration::from_secs(2),
                ..messaging::mailboxes::Options::default()
            },
            ..StoreOptions::default()
        },
        event_encoder: Some(Arc::new(http_conversations::EventJson)),
        assembler: Some(Arc::new(Assembler)),
        views: Some(views),
        webhooks: Some(webhooks),
        ..StorageParts::new(journal)
    };
    Parts {
        quotas: QuotaParts {
            limits: settings.limits.clone(),
            ..QuotaParts::default()
        },
        ..Parts::with_storage(ports, storage)
    }
}

/// Drives the write-ahead log, as its thread would.
async fn sync(mut line: Line, mut dice: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_micros(dice.u64(1..SYNC_US_MAX))).await;
        line.step();
    }
}

/// Drives the journal's compaction, as its thread would.
async fn compact(mut background: Background, clock: Arc<SimClock>, mut dice: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_millis(dice.u64(1..COMPACTION_MS_MAX))).await;
        background.step(platform::Clock::unix_ms(&*clock));
    }
}

/// Keeps the views up to date.
async fn tend(handle: Node) {
    loop {
        tokio::time::sleep(TEND_INTERVAL).await;
        while handle.views().is_some_and(|views| views.tend() == Ok(true)) {}
    }
}

/// Allows every address of a webhook.
struct AnyAddress;

impl WebhookPolicy for AnyAddress {
    fn check(&self, _: &WebhookSettings) -> Result<(), String> {
        Ok(())
    }
}

/// A caller of webhooks that reaches no agent.
struct Unreachable;

impl Caller for Unreachable {
    fn call(&self, _: Request) -> Calling {
        let lost = CallError::Lost("no agent is simulated".to_owned());
        Box::pin(std::future::ready(Err(lost)))
    }
}
