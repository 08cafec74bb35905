//! openraft's network: how a group sends to the other nodes.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesResponse, SnapshotResponse, StreamAppendResult, VoteRequest, VoteResponse,
};
use openraft::type_config::alias::{SnapshotOf, VoteOf};
use openraft::{BasicNode, OptionalSend, RaftNetworkFactory};
use tokio::time::timeout;

use crate::append::AppendStream;
use crate::group::Group;
use crate::link::{Link, Links};
use crate::types::{AppendRequest, RpcError, SnapshotData, Types};
use crate::wire::{self, Kind};

/// The network of one group.
pub(crate) struct Network {
    links: Links,
    group: Arc<Group>,
    hold: Duration,
}

impl Network {
    /// The network of a group over the links of its node. A request that only tells the committed
    /// position is held for `hold` at most.
    pub(crate) fn new(links: Links, group: Arc<Group>, hold: Duration) -> Network {
        Network { links, group, hold }
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Remote;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Remote {
        let peer = self.links.peer(target, node);
        self.group.set_needed(target, 0);
        Remote {
            appends: peer.log,
            votes: peer.pulse,
            group: self.group.clone(),
            reader: Some(target),
            hold: self.hold,
        }
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &BasicNode) -> Remote {
        let peer = self.links.peer(target, node);
        Remote {
            appends: peer.pulse.clone(),
            votes: peer.pulse,
            group: self.group.clone(),
            reader: None,
            hold: Duration::ZERO,
        }
    }
}

/// Another node, as one group sees it.
pub(crate) struct Remote {
    appends: Arc<Link>,
    votes: Arc<Link>,
    group: Arc<Group>,
    /// The node's id, if it is sent entries.
    reader: Option<u64>,
    /// How long a request that only tells the committed position is held.
    hold: Duration,
}

impl Remote {
    /// Sends one request and waits for its answer.
    async fn ask(
        &self,
        kind: Kind,
        request: &VoteRequest<Types>,
        option: &RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        let answered = async {
            let caller = self.votes.connect(option).await?.call()?;
            caller.send(kind, self.group.number, 0, |out| {
                wire::put_vote_request(out, request);
            });
            match std::future::poll_fn(|context| caller.answers.poll(context)).await {
                Some((_, body)) => wire::get_vote_reply(body),
                None => Err(io::ErrorKind::ConnectionReset.into()),
            }
        };
        match timeout(option.soft_ttl(), answered).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(unreachable(&error)),
            Err(error) => Err(unreachable(&error)),
        }
    }
}

impl RaftNetworkV2<Types> for Remote {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        _: AppendRequest,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RpcError> {
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
            let connection = self.appends.connect(&option).await;
            let caller = connection.and_then(|connection| connection.call());
            let caller = caller.map_err(|error| unreachable(&error))?;
            let group = self.group.clone();
            let stream = AppendStream::new(input, caller, group, self.reader, self.hold);
            Ok(Box::pin(stream) as BoxStream<'s, _>)
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        self.ask(Kind::Vote, &request, &option).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        self.ask(Kind::PreVote, &request, &option).await
    }

    async fn full_snapshot(
        &mut self,
        _: VoteOf<Types>,
        _: SnapshotOf<Types, SnapshotData>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let error = io::Error::from(io::ErrorKind::Unsupported);
        Err(StreamingError::Unreachable(Unreachable::new(&error)))
    }
}

/// The error of a node that does not answer.
pub(crate) fn unreachable(error: &(impl std::error::Error + 'static)) -> RpcError {
    RpcError::Unreachable(Unreachable::new(error))
}
