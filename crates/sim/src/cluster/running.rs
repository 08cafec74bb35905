//! A run of a member: its journal, its part in the consensus, and its topics while it leads.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::cluster::{Key, Leadership, Members, Node, ReportFile, Settings, stall};
use bytes::Bytes;
use door::Open;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use journal::disk::SimulatedDisk;
use journal::{
    Background, Commit, DecidedBlock, Index, Journal, Line, LineStep, Reign, ShardId, Stage,
};
use net::Stream;
use node::{Parts, StorageParts};
use parking_lot::Mutex;
use platform::{Clock, Ports};
use tokio::task::JoinSet;

use super::listeners::{Dialer, Listener, Listeners, OpenServices, address};
use crate::world::{SimClock, SimEntropy};

/// The cluster's id.
const CLUSTER: u64 = 0xC1;

const SHARDS: u16 = 2;

/// Size of a segment of the journal.
const SEGMENT_SIZE: u64 = 256 << 10;

/// Longest time of a sync of a good disk.
pub(super) const SYNC: Duration = Duration::from_millis(2);

/// Shortest time of a sync, in microseconds.
const SYNC_US_MIN: u64 = 100;

/// Time for which the leader of shard 0 must be the same before it leads the other shards too.
const SETTLE: Duration = Duration::from_millis(200);

/// Time limit of a hand-over.
const HAND_OVER_MAX: Duration = Duration::from_secs(3);

/// Time in which the end of a reign is noticed that has let the opening of services fail.
const END_MAX: Duration = Duration::from_secs(1);

/// How a member starts.
pub(super) struct Start {
    pub(super) id: u64,
    /// Everything about the run follows from it.
    pub(super) seed: u64,
    pub(super) reports: Reports,
    /// The first members of the cluster, if it begins.
    pub(super) founders: Option<Vec<u64>>,
}

/// The file with what the other members have reported, which is on disk at once.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<Mutex<Option<Vec<u8>>>>);

impl ReportFile for Reports {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().clone())
    }

    fn write(&self, bytes: Vec<u8>) -> BoxFuture<'static, io::Result<()>> {
        *self.0.lock() = Some(bytes);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A running member.
pub(super) struct RunningMember {
    id: u64,
    journal: Arc<Journal>,
    node: Arc<Node>,
    listeners: Listeners,
    services: OpenServices,
    sync: Arc<Mutex<Duration>>,
    tasks: JoinSet<()>,
}

/// The last block of a shard, and the last committed one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ShardEnds {
    pub(super) last: Index,
    pub(super) committed: Index,
}

impl RunningMember {
    /// Starts a member on its disk.
    pub(super) async fn start(
        start: Start,
        disk: &SimulatedDisk,
        listeners: Listeners,
    ) -> RunningMember {
        let Start {
            id,
            seed,
            reports,
            founders,
        } = start;
        let ports = Ports {
            clock: Arc::new(SimClock::start()),
            entropy: Arc::new(SimEntropy::new(seed)),
        };
        let options = journal::Options {
            journal_id: 100 + id,
            entropy: ports.entropy.next_u64(),
            shard_count: SHARDS,
            segment_size: SEGMENT_SIZE,
            reserve_size: 0,
            hold_size: u64::MAX,
            commit: Commit::ByCaller,
            ..journal::Options::default()
        };
        let opened = Journal::open_stepped(Arc::new(disk.clone()), &options)
            .expect("a journal can be opened after a crash");
        let journal = Arc::new(opened.journal);
        let sync = Arc::new(Mutex::new(SYNC));
        let mut tasks = JoinSet::new();
        let dice = fastrand::Rng::with_seed(seed);
        let clock = ports.clock.clone();
        tasks.spawn(step(
            opened.line,
            opened.background,
            clock,
            sync.clone(),
            dice,
        ));
        if let Some(founders) = founders {
            let members: Vec<_> = founders.into_iter().map(member).collect();
            let begun = ::cluster::init(&journal, &members, ports.clock.unix_ms()).await;
            begun.expect("a cluster begins on empty disks");
        }
        let settings = Settings {
            cluster: CLUSTER,
            id,
            key: Key::new(&[7; 32]).expect("a key of enough bytes"),
            entropy: ports.entropy.next_u64(),
            settle: SETTLE,
        };
        let services = OpenServices::default();
        let dialer = Box::new(Dialer {
            from: id,
            listeners: listeners.clone(),
        });
        let clock = ports.clock.clone();
        let passed = Arc::new(PassedClients(services.clone()));
        let (reports, now_ms) = (Box::new(reports), move || clock.unix_ms());
        let started = Node::start(journal.clone(), settings, dialer, passed, reports, now_ms);
        let node = Arc::new(started.await.expect("consensus starts on a whole log"));
        let listener = Listener {
            node: node.clone(),
            acceptor: node.acceptor(),
            services: services.clone(),
            connections: Arc::default(),
        };
        listeners.add(id, listener);
        tasks.spawn(lead(node.clone(), journal.clone(), ports, services.clone()));
        RunningMember {
            id,
            journal,
            node,
            listeners,
            services,
            sync,
            tasks,
        }
    }

