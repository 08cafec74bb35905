//! The beginning of reigns.
//!
//! A reign begins when this node leads a term and an entry of that term is applied. The first entry
//! of a term is a blank one, so everything that the log held when the term began is applied too, and
//! engines can be loaded from the streams. The log store ends the reign, under the shard's lock, at
//! the first append of another leader and at the first cut. A term has at most one reign. A node whose
//! [clock](crate::clock) is off begins none.

use std::sync::Arc;

use journal::Reign;
use openraft::ServerState;
use openraft::type_config::async_runtime::watch::WatchReceiver;
use tokio::sync::{Mutex, Notify, watch};

use crate::clock::Clocks;
use crate::proposer;
use crate::raft::{LogId, Raft, ShardLog};

/// Begins the reigns of a shard, and proposes their blocks.
pub(crate) async fn lead(
    raft: Raft,
    log: Arc<ShardLog>,
    mut applied: watch::Receiver<Option<LogId>>,
    bell: Arc<Notify>,
    gate: Arc<Mutex<()>>,
    clocks: Arc<Clocks>,
    reigns: watch::Sender<Option<(Reign, u64)>>,
) {
    let mut server = raft.server_metrics();
    let clock_changes = clocks.changes();
    loop {
        let ready = led_term(&raft).filter(|term| {
            let applied = applied.borrow_and_update();
            clocks.may_lead() && applied.is_some_and(|it| it.leader_id.term == *term)
        });
        if let Some(term) = ready {
            // Consensus adds the entries of a change of members while the gate is held.
            let held = gate.lock().await;
            let reign = match led_term(&raft) == Some(term) {
                true => log.begin_reign(term),
                false => None,
            };
            drop(held);
            if let Some(reign) = reign {
                reigns.send_replace(Some((reign, term)));
                proposer::propose(&raft, &log, &bell, reign, term).await;
                reigns.send_replace(None);
                continue;
            }
        }
        tokio::select! {
            biased;
            changed = server.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            changed = applied.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = clock_changes.notified() => {}
        }
    }
}

/// Returns the term that this node leads, unless its members are changing.
pub(crate) fn led_term(raft: &Raft) -> Option<u64> {
    let server = raft.server_metrics();
    let server = server.borrow_watched();
    let members = &server.membership_config;
    let is_settled = members.log_id() == server.committed_membership_config.log_id()
        && members.get_joint_config().len() == 1;
    let is_leader = server.state == ServerState::Leader && server.vote.committed;
    (is_leader && is_settled).then_some(server.vote.leader_id.term)
}
