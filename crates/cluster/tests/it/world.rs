//! Nodes, their disks and links, and clients, in one process with a clock that jumps.

mod copies;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use cluster::{Image, JoinError, Joined, Key, Node, Settings};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use journal::disk::simulated::Fate;
use journal::disk::{Disk, SimulatedDisk};
use journal::{
    Commit, Index, Journal, Options, Reign, ShardId, Stage, StreamId, Ticket, backup, record,
};
use net::Stream;
use net::simulated::{Network, Weather};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::copies::Reports;
use crate::clients::{Service, Waiting, serve};
use crate::disk::{DiskState, SYNC, repair, step_disk};
use crate::history::{History, numbers};
use crate::links::{Links, address, host};

pub(crate) const NODES: u64 = 3;
pub(crate) const SHARDS: u16 = 2;
const CLUSTER: u64 = 0xC1;
const SEGMENT_SIZE: u64 = 128 << 10;

/// Limit on the time in which the nodes agree after all faults have ended.
const AGREE_MAX: Duration = Duration::from_secs(60);

/// Time for which the leader of shard 0 is the same before it leads the other shards too.
const SETTLE: Duration = Duration::from_millis(200);

/// Pause between two writes of the clients at most, in microseconds.
const PAUSE_US_MAX: u64 = 40_000;

/// Share of the acknowledgements that are checked against the disks, as one in so many, by default.
const QUORUM_CHECKS: u8 = 60;

/// A node with its disk.
pub(crate) struct Member {
    pub(crate) id: u64,
    host: String,
    disk: SimulatedDisk,
    /// The reports of the other members.
    reports: Reports,
    pub(crate) starts: u64,
    pub(crate) running: Option<Running>,
    clock: Clock,
}

/// The clock of a node.
#[derive(Clone)]
struct Clock {
    start: Instant,
    skew_ms: Arc<AtomicI64>,
}

impl Clock {
    fn now_ms(&self) -> u64 {
        let elapsed = self.start.elapsed().as_millis() as u64;
        (1_700_000_000_000 + elapsed).saturating_add_signed(self.skew_ms.load(Ordering::Relaxed))
    }
}

pub(crate) struct Running {
    pub(crate) journal: Arc<Journal>,
    pub(crate) node: Arc<Node>,
    pub(crate) disk: Arc<Mutex<DiskState>>,
    pub(crate) service: Arc<Mutex<Option<Service>>>,
    tasks: JoinSet<()>,
    /// Last block of each shard that was committed when it was checked.
    checked: [Index; SHARDS as usize],
}

/// Answers each call with its request, and admits new members.
struct MemberServices {
    node: OnceLock<std::sync::Weak<Node>>,
    disk: SimulatedDisk,
    clock: Clock,
}

/// An image of a journal on a disk of its own.
struct DiskImage(SimulatedDisk);

impl Image for DiskImage {
    fn disk(&self) -> &dyn Disk {
        &self.0
    }
}

impl cluster::Services for MemberServices {
    fn answer(&self, _: u64, request: Bytes) -> BoxFuture<'static, Bytes> {
        Box::pin(std::future::ready(request))
    }

    fn pipe(&self, _: u64, stream: Stream) -> BoxFuture<'static, ()> {
        stream.sink.close();
        Box::pin(std::future::ready(()))
    }

    fn join(&self, stream: Stream) -> BoxFuture<'static, ()> {
        let node = self.node.get().and_then(std::sync::Weak::upgrade).unwrap();
        let (disk, now_ms) = (self.disk.clone(), self.clock.now_ms());
        Box::pin(async move {
            let image = move || {
                let image = SimulatedDisk::new(1);
                let no_link = |_: &str| Err(std::io::ErrorKind::Unsupported.into());
                backup::copy(&disk, &image, &no_link).map_err(std::io::Error::other)?;
                Ok(Box::new(DiskImage(image)) as Box<dyn Image>)
            };
            // The newcomer sees the failure.
            let _ = node.admit(stream, now_ms, image).await;
        })
    }
}

