//! A node of a cluster: its shards, and the links to its peers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use journal::{DecidedError, Index, Journal, Reign, ShardId};
use net::Stream;
use openraft::type_config::async_runtime::watch::WatchReceiver;
use openraft::{Config, ServerState, SnapshotPolicy};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::link::{Dialer, HandshakeError, Identity, Key, Network, Peers, Server};
use crate::raft::{LogError, Machine, Raft, Runtime, ShardLog, Store, founding_block};
use crate::reign;

/// Interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Bounds of an election's random timeout. A follower waits for the upper one first, as a lease.
const ELECTION_MIN: Duration = Duration::from_millis(400);
const ELECTION_MAX: Duration = Duration::from_millis(800);

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
}

/// A node that cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A shard's log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The consensus of a shard cannot start.
    #[error("the consensus of shard {} cannot start: {error}", shard.0)]
    Consensus {
        /// The shard.
        shard: ShardId,
        /// The error.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A shard's part in the consensus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// The node leads the shard.
    pub is_leader: bool,
    /// The newest term that the node knows.
    pub term: u64,
    /// The leader of that term, if the node knows it.
    pub leader: Option<u64>,
}

/// A node that takes part in a cluster. Dropping it ends its part at once, without a hand-over.
pub struct Node {
    peers: Arc<Peers>,
    shards: Vec<Shard>,
    tasks: JoinSet<()>,
}

struct Shard {
    raft: Raft,
    reigns: watch::Receiver<Option<Reign>>,
    bell: Arc<Notify>,
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

/// Writes the first entry of each shard of a new cluster: its members, by id, with their addresses.
/// All founding members write the same entries, before they start. The shards must be empty.
///
/// # Panics
///
/// Panics if there are no members, or if their addresses take more than 64 KiB.
pub fn found(
    journal: &Journal,
    members: &BTreeMap<u64, String>,
    time_ms: u64,
) -> Result<(), DecidedError> {
    let block = founding_block(members, time_ms);
    let Some(block) = block else {
        panic!("{} members cannot found a cluster", members.len());
    };
    let mut shards = (0..journal.shard_count()).map(ShardId);
    shards.try_for_each(|shard| journal.append_decided(shard, &block))
}

impl Node {
    /// Starts the consensus of all shards of a journal, which must have been opened with
    /// [`journal::Commit::ByCaller`]. `now_ms` returns the milliseconds since 1970.
    pub async fn start(
        journal: Arc<Journal>,
        settings: Settings,
        dialer: Box<dyn Dialer>,
        now_ms: impl Fn() -> u64 + Clone + Send + Sync + 'static,
    ) -> Result<Node, StartError> {
        let own = Identity {
            cluster: settings.cluster,
            id: settings.id,
            life: journal.life(),
        };
        let server = Arc::new(Server::new());
        let peers = Peers::new(own, settings.key, dialer, server.clone());
        let config = Arc::new(config(settings.cluster));
        let (mut shards, mut tasks) = (Vec::new(), JoinSet::new());
        for shard in (0..journal.shard_count()).map(ShardId) {
            let log = ShardLog::open(journal.clone(), shard, now_ms.clone())?;
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
            let bell = Arc::new(Notify::new());
            tasks.spawn(reign::lead(
                raft.clone(),
                log,
                applied,
                bell.clone(),
                sender,
            ));
            shards.push(Shard { raft, reigns, bell });
        }
        let bells: Vec<_> = shards.iter().map(|it| it.bell.clone()).collect();
        tasks.spawn(ring(journal, bells));
        server.set_shards(shards.iter().map(|it| it.raft.clone()).collect());
        // Tasks inherit their random numbers from the task that starts them.
        Runtime::scope(settings.entropy, async {
            shards.iter().for_each(|it| it.raft.run());
        })
        .await;
        Ok(Node {
            peers,
            shards,
            tasks,
        })
    }

    /// Returns what serves the connections that peers dial.
    pub fn acceptor(&self) -> Acceptor {
        Acceptor(self.peers.clone())
    }

    /// Returns the current reign of this node over a shard, as it changes.
    ///
    /// # Panics
    ///
    /// Panics if there is no such shard, as do all methods.
    pub fn reigns(&self, shard: ShardId) -> watch::Receiver<Option<Reign>> {
        self.shards[usize::from(shard.0)].reigns.clone()
    }

    /// Returns a shard's part in the consensus.
    pub fn status(&self, shard: ShardId) -> ShardStatus {
        let raft = &self.shards[usize::from(shard.0)].raft;
        let is_running = raft.metrics().borrow_watched().running_state.is_ok();
        let server = raft.server_metrics();
        let server = server.borrow_watched();
        ShardStatus {
            is_leader: is_running && server.state == ServerState::Leader,
            term: server.vote.leader_id.term,
            leader: server.current_leader,
        }
    }

    /// Lets the journal file the blocks of a shard up to `index`, which must be committed. A leader
    /// retains blocks that a member has not acknowledged. A follower does not know the others: if it
    /// leads later, a member that lacks purged blocks cannot be brought up.
    pub async fn purge(&self, shard: ShardId, index: Index) {
        let raft = &self.shards[usize::from(shard.0)].raft;
        let count = index.0.min(acknowledged(raft).unwrap_or(u64::MAX));
        if let Some(last) = count.checked_sub(1) {
            // Fails only after the end of openraft's task.
            let _ = raft.trigger().snapshot().await;
            let _ = raft.trigger().purge_log(last).await;
        }
    }

    /// Ends the node's part.
    pub async fn stop(mut self) {
        self.tasks.abort_all();
        for shard in &self.shards {
            let _ = shard.raft.shutdown().await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.peers.close();
    }
}

/// Returns the number of entries that all members have acknowledged to this node; `None` unless it
/// leads. openraft sends no entries before the last acknowledged one, so it would find a member to
/// lack what was purged after that.
fn acknowledged(raft: &Raft) -> Option<u64> {
    let data = raft.data_metrics();
    let data = data.borrow_watched();
    let members = data.replication.as_ref()?.values();
    members
        .map(|last| last.map_or(0, |last| last.index + 1))
        .min()
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
        // Blocks are purged by `Node::purge` and at no other time: a peer that lacks purged blocks
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
