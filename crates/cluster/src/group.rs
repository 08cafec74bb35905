//! The consensus of one shard on this node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use journal::{Index, Reign, ShardId, Stage};
use openraft::type_config::async_runtime::watch::WatchReceiver;
use openraft::{ChangeMembers, Instant as _, ServerState};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::member::Addresses;
use crate::raft::{Membership, Raft, ShardLog};

/// Time limit for the blocks that are proposed when a change of members begins.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Pause between two looks at a state that sends no notice.
const POLL: Duration = Duration::from_millis(2);

/// Time limit of one step of a change of members, after which it is looked at again.
const STEP_MAX: Duration = Duration::from_secs(5);

/// A voter counts as in sync if it had everything that was committed at most so long ago.
const IN_SYNC_MAX: Duration = Duration::from_secs(10);

/// A peer answers if it acknowledged a heartbeat or a block at most so long ago: ten heartbeats.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// A change of members that was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Another node leads.
    #[error("another node leads the cluster")]
    Moved {
        /// The leader, if it is known.
        leader: Option<u64>,
    },
    /// Too many blocks wait for a quorum.
    #[error("a quorum of nodes does not answer")]
    NoQuorum,
    /// The consensus refuses the change.
    #[error("{reason}")]
    Refused {
        /// The reason, as a sentence.
        reason: String,
    },
}

/// A member as the leader of a shard sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The member's id.
    pub id: u64,
    /// Its last block that is known to be on its disk; `None` if that is not known.
    pub acknowledged: Option<Index>,
    /// Time since it answered and had everything that was committed then; `None` if it never did.
    pub behind: Option<Duration>,
}

/// A shard's part in the consensus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// The node leads the shard.
    pub is_leader: bool,
    /// The newest term that the node knows.
    pub term: u64,
    /// Elections since the start of this node: each increments the term.
    pub elections: u64,
    /// The leader of that term, if the node knows it.
    pub leader: Option<u64>,
    /// The voters, by id.
    pub voters: Vec<u64>,
    /// The members without a vote, by id.
    pub learners: Vec<u64>,
    /// The last block of this node.
    pub last: Index,
    /// The last committed block that this node knows.
    pub committed: Index,
    /// Bytes of blocks that are not committed.
    pub uncommitted_bytes: u64,
    /// Proposals that openraft has refused since the start.
    pub refused_proposals: u64,
    /// The other members; empty unless the node leads.
    pub peers: Vec<PeerStatus>,
}

impl ShardStatus {
    /// Returns the committed blocks that are not known to be on the disk of a peer.
    pub fn behind_blocks(&self, peer: &PeerStatus) -> u64 {
        let acknowledged = peer.acknowledged.map_or(0, |index| index.0);
        self.committed.0.saturating_sub(acknowledged)
    }

    /// Returns the voters that are not behind: this node, and the peers that answered and had
    /// everything at most ten seconds ago. A node that does not lead knows only the voters.
    pub fn in_sync(&self, own: u64) -> Vec<u64> {
        self.in_sync_within(own, IN_SYNC_MAX)
    }

    /// Returns the voters that answered and had everything at most so long ago.
    pub(crate) fn in_sync_within(&self, own: u64, limit: Duration) -> Vec<u64> {
        if !self.is_leader {
            return self.voters.clone();
        }
        let is_in_sync = |id: &u64| {
            let peer = self.peers.iter().find(|peer| peer.id == *id);
            let behind = peer.and_then(|peer| peer.behind);
            *id == own || behind.is_some_and(|behind| behind <= limit)
        };
        self.voters.iter().copied().filter(is_in_sync).collect()
    }
}

/// The consensus of a shard.
pub(crate) struct Group {
    pub(crate) raft: Raft,
    pub(crate) log: Arc<ShardLog>,
    pub(crate) reigns: watch::Receiver<Option<(Reign, u64)>>,
    pub(crate) bell: Arc<tokio::sync::Notify>,
    /// Held while members change, and while a reign begins.
    pub(crate) gate: Arc<tokio::sync::Mutex<()>>,
    /// The term that was on disk at the start.
    first_term: u64,
    progress: Mutex<Progress>,
}