/// Returns a node as a member.
pub(crate) fn member(id: u64) -> cluster::Member {
    cluster::Member {
        id,
        addresses: cluster::Addresses {
            link: address(id),
            ..cluster::Addresses::default()
        },
    }
}

fn key() -> Key {
    Key::new(&[7; 32]).unwrap()
}

pub(crate) struct World {
    pub(crate) rng: fastrand::Rng,
    pub(crate) links: Links,
    pub(crate) members: Vec<Member>,
    /// The nodes that begin the cluster are those with the lowest ids.
    founders: u64,
    start: Instant,
    pub(crate) payloads: u64,
    pub(crate) waiting: Vec<Waiting>,
    /// Share of the acknowledgements that are checked against the disks, as one in so many.
    pub(crate) quorum_checks: u8,
    pub(crate) history: History,
}

/// Figures of a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) payloads: u64,
    pub(crate) acked: usize,
    /// Terms with a leader, of all shards.
    pub(crate) elections: usize,
    /// Blocks by shard, index and term.
    pub(crate) blocks: usize,
    /// Records that were read.
    pub(crate) reads: usize,
    /// Simulated time.
    pub(crate) took: Duration,
}

impl World {
    /// Starts three nodes that begin a cluster together.
    pub(crate) async fn start(seed: u64) -> World {
        World::start_with(seed, NODES).await
    }

    /// Starts nodes, of which so many begin the cluster. The others have empty logs and are no
    /// members.
    pub(crate) async fn start_with(seed: u64, founders: u64) -> World {
        let mut rng = fastrand::Rng::with_seed(seed);
        let start = Instant::now();
        let members = (1..=NODES).map(|id| Member::new(id, host(id), rng.u64(..), start));
        let members = members.collect();
        let network = Network::new(rng.u64(..), Weather::CALM);
        let mut world = World {
            links: Links::new(network),
            members,
            founders,
            rng,
            start,
            payloads: 0,
            waiting: Vec::new(),
            quorum_checks: QUORUM_CHECKS,
            history: History::default(),
        };
        for id in 1..=NODES {
            world.open(id).await;
        }
        world
    }

    pub(crate) fn member(&self, id: u64) -> &Member {
        let member = self.members.iter().find(|it| it.id == id);
        member.expect("there is such a node")
    }

    fn member_mut(&mut self, id: u64) -> &mut Member {
        let member = self.members.iter_mut().find(|it| it.id == id);
        member.expect("there is such a node")
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.members.iter().map(|it| it.id).collect()
    }

    pub(crate) fn running(&self, id: u64) -> &Running {
        self.member(id).running.as_ref().expect("the node runs")
    }

    /// Returns a running node.
    pub(crate) fn node(&self, id: u64) -> &Arc<Node> {
        &self.running(id).node
    }

    /// Returns the reigns of a node over all shards, if it leads all.
    pub(crate) fn reigns(&self, id: u64) -> Option<Vec<(Reign, u64)>> {
        let shards = (0..SHARDS).map(ShardId);
        shards
            .map(|it| *self.node(id).reigns(it).borrow())
            .collect()
    }

    /// Returns the node whose service is open, if there is one.
    pub(crate) fn serving(&self) -> Option<u64> {
        let serves = |it: &&Member| {
            let running = it.running.as_ref();
            running.is_some_and(|it| it.service.lock().is_some())
        };
        self.members.iter().find(serves).map(|it| it.id)
    }

    /// Returns the voters of each shard, as a node knows them.
    pub(crate) fn voters(&self, id: u64) -> Vec<Vec<u64>> {
        let shards = (0..SHARDS).map(ShardId);
        shards.map(|it| self.node(id).status(it).voters).collect()
    }

    /// Runs until the voters of all shards are these, as a node knows them.
    pub(crate) async fn run_until_voters(&mut self, id: u64, voters: &[u64]) {
        let end = Instant::now() + AGREE_MAX;
        while self.voters(id).iter().any(|it| it != voters) {
            assert!(Instant::now() < end, "{:?}", self.statuses());
            self.run_for(Duration::from_millis(100)).await;
        }
    }

