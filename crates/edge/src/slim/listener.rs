//! Accepts the connections of SLIM applications, until the listener is closed.
//!
//! SLIM's library tries again for ever when a connection is refused, and gives up for good at any failure
//! behind that. So the listener has an end of its own: it is closed before the streams of a node that goes down
//! are ended, and connections that the system had accepted by then are served. For the same reason a
//! connection is accepted only once the budget of sockets has room for it: until then it waits in the
//! system's queue.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use net::{SocketBudget, SocketPermit};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::native::Spawn;

/// After an accept failed (out of descriptors, say), how long to wait before the next one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often the budget of sockets is asked whether it has room again.
const BUDGET_INTERVAL: Duration = Duration::from_millis(250);

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
        budget: SocketBudget,
        spawn: Arc<dyn Spawn>,
    ) {
        let open = self.open.subscribe();
        self.tasks
            .spawn(accept_tcp(listener, tls, budget, spawn, open));
    }

    /// Accepts connections on a Unix socket.
    pub fn accept_unix(
        &mut self,
        listener: UnixListener,
        budget: SocketBudget,
        spawn: Arc<dyn Spawn>,
    ) {
        let open = self.open.subscribe();
        self.tasks.spawn(accept_unix(listener, budget, spawn, open));
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
    budget: SocketBudget,
    spawn: Arc<dyn Spawn>,
    mut open: watch::Receiver<()>,
) {
    loop {
        let permit = tokio::select! {
            biased;
            permit = room(&budget) => permit,
            _ = open.changed() => return,
        };
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
                    let stream = match tls {
                        Some(config) => net::split_tls_accepted(socket, config),
                        None => net::split_tcp(socket),
                    };
                    Ok(stream?.with_permit(permit))
                }));
            }
            Err(error) => pause(&error).await,
        }
    }
}

/// Like [`accept_tcp`].
async fn accept_unix(
    listener: UnixListener,
    budget: SocketBudget,
    spawn: Arc<dyn Spawn>,
    mut open: watch::Receiver<()>,
) {
    loop {
        let permit = tokio::select! {
            biased;
            permit = room(&budget) => permit,
            _ = open.changed() => return,
        };
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            _ = open.changed() => return,
        };
        match accepted.and_then(|(socket, _)| socket.into_std()) {
            Ok(socket) => spawn.spawn(Box::new(move || {
                let stream = net::split_unix(UnixStream::from_std(socket)?)?;
                Ok(stream.with_permit(permit))
            })),
            Err(error) => pause(&error).await,
        }
    }
}

/// Waits until the budget has room for another connection.
async fn room(budget: &SocketBudget) -> SocketPermit {
    loop {
        // A refusal would be counted as one of a client.
        let has_room = budget.open() < budget.limit();
        if let Some(permit) = has_room.then(|| budget.admit()).flatten() {
            return permit;
        }
        tokio::time::sleep(BUDGET_INTERVAL).await;
    }
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "cannot accept a SLIM connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
