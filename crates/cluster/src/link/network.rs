//! openraft's network: how a shard sends to its peers.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use journal::ShardId;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkV2};
use openraft::raft::{
    SnapshotResponse, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;
use openraft::{OptionalSend, RaftNetworkFactory};
use tokio::time::timeout;

use super::append::AppendStream;
use super::frame::Operation;
use super::peers::{Link, Peers};
use super::reports::Reports;
use super::{Channel, message};
use crate::member::Addresses;
use crate::pauses::Pauses;
use crate::raft::{AppendRequest, AppendResponse, RpcError, SnapshotData, Types, Vote};

/// Longest time for which a request that only tells the committed index is held.
const COMMIT_HOLD: Duration = Duration::from_millis(20);

/// The network of one shard.
pub(crate) struct Network {
    peers: Arc<Peers>,
    shard: ShardId,
}

impl Network {
    /// Creates the network of a shard.
    pub(crate) fn new(peers: Arc<Peers>, shard: ShardId) -> Network {
        Network { peers, shard }
    }

    fn peer(&self, target: u64, addresses: &Addresses, appends: Channel, hold: Duration) -> Peer {
        let link = |channel| self.peers.link(target, &addresses.link, channel);
        Peer {
            appends: link(appends),
            votes: link(Channel::Pulse),
            target,
            shard: self.shard,
            hold,
            reports: self.peers.admission.reports.clone(),
            pauses: self.peers.server.pauses.clone(),
        }
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, addresses: &Addresses) -> Peer {
        self.peer(target, addresses, Channel::Log, COMMIT_HOLD)
    }

    async fn new_heartbeat_client(&mut self, target: u64, addresses: &Addresses) -> Peer {
        self.peer(target, addresses, Channel::Pulse, Duration::ZERO)
    }
}

/// A peer, as one shard sees it.
pub(crate) struct Peer {
    appends: Arc<Link>,
    votes: Arc<Link>,
    /// The peer's id.
    target: u64,
    shard: ShardId,
    /// Longest time for which a request that only tells the committed index is held.
    hold: Duration,
    reports: Arc<Reports>,
    pauses: Arc<Pauses>,
}

impl Peer {
    /// Sends a request on the connection for votes, and waits for its answer.
    async fn ask<T>(
        &self,
        operation: Operation,
        option: &RPCOption,
        put: impl FnOnce(&mut Vec<u8>),
        get: impl FnOnce(Bytes) -> io::Result<T>,
    ) -> Result<T, RpcError> {
        let answered = async {
            let caller = self.votes.connection().await.call()?;
            caller.send(operation, self.shard, 0, put);
            match std::future::poll_fn(|context| caller.answers.poll(context)).await {
                Some((_, body)) => get(body),
                None => Err(io::ErrorKind::ConnectionReset.into()),
            }
        };
        match timeout(option.soft_ttl(), answered).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(unreachable(&error)),
            Err(error) => Err(unreachable(&error)),
        }
    }
}

impl RaftNetworkV2<Types> for Peer {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        _: AppendRequest,
        _: RPCOption,
    ) -> Result<AppendResponse, RpcError> {
        // `stream_append` takes its place.
        Err(unreachable(&io::Error::from(io::ErrorKind::Unsupported)))
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<Types>, RpcError>>, RpcError>>
    where
        S: Stream<Item = AppendRequest> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            let connection = timeout(option.soft_ttl(), self.appends.connection()).await;
            let connection = connection.map_err(|error| unreachable(&error))?;
            let caller = connection.call().map_err(|error| unreachable(&error))?;
            let reports = self.reports.clone();
            let stream = AppendStream::new(input, caller, self.shard, self.hold, reports);
            Ok(Box::pin(stream) as BoxStream<'s, _>)
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        let put = |out: &mut Vec<u8>| message::put_vote_request(out, &request);
        let get = message::get_vote_answer;
        let answer = self.ask(Operation::Vote, &option, put, get).await?;
        if answer.vote_granted {
            self.reports
                .note_vote(self.target, self.shard, &request.vote);
        }
        Ok(answer)
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        if self.pauses.has_just_ended() {
            let message = "this node has just ended a pause: its leader may be there";
            return Err(unreachable(&io::Error::other(message)));
        }
        let put = |out: &mut Vec<u8>| message::put_vote_request(out, &request);
        self.ask(Operation::PreVote, &option, put, message::get_vote_answer)
            .await
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RpcError> {
        let put = |out: &mut Vec<u8>| message::put_transfer(out, &request);
        let get = message::get_transfer_answer;
        match self.ask(Operation::Transfer, &option, put, get).await? {
            true => Ok(Ok(())),
            false => {
                let message = "the node cannot take over the leadership now";
                Err(unreachable(&io::Error::other(message)))
            }
        }
    }

    async fn full_snapshot(
        &mut self,
        _: Vote,
        _: SnapshotOf<Types, SnapshotData>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let message = "the peer lacks entries that this node has purged";
        let error = io::Error::new(io::ErrorKind::Unsupported, message);
        Err(StreamingError::Unreachable(Unreachable::new(&error)))
    }
}

/// Returns the error of a peer that does not answer.
pub(super) fn unreachable(error: &(impl std::error::Error + 'static)) -> RpcError {
    RpcError::Unreachable(Unreachable::new(error))
}