    pub(crate) fn is_running(&self, id: u64) -> bool {
        self.member(id).running.is_some()
    }

    /// Starts a node on its disk.
    pub(crate) async fn open(&mut self, id: u64) {
        let entropy = self.rng.u64(..);
        let seed = self.rng.u64(..);
        let (links, founders) = (self.links.clone(), self.founders);
        let member = self.member_mut(id);
        repair(&member.disk);
        let options = member.options(entropy);
        let disk = Arc::new(member.disk.clone());
        let opened = Journal::open_stepped(disk, &options).unwrap();
        let journal = Arc::new(opened.journal);
        let is_first = member.starts == 0 && id <= founders;
        member.starts += 1;
        let mut tasks = JoinSet::new();
        let state = DiskState::new();
        let clock = member.clock.clone();
        let steps = {
            let clock = clock.clone();
            let now_ms = move || clock.now_ms();
            step_disk(opened.line, opened.background, seed, state.clone(), now_ms)
        };
        tasks.spawn(steps);
        if is_first {
            let members: Vec<_> = (1..=founders).map(self::member).collect();
            cluster::init(&journal, &members, 1000).await.unwrap();
        }
        let settings = Settings {
            cluster: CLUSTER,
            id,
            key: key(),
            entropy,
            settle: SETTLE,
        };
        let services = Arc::new(MemberServices {
            node: OnceLock::new(),
            disk: member.disk.clone(),
            clock: clock.clone(),
        });
        let now_ms = move || clock.now_ms();
        let (dialer, reports) = (links.dialer(member.host.clone()), member.reports.clone());
        let reports = Box::new(reports);
        let calls = services.clone();
        let node = Node::start(journal.clone(), settings, dialer, calls, reports, now_ms).await;
        let node = Arc::new(node.unwrap());
        let _ = services.node.set(Arc::downgrade(&node));
        links.listen(member.host.clone(), node.acceptor());
        let service = Arc::default();
        tasks.spawn(serve(node.clone(), journal.clone(), Arc::clone(&service)));
        member.running = Some(Running {
            journal,
            node,
            disk: state,
            service,
            tasks,
            checked: Default::default(),
        });
    }

    /// Stops a node without a word. A power failure also loses changes that are not synced.
    pub(crate) async fn stop(&mut self, id: u64, is_power_failure: bool) {
        self.end(id, is_power_failure);
        // What is left of its tasks ends.
        tokio::task::yield_now().await;
    }

    /// Cuts the power of all nodes at one moment.
    pub(crate) async fn cut_power(&mut self) {
        for id in self.ids() {
            self.end(id, true);
        }
        tokio::task::yield_now().await;
    }

    fn end(&mut self, id: u64, is_power_failure: bool) {
        let mut rng = self.rng.fork();
        let links = self.links.clone();
        let member = self.member_mut(id);
        links.remove(&member.host);
        let Some(mut running) = member.running.take() else {
            return;
        };
        running.tasks.abort_all();
        match is_power_failure {
            true => member.disk.crash(&mut rng),
            false => member.disk.kill(),
        }
        repair(&member.disk);
        let node = running.node;
        let mut stopping = Box::pin(async move { node.stop().await });
        // Consensus may wait for the disk for ever.
        if (&mut stopping).now_or_never().is_none() {
            tokio::spawn(stopping);
        }
        self.waiting.retain(|it| it.id != id);
    }

    /// Puts a disk into a node that does not run.
    pub(crate) fn put_back(&mut self, id: u64, image: SimulatedDisk) {
        assert!(!self.is_running(id), "the disk is in use");
        self.member_mut(id).disk = image;
    }

    /// Adds a node with an empty disk at the host of another, which does not run. It does not run.
    pub(crate) fn add_empty(&mut self, id: u64, host: String) {
        let seed = self.rng.u64(..);
        let member = Member::new(id, host, seed, self.start);
        self.members.push(member);
    }

    /// Removes a node that does not run from the world.
    pub(crate) fn forget(&mut self, id: u64) {
        assert!(!self.is_running(id), "the node runs");
        self.members.retain(|it| it.id != id);
    }

