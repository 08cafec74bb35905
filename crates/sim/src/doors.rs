//! The listeners of a simulated node, and connections to them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use door::Open;
use door_http::EncodeMetrics;
use door_kafka::Arrived;
use net::Stream;
use node::Node;
use parking_lot::Mutex;

use crate::Network;
use crate::io::Io;

/// The address that the listeners believe to have.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The metrics of the listeners besides HTTP.
const METRICS: [EncodeMetrics; 1] = [door_kafka::encode_metrics];

/// The listeners of a running node.
#[derive(Clone)]
pub(crate) struct Doors {
    native: door_native::Door,
    kafka: Option<door_kafka::Door>,
    routes: http_api::Routes,
    http: door_http::Options,
}

impl Doors {
    /// Opens all listeners of a node, without authentication.
    pub(crate) fn open(node: &Node) -> Self {
        let gate = Arc::new(Open);
        let http = door_http::Options::default();
        let kafka = node.topics().map(|topics| {
            let users = Arc::new(topics.clone());
            let options = door_kafka::Options::default();
            door_kafka::Door::new(node.clone(), topics, gate.clone(), users, options)
        });
        Self {
            native: door_native::Door::new(
                node.clone(),
                gate.clone(),
                door_native::Options::default(),
            ),
            kafka,
            routes: door_http::routes(node.clone(), gate, http.connections.clone(), &METRICS, None),
            http,
        }
    }
}

/// Opens connections from one host to a node. Cheap to clone.
#[derive(Clone)]
pub struct Dialer {
    network: Network,
    host: &'static str,
    /// The listeners; `None` while the node is down.
    doors: Arc<Mutex<Option<Doors>>>,
}

impl Dialer {
    pub(crate) fn new(
        network: Network,
        host: &'static str,
        doors: Arc<Mutex<Option<Doors>>>,
    ) -> Self {
        Self {
            network,
            host,
            doors,
        }
    }

    /// Connects to the native listener.
    pub fn native(&self) -> io::Result<Stream> {
        let (doors, near, far) = self.connect()?;
        tokio::spawn(async move { doors.native.serve(far).await });
        Ok(near)
    }

    /// Connects to the Kafka listener.
    pub fn kafka(&self) -> io::Result<Stream> {
        let (doors, near, stream) = self.connect()?;
        let door = doors.kafka.ok_or(io::ErrorKind::ConnectionRefused)?;
        let local = SocketAddr::new(ADDRESS, 9092);
        tokio::spawn(async move { door.serve(Arrived { stream, local }).await });
        Ok(near)
    }

    /// Connects to the HTTP listener.
    pub fn http(&self) -> io::Result<Stream> {
        let (doors, near, far) = self.connect()?;
        let (routes, options) = (doors.routes, doors.http);
        tokio::spawn(door_http::serve_stream(
            Io::new(far),
            ADDRESS,
            routes,
            options,
        ));
        Ok(near)
    }

    fn connect(&self) -> io::Result<(Doors, Stream, Stream)> {
        let doors = self.doors.lock().clone();
        let doors = doors.ok_or(io::ErrorKind::ConnectionRefused)?;
        let (near, far) = self.network.connect(self.host, "node");
        Ok((doors, near, far))
    }
}
