//! Accepts connections and hands them to whoever serves them.

use std::sync::Arc;

use model::ErrorCode;
use net::{SocketBudget, SocketPermit, Stream};
use node::Failure;
use tokio::net::{TcpListener, UnixListener};
use wire::Correlation;

use super::outlet::encode_failure;
use crate::accept::Accepting;

/// Runs what serves a connection: on one of several runtimes, or on the current one.
pub trait Spawn: Send + Sync {
    /// Serves a connection that was accepted; the socket is made a stream where it is served.
    fn spawn(&self, accepted: Acceptor);
}

/// Makes a stream of an accepted socket, on the runtime that will serve it.
pub type Acceptor = Box<dyn FnOnce() -> std::io::Result<Stream> + Send>;

/// Accepts TCP connections for ever, inside TLS when there is a configuration. A client that comes
/// when `budget` is used up reads `refusal`, in plain text only.
pub async fn accept_tcp(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    budget: SocketBudget,
    refusal: Refusal,
    spawn: Arc<dyn Spawn>,
) {
    let refusal = match tls {
        None => refusal.bytes(),
        Some(_) => Vec::new(),
    };
    let mut accepting = Accepting::new(listener, budget, refusal);
    loop {
        let (socket, permit) = accepting.next().await;
        let tls = tls.clone();
        spawn_with(&*spawn, socket.into_std(), permit, move |socket| {
            let socket = tokio::net::TcpStream::from_std(socket)?;
            match tls {
                Some(config) => net::split_tls_accepted(socket, config),
                None => net::split_tcp(socket),
            }
        });
    }
}

/// Accepts connections on a Unix socket for ever. A client that comes when `budget` is used up reads
/// `refusal`.
pub async fn accept_unix(
    listener: UnixListener,
    budget: SocketBudget,
    refusal: Refusal,
    spawn: Arc<dyn Spawn>,
) {
    let mut accepting = Accepting::new(listener, budget, refusal.bytes());
    loop {
        let (socket, permit) = accepting.next().await;
        spawn_with(&*spawn, socket.into_std(), permit, |socket| {
            net::split_unix(tokio::net::UnixStream::from_std(socket)?)
        });
    }
}

fn spawn_with<S: Send + 'static>(
    spawn: &dyn Spawn,
    socket: std::io::Result<S>,
    permit: SocketPermit,
    split: impl FnOnce(S) -> std::io::Result<Stream> + Send + 'static,
) {
    match socket {
        Ok(socket) => spawn.spawn(Box::new(move || Ok(split(socket)?.with_permit(permit)))),
        Err(error) => tracing::warn!(%error, "cannot serve a connection"),
    }
}

/// Answer to a client for which no socket is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The connection is closed.
    Close,
    /// An ERROR frame of the native protocol: `unavailable`.
    Frame,
}

impl Refusal {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self == Self::Frame {
            let message = "the node has no file descriptor left for another connection";
            let failure = Failure::new(ErrorCode::Unavailable, message);
            encode_failure(failure, Correlation::NONE, &mut bytes);
        }
        bytes
    }
}

/// Accepts connections within the process for ever.
pub async fn accept_inproc(listener: net::inproc::Listener, spawn: Arc<dyn Spawn>) {
    loop {
        let stream = listener.accept().await;
        spawn.spawn(Box::new(move || Ok(stream)));
    }
}