/// How far the peers of a leader were.
#[derive(Default)]
struct Progress {
    /// The committed block when it was looked at last.
    committed: Index,
    /// When each peer had the committed block of the look before.
    caught_up: BTreeMap<u64, Instant>,
}

/// A pause of a shard's reign, which ends with it.
struct Paused<'a>(&'a Group);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.log.journal.resume(self.0.shard());
    }
}

impl Group {
    pub(crate) fn new(
        raft: Raft,
        log: Arc<ShardLog>,
        reigns: watch::Receiver<Option<(Reign, u64)>>,
        gate: Arc<tokio::sync::Mutex<()>>,
    ) -> Group {
        let (vote, _) = log.on_disk();
        Group {
            first_term: vote.map_or(0, |vote| vote.leader_id.term),
            raft,
            log,
            reigns,
            bell: Arc::default(),
            gate,
            progress: Mutex::default(),
        }
    }

    pub(crate) fn shard(&self) -> ShardId {
        self.log.shard
    }

    /// Returns the newest membership, and whether it is committed and not joint.
    pub(crate) fn membership(&self) -> (Membership, bool) {
        let server = self.raft.server_metrics();
        let server = server.borrow_watched();
        let members = &server.membership_config;
        let is_committed = members.log_id() == server.committed_membership_config.log_id();
        let is_settled = is_committed && members.membership().get_joint_config().len() == 1;
        (members.membership().clone(), is_settled)
    }

    /// Returns the leader that this node knows.
    pub(crate) fn leader(&self) -> Option<u64> {
        self.raft.server_metrics().borrow_watched().current_leader
    }

    /// Returns whether this node leads the shard, which it may have lost without knowing.
    pub(crate) fn is_leader(&self) -> bool {
        let is_running = self.raft.metrics().borrow_watched().running_state.is_ok();
        let server = self.raft.server_metrics();
        let server = server.borrow_watched();
        is_running && server.state == ServerState::Leader && server.vote.committed
    }

