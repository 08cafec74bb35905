//! The listener that serves other nodes' requests.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use openraft::raft::{AppendEntriesResponse, VoteResponse};
use tokio::net::TcpListener;
use tokio::net::tcp::OwnedReadHalf;

use crate::link::receive;
use crate::pipe::Pipe;
use crate::types::{Raft, Types};
use crate::wire::{self, Head, Kind};

/// Serves the requests of other nodes for ever.
pub(crate) async fn serve(listener: TcpListener, groups: Vec<Raft>) -> io::Error {
    loop {
        let pipe = match listener.accept().await {
            Ok((socket, _)) => Pipe::new(socket),
            Err(error) => Err(error),
        };
        match pipe {
            Ok((reader, pipe)) => drop(tokio::spawn(serve_one(reader, pipe, groups.clone()))),
            Err(error) => return error,
        }
    }
}

/// Serves one connection until it ends or sends garbage.
async fn serve_one(mut reader: OwnedReadHalf, pipe: Arc<Pipe>, groups: Vec<Raft>) {
    let mut input = BytesMut::new();
    let mut running = FuturesUnordered::new();
    loop {
        let received = tokio::select! {
            received = receive(&mut reader, &mut input) => received,
            Some(answered) = running.next() => {
                let (head, reply): (Head, Reply) = answered;
                pipe.send(|out| reply.put(head, out));
                continue;
            }
        };
        if received.is_err() {
            break;
        }
        loop {
            let (head, body) = match wire::next_frame(&mut input) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return pipe.close(),
            };
            let Some(raft) = groups.get(usize::from(head.group)) else {
                return pipe.close();
            };
            let mut request = Box::pin(answer(raft.clone(), head, body));
            // The first poll hands the request to Raft, so requests keep their order.
            match (&mut request).now_or_never() {
                Some((head, reply)) => pipe.send(|out| reply.put(head, out)),
                None => running.push(request),
            }
        }
    }
    pipe.close();
}

/// The answer to a request.
enum Reply {
    Append(AppendEntriesResponse<Types>),
    Vote(VoteResponse<Types>),
    /// Nothing: the request was garbage, or Raft has ended. The caller runs into its time limit.
    Nothing,
}

impl Reply {
    fn put(&self, head: Head, out: &mut Vec<u8>) {
        match self {
            Reply::Append(reply) => head.frame(out, |out| wire::put_append_reply(out, reply)),
            Reply::Vote(reply) => head.frame(out, |out| wire::put_vote_reply(out, reply)),
            Reply::Nothing => {}
        }
    }
}

async fn answer(raft: Raft, head: Head, body: Bytes) -> (Head, Reply) {
    let reply = match head.kind {
        Kind::Append => match wire::get_append(body) {
            Ok(request) => raft.append_entries(request).await.ok().map(Reply::Append),
            Err(_) => None,
        },
        Kind::Vote => match wire::get_vote_request(body) {
            Ok(request) => raft.vote(request).await.ok().map(Reply::Vote),
            Err(_) => None,
        },
        Kind::PreVote => match wire::get_vote_request(body) {
            Ok(request) => raft.pre_vote(request).await.ok().map(Reply::Vote),
            Err(_) => None,
        },
    };
    (head, reply.unwrap_or(Reply::Nothing))
}
