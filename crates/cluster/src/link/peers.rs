//! The links to all peers.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use net::Stream;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::handshake::{self, Greeted, HandshakeError};
use super::key::Key;
use super::serve::Server;
use super::{Channel, Identity};

/// Pause between two attempts to connect, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Opens byte streams to peers.
pub trait Dialer: Send + Sync {
    /// Connects to an address, `HOST:PORT`.
    fn dial(&self, address: &str) -> BoxFuture<'static, io::Result<Stream>>;
}

/// The links of a node to its peers.
pub(crate) struct Peers {
    own: Identity,
    key: Key,
    dialer: Box<dyn Dialer>,
    server: Arc<Server>,
    links: Mutex<BTreeMap<(u64, u8), Arc<Link>>>,
    tasks: Mutex<JoinSet<()>>,
}

/// A channel to a peer, whose connection is replaced when it ends.
pub(crate) struct Link {
    /// Where the peer is, for the side that dials.
    address: watch::Sender<String>,
    current: watch::Sender<Option<Arc<Connection>>>,
}

impl Link {
    fn new(address: &str) -> Arc<Link> {
        Arc::new(Link {
            address: watch::Sender::new(address.to_owned()),
            current: watch::Sender::default(),
        })
    }

    /// Waits for a connection.
    pub(super) async fn connection(&self) -> Arc<Connection> {
        let mut current = self.current.subscribe();
        loop {
            let connection = current.borrow_and_update().clone();
            if let Some(connection) = connection.filter(|it| !it.is_over()) {
                return connection;
            }
            // The sender is in this link, so it is not dropped.
            let _ = current.changed().await;
        }
    }

    /// Replaces the connection.
    fn set(&self, connection: Arc<Connection>) {
        if let Some(previous) = self.current.send_replace(Some(connection)) {
            previous.close();
        }
    }
}

impl Peers {
    /// Creates a node's links. Requests of peers go to `server`.
    pub(crate) fn new(
        own: Identity,
        key: Key,
        dialer: Box<dyn Dialer>,
        server: Arc<Server>,
    ) -> Arc<Peers> {
        Arc::new(Peers {
            own,
            key,
            dialer,
            server,
            links: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    /// Keeps connections to a member on all channels.
    pub(crate) fn connect_to(self: &Arc<Self>, peer: u64, address: &str) {
        for channel in Channel::KEPT {
            self.link(peer, address, channel);
        }
    }

    /// Returns a channel to a peer. If this node has the lower id, it dials the address.
    pub(super) fn link(self: &Arc<Self>, peer: u64, address: &str, channel: Channel) -> Arc<Link> {
        let mut links = self.links.lock();
        let link = links.entry((peer, channel as u8)).or_insert_with(|| {
            let link = Link::new(address);
            if self.own.id < peer {
                let dialing = dial(self.clone(), link.clone(), peer, channel);
                self.tasks.lock().spawn(dialing);
            }
            link
        });
        link.address.send_if_modified(|current| {
            let is_new = current != address;
            if is_new {
                address.clone_into(current);
            }
            is_new
        });
        link.clone()
    }

    /// Returns the channel to a peer that has dialed.
    fn dialed_link(&self, greeted: Greeted) -> Arc<Link> {
        let place = (greeted.peer.id, greeted.channel as u8);
        let mut links = self.links.lock();
        links.entry(place).or_insert_with(|| Link::new("")).clone()
    }

    /// Ends all connections, and dials no more.
    pub(crate) fn close(&self) {
        self.tasks.lock().abort_all();
        for link in self.links.lock().values() {
            let connection = link.current.send_replace(None);
            connection.iter().for_each(|it| it.close());
        }
    }

    /// Serves a connection that a peer has dialed, until it ends.
    pub(crate) async fn accept(self: &Arc<Self>, mut stream: Stream) -> Result<(), HandshakeError> {
        let greeted = handshake::answer(&mut stream, self.own, &self.key).await?;
        match greeted.channel {
            Channel::Pipe => {
                self.server.services().pipe(greeted.peer.id, stream).await;
                return Ok(());
            }
            Channel::Join => {
                self.server.services().join(stream).await;
                return Ok(());
            }
            Channel::Pulse | Channel::Log | Channel::Bulk => {}
        }
        let (connection, source) = Connection::new(stream, greeted.peer.id, greeted.channel);
        self.dialed_link(greeted).set(connection.clone());
        connection.run(source, self.server.clone()).await;
        Ok(())
    }

    /// Connects a client's bytes to a peer.
    pub(crate) async fn open_pipe(
        &self,
        peer: u64,
        address: &str,
    ) -> Result<Stream, HandshakeError> {
        let mut stream = self.dialer.dial(address).await?;
        handshake::greet(&mut stream, self.own, peer, Channel::Pipe, &self.key).await?;
        Ok(stream)
    }

    /// Dials a peer, and returns when the connection has ended.
    async fn connect(
        &self,
        link: &Link,
        address: &str,
        peer: u64,
        channel: Channel,
    ) -> Result<(), HandshakeError> {
        let mut stream = self.dialer.dial(address).await?;
        handshake::greet(&mut stream, self.own, peer, channel, &self.key).await?;
        let (connection, source) = Connection::new(stream, peer, channel);
        link.set(connection.clone());
        connection.run(source, self.server.clone()).await;
        Ok(())
    }
}

/// Keeps a connection to a peer.
async fn dial(peers: Arc<Peers>, link: Arc<Link>, peer: u64, channel: Channel) {
    let mut addresses = link.address.subscribe();
    let mut pause = PAUSE_MIN;
    loop {
        let address = addresses.borrow_and_update().clone();
        let was_connected = tokio::select! {
            biased;
            ended = peers.connect(&link, &address, peer, channel) => ended.is_ok(),
            _ = addresses.changed() => true,
        };
        pause = match was_connected {
            true => PAUSE_MIN,
            false => PAUSE_MAX.min(2 * pause),
        };
        tokio::time::sleep(pause).await;
    }
}