    /// Returns why the consensus has ended, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let failure = metrics.running_state.as_ref().err();
        failure.map(|it| format!("shard {}: {it}", self.shard().0))
    }

    /// Returns the time since a quorum last answered this node; `None` unless it leads others. The only
    /// voter is a quorum by itself, and sends no heartbeats that would be answered.
    pub(crate) fn quorum_age(&self) -> Option<Duration> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let voters = metrics.membership_config.membership().voter_ids();
        let leads_others = metrics.state == ServerState::Leader && voters.count() > 1;
        let last = metrics.last_quorum_acked.filter(|_| leads_others)?;
        Some(last.elapsed())
    }

    /// Returns the last blocks that peers have acknowledged to this node; empty unless it leads.
    pub(crate) fn acknowledged(&self) -> BTreeMap<u64, Option<Index>> {
        let data = self.raft.data_metrics();
        let data = data.borrow_watched();
        let own = *self.raft.node_id();
        let peers = data.replication.iter().flatten();
        peers
            .filter(|(id, _)| **id != own)
            .map(|(id, last)| (*id, last.map(|last| Index(last.index + 1))))
            .collect()
    }

    /// Returns the peers that have answered this node lately; empty unless it leads.
    fn answering(&self) -> BTreeSet<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let heartbeats = metrics.heartbeat.iter().flatten();
        heartbeats
            .filter_map(|(id, at)| at.filter(|at| at.elapsed() <= ANSWER_MAX).map(|_| *id))
            .collect()
    }

    /// Notes which peers answer and have everything that was committed at the last call. One that is
    /// gone would have everything as long as nothing is written.
    pub(crate) fn note_progress(&self) {
        let (acknowledged, answering) = (self.acknowledged(), self.answering());
        let mut progress = self.progress.lock();
        let before = progress.committed;
        for (id, last) in &acknowledged {
            if answering.contains(id) && last.is_some_and(|last| last >= before) {
                progress.caught_up.insert(*id, Instant::now());
            }
        }
        progress
            .caught_up
            .retain(|id, _| acknowledged.contains_key(id));
        progress.committed = self.log.journal.last(self.shard(), Stage::Committed);
    }

    pub(crate) fn status(&self) -> ShardStatus {
        let is_leader = self.is_leader();
        let (term, leader, voters, learners) = {
            let server = self.raft.server_metrics();
            let server = server.borrow_watched();
            let membership = server.membership_config.membership();
            (
                server.vote.leader_id.term,
                server.current_leader,
                membership.voter_ids().collect(),
                membership.learner_ids().collect(),
            )
        };
        let acknowledged = match is_leader {
            true => self.acknowledged(),
            false => BTreeMap::new(),
        };
        let progress = self.progress.lock();
        let behind = |id| progress.caught_up.get(&id).map(Instant::elapsed);
        let peers = acknowledged
            .into_iter()
            .map(|(id, acknowledged)| PeerStatus {
                id,
                acknowledged,
                behind: behind(id),
            });
        let peers = peers.collect();
        let journal = &self.log.journal;
        ShardStatus {
            is_leader,
            term,
            elections: term.saturating_sub(self.first_term),
            leader,
            voters,
            learners,
            last: journal.last_taken(self.shard()).index,
            committed: journal.last(self.shard(), Stage::Committed),
            uncommitted_bytes: journal.uncommitted_bytes(self.shard()),
            refused_proposals: self.log.refused.load(Ordering::Relaxed),
            peers,
        }
    }

    /// Returns whether a peer has acknowledged all that is committed, or nearly: it is at most
    /// `blocks` behind.
    pub(crate) fn is_near(&self, peer: u64, blocks: u64) -> bool {
        let last = self.acknowledged().get(&peer).copied().flatten();
        let committed = self.log.journal.last(self.shard(), Stage::Committed);
        last.is_some_and(|last| last.0 + blocks >= committed.0)
    }

    /// Changes the members. No block of a reign is proposed until the change is complete: its entries
    /// take the next indexes of the log. A change that has begun is completed by this node as long as
    /// it leads, and by the next leader after that.
    pub(crate) async fn change(
        &self,
        change: ChangeMembers<u64, Addresses>,
    ) -> Result<(), ChangeError> {
        let _held = self.gate.lock().await;
        if !self.is_leader() {
            return Err(self.moved());
        }
        self.log.journal.pause(self.shard());
        let _paused = Paused(self);
        let drained = async {
            while !self.log.journal.has_no_untaken(self.shard()) {
                tokio::time::sleep(POLL).await;
            }
        };
        if timeout(DRAIN_MAX, drained).await.is_err() {
            return Err(ChangeError::NoQuorum);
        }
        let mut next = change;
        loop {
            let made = timeout(STEP_MAX, self.raft.change_membership(next, false)).await;
            if !self.is_leader() {
                return Err(self.moved());
            }
            let (membership, is_settled) = self.membership();
            match made {
                Ok(Ok(_)) if is_settled => return Ok(()),
                Ok(Err(error)) if is_settled => {
                    let reason = error.to_string();
                    return Err(ChangeError::Refused { reason });
                }
                _ => {}
            }
            let voters = membership.get_joint_config().last().cloned();
            next = ChangeMembers::ReplaceAllVoters(voters.unwrap_or_default());
            tokio::time::sleep(POLL).await;
        }
    }

    /// Ends a reign after everything that it decided is committed, so that another begins, in the same
    /// term if this node still leads. Nothing new is decided meanwhile.
    pub(crate) async fn renew(&self, reign: Reign) {
        let _held = self.gate.lock().await;
        if !self.log.is_current(reign) {
            return;
        }
        self.log.journal.pause(self.shard());
        while !self.log.end_drained(reign) {
            tokio::time::sleep(POLL).await;
        }
    }

    /// Completes a change of members that an earlier leader began.
    pub(crate) async fn complete_change(&self) {
        let (membership, is_settled) = self.membership();
        let joint = membership.get_joint_config();
        if !is_settled && let [_, voters] = &joint[..] {
            let voters: BTreeSet<u64> = voters.clone();
            // It is tried again as long as the change is not complete.
            let _ = self.change(ChangeMembers::ReplaceAllVoters(voters)).await;
        }
    }

    pub(crate) fn moved(&self) -> ChangeError {
        ChangeError::Moved {
            leader: self.leader(),
        }
    }
}
