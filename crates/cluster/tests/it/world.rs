//! Three nodes, a client of each, and the checks.

mod copies;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cluster::{Key, Node, Settings};
use futures_util::future::BoxFuture;
use journal::disk::SimulatedDisk;
use journal::disk::simulated::Fate;
use journal::filing::Step;
use journal::record::{self, RecordKind};
use journal::{
    AppendError, Background, Commit, DecidedBlock, Index, Journal, Line, LineStep, Options, Reign,
    ShardId, Stage, Status, StreamId, Ticket,
};
use net::Stream;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::copies::Reports;
use crate::network::{Network, address};

pub(crate) const NODES: u64 = 3;
const SHARDS: u16 = 2;
const STREAMS: u64 = 3;
const CLUSTER: u64 = 0xC1;
const SEGMENT_SIZE: u64 = 128 << 10;

/// Limit on the time in which the nodes agree after all faults have ended.
const AGREE_MAX: Duration = Duration::from_secs(60);

/// A node with its disk.
struct Member {
    /// Its place, and so its address.
    id: u64,
    /// The id that it presents.
    presented: u64,
    disk: SimulatedDisk,
    starts: u64,
    /// What the other members have reported to it.
    reports: Reports,
    /// Milliseconds by which its clock is ahead.
    clock_ms: Arc<AtomicI64>,
    running: Option<Running>,
}

struct Running {
    journal: Arc<Journal>,
    node: Node,
    /// Longest time of a sync, in microseconds.
    sync_us: Arc<Mutex<u64>>,
    tasks: JoinSet<()>,
    /// Last block of each shard that was committed when it was checked.
    checked: [Index; SHARDS as usize],
}

/// Answers each call with its request.
struct Echo;

impl cluster::Services for Echo {
    fn answer(&self, _: u64, request: Bytes) -> BoxFuture<'static, Bytes> {
        Box::pin(std::future::ready(request))
    }

    fn pipe(&self, _: u64, stream: Stream) -> BoxFuture<'static, ()> {
        stream.sink.close();
        Box::pin(std::future::ready(()))
    }

    fn join(&self, stream: Stream) -> BoxFuture<'static, ()> {
        stream.sink.close();
        Box::pin(std::future::ready(()))
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

/// An append whose outcome is not known.
struct Waiting {
    id: u64,
    starts: u64,
    ticket: Ticket,
    stream: StreamId,
    offset: u64,
    payload: u64,
    /// Number of disks that the block must be on.
    quorum: usize,
}

pub(crate) struct World {
    pub(crate) rng: fastrand::Rng,
    pub(crate) network: Network,
    members: Vec<Member>,
    /// The nodes that begin the cluster are those with the lowest ids.
    founders: u64,
    start: Instant,
    payloads: u64,
    waiting: Vec<Waiting>,
    history: History,
}

