//! Accepts the connections of SLIM applications, until the listener is closed.
//!
//! SLIM's library tries again for ever when a connection is refused, and gives up for good at any failure
//! behind that. So the listener has an end of its own: it is closed before the streams of a node that goes down
//! are ended, and connections that the system had accepted by then are served.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::native::Spawn;

/// After an accept failed (out of descriptors, say), how long to wait before the next one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The open listeners of SLIM applications. Dropping this stops them at once.
#[derive(Debug)]
pub struct Listeners {
    tasks: JoinSet<()>,
    /// Dropped when the listeners are to be closed.
    open: watch::Sender<()>,
}

impl Default for Listeners {
    fn default() -> Self {
        Self {
            tasks: JoinSet::new(),
            open: watch::Sender::new(()),
        }
    }
}

impl Listeners {
    /// Accepts TCP connections, inside TLS when there is a configuration.
    pub fn accept_tcp(
        &mut self,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
        spawn: Arc<dyn Spawn>,
    ) {
        let open = self.open.subscribe();
        self.tasks.spawn(accept_tcp(listener, tls, spawn, open));
    }

    /// Accepts connections on a Unix socket.
    pub fn accept_unix(&mut self, listener: UnixListener, spawn: Arc<dyn Spawn>) {
        let open = self.open.subscribe();
        self.tasks.spawn(accept_unix(listener, spawn, open));
    }

    /// Closes the listeners. Connections that were accepted stay open; from now on new ones are refused.
    pub async fn close(self) {
        let Self { mut tasks, open } = self;
        drop(open);
        while tasks.join_next().await.is_some() {}
    }
}

/// Accepts until `open` ends and no connection is left that the system has accepted.
async fn accept_tcp(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    spawn: Arc<dyn Spawn>,
    mut open: watch::Receiver<()>,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            _ = open.changed() => return,
        };
        match accepted.and_then(|(socket, _)| socket.into_std()) {
            Ok(socket) => {
                let tls = tls.clone();
                spawn.spawn(Box::new(move || {
                    let socket = TcpStream::from_std(socket)?;
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

/// Like [`accept_tcp`].
async fn accept_unix(listener: UnixListener, spawn: Arc<dyn Spawn>, mut open: watch::Receiver<()>) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            _ = open.changed() => return,
        };
        match accepted.and_then(|(socket, _)| socket.into_std()) {
            Ok(socket) => spawn.spawn(Box::new(move || {
                net::split_unix(UnixStream::from_std(socket)?)
            })),
            Err(error) => pause(&error).await,
        }
    }
}

async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "cannot accept a SLIM connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
