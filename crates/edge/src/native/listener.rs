//! Accepts connections and hands them to whoever serves them.

use std::sync::Arc;
use std::time::Duration;

use net::Stream;
use tokio::net::{TcpListener, UnixListener};

/// Runs what serves a connection: on one of several runtimes, or on the current one.
pub trait Spawn: Send + Sync {
    /// Serves a connection that was accepted; the socket is made a stream where it is served.
    fn spawn(&self, accepted: Acceptor);
}

/// Makes a stream of an accepted socket, on the runtime that will serve it.
pub type Acceptor = Box<dyn FnOnce() -> std::io::Result<Stream> + Send>;

/// After an accept failed (out of descriptors, say), how long to wait before the next one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts TCP connections for ever, inside TLS when there is a configuration.
pub async fn accept_tcp(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    spawn: Arc<dyn Spawn>,
) {
    loop {
        match listener
            .accept()
            .await
            .and_then(|(socket, _)| socket.into_std())
        {
            Ok(socket) => {
                let tls = tls.clone();
                spawn.spawn(Box::new(move || {
                    let socket = tokio::net::TcpStream::from_std(socket)?;
                    match tls {
                        Some(config) => net::split_tls_accepted(socket, config),
                        None => net::split_tcp(socket),
                    }
                }));
            }
            Err(error) => pause(&error).await,
        }
    }
}

/// Accepts connections on a Unix socket for ever.
pub async fn accept_unix(listener: UnixListener, spawn: Arc<dyn Spawn>) {
    loop {
        match listener
            .accept()
            .await
            .and_then(|(socket, _)| socket.into_std())
        {
            Ok(socket) => spawn.spawn(Box::new(move || {
                net::split_unix(tokio::net::UnixStream::from_std(socket)?)
            })),
            Err(error) => pause(&error).await,
        }
    }
}

/// Accepts connections within the process for ever.
pub async fn accept_inproc(listener: net::inproc::Listener, spawn: Arc<dyn Spawn>) {
    loop {
        let stream = listener.accept().await;
        spawn.spawn(Box::new(move || Ok(stream)));
    }
}

async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