/// Observations over all nodes.
#[derive(Default)]
struct History {
    /// Blocks by shard, index and term.
    blocks: BTreeMap<(u16, u64, u64), DecidedBlock>,
    committed: BTreeMap<(u16, u64), DecidedBlock>,
    leaders: BTreeMap<(u16, u64), u64>,
    /// Payloads of acknowledged appends, by shard, stream and offset.
    acked: BTreeMap<(u16, u64, u64), u64>,
    /// Payloads of appends that never took place.
    moved: BTreeSet<u64>,
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
        let new = |id| Member {
            id,
            presented: id,
            disk: SimulatedDisk::new(rng.u64(..)),
            starts: 0,
            reports: Reports::default(),
            clock_ms: Arc::default(),
            running: None,
        };
        let members = (1..=NODES).map(new).collect();
        let mut world = World {
            network: Network::new(rng.u64(..)),
            members,
            founders,
            rng,
            start: Instant::now(),
            payloads: 0,
            waiting: Vec::new(),
            history: History::default(),
        };
        for id in 1..=NODES {
            world.open(id).await;
        }
        world
    }

    fn member(&mut self, id: u64) -> &mut Member {
        &mut self.members[id as usize - 1]
    }

    /// Returns a running node.
    pub(crate) fn node(&self, id: u64) -> &Node {
        let running = self.members[id as usize - 1].running.as_ref();
        &running.expect("the node runs").node
    }

    /// Returns the reigns of a node over all shards, if it leads all.
    pub(crate) fn reigns(&self, id: u64) -> Option<Vec<(Reign, u64)>> {
        let shards = (0..SHARDS).map(ShardId);
        shards
            .map(|it| *self.node(id).reigns(it).borrow())
            .collect()
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
        self.members[id as usize - 1].running.is_some()
    }

    /// Starts a node on its disk.
    pub(crate) async fn open(&mut self, id: u64) {
        let entropy = self.rng.u64(..);
        let seed = self.rng.u64(..);
        let (network, start) = (self.network.clone(), self.start);
        let founders = self.founders;
        let member = self.member(id);
        let options = Options {
            journal_id: 100 + id,
            entropy,
            shard_count: SHARDS,
            segment_size: SEGMENT_SIZE,
            reserve_size: 0,
            hold_size: 1 << 40,
            commit: Commit::ByCaller,
            ..Options::default()
        };
        let disk = Arc::new(member.disk.clone());
        let opened = Journal::open_stepped(disk, &options).unwrap();
        let journal = Arc::new(opened.journal);
        let mut init = None;
        if member.starts == 0 && id <= founders {
            let members: Vec<_> = (1..=founders).map(self::member).collect();
            init = Some(members);
        }
        member.starts += 1;
        let mut tasks = JoinSet::new();
        let sync_us = Arc::new(Mutex::new(2000));
        let steps = step_disk(opened.line, opened.background, seed, sync_us.clone(), start);
        tasks.spawn(steps);
        if let Some(members) = init {
            cluster::init(&journal, &members, 1000).await.unwrap();
        }
        let settings = Settings {
            cluster: CLUSTER,
            id: member.presented,
            key: Key::new(&[7; 32]).unwrap(),
            entropy,
            settle: Duration::from_secs(2),
        };
        let clock_ms = member.clock_ms.clone();
        let now_ms = move || now_ms(start).saturating_add_signed(clock_ms.load(Ordering::Relaxed));
        let (dialer, reports) = (network.dialer(id), Box::new(member.reports.clone()));
        let calls = Arc::new(Echo);
        let node = Node::start(journal.clone(), settings, dialer, calls, reports, now_ms).await;
        let node = node.unwrap();
        network.set_acceptor(id, node.acceptor());
        self.member(id).running = Some(Running {
            journal,
            node,
            sync_us,
            tasks,
            checked: Default::default(),
        });
    }

    /// Stops a node without a word. A power failure also loses changes that are not synced.
    pub(crate) async fn stop(&mut self, id: u64, is_power_failure: bool) {
        self.network.remove(id);
        let Some(mut running) = self.member(id).running.take() else {
            return;
        };
        running.tasks.abort_all();
        let mut rng = self.rng.fork();
        let disk = &self.member(id).disk;
        match is_power_failure {
            true => disk.crash(&mut rng),
            false => disk.kill(),
        }
        // It may wait for the disk for ever.
        let _ = tokio::time::timeout(Duration::from_millis(1), running.node.stop()).await;
        self.waiting.retain(|it| it.id != id);
    }

    /// Sets the longest time of a node's syncs.
    pub(crate) fn set_sync(&mut self, id: u64, longest: Duration) {
        if let Some(running) = &self.member(id).running {
            *running.sync_us.lock() = longest.as_micros() as u64;
        }
    }

    /// Returns a node that believes that it leads a shard.
    pub(crate) fn leader(&self, shard: ShardId) -> Option<u64> {
        let is_leader = |it: &&Member| it.reign(shard).is_some();
        self.members.iter().find(is_leader).map(|it| it.id)
    }

    /// Lets clients write at every node that leads, for some time, with checks all the while.
    pub(crate) async fn run_for(&mut self, duration: Duration) {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            let shard = ShardId(self.rng.u16(..SHARDS));
            for id in 1..=NODES {
                self.write(id, shard);
            }
            let pause = self.rng.u64(..30_000);
            tokio::time::sleep(Duration::from_micros(pause)).await;
            self.check();
        }
    }

    fn write(&mut self, id: u64, shard: ShardId) {
        let member = &self.members[id as usize - 1];
        let Some(running) = &member.running else {
            return;
        };
        if member.reign(shard).is_none() {
            return;
        }
        let quorum = running.node.status(shard).voters.len() / 2 + 1;
        for _ in 0..self.rng.usize(1..4) {
            let mut guard = running.journal.lock(shard, now_ms(self.start));
            let stream = StreamId(self.rng.u64(..STREAMS));
            self.payloads += 1;
            let mut payload = vec![0; self.rng.usize(8..400)];
            payload[..8].copy_from_slice(&self.payloads.to_le_bytes());
            match guard.append(stream, None, 0, &payload) {
                Ok(appended) => self.waiting.push(Waiting {
                    id,
                    starts: member.starts,
                    ticket: appended.ticket,
                    stream,
                    offset: appended.offset,
                    payload: self.payloads,
                    quorum,
                }),
                Err(AppendError::Moved | AppendError::Full) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Checks all invariants.
    pub(crate) fn check(&mut self) {
        for member in &mut self.members {
            if let Some(running) = &mut member.running {
                for shard in (0..SHARDS).map(ShardId) {
                    let checked = &mut running.checked[usize::from(shard.0)];
                    self.history.check_blocks(&running.journal, shard, checked);
                    self.history.check_leader(&running.node, member.id, shard);
                }
            }
        }
        self.check_outcomes();
    }

    fn check_outcomes(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for one in waiting {
            let member = &self.members[one.id as usize - 1];
            let running = member.running.as_ref();
            let Some(running) = running.filter(|_| member.starts == one.starts) else {
                continue;
            };
            match running.journal.status(one.ticket) {
                Status::Pending => self.waiting.push(one),
                Status::Durable => {
                    if self.rng.u8(..20) == 0 {
                        self.check_quorum(&one);
                    }
                    let place = (one.ticket.shard.0, one.stream.0, one.offset);
                    let earlier = self.history.acked.insert(place, one.payload);
                    assert_eq!(earlier, None, "{place:?} was acked twice");
                }
                Status::Moved => drop(self.history.moved.insert(one.payload)),
                Status::Cut | Status::Failed => {}
            }
        }
    }

    /// Checks that an acknowledged block would survive a power failure of all nodes on a quorum.
    fn check_quorum(&self, acked: &Waiting) {
        let has_block = |member: &&Member| {
            let image = member.disk.fork();
            image.crash_with(|_| Fate::Lost);
            let options = Options {
                commit: Commit::ByCaller,
                shard_count: SHARDS,
                segment_size: 16 << 10,
                reserve_size: 0,
                ..Options::default()
            };
            let opened = Journal::open_stepped(Arc::new(image), &options).unwrap();
            let (shard, index) = (acked.ticket.shard, acked.ticket.index);
            if opened.journal.last_filed(shard).index >= index {
                return true;
            }
            let end = Index(index.0 + 1);
            let blocks = opened.journal.read_blocks(shard, index..end, 0).unwrap();
            blocks.iter().any(|block| {
                let mut records = record::records(&block.body).map_while(Result::ok);
                records.any(|(_, it)| {
                    (it.stream, it.offset) == (acked.stream, acked.offset)
                        && it.bytes[..8] == acked.payload.to_le_bytes()
                })
            })
        };
        let count = self.members.iter().filter(has_block).count();
        let (quorum, ticket) = (acked.quorum, acked.ticket);
        assert!(count >= quorum, "{ticket:?} was acked on {count} disks");
    }

    /// Ends all faults, and waits until all nodes have the same committed blocks. Checks them.
    pub(crate) async fn agree(&mut self) {
        self.network.heal();
        self.network.set_delay(Duration::from_micros(500));
        for id in 1..=NODES {
            if !self.is_running(id) {
                self.open(id).await;
            }
            self.set_sync(id, Duration::from_millis(2));
        }
        let end = Instant::now() + AGREE_MAX;
        // Something is written after the faults: the cluster serves again.
        let acked = self.history.acked.len();
        while self.history.acked.len() < acked + 20 {
            assert!(
                Instant::now() < end,
                "nothing is acked: {:?}",
                self.statuses()
            );
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
            shards.collect::<Vec<_>>().join("; ")
        };
        running.map(status).collect()
    }

    /// Lets all nodes file what all of them have, as the node that leads all shards knows it.
    pub(crate) async fn purge(&mut self) {
        let running = || self.members.iter().flat_map(|it| &it.running);
        let last = running().find_map(|it| it.node.acknowledged_by_all());
        if let Some(last) = last.filter(|_| running().count() == NODES as usize) {
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
            took: self.start.elapsed(),
        }
    }

    pub(crate) fn has_filed(&self) -> bool {
        let running = self.members.iter().flat_map(|it| &it.running);
        let filed = |it: &Running| it.journal.last_filed(ShardId(0)).index > Index(0);
        running.filter(|it| filed(it)).count() == NODES as usize
    }
}

impl Member {
    fn reign(&self, shard: ShardId) -> Option<Reign> {
        let running = self.running.as_ref()?;
        let reign = *running.node.reigns(shard).borrow();
        reign.map(|(reign, _)| reign)
    }
}

impl History {
    /// Checks a node's blocks after `checked` against those of all nodes.
    fn check_blocks(&mut self, journal: &Journal, shard: ShardId, checked: &mut Index) {
        let committed = journal.last(shard, Stage::Committed);
        assert!(committed >= *checked);
        let first = journal.last_filed(shard).index.max(*checked);
        *checked = committed;
        let first = Index(first.0 + 1);
        let blocks = journal.read_blocks(shard, first..Index(u64::MAX), usize::MAX);
        for block in blocks.unwrap() {
            let place = (shard.0, block.index.0, block.term);
            let seen = self.blocks.entry(place).or_insert_with(|| block.clone());
            assert_eq!(*seen, block, "two blocks at {place:?}");
            let place = (shard.0, block.index.0);
            if block.index <= committed {
                let seen = self.committed.entry(place).or_insert_with(|| block.clone());
                assert_eq!(*seen, block, "a committed block has changed");
            }
        }
    }

    /// Checks that a term has one leader.
    fn check_leader(&mut self, node: &Node, id: u64, shard: ShardId) {
        let status = node.status(shard);
        if status.is_leader {
            let place = (shard.0, status.term);
            let leader = *self.leaders.entry(place).or_insert(id);
            assert_eq!(leader, id, "two leaders in term {place:?}");
        }
    }

    /// Checks that the committed blocks have each acknowledged record once, offsets without a gap,
    /// and nothing that never took place.
    fn check_records(&self) {
        let mut nexts = BTreeMap::new();
        let mut payloads = BTreeSet::new();
        let mut found = BTreeMap::new();
        for ((shard, _), block) in &self.committed {
            let records = record::records(&block.body).map(Result::unwrap);
            let data = records.filter(|(_, it)| {
                it.kind == RecordKind::Data
                    && it.stream != journal::MEMBERS_STREAM
                    && it.stream != cluster::IDS_STREAM
            });
            for (_, record) in data {
                let next: &mut u64 = nexts.entry((*shard, record.stream.0)).or_default();
                assert_eq!(record.offset, *next, "a gap");
                *next += 1;
                let mut payload = [0; 8];
                payload.copy_from_slice(&record.bytes[..8]);
                let payload = u64::from_le_bytes(payload);
                assert!(payloads.insert(payload), "{payload} is there twice");
                assert!(!self.moved.contains(&payload), "{payload} never took place");
                found.insert((*shard, record.stream.0, record.offset), payload);
            }
        }
        for (place, payload) in &self.acked {
            assert_eq!(found.get(place), Some(payload), "{place:?} was acked");
        }
    }
}

/// Writes, syncs and files, each after some time.
async fn step_disk(
    mut line: Line,
    mut background: Background,
    seed: u64,
    sync_us: Arc<Mutex<u64>>,
    start: Instant,
) {
    let mut rng = fastrand::Rng::with_seed(seed);
    loop {
        let longest = *sync_us.lock();
        tokio::time::sleep(Duration::from_micros(rng.u64(100..=longest.max(100)))).await;
        let step = line.step();
        assert_ne!(step, LineStep::Failed);
        if rng.u8(..4) == 0 {
            let step = background.step(now_ms(start));
            assert_ne!(step, Step::Failed);
        }
    }
}

fn now_ms(start: Instant) -> u64 {
    1_700_000_000_000 + start.elapsed().as_millis() as u64
}
