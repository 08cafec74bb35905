//! Ways to reach a server: every transport, directly and through a node.

use std::path::Path;
use std::sync::Arc;

use client::{Attachment, Builder, Caller, Client, Name, Server};
use door::{Acceptor, Spawn};
use door_native::Door;
use messaging::Limits;
use net::Address;
use node::Parts;
use parking_lot::Mutex;
use platform::{Clock, Entropy, Ports};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::inproc;

/// A node in this process with one address.
pub(crate) struct Node {
    pub(crate) handle: node::Node,
    address: String,
    tasks: Arc<Tasks>,
}

#[derive(Default)]
struct Tasks(Mutex<JoinSet<()>>);

struct Serve {
    door: Door,
    tasks: Arc<Tasks>,
}

impl Spawn for Serve {
    fn spawn(&self, accepted: Acceptor) {
        let door = self.door.clone();
        self.tasks.0.lock().spawn(async move {
            if let Ok(stream) = accepted() {
                door.serve(stream).await;
            }
        });
    }
}

impl Node {
    pub(crate) async fn start(address: &str) -> Self {
        Self::start_with(address, door_native::Options::default(), None).await
    }

    /// Starts a node; `tls` has the paths of the certificate and its key.
    pub(crate) async fn start_with(
        address: &str,
        options: door_native::Options,
        tls: Option<&Certificate>,
    ) -> Self {
        Self::start_within(Limits::default(), address, options, tls).await
    }

    /// Starts a node with limits.
    pub(crate) async fn start_within(
        limits: Limits,
        address: &str,
        options: door_native::Options,
        tls: Option<&Certificate>,
    ) -> Self {
        let ports = Ports {
            clock: Arc::new(TokioClock(Instant::now())),
            entropy: Arc::new(Dice(Mutex::new(fastrand::Rng::new()))),
        };
        let handle = node::Node::open(Parts {
            limits,
            ..Parts::in_memory(ports)
        });
        let handle = handle.unwrap();
        let door = Door::new(handle.clone(), Arc::new(door::Open), options);
        let tasks = Arc::new(Tasks::default());
        let spawn = Arc::new(Serve {
            door,
            tasks: tasks.clone(),
        });
        let mut address: Address = address.parse().unwrap();
        let budget = net::SocketBudget::unlimited();
        let mut spawned = tasks.0.lock();
        match &mut address {
            Address::Tcp { port, .. } => {
                let listener = listen(port);
                spawned.spawn(door_native::accept_tcp(listener, None, budget, spawn));
            }
            Address::Tls { port, .. } => {
                let listener = listen(port);
                let made = tls.unwrap();
                let tls = net::load_server_config(&made.certificate(), &made.key()).unwrap();
                spawned.spawn(door_native::accept_tcp(listener, Some(tls), budget, spawn));
            }
            Address::Unix { path } => {
                let listener = tokio::net::UnixListener::bind(path).unwrap();
                spawned.spawn(door_native::accept_unix(listener, budget, spawn));
            }
            Address::Inproc { name } => {
                let listener = net::inproc::listen(name).unwrap();
                spawned.spawn(door_native::accept_inproc(listener, spawn));
            }
        }
        spawned.spawn(door::sweep(handle.clone()));
        drop(spawned);
        Self {
            handle,
            address: address.to_string(),
            tasks,
        }
    }

    /// Returns the address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the address of an agent.
    pub(crate) fn address_of(&self, name: &Name) -> String {
        format!("{}#{name}", self.address)
    }

    /// Returns a client of this node.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.address).await.unwrap()
    }

    /// Returns a client of this node that sends under `name`.
    pub(crate) async fn named(&self, name: &str) -> Client {
        let builder = Client::builder().name(name).unwrap();
        builder.connect(&self.address).await.unwrap()
    }

    /// Stops the node at once, and waits until its address is free.
    pub(crate) async fn kill(self) {
        let mut tasks = std::mem::take(&mut *self.tasks.0.lock());
        tasks.shutdown().await;
        self.handle.messaging().close_all();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.tasks.0.lock().abort_all();
    }
}

/// Listens on a loopback port; replaces port 0 in the address.
fn listen(port: &mut u16) -> tokio::net::TcpListener {
    let bound = std::net::TcpListener::bind(("127.0.0.1", *port)).unwrap();
    bound.set_nonblocking(true).unwrap();
    *port = bound.local_addr().unwrap().port();
    tokio::net::TcpListener::from_std(bound).unwrap()
}

/// Tokio's clock, so that pausing it also pauses the node.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn unix_ms(&self) -> u64 {
        1_700_000_000_000 + self.0.elapsed().as_millis() as u64
    }
}

struct Dice(Mutex<fastrand::Rng>);

impl Entropy for Dice {
    fn next_u64(&self) -> u64 {
        self.0.lock().u64(..)
    }
}

/// A self-signed certificate for `localhost`, in a temporary directory.
pub(crate) struct Certificate(TempDir);

impl Certificate {
    pub(crate) fn make() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let this = Self(TempDir::new().unwrap());
        std::fs::write(this.certificate(), made.cert.pem()).unwrap();
        std::fs::write(this.key(), made.signing_key.serialize_pem()).unwrap();
        this
    }

    pub(crate) fn certificate(&self) -> std::path::PathBuf {
        self.0.path().join("certificate.pem")
    }

    pub(crate) fn key(&self) -> std::path::PathBuf {
        self.0.path().join("key.pem")
    }

    /// Returns a client that trusts the certificate.
    pub(crate) fn trusted(&self) -> Builder {
        Client::builder().authorities(self.certificate())
    }

    fn dir(&self) -> &Path {
        self.0.path()
    }
}

/// Name to which servers are attached.
pub(crate) fn name() -> Name {
    Name::parse("acme/test/server").unwrap()
}

/// Attaches `server` to `node` and returns a caller.
pub(crate) async fn through_a_node(node: &Node, server: &Server) -> (Attachment, Caller) {
    let attached = server.attach(&node.client().await, &name()).await.unwrap();
    let caller = Caller::connect(&node.address_of(&name())).await.unwrap();
    (attached, caller)
}

/// Runs `check` with callers of `server` over eight ways: directly and through a node, over each
/// transport. Only the address differs.
pub(crate) async fn over_every_transport(server: &Server, check: impl AsyncFn(Caller)) {
    let made = Certificate::make();
    let addresses = |kind: &str| {
        [
            "tcp://127.0.0.1:0".to_owned(),
            format!("unix://{}", made.dir().join(kind).display()),
            inproc(),
            "tls://localhost:0".to_owned(),
        ]
    };
    let server = server.clone().tls(made.certificate(), made.key());
    for address in addresses("server") {
        let listening = server.listen(&address).await.unwrap();
        eprintln!("at {}", listening.address());
        let caller = made.trusted().connect_caller(listening.address()).await;
        check(caller.unwrap()).await;
    }
    for address in addresses("node") {
        let options = door_native::Options::default();
        let node = Node::start_with(&address, options, Some(&made)).await;
        let address = node.address_of(&name());
        eprintln!("at {address}");
        let beside = made.trusted().connect(node.address()).await.unwrap();
        let attached = server.attach(&beside, &name()).await.unwrap();
        let caller = made.trusted().connect_caller(&address).await.unwrap();
        check(caller).await;
        drop(attached);
        node.kill().await;
    }
}