    /// Lets a node with an empty disk at a host ask another to become a member. Writes the image that
    /// it gets to `disk`.
    pub(crate) async fn join(
        &self,
        host: &str,
        contact: u64,
        disk: &SimulatedDisk,
    ) -> Result<Joined, JoinError> {
        let dialer = self.links.dialer(host.to_owned());
        let addresses = cluster::Addresses {
            link: format!("{host}:7402"),
            ..cluster::Addresses::default()
        };
        let disk = Arc::new(disk.clone());
        cluster::join(
            &*dialer,
            &address(contact),
            &key(),
            &addresses,
            disk,
            |_| {},
        )
        .await
    }

    /// Sets the difference of a node's clock to the true time.
    pub(crate) fn set_skew(&self, id: u64, skew_ms: i64) {
        let clock = &self.member(id).clock;
        clock.skew_ms.store(skew_ms, Ordering::Relaxed);
    }

    /// Sets the longest time of a node's syncs.
    pub(crate) fn set_sync(&mut self, id: u64, longest: Duration) {
        if let Some(running) = &self.member(id).running {
            running.disk.lock().sync = longest;
        }
    }

    /// Lets no call of a node's disk return any more.
    pub(crate) fn hang(&mut self, id: u64) {
        if let Some(running) = &self.member(id).running {
            running.disk.lock().is_hanging = true;
        }
    }

    /// Returns the disk of a node.
    pub(crate) fn disk(&self, id: u64) -> &SimulatedDisk {
        &self.member(id).disk
    }

    /// Lets clients use the nodes for some time, with checks all the while.
    pub(crate) async fn run_for(&mut self, duration: Duration) {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            self.use_nodes();
            let pause = Duration::from_micros(self.rng.u64(..PAUSE_US_MAX));
            tokio::time::sleep(pause.min(end - Instant::now())).await;
            self.check();
            self.end_failed().await;
        }
    }

    /// Runs until a condition holds.
    pub(crate) async fn run_until(&mut self, what: &str, is_met: impl Fn(&World) -> bool) {
        let end = Instant::now() + AGREE_MAX;
        while !is_met(self) {
            assert!(Instant::now() < end, "{what}: {:?}", self.statuses());
            self.run_for(Duration::from_millis(10)).await;
        }
    }

    /// Ends the processes of nodes whose disks have failed.
    async fn end_failed(&mut self) {
        for id in self.ids() {
            let running = self.member(id).running.as_ref();
            if running.is_some_and(|it| it.disk.lock().has_failed) {
                self.stop(id, false).await;
            }
        }
    }

    /// Checks all invariants.
    pub(crate) fn check(&mut self) {
        for member in &mut self.members {
            if let Some(running) = &mut member.running
                && !running.disk.lock().has_failed
            {
                for shard in (0..SHARDS).map(ShardId) {
                    let checked = &mut running.checked[usize::from(shard.0)];
                    self.history.check_blocks(&running.journal, shard, checked);
                    let leader = (member.id, member.starts);
                    self.history.check_leader(&running.node, leader, shard);
                }
            }
        }
        self.check_outcomes();
    }

    /// Ends all faults.
    pub(crate) async fn heal(&mut self) {
        self.links.network.heal();
        self.links.network.set_weather(Weather::CALM);
        for id in self.ids() {
            self.set_skew(id, 0);
            if !self.is_running(id) {
                self.open(id).await;
            }
            repair(self.disk(id));
            let mut state = self.running(id).disk.lock();
            (state.sync, state.is_hanging) = (SYNC, false);
        }
    }

    /// Ends all faults, and waits until all nodes have the same committed blocks. Checks them.
    pub(crate) async fn agree(&mut self) {
        self.heal().await;
        let end = Instant::now() + AGREE_MAX;
        // Something is written after the faults, also by a service: the cluster serves again.
        let acked = self.acked();
        while self.acked() < acked + 20 || self.serving().is_none() {
            let statuses = self.statuses();
            assert!(Instant::now() < end, "nothing is acked: {statuses:?}");
            self.run_for(Duration::from_millis(100)).await;
        }
        while !self.is_agreed() {
            assert!(Instant::now() < end, "no agreement: {:?}", self.statuses());
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.check();
        }
        self.history.check_records();
    }

    fn is_agreed(&self) -> bool {
        (0..SHARDS).map(ShardId).all(|shard| {
            let mut ends = self.members.iter().flat_map(|it| &it.running).map(|it| {
                let last = it.journal.last_taken(shard);
                let committed = it.journal.last(shard, Stage::Committed);
                (last, committed, last.index == committed)
            });
            let first = ends.next();
            first.is_some_and(|first| first.2 && ends.all(|end| end == first))
        })
    }

    fn statuses(&self) -> Vec<String> {
        let running = self.members.iter().flat_map(|it| &it.running);
        let status = |it: &Running| {
            let shards = (0..SHARDS).map(ShardId).map(|shard| {
                let last = it.journal.last_taken(shard);
                let committed = it.journal.last(shard, Stage::Committed);
                format!("{:?} {last:?} {committed:?}", it.node.status(shard))
            });
            let health = it.journal.health();
            let failure = it.node.failure();
            let shards = shards.collect::<Vec<_>>().join("; ");
            format!("{shards} {health:?} {failure:?}")
        };
        running.map(status).collect()
    }

    /// Lets all nodes file what all of them have, as the node that leads all shards knows it.
    pub(crate) async fn purge(&mut self) {
        let running = || self.members.iter().flat_map(|it| &it.running);
        let last = running().find_map(|it| it.node.acknowledged_by_all());
        if let Some(last) = last.filter(|_| running().count() == self.members.len()) {
            for it in running() {
                it.node.purge_segments(&last, u64::MAX, SEGMENT_SIZE).await;
            }
        }
    }

    pub(crate) fn acked(&self) -> usize {
        self.history.acked.len()
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            payloads: self.payloads,
            acked: self.acked(),
            elections: self.history.leaders.len(),
            blocks: self.history.blocks.len(),
            reads: self.history.reads.len(),
            took: self.start.elapsed(),
        }
    }

    pub(crate) fn has_filed(&self) -> bool {
        let running = self.members.iter().flat_map(|it| &it.running);
        let filed = |it: &Running| it.journal.last_filed(ShardId(0)).index > Index(0);
        running.filter(|it| filed(it)).count() == self.members.len()
    }
}

