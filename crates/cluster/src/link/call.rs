//! Calls: requests of one node's services to another's.
//!
//! The body of an answer begins with a byte: 0 and the answer follows, or 1 if the peer has too many
//! calls in progress and has not executed this one.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use net::Stream;
use tokio::sync::Semaphore;

use super::answer::Serving;

/// Bytes of a request and of an answer at most.
pub const CALL_SIZE_MAX: usize = 1 << 20;

/// Calls of all peers that are in progress at most.
const RUNNING_MAX: usize = 1024;

pub(super) const ANSWERED: u8 = 0;
pub(super) const REFUSED: u8 = 1;

/// The services of a node for its peers.
pub trait Services: Send + Sync {
    /// Answers a request of a member. The answer has at most [`CALL_SIZE_MAX`] bytes.
    fn answer(&self, from: u64, request: Bytes) -> BoxFuture<'static, Bytes>;

    /// Serves the bytes of a client that a member passes on. A node that does not lead closes them.
    fn pipe(&self, from: u64, stream: Stream) -> BoxFuture<'static, ()>;

    /// Serves a node that asks to become a member, with [`Node::admit`](crate::Node::admit).
    fn join(&self, stream: Stream) -> BoxFuture<'static, ()>;
}

/// A call without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call was not executed: it was not sent, or the peer has refused it.
    #[error("the node has not executed the call")]
    NotSent,
    /// The call was sent and its outcome is unknown.
    #[error("the node has not answered: whether the call was executed is unknown")]
    Unknown,
}

/// Serves calls, so many at a time.
pub(crate) struct CallServer {
    services: Arc<dyn Services>,
    room: Arc<Semaphore>,
}

impl CallServer {
    pub(crate) fn new(services: Arc<dyn Services>) -> CallServer {
        CallServer {
            services,
            room: Arc::new(Semaphore::new(RUNNING_MAX)),
        }
    }

    /// Returns the services.
    pub(super) fn services(&self) -> &Arc<dyn Services> {
        &self.services
    }

    /// Serves a call of a peer.
    pub(super) fn serve(&self, from: u64, request: Bytes) -> Serving {
        let Ok(permit) = self.room.clone().try_acquire_owned() else {
            let refuse = |out: &mut Vec<u8>| out.push(REFUSED);
            return Box::pin(std::future::ready(Some(Box::new(refuse) as _)));
        };
        let answer = self.services.answer(from, request);
        Box::pin(async move {
            let answer = answer.await;
            drop(permit);
            let put = move |out: &mut Vec<u8>| {
                out.push(ANSWERED);
                out.extend_from_slice(&answer);
            };
            Some(Box::new(put) as Box<dyn FnOnce(&mut Vec<u8>) + Send>)
        })
    }
}
