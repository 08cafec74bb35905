//! Accepts connections of SLIM applications, until the listener is closed.
//!
//! SLIM's library retries forever when a connection is refused, and gives up permanently at any
//! later failure. So the listener is closed before the streams of a node that shuts down are ended,
//! and connections that the system had accepted by then are served. For the same reason a
//! connection is accepted only when the budget of sockets has room for it: until then it waits in
//! the system's queue.

use std::sync::Arc;

use door::{Accepting, WhenFull};
use door::{Spawn, spawn_with};
use net::SocketBudget;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

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
    /// Accepts TCP connections, with TLS if it is configured.
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

    /// Closes the listeners. Accepted connections stay open; new ones are refused.
    pub async fn close(self) {
        let Self { mut tasks, open } = self;
        drop(open);
        while tasks.join_next().await.is_some() {}
    }
}

/// Accepts until `open` ends and no connection that the system has accepted is left.
async fn accept_tcp(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    budget: SocketBudget,
    spawn: Arc<dyn Spawn>,
    mut open: watch::Receiver<()>,
) {
    let mut accepting = Accepting::new(listener, budget, WhenFull::Wait);
    while let Some((socket, permit)) = accepting.next_while(&mut open).await {
        let tls = tls.clone();
        spawn_with(&*spawn, socket.into_std(), permit, move |socket| {
            let socket = TcpStream::from_std(socket)?;
            match tls {
                Some(config) => net::split_tls_accepted(socket, config),
                None => net::split_tcp(socket),
            }
        });
    }
}

/// Accepts as [`accept_tcp`] does.
async fn accept_unix(
    listener: UnixListener,
    budget: SocketBudget,
    spawn: Arc<dyn Spawn>,
    mut open: watch::Receiver<()>,
) {
    let mut accepting = Accepting::new(listener, budget, WhenFull::Wait);
    while let Some((socket, permit)) = accepting.next_while(&mut open).await {
        spawn_with(&*spawn, socket.into_std(), permit, |socket| {
            net::split_unix(UnixStream::from_std(socket)?)
        });
    }
}