impl Member {
    fn new(id: u64, host: String, seed: u64, start: Instant) -> Member {
        Member {
            id,
            host,
            disk: SimulatedDisk::new(seed),
            reports: Reports::default(),
            starts: 0,
            running: None,
            clock: Clock {
                start,
                skew_ms: Arc::default(),
            },
        }
    }

    /// Returns the time of the node's clock, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn options(&self, entropy: u64) -> Options {
        Options {
            journal_id: 100 + self.id,
            entropy,
            shard_count: SHARDS,
            segment_size: SEGMENT_SIZE,
            reserve_size: 0,
            hold_size: 1 << 40,
            commit: Commit::ByCaller,
            ..Options::default()
        }
    }

    /// Returns whether a record of a block would survive a power failure now.
    pub(crate) fn has_on_disk(
        &self,
        ticket: Ticket,
        stream: StreamId,
        offset: u64,
        payload: u64,
    ) -> bool {
        let image = self.disk.fork();
        image.crash_with(|_| Fate::Lost);
        let options = self.options(1);
        let Ok(opened) = Journal::open_stepped(Arc::new(image), &options) else {
            return false;
        };
        let (shard, index) = (ticket.shard, ticket.index);
        if opened.journal.last_filed(shard).index >= index {
            return true;
        }
        let end = Index(index.0 + 1);
        let blocks = opened.journal.read_blocks(shard, index..end, 0).unwrap();
        blocks.iter().any(|block| {
            let mut records = record::records(&block.body).map_while(Result::ok);
            records.any(|(_, it)| {
                (it.stream, it.offset) == (stream, offset) && numbers(it.bytes).0 == payload
            })
        })
    }
}
