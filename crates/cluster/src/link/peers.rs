//! The links to all peers.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use net::Stream;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::connection::Connection;
use super::handshake::{self, Greeted, HandshakeError};
use super::key::Key;
use super::serve::Server;
use super::{Admission, Channel, Identity};

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
    pub(super) server: Arc<Server>,
    pub(super) admission: Arc<Admission>,
    links: Mutex<BTreeMap<(u64, u8), Arc<Link>>>,
    tasks: Mutex<JoinSet<()>>,
}

/// A channel to a peer, whose connection is replaced when it ends.
pub(crate) struct Link {
    /// Where the peer is, for the side that dials.
    address: watch::Sender<String>,
    current: Mutex<Option<Arc<Connection>>>,
    /// Notified when there is another one. Unlike a watch channel it wakes those that wait in their
    /// order, so that a simulation has one run for each seed.
    replaced: Notify,
}

impl Link {
    fn new(address: &str) -> Arc<Link> {
        Arc::new(Link {
            address: watch::Sender::new(address.to_owned()),
            current: Mutex::default(),
            replaced: Notify::new(),
        })
    }

    /// Waits for a connection.
    pub(super) async fn connection(&self) -> Arc<Connection> {
        loop {
            let replaced = self.replaced.notified();
            tokio::pin!(replaced);
            replaced.as_mut().enable();
            let connection = self.current.lock().clone();
            if let Some(connection) = connection.filter(|it| !it.is_over()) {
                return connection;
            }
            replaced.await;
        }
    }

    /// Replaces the connection.
    fn set(&self, connection: Arc<Connection>) {
        let previous = self.current.lock().replace(connection);
        previous.iter().for_each(|it| it.close());
        self.replaced.notify_waiters();
    }
}

impl Peers {
    /// Creates a node's links. Requests of peers go to `server`.
    pub(crate) fn new(
        own: Identity,
        key: Key,
        dialer: Box<dyn Dialer>,
        server: Arc<Server>,
        admission: Arc<Admission>,
    ) -> Arc<Peers> {
        Arc::new(Peers {
            own,
            key,
            dialer,
            server,
            admission,
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
        self.disconnect();
    }

    fn disconnect(&self) {
        for link in self.links.lock().values() {
            let connection = link.current.lock().take();
            connection.iter().for_each(|it| it.close());
        }
    }

    /// Serves a connection that a peer has dialed, until it ends.
    pub(crate) async fn accept(self: &Arc<Self>, mut stream: Stream) -> Result<(), HandshakeError> {
        let greeted = handshake::answer(&mut stream, self.own, &self.key).await?;
        match greeted.channel {
            Channel::Pipe | Channel::Join => self.admission.check_own()?,
            Channel::Pulse | Channel::Log | Channel::Bulk => {}
        }
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
        self.admit(&mut stream, greeted).await?;
        let (connection, source) = Connection::new(stream, greeted.peer.id, greeted.channel);
        self.dialed_link(greeted).set(connection.clone());
        connection.run(source, self.server.clone()).await;
        Ok(())
    }

    /// Admits a member, which admits this node. If that fails because this node has lost data, it
    /// takes part no more, and ends all connections. It still shows all members why.
    async fn admit(&self, stream: &mut Stream, greeted: Greeted) -> Result<(), HandshakeError> {
        let admitted = self.admission.admit(stream, greeted.peer).await;
        if let Err(HandshakeError::Outdated(_)) = admitted {
            self.server.set_shards(Vec::new());
            self.disconnect();
        }
        admitted
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
        let greeted = handshake::greet(&mut stream, self.own, peer, channel, &self.key).await?;
        self.admit(&mut stream, greeted).await?;
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
