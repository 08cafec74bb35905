//! Serving the requests of peers.

use bytes::Bytes;

use openraft::raft::VoteResponse;

use super::connection::{Answer, Serving};
use super::frame::{Head, Operation};
use super::message;
use crate::raft::{Raft, Types};

/// The shards of this node, for its peers.
pub(crate) struct Server {
    /// By number. Empty until the node takes part.
    shards: parking_lot::RwLock<Vec<Raft>>,
}

impl Server {
    /// Creates a server without shards.
    pub(crate) fn new() -> Server {
        Server {
            shards: parking_lot::RwLock::default(),
        }
    }

    /// Sets the shards, by number.
    pub(crate) fn set_shards(&self, shards: Vec<Raft>) {
        *self.shards.write() = shards;
    }

    /// Serves a request. A malformed one, and one for an unknown shard, gets no answer, as if this
    /// node were not there.
    pub(super) fn serve(&self, head: Head, body: Bytes) -> Serving {
        let shards = self.shards.read();
        let raft = shards.get(usize::from(head.shard.0)).cloned();
        drop(shards);
        let Some(raft) = raft else {
            return Box::pin(std::future::ready(None));
        };
        Box::pin(async move {
            match head.operation {
                Operation::Append => append(&raft, body).await,
                Operation::Vote => {
                    let request = message::get_vote_request(body).ok()?;
                    vote_answer(raft.vote(request).await.ok()?)
                }
                Operation::PreVote => {
                    let request = message::get_vote_request(body).ok()?;
                    vote_answer(raft.pre_vote(request).await.ok()?)
                }
            }
        })
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
