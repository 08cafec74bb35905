//! A node of a cluster: its shards, and the links to its peers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use journal::{Index, Journal, Reign, ShardId, Stage};
use net::Stream;
use openraft::{ChangeMembers, Config, SnapshotPolicy};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clock::{ClockStatus, Clocks};
use crate::group::{ChangeError, Group, PeerStatus, ShardStatus};
use crate::link::{
    Admission, CallError, CallServer, Dialer, HandshakeError, Identity, Key, Network, Outdated,
    OutdatedError, Peers, ReportFile, Reports, Server, Services,
};
use crate::member::{Addresses, Member};
use crate::pauses::Pauses;
use crate::raft::{LogError, Machine, Raft, Runtime, ShardLog, Store};
use crate::report::{self, voters};
use crate::{reign, tend};

/// Interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Bounds of an election's random timeout. A follower waits for the upper one first, as a lease.
const ELECTION_MIN: Duration = Duration::from_millis(400);
const ELECTION_MAX: Duration = Duration::from_millis(800);

/// The lease of a leader: no other member leads before so long a time has passed without its heartbeats.
pub const LEASE: Duration = ELECTION_MAX;

/// A member counts towards the quorum that a removal leaves if it answered and had everything at most so
/// long ago.
const UP_TO_DATE_MAX: Duration = Duration::from_secs(2);

/// Pause between two looks at a hand-over.
const HAND_OVER_POLL: Duration = Duration::from_millis(20);

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cluster: the journal id of its founder.
    pub cluster: u64,
    /// The node's id, which no other node of the cluster ever had.
    pub id: u64,
    /// The key that all nodes share.
    pub key: Key,
    /// A random number, different at each start. Election timeouts follow from it.
    pub entropy: u64,
    /// Time for which the leader of shard 0 must be the same before the leaderships of the other
    /// shards follow it.
    pub settle: Duration,
}

