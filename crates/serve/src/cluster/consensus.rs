//! The thread on which consensus runs, and the connections between members.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Acceptor, Dialer, Key, Node, Services, Settings, StartError};
use config::{Config, HostPort};
use console::{Exit, Failure};
use futures_util::future::BoxFuture;
use journal::Journal;
use net::{SharedSeedTls, Stream};
use platform::Ports;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::identity::Identity;
use super::report_file::{self, DataFile};

/// Connections of members, and of clients that they pass on, at most.
const CONNECTIONS_MAX: usize = 20_000;

/// Time limit of an attempt to connect.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// Time for which the leader of shard 0 must be the same before it leads the other shards too.
const SETTLE: Duration = Duration::from_millis(200);

/// Pause after an error of the listener.
const PAUSE: Duration = Duration::from_millis(100);

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// The running consensus, which ends when this is dropped.
pub(super) struct Consensus {
    pub(super) node: Arc<Node>,
    _stop: oneshot::Sender<()>,
}

/// A consensus that cannot start.
pub(super) enum NoConsensus {
    /// The log of a shard is damaged.
    Damaged(Failure),
    /// Another failure.
    Other(Failure),
}

impl From<Failure> for NoConsensus {
    fn from(failure: Failure) -> NoConsensus {
        NoConsensus::Other(failure)
    }
}

/// The parts of a consensus.
pub(super) struct Parts {
    pub(super) identity: Identity,
    pub(super) key: Key,
    pub(super) journal: Arc<Journal>,
    pub(super) services: Arc<dyn Services>,
    pub(super) reports: DataFile,
    pub(super) ports: Ports,
}

impl Consensus {
    /// Starts the consensus on a thread of its own, and listens for members.
    pub(super) async fn start(config: &Config, parts: Parts) -> Result<Consensus, NoConsensus> {
        let listen = config.cluster.listen.clone();
        let listen = listen.ok_or_else(|| failed("`cluster.listen` is `none`"))?;
        let tls = Tls::new(config, &parts.key)?;
        let (started, start) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("consensus".to_owned());
        let spawned = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => runtime.block_on(run(&listen, tls, parts, started, stopped)),
                Err(error) => drop(started.send(Err(failed(error).into()))),
            }
        });
        spawned.map_err(failed)?;
        let node = start.await.map_err(|_| failed("its thread has ended"))??;
        Ok(Consensus { node, _stop: stop })
    }
}

async fn run(
    listen: &HostPort,
    tls: Option<Tls>,
    parts: Parts,
    started: oneshot::Sender<Result<Arc<Node>, NoConsensus>>,
    stopped: oneshot::Receiver<()>,
) {
    let listener = match net::listen_tcp(&listen.to_string()).await {
        Ok(listener) => listener,
        Err(error) => {
            let message = format!("`cluster.listen`: cannot listen on {listen}: {error}");
            let failure = Failure::new(Exit::Unavailable, message)
                .hint("choose another address: --cluster-listen HOST:PORT");
            return drop(started.send(Err(failure.into())));
        }
    };
    let dialer = TcpDialer { tls: tls.clone() };
    let settings = Settings {
        cluster: parts.identity.cluster().unwrap_or_default(),
        id: parts.identity.id,
        key: parts.key,
        entropy: parts.ports.entropy.next_u64(),
        settle: SETTLE,
    };
    let clock = parts.ports.clock.clone();
    let now_ms = move || clock.unix_ms();
    let node = Node::start(
        parts.journal,
        settings,
        Box::new(dialer),
        parts.services,
        Box::new(parts.reports),
        now_ms,
    );
    let node = match node.await {
        Ok(node) => Arc::new(node),
        Err(error @ StartError::Log(_)) => {
            return drop(started.send(Err(NoConsensus::Damaged(failed(error)))));
        }
        Err(error @ StartError::Reports(_)) => {
            let failure = failed(error).hint(format!(
                "remove `{}` from the data directory: this node then recognises a member that comes \
                 back older only by what it hears from now on",
                report_file::NAME
            ));
            return drop(started.send(Err(NoConsensus::Damaged(failure))));
        }
        Err(error) => return drop(started.send(Err(failed(error).into()))),
    };
    let accepting = accept(listener, tls, node.acceptor());
    let _ = started.send(Ok(node.clone()));
    tokio::select! {
        () = accepting => {}
        _ = stopped => {}
    }
}

/// Accepts connections for ever.
async fn accept(listener: TcpListener, tls: Option<Tls>, acceptor: Acceptor) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of a member");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (tls, acceptor) = (tls.clone(), acceptor.clone());
        tokio::spawn(async move {
            let served = async {
                let stream = open(socket, tls.as_ref()).await?;
                acceptor.accept(stream).await
            };
            if let Err(error) = served.await {
                tracing::warn!(%peer, %error, "a connection of a member has failed");
            }
            drop(permit);
        });
    }
}

/// Opens an accepted socket. Plain ones are accepted from this machine, or if TLS is off.
async fn open(socket: TcpStream, tls: Option<&Tls>) -> io::Result<Stream> {
    let mut first = [0];
    let peeked = timeout(CONNECT_MAX, socket.peek(&mut first)).await;
    peeked.map_err(|_| io::ErrorKind::TimedOut)??;
    let is_local = socket.peer_addr()?.ip().is_loopback();
    match tls {
        Some(tls) if first[0] == TLS_HANDSHAKE => {
            net::split_tls_accepted(socket, tls.0.server.clone())
        }
        Some(_) if !is_local => {
            let message = "a connection without TLS (`cluster.insecure` allows them)";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        }
        _ => net::split_tcp(socket),
    }
}

/// The TLS configurations of the cluster.
#[derive(Clone)]
pub(super) struct Tls(SharedSeedTls);

impl Tls {
    /// Returns the configurations, unless TLS is off.
    pub(super) fn new(config: &Config, key: &Key) -> Result<Option<Tls>, Failure> {
        if config.cluster.insecure {
            return Ok(None);
        }
        let tls = SharedSeedTls::new(&key.tls_seed()).map_err(failed)?;
        Ok(Some(Tls(tls)))
    }
}

/// Dials members over TCP, with TLS unless it is off or the member is on this machine.
pub(super) struct TcpDialer {
    pub(super) tls: Option<Tls>,
}

impl Dialer for TcpDialer {
    fn dial(&self, address: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let (address, tls) = (address.to_owned(), self.tls.clone());
        Box::pin(async move {
            let connected = timeout(CONNECT_MAX, TcpStream::connect(&address)).await;
            let socket = connected.map_err(|_| io::ErrorKind::TimedOut)??;
            match tls {
                Some(tls) if !socket.peer_addr()?.ip().is_loopback() => {
                    let connecting = net::split_tls_connected(socket, "member", tls.0.client);
                    let connected = timeout(CONNECT_MAX, connecting).await;
                    connected.map_err(|_| io::ErrorKind::TimedOut)?
                }
                _ => net::split_tcp(socket),
            }
        })
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("the consensus cannot start: {error}"))
}
