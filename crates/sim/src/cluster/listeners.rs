//! Connections to the nodes of a cluster: of their peers, and of clients, which a node that does not
//! lead passes on to the leader.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ::cluster::{Acceptor, Node};
use door_kafka::{Arrived, Door};
use futures_util::future::BoxFuture;
use net::{Sink, Stream};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::Network;

/// The first byte of a client's connection that a node passes on.
const KAFKA: u8 = 1;

/// Port of the links between nodes.
const PORT: &str = ":7402";

/// The address that the Kafka listener believes to have.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9092);

/// The listeners of all nodes. A clone is the same.
#[derive(Clone)]
pub(super) struct Listeners {
    pub(super) network: Network,
    nodes: Arc<Mutex<BTreeMap<u64, Listener>>>,
}

/// The listeners of a running node.
#[derive(Clone)]
pub(super) struct Listener {
    pub(super) node: Arc<Node>,
    pub(super) acceptor: Acceptor,
    pub(super) services: OpenServices,
    /// The connections of peers, which end with the node.
    pub(super) connections: Arc<Mutex<JoinSet<()>>>,
}

/// The Kafka listener of a node while it leads. A clone is the same.
#[derive(Clone, Default)]
pub(super) struct OpenServices(Arc<Mutex<Option<Services>>>);

/// The Kafka listener of a leader, and its connections.
struct Services {
    door: Door,
    connections: JoinSet<()>,
}

/// Closes a connection when it is dropped.
struct Closing(Arc<dyn Sink>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns the host of a node.
pub(super) fn host(id: u64) -> String {
    format!("node-{id}")
}

/// Returns the address of a node's link.
pub(super) fn address(id: u64) -> String {
    host(id) + PORT
}

impl OpenServices {
    /// Opens the listener.
    pub(super) fn open(&self, door: Door) {
        let connections = JoinSet::new();
        *self.0.lock() = Some(Services { door, connections });
    }

    /// Closes the listener and its connections.
    pub(super) fn close(&self) {
        *self.0.lock() = None;
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Serves the connection of a client. Returns false, and closes it, if the node does not lead.
    pub(super) fn serve(&self, stream: Stream) -> bool {
        let closing = Closing(stream.sink.clone());
        let mut services = self.0.lock();
        let Some(services) = &mut *services else {
            return false;
        };
        let door = services.door.clone();
        services.connections.spawn(async move {
            let _closing = closing;
            let local = ADDRESS;
            door.serve(Arrived { stream, local }).await;
        });
        true
    }

    /// Serves the connection of a client that another node passes on.
    pub(super) async fn serve_passed(self, mut stream: Stream) {
        let mut protocol = [0];
        match net::read_exact(&mut *stream.source, &mut protocol).await {
            Ok(()) if protocol == [KAFKA] => drop(self.serve(stream)),
            _ => stream.sink.close(),
        }
    }
}

impl Listeners {
    pub(super) fn new(network: Network) -> Listeners {
        Listeners {
            network,
            nodes: Arc::default(),
        }
    }

    /// Lets a node accept connections.
    pub(super) fn add(&self, id: u64, listener: Listener) {
        self.nodes.lock().insert(id, listener);
    }

    /// Ends all connections of a node, which accepts no more.
    pub(super) fn remove(&self, id: u64) {
        if let Some(listener) = self.nodes.lock().remove(&id) {
            listener.services.close();
            listener.connections.lock().abort_all();
        }
        self.network.cut_host(&host(id));
    }

    fn listener(&self, id: u64) -> io::Result<Listener> {
        let listener = self.nodes.lock().get(&id).cloned();
        listener.ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
    }

    /// Connects a client to a node, or through it to the leader.
    pub(super) async fn connect(&self, client: &str, id: u64) -> io::Result<Stream> {
        let listener = self.listener(id)?;
        if listener.services.is_open() {
            let (near, far) = self.network.dial(client, &host(id)).await?;
            listener.services.serve(far);
            return Ok(near);
        }
        let leader = listener.node.leader().filter(|leader| *leader != id);
        let leader = leader.ok_or(io::ErrorKind::NotConnected)?;
        let stream = listener.node.open_pipe(leader).await;
        let stream = stream.map_err(io::Error::other)?;
        net::write_all(&*stream.sink, &[KAFKA]).await?;
        Ok(stream)
    }

    async fn dial(self, from: u64, to: u64) -> io::Result<Stream> {
        let (near, far) = self.network.dial(&host(from), &host(to)).await?;
        let Ok(Listener {
            acceptor,
            connections,
            ..
        }) = self.listener(to)
        else {
            near.sink.close();
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let mut connections = connections.lock();
        while connections.try_join_next().is_some() {}
        connections.spawn(async move { drop(acceptor.accept(far).await) });
        Ok(near)
    }
}

/// Dials the peers of a node.
pub(super) struct Dialer {
    pub(super) from: u64,
    pub(super) listeners: Listeners,
}

impl ::cluster::Dialer for Dialer {
    fn dial(&self, to: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let number = to.trim_start_matches("node-").trim_end_matches(PORT);
        let (from, listeners) = (self.from, self.listeners.clone());
        match number.parse() {
            Ok(to) => Box::pin(listeners.dial(from, to)),
            Err(_) => Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into()))),
        }
    }
}