    /// Ends the member at once.
    pub(super) fn end(mut self) {
        self.listeners.remove(self.id);
        self.tasks.abort_all();
        let node = self.node;
        let mut stopping = Box::pin(async move { node.stop().await });
        // Consensus may wait for the disk for ever.
        if (&mut stopping).now_or_never().is_none() {
            tokio::spawn(stopping);
        }
    }

    /// Returns whether topics are open.
    pub(super) fn is_serving(&self) -> bool {
        self.services.is_open()
    }

    /// Sets the longest time of a sync.
    pub(super) fn set_sync(&self, longest: Duration) {
        *self.sync.lock() = longest;
    }

    /// Returns the ends of all shards.
    pub(super) fn ends(&self) -> Vec<ShardEnds> {
        let ends = |shard| ShardEnds {
            last: self.journal.last_taken(shard).index,
            committed: self.journal.last(shard, Stage::Committed),
        };
        (0..SHARDS).map(ShardId).map(ends).collect()
    }

    /// Returns the blocks of all shards. Nothing is filed, because nothing is purged.
    pub(super) fn blocks(&self) -> Vec<Vec<DecidedBlock>> {
        let all = Index(1)..Index(u64::MAX);
        let blocks = |shard| self.journal.read_blocks(shard, all.clone(), usize::MAX);
        let blocks = (0..SHARDS).map(ShardId).map(blocks);
        blocks.map(|it| it.expect("a whole log is read")).collect()
    }
}

fn member(id: u64) -> ::cluster::Member {
    ::cluster::Member {
        id,
        addresses: ::cluster::Addresses {
            link: address(id),
            kafka: Some(format!("node-{id}:9092")),
            ..::cluster::Addresses::default()
        },
    }
}

/// Serves the clients that other members pass on.
struct PassedClients(OpenServices);

impl ::cluster::Services for PassedClients {
    fn answer(&self, _: u64, _: Bytes) -> BoxFuture<'static, Bytes> {
        Box::pin(std::future::ready(Bytes::new()))
    }

    fn pipe(&self, _: u64, stream: Stream) -> BoxFuture<'static, ()> {
        Box::pin(self.0.clone().serve_passed(stream))
    }

    fn join(&self, stream: Stream) -> BoxFuture<'static, ()> {
        stream.sink.close();
        Box::pin(std::future::ready(()))
    }
}

/// Writes, syncs and files, each after some time.
async fn step(
    mut line: Line,
    mut background: Background,
    clock: Arc<dyn Clock>,
    sync: Arc<Mutex<Duration>>,
    mut dice: fastrand::Rng,
) {
    loop {
        let longest = sync.lock().as_micros() as u64;
        tokio::time::sleep(Duration::from_micros(dice.u64(SYNC_US_MIN..=longest))).await;
        assert_ne!(line.step(), LineStep::Failed, "the disk does not fail");
        background.step(clock.unix_ms());
    }
}

/// Opens the topics whenever this node leads all shards, in reigns of their own.
async fn lead(node: Arc<Node>, journal: Arc<Journal>, ports: Ports, services: OpenServices) {
    let mut leadership = Leadership::new(node.clone());
    loop {
        let reigns = leadership.next().await;
        let tasks = match open(&node, &journal, &ports, &services, &reigns) {
            Ok(tasks) => tasks,
            Err(error) => {
                let over = tokio::time::timeout(END_MAX, node.end_of_any(&reigns)).await;
                assert!(over.is_ok(), "services cannot be opened: {error}");
                continue;
            }
        };
        loop {
            tokio::select! {
                () = node.end_of_any(&reigns) => break,
                () = node.loss_of_quorum() => break,
                () = stall(&journal) => node.hand_over(HAND_OVER_MAX).await,
            }
        }
        services.close();
        drop(tasks);
    }
}

/// Opens a node with its topics, and its Kafka listener. Returns its background work.
fn open(
    node: &Arc<Node>,
    journal: &Journal,
    ports: &Ports,
    services: &OpenServices,
    reigns: &[(Reign, u64)],
) -> Result<JoinSet<()>, node::OpenError> {
    let mut tasks = JoinSet::new();
    let storage = StorageParts {
        membership: Some(Arc::new(Members::new(node.clone()))),
        ..StorageParts::new(Arc::new(journal.in_reigns(reigns)))
    };
    let opened = node::Node::open(Parts::with_storage(ports.clone(), storage))?;
    let topics = opened.topics().expect("a node with storage has topics");
    tasks.spawn(door::sweep(opened.clone()));
    let users = Arc::new(topics.clone());
    let options = door_kafka::Options::default();
    let gate = Arc::new(Open);
    services.open(door_kafka::Door::new(opened, topics, gate, users, options));
    Ok(tasks)
}