/// A node that cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A shard's log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file with what the members have reported cannot be read.
    #[error("the file with the reports of the members cannot be read: {0}")]
    Reports(std::io::Error),
    /// The consensus of a shard cannot start.
    #[error("the consensus of shard {} cannot start: {error}", shard.0)]
    Consensus {
        /// The shard.
        shard: ShardId,
        /// The error.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A node that takes part in a cluster. Dropping it ends its part at once, without a hand-over.
pub struct Node {
    /// Held while blocks are purged, and while a new member is added and its image is made.
    pub(crate) purging: tokio::sync::Mutex<()>,
    journal: Arc<Journal>,
    cluster: u64,
    id: u64,
    peers: Arc<Peers>,
    groups: Arc<[Group]>,
    clocks: Arc<Clocks>,
    admission: Arc<Admission>,
    tasks: parking_lot::Mutex<JoinSet<()>>,
}

/// Serves connections that peers have dialed.
#[derive(Clone)]
pub struct Acceptor(Arc<Peers>);

impl Acceptor {
    /// Serves a connection until it ends.
    pub async fn accept(&self, stream: Stream) -> Result<(), HandshakeError> {
        self.0.accept(stream).await
    }
}

impl Node {
    /// Starts the consensus of all shards of a journal, which must have been opened with
    /// [`journal::Commit::ByCaller`]. `now_ms` returns the milliseconds since 1970.
    pub async fn start(
        journal: Arc<Journal>,
        settings: Settings,
        dialer: Box<dyn Dialer>,
        services: Arc<dyn Services>,
        reports: Box<dyn ReportFile>,
        now_ms: impl Fn() -> u64 + Clone + Send + Sync + 'static,
    ) -> Result<Node, StartError> {
        let own = Identity {
            cluster: settings.cluster,
            id: settings.id,
            life: journal.life(),
        };
        let reports = Reports::open(settings.cluster, settings.id, reports);
        let reports = reports.map_err(StartError::Reports)?;
        let clocks = Clocks::new(now_ms.clone());
        let logs = (0..journal.shard_count()).map(|shard| {
            let clocks = clocks.clone();
            ShardLog::open(journal.clone(), ShardId(shard), move || clocks.entry_ms())
        });
        let logs = logs.collect::<Result<Vec<_>, _>>()?;
        let admission = Arc::new(Admission::new(own, logs.clone(), reports.clone()));
        let pauses = Pauses::new();
        let calls = CallServer::new(services);
        let server = Server::new(calls, reports.clone(), pauses.clone(), now_ms);
        let server = Arc::new(server);
        let peers = Peers::new(own, settings.key, dialer, server.clone(), admission.clone());
        let config = Arc::new(config(settings.cluster));
        let (mut groups, mut tasks) = (Vec::new(), JoinSet::new());
        for log in logs {
            let shard = log.shard;
            let machine = Machine::new(log.clone())?;
            let applied = machine.applied();
            let network = Network::new(peers.clone(), shard);
            let store = Store::new(log.clone());
            let seed = settings.entropy.wrapping_add(u64::from(shard.0));
            let building = Raft::build(settings.id, config.clone(), network, store, machine);
            let built = Runtime::scope(seed, building).await;
            let raft = built.map_err(|error| StartError::Consensus {
                shard,
                error: Box::new(error),
            })?;
            let (sender, reigns) = watch::channel(None);
            let gate = Arc::new(tokio::sync::Mutex::new(()));
            let group = Group::new(raft.clone(), log.clone(), reigns, gate.clone());
            let bell = group.bell.clone();
            let clocks = clocks.clone();
            tasks.spawn(reign::lead(raft, log, applied, bell, gate, clocks, sender));
            groups.push(group);
        }
        let groups: Arc<[Group]> = groups.into();
        let bells: Vec<_> = groups.iter().map(|it| it.bell.clone()).collect();
        tasks.spawn(ring(journal.clone(), bells));
        tasks.spawn(pauses.tick_for_ever());
        tasks.spawn(tend::tend(
            groups.clone(),
            peers.clone(),
            clocks.clone(),
            settings.id,
            settings.settle,
        ));
        let reporting = report::report(groups.clone(), peers.clone(), clocks.clone(), settings.id);
        tasks.spawn(reporting);
        let first = groups.clone();
        let members = move || first[0].membership().0.nodes().map(|(id, _)| *id).collect();
        tasks.spawn(reports.write_for_ever(members));
        server.set_shards(groups.iter().map(|it| it.raft.clone()).collect());
        // Tasks inherit their random numbers from the task that starts them.
        Runtime::scope(settings.entropy, async {
            groups.iter().for_each(|it| it.raft.run());
        })
        .await;
        Ok(Node {
            purging: tokio::sync::Mutex::default(),
            journal,
            cluster: settings.cluster,
            id: settings.id,
            peers,
            groups,
            clocks,
            admission,
            tasks: parking_lot::Mutex::new(tasks),
        })
    }

    /// Returns what serves the connections that peers dial.
    pub fn acceptor(&self) -> Acceptor {
        Acceptor(self.peers.clone())
    }

    /// Returns the current reign of this node over a shard and its term, as they change.
    ///
    /// # Panics
    ///
    /// Panics if there is no such shard, as do all methods.
    pub fn reigns(&self, shard: ShardId) -> watch::Receiver<Option<(Reign, u64)>> {
        self.group(shard).reigns.clone()
    }

    /// Returns why the consensus of a shard has ended, if one has. The node must be started again.
    pub fn failure(&self) -> Option<String> {
        self.groups.iter().find_map(Group::failure)
    }

    /// Returns why this node takes no part, as soon as a member has found out that it has lost data.
    /// The node neither votes nor answers then, and must be stopped.
    pub fn outdated(&self) -> watch::Receiver<Option<Outdated>> {
        self.admission.outdated()
    }

    /// Returns the members that this node does not admit because they have lost data.
    pub fn outdated_members(&self) -> BTreeMap<u64, OutdatedError> {
        self.admission.refused()
    }

    /// Returns how far the clocks of the members are apart.
    pub fn clocks(&self) -> ClockStatus {
        self.clocks.status()
    }

    /// Returns the longest time since a quorum last answered this node, of the shards that it leads.
    pub fn quorum_age(&self) -> Option<Duration> {
        self.groups.iter().filter_map(Group::quorum_age).max()
    }

    /// Ends reigns of this node, one per shard, so that services can be opened anew: each after
    /// everything that it decided is committed. If the node still leads a shard, its next reign
    /// begins in the same term; until then nothing is decided.
    pub async fn renew(&self, reigns: &[(Reign, u64)]) {
        let groups = self.groups.iter().zip(reigns);
        let renewed = groups.map(|(group, (reign, _))| group.renew(*reign));
        futures_util::future::join_all(renewed).await;
    }

    /// Returns a shard's part in the consensus.
    pub fn status(&self, shard: ShardId) -> ShardStatus {
        self.group(shard).status()
    }

    /// Returns the node's part in the consensus of each shard.
    pub fn statuses(&self) -> Vec<ShardStatus> {
        self.groups.iter().map(Group::status).collect()
    }

    /// Returns the bytes of a shard's committed blocks that are not known to be on the disk of a peer,
    /// without those that this node has filed.
    pub fn behind_bytes(&self, shard: ShardId, peer: &PeerStatus) -> u64 {
        let acknowledged = peer.acknowledged.unwrap_or_default();
        let committed = self.journal.last(shard, Stage::Committed);
        self.journal.unfiled_bytes(shard, acknowledged, committed)
    }

    /// Returns all members, by id, as shard 0 knows them.
    pub fn members(&self) -> Vec<Member> {
        let (membership, _) = self.group(ShardId(0)).membership();
        let member = |(id, addresses): (&u64, &Addresses)| Member {
            id: *id,
            addresses: addresses.clone(),
        };
        membership.nodes().map(member).collect()
    }

    /// Adds a member without a vote. It gets one when it has caught up with the others, if the number
    /// of voters is odd then.
    pub async fn add(&self, member: Member) -> Result<(), ChangeError> {
        let nodes = [(member.id, member.addresses)].into();
        let change = ChangeMembers::AddNodes(nodes);
        self.group(ShardId(0)).change(change).await
    }

    /// Removes a member. Refused if the remaining voters that are up to date are not a quorum.
    pub async fn remove(&self, id: u64) -> Result<(), ChangeError> {
        let refused = |reason: String| Err(ChangeError::Refused { reason });
        let group = self.group(ShardId(0));
        let status = group.status();
        let change = match () {
            () if status.learners.contains(&id) => ChangeMembers::RemoveNodes([id].into()),
            () if !status.voters.contains(&id) => {
                return refused(format!("no member has the id {id}"));
            }
            () if status.is_leader && id == self.id => {
                return refused(format!(
                    "node {id} leads the cluster and cannot remove itself; restart it, so that another \
                     one leads"
                ));
            }
            () => {
                let rest = status.voters.iter().filter(|it| **it != id);
                let up_to_date = |it: &&u64| {
                    let mut shards = self.statuses().into_iter();
                    shards.all(|shard| shard.in_sync_within(self.id, UP_TO_DATE_MAX).contains(it))
                };
                let count = rest.clone().count();
                if rest.filter(up_to_date).count() * 2 <= count {
                    return refused(format!(
                        "without node {id}, no quorum of the members is up to date; start the members \
                         that are behind first"
                    ));
                }
                ChangeMembers::RemoveVoters([id].into())
            }
        };
        group.change(change).await
    }

    /// Calls another member. The outcome of an [unknown](CallError::Unknown) call is not known.
    pub async fn call(&self, to: u64, request: Bytes, limit: Duration) -> Result<Bytes, CallError> {
        let members = self.members();
        let Some(member) = members.iter().find(|member| member.id == to) else {
            return Err(CallError::NotSent);
        };
        self.peers
            .call(to, &member.addresses.link, request, limit)
            .await
    }

    /// Passes the leadership of all shards to other members that are up to date, as far as there are
    /// any, and waits for that.
    pub async fn hand_over(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut asked = BTreeSet::new();
        loop {
            let led: Vec<_> = self.groups.iter().filter(|it| it.is_leader()).collect();
            if led.is_empty() || Instant::now() >= deadline {
                return;
            }
            for group in led {
                let status = group.status();
                let may_lead = |it: &&u64| {
                    **it != self.id
                        && group.is_near(**it, 0)
                        && self.clocks.can_take_over(**it, self.id, &voters(group))
                };
                if let Some(to) = status.voters.iter().find(may_lead)
                    && asked.insert(group.shard())
                {
                    // Fails only after the end of openraft's task.
                    let _ = group.raft.trigger().transfer_leader(*to).await;
                }
            }
            tokio::time::sleep(HAND_OVER_POLL).await;
        }
    }

    /// Returns the last block of each shard that all members have on disk and that is committed;
    /// `None` unless this node leads all shards.
    pub fn acknowledged_by_all(&self) -> Option<Vec<Index>> {
        let acknowledged = |group: &Group| {
            let committed = self.journal.last(group.shard(), Stage::Committed);
            let peers = group.acknowledged().into_values();
            let peers = peers.map(Option::unwrap_or_default);
            group.is_leader().then(|| peers.fold(committed, Index::min))
        };
        self.groups.iter().map(acknowledged).collect()
    }

    /// Purges whole segments: those whose blocks are all at or before `last`, which has a block for
    /// each shard, and committed here. If the line has more than `hold` bytes, it also purges
    /// segments that a member lacks; that member can join again only with an empty directory. A
    /// follower does not know the others, so that it is told by the leader what all have.
    pub async fn purge_segments(&self, last: &[Index], hold: u64, segment_size: u64) {
        let _held = self.purging.lock().await;
        let ends = self.journal.sealed_ends();
        let count = ends.len() as u64;
        let committed = |shard: u16| self.journal.last(ShardId(shard), Stage::Committed);
        for (number, ends) in (0..).zip(ends) {
            let is_forced = (count - number) * segment_size > hold;
            let mut all = ends.iter().zip(last).zip(0..);
            let may_purge = |((end, last), shard): ((&Index, &Index), u16)| {
                *end <= committed(shard) && (is_forced || end <= last)
            };
            if ends.len() != last.len() || !all.all(may_purge) {
                return;
            }
            for (shard, end) in (0..).map(ShardId).zip(ends) {
                self.purge_up_to(shard, end).await;
            }
        }
    }

    /// Lets the journal file the blocks of a shard up to `index`, which must be committed.
    async fn purge_up_to(&self, shard: ShardId, index: Index) {
        let raft = &self.group(shard).raft;
        if let Some(last) = index.0.checked_sub(1) {
            // Fails only after the end of openraft's task.
            let _ = raft.trigger().snapshot().await;
            let _ = raft.trigger().purge_log(last).await;
        }
    }

    /// Ends the node's part: its connections at once, its consensus when it waits for no disk.
    pub async fn stop(&self) {
        self.peers.close();
        self.tasks.lock().abort_all();
        for group in self.groups.iter() {
            let _ = group.raft.shutdown().await;
        }
    }

    /// Returns the cluster's id.
    pub fn cluster(&self) -> u64 {
        self.cluster
    }

    /// Returns the node's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of shards.
    pub fn shard_count(&self) -> u16 {
        self.journal.shard_count()
    }

    /// Returns the leader of shard 0, if this node knows it.
    pub fn leader(&self) -> Option<u64> {
        self.group(ShardId(0)).leader()
    }

    /// Returns the leader of shard 0, if this node knows it and is another one.
    pub fn other_leader(&self) -> Option<u64> {
        self.leader().filter(|leader| *leader != self.id)
    }

    /// Opens a connection to another member for the bytes of a client.
    pub async fn open_pipe(&self, to: u64) -> Result<Stream, HandshakeError> {
        let members = self.members();
        let member = members.iter().find(|member| member.id == to);
        let member = member.ok_or(std::io::ErrorKind::NotFound);
        let address = &member.map_err(std::io::Error::from)?.addresses.link;
        self.peers.open_pipe(to, address).await
    }

    /// Sets the addresses of a member.
    pub async fn set_addresses(&self, id: u64, addresses: Addresses) -> Result<(), ChangeError> {
        let group = self.group(ShardId(0));
        let (membership, _) = group.membership();
        match membership.get_node(&id) {
            Some(known) if *known == addresses => Ok(()),
            Some(_) => {
                let change = ChangeMembers::SetNodes([(id, addresses)].into());
                group.change(change).await
            }
            None => {
                let reason = format!("node {id} is no member");
                Err(ChangeError::Refused { reason })
            }
        }
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(crate) fn group(&self, shard: ShardId) -> &Group {
        &self.groups[usize::from(shard.0)]
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.peers.close();
    }
}

/// Notifies the proposers of shards that may have a block.
async fn ring(journal: Arc<Journal>, bells: Vec<Arc<Notify>>) {
    std::future::poll_fn(|cx| -> Poll<()> {
        loop {
            let shards = journal.proposed_shards(cx.waker());
            if shards == 0 {
                return Poll::Pending;
            }
            let is_marked = |(number, _): &(usize, _)| shards >> number & 1 == 1;
            let marked = bells.iter().enumerate().filter(is_marked);
            marked.for_each(|(_, bell)| bell.notify_one());
        }
    })
    .await;
}

fn config(cluster: u64) -> Config {
    let millis = |it: Duration| it.as_millis() as u64;
    Config {
        cluster_name: format!("{cluster:016x}"),
        heartbeat_interval: millis(HEARTBEAT),
        // An acknowledged append spares the heartbeat.
        heartbeat_min_interval: Some(millis(HEARTBEAT)),
        election_timeout_min: millis(ELECTION_MIN),
        election_timeout_max: millis(ELECTION_MAX),
        // Blocks are purged by `Node::purge_segments` and at no other time: a peer that lacks purged blocks
        // cannot be brought up.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        broadcast_submitted_on_append: Some(true),
        enable_pre_vote: Some(true),
        // A leader that comes back within its lease would resume its term with an applied blank
        // entry, and load engines from streams that lack the entries after it.
        enable_leader_restore: Some(false),
        quorum_loss_probe_interval: Some(2 * millis(ELECTION_MAX)),
        ..Config::default()
    }
}
