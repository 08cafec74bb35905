//! A node with a journal on a disk in memory, synced when the test says so.

use std::sync::Arc;

use journal::disk::{Disk, SimulatedDisk};
use journal::{Background, Journal, Line};
use node::{Clock, Limits, Node, StoreOptions};
use wire::{Cast, Correlation, Flags, Key, Kind, Payload, Stored};

use crate::agent::{Agent, Frame, tag};
use crate::{Bench, ManualClock, ports};

/// A node that keeps what it is told to.
pub(crate) struct Kept {
    pub(crate) bench: Bench,
    pub(crate) line: Line,
    pub(crate) disk: SimulatedDisk,
    pub(crate) journal: Arc<Journal>,
    background: Background,
    options: StoreOptions,
    starts: u64,
}

impl Kept {
    pub(crate) fn new() -> Self {
        Self::with(StoreOptions::default())
    }

    pub(crate) fn with(options: StoreOptions) -> Self {
        let (disk, clock) = (SimulatedDisk::new(7), Arc::new(ManualClock::default()));
        let (bench, line, background, journal) = start(Arc::new(disk.clone()), clock, options, 1);
        Self {
            bench,
            line,
            disk,
            journal,
            background,
            options,
            starts: 1,
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
            options,
            starts,
            ..
        } = self;
        bench.node.close_all();
        disk.crash(&mut fastrand::Rng::with_seed(starts));
        let starts = starts + 1;
        let front = front(disk.clone());
        let (bench, line, background, journal) = start(front, bench.clock.clone(), options, starts);
        Self {
            bench,
            line,
            disk,
            journal,
            background,
            options,
            starts,
        }
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

fn start(
    disk: Arc<dyn Disk>,
    clock: Arc<ManualClock>,
    options: StoreOptions,
    starts: u64,
) -> (Bench, Line, Background, Arc<Journal>) {
    let journal_options = journal::Options {
        journal_id: 1,
        entropy: starts,
        segment_size: 1 << 20,
        reserve_size: 0,
        ..journal::Options::default()
    };
    let opened = Journal::open_stepped(disk, &journal_options).unwrap();
    let (limits, ports) = (Limits::default(), ports(&clock));
    let journal = Arc::new(opened.journal);
    let node = Node::with_journal(limits, ports, journal.clone(), options).unwrap();
    let bench = Bench::of(node, clock, edge::native::Options::default());
    (bench, opened.line, opened.background, journal)
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

/// A message from the mailbox, with what is said of it.
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
    let failure = wire::Failure {
        retry_after_ms,
        ..wire::Failure::new(model::ErrorCode::HandlerError, "not now")
    };
    agent.frame(|out| failure.encode(to, out)).await;
}
