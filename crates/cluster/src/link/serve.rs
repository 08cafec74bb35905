//! Serving the requests of peers.

use std::sync::Arc;

use bytes::Bytes;

use openraft::raft::VoteResponse;

use super::answer::{Answer, Serving};
use super::call::{CallServer, Services};
use super::frame::{Head, Operation};
use super::message;
use super::records::get_statement;
use super::reports::Reports;
use crate::pauses::Pauses;
use crate::raft::{Raft, Types};

/// The shards of this node, for its peers.
pub(crate) struct Server {
    /// By number. Empty until the node takes part.
    shards: parking_lot::RwLock<Vec<Raft>>,
    calls: CallServer,
    reports: Arc<Reports>,
    /// The pauses of this node, after which it neither begins nor supports elections.
    pub(super) pauses: Arc<Pauses>,
    /// Returns the milliseconds since 1970.
    now_ms: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Server {
    /// Creates a server without shards.
    pub(crate) fn new(
        calls: CallServer,
        reports: Arc<Reports>,
        pauses: Arc<Pauses>,
        now_ms: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Server {
        Server {
            shards: parking_lot::RwLock::default(),
            calls,
            reports,
            pauses,
            now_ms: Box::new(now_ms),
        }
    }

    /// Returns the services of the node.
    pub(super) fn services(&self) -> &Arc<dyn Services> {
        self.calls.services()
    }

    /// Sets the shards, by number.
    pub(crate) fn set_shards(&self, shards: Vec<Raft>) {
        *self.shards.write() = shards;
    }

    /// Serves a request. A malformed one, and one for an unknown shard, gets no answer, as if this
    /// node were not there.
    pub(super) fn serve(&self, from: u64, head: Head, body: Bytes) -> Serving {
        if head.operation == Operation::Call {
            return self.calls.serve(from, body);
        }
        if head.operation == Operation::Report {
            let answer = self.take_report(from, body);
            return Box::pin(std::future::ready(answer));
        }
        let shards = self.shards.read();
        let raft = shards.get(usize::from(head.shard.0)).cloned();
        drop(shards);
        let Some(raft) = raft else {
            return Box::pin(std::future::ready(None));
        };
        let (reports, pauses) = (self.reports.clone(), self.pauses.clone());
        Box::pin(async move {
            match head.operation {
                Operation::Append => append(&raft, body).await,
                Operation::Vote => {
                    let request = message::get_vote_request(body).ok()?;
                    // A candidate has its own vote on disk before it asks for others.
                    if request.vote.leader_id.voted_for == from {
                        reports.note_vote(from, head.shard, &request.vote);
                    }
                    vote_answer(raft.vote(request).await.ok()?)
                }
                Operation::PreVote if pauses.has_just_ended() => None,
                Operation::PreVote => {
                    let request = message::get_vote_request(body).ok()?;
                    vote_answer(raft.pre_vote(request).await.ok()?)
                }
                Operation::Transfer => {
                    let request = message::get_transfer(body).ok()?;
                    let outcome = raft.handle_transfer_leader(request).await.ok()?;
                    let is_accepted = outcome.is_ok();
                    let put = move |out: &mut Vec<u8>| {
                        message::put_transfer_answer(out, is_accepted);
                    };
                    Some(Box::new(put) as Box<dyn FnOnce(&mut Vec<u8>) + Send>)
                }
                Operation::Call | Operation::Report => None,
            }
        })
    }

    /// Records the report of a peer. The answer is this node's time.
    fn take_report(&self, from: u64, body: Bytes) -> Answer {
        let statement = get_statement(body).ok()?;
        self.reports
            .note(from, |record| record.note_statement(&statement));
        let now_ms = (self.now_ms)();
        Some(Box::new(move |out: &mut Vec<u8>| {
            message::put_report_answer(out, now_ms);
        }))
    }
}

async fn append(raft: &Raft, body: Bytes) -> Answer {
    let request = message::get_append(body).ok()?;
    let answer = raft.append_entries(request).await.ok()?;
    Some(Box::new(move |out: &mut Vec<u8>| {
        message::put_append_answer(out, &answer);
    }))
}

fn vote_answer(answer: VoteResponse<Types>) -> Answer {
    Some(Box::new(move |out: &mut Vec<u8>| {
        message::put_vote_answer(out, &answer);
    }))
}
