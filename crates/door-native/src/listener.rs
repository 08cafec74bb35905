//! Accepts native connections and passes them to the runtime that serves them.

use std::sync::Arc;

use door::{Accepting, Spawn, WhenFull, spawn_with};
use model::ErrorCode;
use model::Failure;
use net::SocketBudget;
use tokio::net::{TcpListener, UnixListener};
use wire::Correlation;

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
