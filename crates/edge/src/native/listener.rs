//! Accepts native connections and passes them to the runtime that serves them.

use std::sync::Arc;

use model::ErrorCode;
use model::Failure;
use net::{SocketBudget, SocketPermit, Stream};
use tokio::net::{TcpListener, UnixListener};
use wire::Correlation;

use crate::accept::{Accepting, WhenFull};

/// Serves connections: on one of several runtimes, or on the current one.
pub trait Spawn: Send + Sync {
    /// Serves an accepted connection; its socket becomes a stream on the runtime that serves it.
    fn spawn(&self, accepted: Acceptor);
}

/// Makes a stream of an accepted socket, on the runtime that will serve it.
pub type Acceptor = Box<dyn FnOnce() -> std::io::Result<Stream> + Send>;

/// Accepts TCP connections forever, with TLS if it is configured. A client for which `budget` has
/// no socket left gets the error `unavailable`, but only without TLS.
pub async fn accept_tcp(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    budget: SocketBudget,
    spawn: Arc<dyn Spawn>,
) {
    let refusal = match tls {
        None => refusal(),
        Some(_) => Vec::new(),
    };
    let mut accepting = Accepting::new(listener, budget, WhenFull::Refuse(refusal));
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

/// Accepts connections on a Unix socket forever. A client for which `budget` has no socket left
/// gets the error `unavailable`.
pub async fn accept_unix(listener: UnixListener, budget: SocketBudget, spawn: Arc<dyn Spawn>) {
    let mut accepting = Accepting::new(listener, budget, WhenFull::Refuse(refusal()));
    loop {
        let (socket, permit) = accepting.next().await;
        spawn_with(&*spawn, socket.into_std(), permit, |socket| {
            net::split_unix(tokio::net::UnixStream::from_std(socket)?)
        });
    }
}

/// Passes an accepted socket to `spawn`, which makes it a stream.
pub(crate) fn spawn_with<S: Send + 'static>(
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

/// Returns the ERROR frame for a client for which no socket is left.
fn refusal() -> Vec<u8> {
    let message = "the node has no file descriptor left for another connection";
    let failure = Failure::new(ErrorCode::Unavailable, message);
    let mut bytes = Vec::new();
    wire::encode_failure(&failure, Correlation::NONE, &mut bytes);
    bytes
}

/// Accepts in-process connections forever.
pub async fn accept_inproc(listener: net::inproc::Listener, spawn: Arc<dyn Spawn>) {
    loop {
        let stream = listener.accept().await;
        spawn.spawn(Box::new(move || Ok(stream)));
    }
}
