//! A node with a journal on a disk in memory, synced when the test says so.

use std::sync::Arc;

use conversation_service::archive::Archive;
use door_testing::{SwitchedOffload, journal_options, stepped_storage};
use journal::disk::{Disk, SimulatedDisk};
use journal::{Background, Journal, Line};
use node::{Node, Parts, QuotaParts, StorageParts, StoreOptions};
use platform::Clock;
use quota::Limit;
use wire::{Cast, Correlation, Flags, Key, Kind, Payload, Stored};

use crate::agent::{Agent, Frame, tag};
use crate::{Bench, ManualClock, ports};

/// A node that keeps what it is told to.
pub(crate) struct DurableNode {
    pub(crate) bench: Bench,
    pub(crate) line: Line,
    pub(crate) disk: SimulatedDisk,
    pub(crate) journal: Arc<Journal>,
    pub(crate) offload: Arc<SwitchedOffload>,
    background: Background,
    settings: Settings,
    starts: u64,
}

/// The settings of a node.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) options: StoreOptions,
    pub(crate) limits: Vec<Limit>,
    pub(crate) archive: Option<Arc<dyn Archive>>,
}

impl DurableNode {
    pub(crate) fn new() -> Self {
        Self::with(StoreOptions::default())
    }

    pub(crate) fn with(options: StoreOptions) -> Self {
        Self::with_settings(Settings {
            options,
            ..Settings::default()
        })
    }

    pub(crate) fn with_settings(settings: Settings) -> Self {
        let (disk, clock) = (SimulatedDisk::new(7), Arc::new(ManualClock::default()));
        Self::start(Arc::new(disk.clone()), disk, clock, settings, 1)
    }

    fn start(
        front: Arc<dyn Disk>,
        disk: SimulatedDisk,
        clock: Arc<ManualClock>,
        settings: Settings,
        starts: u64,
    ) -> Self {
        let (storage, line, background) = stepped_storage(front, &journal_options(starts));
        let journal = storage.journal.clone();
        let storage = StorageParts {
            options: settings.options,
            archive: settings.archive.clone(),
            ..storage
        };
        let quotas = QuotaParts {
            limits: settings.limits.clone(),
            ..QuotaParts::default()
        };
        let offload = Arc::new(SwitchedOffload::default());
        let node = Node::open(Parts {
            quotas,
            offload: offload.clone(),
            ..Parts::with_storage(ports(&clock), storage)
        });
        Self {
            bench: Bench::of(node.unwrap(), clock, door_native::Options::default()),
            line,
            disk,
            journal,
            offload,
            background,
            settings,
            starts,
        }
    }

    /// The power fails, and the node is started again.
    pub(crate) fn crash(self) -> Self {
        self.crash_behind(|disk| Arc::new(disk))
    }

    /// The same, with something in front of the disk from then on.
    pub(crate) fn crash_behind(self, front: impl FnOnce(SimulatedDisk) -> Arc<dyn Disk>) -> Self {
        let Self {
            bench,
            disk,
            settings,
            starts,
            ..
        } = self;
        bench.node.messaging().close_all();
        disk.crash(&mut fastrand::Rng::with_seed(starts));
        let front = front(disk.clone());
        Self::start(front, disk, bench.clock, settings, starts + 1)
    }

    /// Everything that was appended is on disk now.
    pub(crate) fn sync(&mut self) {
        self.line.step();
        self.background.step(self.bench.clock.unix_ms());
    }

    /// Lets everybody who can go on do so, and syncs, until an answer is there.
    pub(crate) async fn answer(&mut self, agent: &mut Agent) -> Frame {
        // The question is on its way: a ping behind it comes back when it was taken in.
        agent.expect_nothing().await;
        self.sync();
        agent.next().await
    }

    /// Writes and waits for the answer.
    pub(crate) async fn write(&mut self, agent: &mut Agent, slot: u32, key: Key) -> Stored {
        write(agent, slot, key, b"hi").await;
        let frame = self.answer(agent).await;
        assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
        assert_eq!(frame.header.correlation, tag(slot));
        Stored::decode(&frame.payload).unwrap()
    }
}

/// A key of its own for each number.
pub(crate) fn key(number: u8) -> Key {
    Key {
        id: [number; 16],
        ttl_ms: 0,
    }
}

/// A writer to the mailbox of `a/b/c`, by route 1.
pub(crate) async fn writer(bench: &Bench, name: &str) -> Agent {
    let mut agent = bench.agent(name).await;
    agent.bind(1, "a/b/c", Cast::Any).await;
    agent
}

pub(crate) async fn write(agent: &mut Agent, slot: u32, key: Key, body: &[u8]) {
    agent
        .frame(|out| {
            let prefix = key.encode();
            let payload = Payload::body(body);
            payload.encode_prefixed(&prefix, Kind::WRITE, Flags::KEYED, 1, tag(slot), out);
        })
        .await;
}

/// The next message from the mailbox: its delivery, body and correlation.
pub(crate) async fn delivered(agent: &mut Agent) -> (wire::Delivery, Vec<u8>, Correlation) {
    let frame = agent.next().await;
    assert_eq!(frame.header.kind, Kind::REQUEST, "{frame:?}");
    assert!(frame.header.flags.contains(Flags::WRITTEN), "{frame:?}");
    let (delivery, body) = wire::Delivery::split(frame.body()).unwrap();
    (delivery, body.to_vec(), frame.header.correlation)
}

pub(crate) async fn acknowledge(agent: &mut Agent, to: Correlation) {
    agent.message(Kind::REPLY, Flags::NONE, 0, to, b"").await;
}

pub(crate) async fn refuse(agent: &mut Agent, to: Correlation, retry_after_ms: u32) {
    let failure = model::Failure {
        retry_after_ms,
        ..model::Failure::new(model::ErrorCode::HandlerError, "not now")
    };
    agent
        .frame(|out| wire::encode_failure(&failure, to, out))
        .await;
}
