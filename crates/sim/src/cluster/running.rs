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
use journal::{Commit, DecidedBlock, Index, Journal, Reign, ShardId, Stage};
use net::Stream;
use node::{Parts, StorageParts};
use parking_lot::Mutex;
use platform::Ports;
use tokio::task::JoinSet;

use super::disk::DiskState;
use super::listeners::{Dialer, Listener, Listeners, OpenServices, address};
use crate::world::{SimClock, SimEntropy};

/// The cluster's id.
const CLUSTER: u64 = 0xC1;

const SHARDS: u16 = 2;

/// Time of the first block, which all founders have, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_700_000_000_000;

/// Size of a segment of the journal.
const SEGMENT_SIZE: u64 = 256 << 10;

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
    pub(super) clock: Arc<SimClock>,
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
    disk: DiskState,
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
            clock,
            reports,
            founders,
        } = start;
        let ports = Ports {
            clock,
            entropy: Arc::new(SimEntropy::new(seed)),
        };
        let options = journal::Options {
            journal_id: 100 + id,
            entropy: ports.entropy.next_u64(),
            shard_count: SHARDS,
            segment_size: SEGMENT_SIZE,
            reserve_size: 0,
            piece_size_min: match id % 2 {
                0 => 0,
                _ => journal::Options::default().piece_size_min,
            },
            hold_size: u64::MAX,
            commit: Commit::ByCaller,
            ..journal::Options::default()
        };
        let opened = Journal::open_stepped(Arc::new(disk.clone()), &options)
            .expect("a journal can be opened after a crash");
        let journal = Arc::new(opened.journal);
        let mut tasks = JoinSet::new();
        let state = DiskState::new();
        let (clock, dice) = (ports.clock.clone(), fastrand::Rng::with_seed(seed));
        let steps = state.clone();
        tasks.spawn(steps.step(opened.line, opened.background, clock, dice));
        if let Some(founders) = founders {
            let members: Vec<_> = founders.into_iter().map(member).collect();
            let begun = ::cluster::init(&journal, &members, BEGIN_MS).await;
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
        let leading = Leading {
            node: node.clone(),
            journal: journal.clone(),
            ports,
            services: services.clone(),
        };
        tasks.spawn(leading.run(state.clone()));
        RunningMember {
            id,
            journal,
            node,
            listeners,
            services,
            disk: state,
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

    /// Returns the state of the disk.
    pub(super) fn disk(&self) -> &DiskState {
        &self.disk
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

/// Opens the topics whenever this node leads all shards, in reigns of their own.
struct Leading {
    node: Arc<Node>,
    journal: Arc<Journal>,
    ports: Ports,
    services: OpenServices,
}

impl Leading {
    async fn run(self, disk: DiskState) {
        let mut leadership = Leadership::new(self.node.clone());
        loop {
            let reigns = leadership.next().await;
            let tasks = match self.open(&reigns) {
                Ok(tasks) => tasks,
                Err(error) => {
                    let over = self.node.end_of_any(&reigns);
                    if tokio::time::timeout(END_MAX, over).await.is_err() {
                        return disk.fail(format!("services cannot be opened: {error}"));
                    }
                    continue;
                }
            };
            loop {
                tokio::select! {
                    () = self.node.end_of_any(&reigns) => break,
                    () = self.node.loss_of_quorum() => break,
                    () = stall(&self.journal) => self.node.hand_over(HAND_OVER_MAX).await,
                }
            }
            self.services.close();
            drop(tasks);
        }
    }

    /// Opens a node with its topics, and its Kafka listener. Returns its background work.
    fn open(&self, reigns: &[(Reign, u64)]) -> Result<JoinSet<()>, node::OpenError> {
        let mut tasks = JoinSet::new();
        let storage = StorageParts {
            membership: Some(Arc::new(Members::new(self.node.clone()))),
            ..StorageParts::new(Arc::new(self.journal.in_reigns(reigns)))
        };
        let opened = node::Node::open(Parts::with_storage(self.ports.clone(), storage))?;
        let topics = opened.topics().expect("a node with storage has topics");
        tasks.spawn(door::sweep(opened.clone()));
        let users = Arc::new(topics.clone());
        let options = door_kafka::Options::default();
        let gate = Arc::new(Open);
        let door = door_kafka::Door::new(opened, topics, gate, users, options);
        self.services.open(door);
        Ok(tasks)
    }
}
