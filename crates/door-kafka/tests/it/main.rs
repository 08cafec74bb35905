//! The Kafka door over in-process streams, with a journal that syncs when a test says so.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod administering;
mod authentication;
mod client;
mod clustered;
mod configuring;
mod describing;
mod fetching;
mod filed;
mod following;
mod framing;
mod full_disk;
mod full_queue;
mod offsets;
mod order;
mod producing;
mod quota;
mod stalled_disk;
mod token_names;
mod unpacking;
mod user_changes;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use door::{Gate, Open};
use door_kafka::{Arrived, Door, NoUsers, Options, Users};
use door_testing::{ManualClock, SwitchedOffload, ports, stepped_storage};
use journal::disk::{Disk, SimulatedDisk};
use journal::{Background, Commit, Journal, Line, ShardId, Stage};
use node::{Node, Parts, StorageParts};
use platform::{Clock, Membership, Offload, Overloaded, Work};
use scram::credential;
use topics::{Hash, User};

pub(crate) use client::Client;

/// A node, and its Kafka door.
pub(crate) struct Bench {
    pub(crate) node: Node,
    pub(crate) disk: SimulatedDisk,
    line: Line,
    background: Background,
    /// The journal, if the bench commits its blocks like a consensus.
    pub(crate) committed_by_bench: Option<Arc<Journal>>,
    clock: Arc<ManualClock>,
    pub(crate) offload: Arc<SwitchedOffload>,
    pub(crate) door: Door,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Arc::new(Open), Arc::new(NoUsers))
    }

    pub(crate) fn with(gate: Arc<dyn Gate>, users: Arc<dyn Users>) -> Self {
        Self::with_parts(gate, Some(users), &journal_options(), Default::default())
    }

    /// One whose users are those that the node keeps.
    pub(crate) fn with_stored_users() -> Self {
        Self::with_parts(Arc::new(Open), None, &journal_options(), Default::default())
    }

    /// One in which no more than so many bytes may wait for the disk.
    pub(crate) fn with_queue(queue_bytes_max: u64) -> Self {
        let options = journal::Options {
            queue_bytes_max,
            ..journal_options()
        };
        Self::open(&options, Default::default())
    }

    /// One whose journal is called like that.
    pub(crate) fn of_journal(journal_id: u64) -> Self {
        let options = journal::Options {
            journal_id,
            ..journal_options()
        };
        Self::open(&options, Default::default())
    }

    /// One whose topics are like that.
    pub(crate) fn of_topics(options: topic_service::Options) -> Self {
        Self::open(&journal_options(), options)
    }

    /// A bench without authentication.
    fn open(options: &journal::Options, topics: topic_service::Options) -> Self {
        Self::with_parts(Arc::new(Open), Some(Arc::new(NoUsers)), options, topics)
    }

    /// A member of a cluster.
    pub(crate) fn in_cluster(membership: Arc<dyn Membership>) -> Self {
        let users = Some(Arc::new(NoUsers) as Arc<dyn Users>);
        let options = journal_options();
        Self::with_membership(
            Arc::new(Open),
            users,
            &options,
            Default::default(),
            Some(membership),
        )
    }

    /// A member whose blocks are committed by the bench.
    pub(crate) fn in_cluster_committing(membership: Arc<dyn Membership>) -> Self {
        let users = Some(Arc::new(NoUsers) as Arc<dyn Users>);
        let options = journal::Options {
            commit: Commit::ByCaller,
            ..journal_options()
        };
        let gate = Arc::new(Open);
        Self::with_membership(gate, users, &options, Default::default(), Some(membership))
    }

    fn with_parts(
        gate: Arc<dyn Gate>,
        users: Option<Arc<dyn Users>>,
        options: &journal::Options,
        topics: topic_service::Options,
    ) -> Self {
        Self::with_membership(gate, users, options, topics, None)
    }

    /// A bench with small segments on this disk, at the `starts`th start of its node.
    pub(crate) fn on_disk(disk: Arc<dyn Disk>, starts: u64) -> Self {
        let options = door_testing::journal_options(starts);
        let users = Some(Arc::new(NoUsers) as Arc<dyn Users>);
        let simulated = SimulatedDisk::new(7);
        let (gate, topics) = (Arc::new(Open), Default::default());
        Self::with_disk((simulated, disk), gate, users, &options, topics, None)
    }

    fn with_membership(
        gate: Arc<dyn Gate>,
        users: Option<Arc<dyn Users>>,
        options: &journal::Options,
        topics: topic_service::Options,
        membership: Option<Arc<dyn Membership>>,
    ) -> Self {
        let disk = SimulatedDisk::new(7);
        let disks = (disk.clone(), Arc::new(disk) as Arc<dyn Disk>);
        Self::with_disk(disks, gate, users, options, topics, membership)
    }

    /// A bench whose journal is on the second disk.
    fn with_disk(
        (disk, journal_disk): (SimulatedDisk, Arc<dyn Disk>),
        gate: Arc<dyn Gate>,
        users: Option<Arc<dyn Users>>,
        options: &journal::Options,
        topics: topic_service::Options,
        membership: Option<Arc<dyn Membership>>,
    ) -> Self {
        let (storage, line, background) = stepped_storage(journal_disk, options);
        let journal = storage.journal.clone();
        let is_by_caller = options.commit == Commit::ByCaller;
        let committed_by_bench = is_by_caller.then(|| journal.clone());
        if is_by_caller {
            for shard in (0..journal.shard_count()).map(ShardId) {
                journal.begin_reign(shard, 1);
            }
        }
        let storage = StorageParts {
            topics,
            membership,
            ..storage
        };
        let clock = Arc::new(ManualClock::default());
        let offload = Arc::new(SwitchedOffload::default());
        let node = Node::open(Parts {
            offload: offload.clone(),
            ..Parts::with_storage(ports(clock.clone(), 1), storage)
        });
        let node = node.unwrap();
        let topics = node.topics().unwrap();
        let users = users.unwrap_or_else(|| Arc::new(topics.clone()));
        let options = Options {
            frame_size_max: 2 << 20,
            ..Options::default()
        };
        let door = Door::new(node.clone(), topics, gate, users, options);
        let mut bench = Self {
            node,
            disk,
            line,
            background,
            committed_by_bench,
            clock,
            offload,
            door,
        };
        bench.sync();
        bench
    }

    /// Everything that was appended is on disk now, and committed.
    pub(crate) fn sync(&mut self) {
        self.line.step();
        if let Some(journal) = &self.committed_by_bench {
            for shard in (0..journal.shard_count()).map(ShardId) {
                journal.commit(shard, journal.last(shard, Stage::Written));
            }
        }
        self.background.step(1_700_000_000_000);
    }

    /// A second passes, with all that is done in it.
    pub(crate) fn pass_second(&mut self) {
        self.clock.0.fetch_add(1_000_000_000, Ordering::Relaxed);
        self.node.sweep();
        for _ in 0..20 {
            self.line.step();
            self.background.step(self.clock.unix_ms());
        }
    }

    /// Empties the cache of the journal, and lets no read from disk complete.
    pub(crate) fn block_disk_reads(&mut self) {
        self.line.forget_tail();
        self.offload.switch_to(Arc::new(StalledExecutor));
    }

    pub(crate) fn connect(&self) -> Client {
        let (near, far) = net::inproc::pair("test");
        let door = self.door.clone();
        let local = "127.0.0.1:9092".parse().unwrap();
        tokio::spawn(async move {
            let stream = far;
            door.serve(Arrived { stream, local }).await;
        });
        Client::new(near)
    }

    /// A client, and a topic with one partition.
    pub(crate) async fn with_topic(&mut self, name: &str) -> Client {
        let mut client = self.connect();
        client.create_topic(name).await;
        self.connect().flush_requests().await;
        self.sync();
        client.created().await;
        client
    }
}

/// An executor that accepts work and never runs it.
struct StalledExecutor;

impl Offload for StalledExecutor {
    fn offload(&self, _: Work) -> Result<(), Overloaded> {
        Ok(())
    }
}

fn journal_options() -> journal::Options {
    journal::Options {
        segment_size: 4 << 20,
        ..door_testing::journal_options(1)
    }
}

/// One user.
pub(crate) struct SingleUser(Arc<User>);

impl SingleUser {
    pub(crate) fn new(name: &str, password: &str) -> Self {
        Self::with_rounds(name, password, 4_096)
    }

    /// A user whose password takes so many rounds to check.
    pub(crate) fn with_rounds(name: &str, password: &str, rounds: u32) -> Self {
        let iterations = NonZeroU32::new(rounds).unwrap();
        let user = Hash::ALL.into_iter().fold(User::new(name), |user, hash| {
            let salt = hash.name().as_bytes();
            user.with(hash, credential(hash, password, salt, iterations))
        });
        Self(Arc::new(user))
    }
}

impl Users for SingleUser {
    fn is_any(&self) -> bool {
        true
    }

    fn find(&self, name: &str) -> Option<Arc<User>> {
        (name == self.0.name).then(|| self.0.clone())
    }
}
