//! The sockets of the listeners.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, HostPort};
use console::{Exit, Failure};
use door::{Gate, Spawn};
use door_http::EncodeMetrics;
use net::SocketBudget;
use parking_lot::Mutex;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{AbortHandle, JoinSet};

use super::descriptors;
use super::high_descriptors::{lift_tcp, lift_unix};
use super::limiter::CompatLimiter;
use super::workers::Workers;

/// The metrics of the listeners besides HTTP, which the HTTP API shows.
pub(super) const METRICS: [EncodeMetrics; 2] =
    [door_slim::encode_metrics, door_kafka::encode_metrics];

/// The addresses of the node.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    pub(super) native: Option<SocketAddr>,
    pub(super) socket: Option<PathBuf>,
    pub(super) http: Option<SocketAddr>,
    pub(super) kafka: Option<SocketAddr>,
    pub(super) slim: Option<SocketAddr>,
    pub(super) slim_socket: Option<PathBuf>,
    pub(super) limiter: Option<SocketAddr>,
    pub(super) encrypted: bool,
}

impl Addresses {
    /// Returns the addresses of a member, which are those of its configuration.
    pub(super) fn of_member(config: &Config) -> Addresses {
        let address = |listen: &Option<HostPort>| {
            let listen = listen.as_ref()?.to_string();
            listen.to_socket_addrs().ok()?.next()
        };
        Addresses {
            native: address(&config.native.listen),
            socket: config.native.socket.path(&config.data.dir),
            http: address(&config.http.listen),
            kafka: address(&config.kafka.listen),
            slim: None,
            slim_socket: None,
            limiter: None,
            encrypted: config.tls.files().is_some(),
        }
    }
}

/// The TCP sockets of a member, which stay bound while it leads and while it does not: a client that
/// connects during a change waits for it.
pub(super) struct MemberSockets {
    native: Option<std::net::TcpListener>,
    http: Option<std::net::TcpListener>,
    kafka: Mutex<Option<std::net::TcpListener>>,
}

impl MemberSockets {
    /// Binds the configured addresses.
    pub(super) async fn bind(config: &Config) -> Result<Self, Failure> {
        Ok(Self {
            native: bind_std("native.listen", config.native.listen.as_ref()).await?,
            http: bind_std("http.listen", config.http.listen.as_ref()).await?,
            kafka: bind_std("kafka.listen", config.kafka.listen.as_ref())
                .await?
                .into(),
        })
    }

    /// Returns listeners of these sockets. Several may accept at the same time.
    pub(super) fn listeners(&self) -> Result<TcpListeners, Failure> {
        Ok(TcpListeners {
            native: duplicate("native.listen", self.native.as_ref())?,
            http: duplicate("http.listen", self.http.as_ref())?,
            kafka: duplicate("kafka.listen", self.kafka.lock().as_ref())?,
        })
    }

    /// Ends the Kafka listener, as soon as those that were returned have ended.
    pub(super) fn stop_kafka(&self) {
        *self.kafka.lock() = None;
    }
}

/// The TCP listeners of a node or of a member that does not lead.
pub(super) struct TcpListeners {
    pub(super) native: Option<TcpListener>,
    pub(super) http: Option<TcpListener>,
    pub(super) kafka: Option<TcpListener>,
}

impl TcpListeners {
    /// Binds the configured addresses.
    async fn bind(config: &Config) -> Result<Self, Failure> {
        Ok(Self {
            native: bind_tcp("native.listen", config.native.listen.as_ref()).await?,
            http: bind_tcp("http.listen", config.http.listen.as_ref()).await?,
            kafka: bind_tcp("kafka.listen", config.kafka.listen.as_ref()).await?,
        })
    }
}

async fn bind_std(
    key: &str,
    listen: Option<&HostPort>,
) -> Result<Option<std::net::TcpListener>, Failure> {
    let bound = bind_tcp(key, listen).await?;
    let bound = bound.map(TcpListener::into_std).transpose();
    bound.map_err(|error| socket_failure(key, &error))
}

fn duplicate(
    key: &str,
    socket: Option<&std::net::TcpListener>,
) -> Result<Option<TcpListener>, Failure> {
    let duplicate = |it: &std::net::TcpListener| TcpListener::from_std(it.try_clone()?);
    let listener = socket.map(duplicate).transpose();
    listener.map_err(|error| socket_failure(key, &error))
}

fn socket_failure(key: &str, error: &io::Error) -> Failure {
    let message = format!("`{key}`: cannot use the socket: {error}");
    Failure::new(Exit::Failed, message).hint("raise the limit of open files: ulimit -n")
}

/// Bound sockets; connections are accepted from [`BoundListeners::open`] on.
pub(super) struct BoundListeners {
    native: Option<TcpListener>,
    socket: Option<UnixListener>,
    http: Option<TcpListener>,
    kafka: Option<TcpListener>,
    slim: Option<TcpListener>,
    slim_socket: Option<UnixListener>,
    limiter: Option<(TcpListener, CompatLimiter)>,
    pub(super) addresses: Addresses,
}

/// Takes over accepted Kafka clients. Returns those that it does not take.
pub(super) type KafkaTaker =
    Arc<dyn Fn(door_kafka::Acceptor) -> Option<door_kafka::Acceptor> + Send + Sync>;

/// The protocols that serve the connections of the sockets.
pub(super) struct Protocols {
    pub(super) native: Arc<dyn Spawn>,
    pub(super) kafka: Option<door_kafka::Door>,
    /// Takes Kafka clients over before `kafka` serves them.
    pub(super) kafka_taker: Option<KafkaTaker>,
    pub(super) slim: Arc<dyn Spawn>,
    /// The TLS configuration for SLIM clients.
    pub(super) slim_tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) http: door_http::Options,
    pub(super) operations: Option<Arc<dyn http_api::Operations>>,
}

impl BoundListeners {
    /// Binds the configured addresses, but for those of `sockets`.
    pub(super) async fn bind(
        config: &Config,
        sockets: Option<&MemberSockets>,
        limiter: Option<CompatLimiter>,
        encrypted: bool,
    ) -> Result<Self, Failure> {
        let TcpListeners {
            native,
            http,
            kafka,
        } = match sockets {
            Some(sockets) => sockets.listeners()?,
            None => TcpListeners::bind(config).await?,
        };
        let slim = bind_tcp("slim.listen", config.slim.listen.as_ref()).await?;
        let limiter = match limiter {
            Some(limiter) => Some((limiter.bind(config.http.listen.as_ref()).await?, limiter)),
            None => None,
        };
        let path = config.native.socket.path(&config.data.dir);
        let socket = bind_unix("native.socket", path.as_deref()).await?;
        let slim_path = config.slim.socket.clone();
        let slim_socket = bind_unix("slim.socket", slim_path.as_deref()).await?;
        let (slim, slim_socket) = lift(slim, slim_socket, config)?;
        let address = |listener: &Option<TcpListener>| listener.as_ref()?.local_addr().ok();
        let addresses = Addresses {
            native: address(&native),
            socket: path,
            http: address(&http),
            kafka: address(&kafka),
            slim: address(&slim),
            slim_socket: slim_path,
            limiter: limiter.as_ref().and_then(|(it, _)| it.local_addr().ok()),
            encrypted,
        };
        Ok(Self {
            native,
            socket,
            http,
            kafka,
            slim,
            slim_socket,
            limiter,
            addresses,
        })
    }

    /// Accepts clients until the returned value is dropped.
    pub(super) fn open(
        self,
        tls: Option<Arc<rustls::ServerConfig>>,
        protocols: Protocols,
        workers: Arc<Workers>,
        node: node::Node,
        gate: Arc<dyn Gate>,
        budget: &SocketBudget,
    ) -> OpenListeners {
        let (mut open, mut kafka) = (JoinSet::new(), None);
        let mut slim = door_slim::Listeners::default();
        let spawn_http = workers.http();
        if let Some(listener) = self.native {
            let spawn = protocols.native.clone();
            let budget = budget.clone();
            open.spawn(door_native::accept_tcp(
                listener,
                tls.clone(),
                budget,
                spawn,
            ));
        }
        if let Some(listener) = self.socket {
            let (budget, spawn) = (budget.clone(), protocols.native);
            open.spawn(door_native::accept_unix(listener, budget, spawn));
        }
        if let Some(listener) = self.slim {
            let (tls, spawn) = (protocols.slim_tls, protocols.slim.clone());
            slim.accept_tcp(listener, tls, budget.clone(), spawn);
        }
        if let Some(listener) = self.slim_socket {
            slim.accept_unix(listener, budget.clone(), protocols.slim);
        }
        if let Some((listener, door)) = self.kafka.zip(protocols.kafka) {
            let tls = tls.clone();
            let taker = protocols.kafka_taker;
            let serve = move |accepted| {
                let rest = match &taker {
                    Some(taker) => taker(accepted),
                    None => Some(accepted),
                };
                if let Some(accepted) = rest {
                    workers.serve_kafka(&door, accepted);
                }
            };
            let accepting = door_kafka::accept(listener, tls, budget.clone(), serve);
            kafka = Some(open.spawn(accepting));
        }
        if let Some((listener, limiter)) = self.limiter {
            let (node, gate) = (node.clone(), gate.clone());
            let routes = http_quotas::compat_routes(node, gate, limiter.proxies);
            let options = protocols.http.clone();
            let (tls, budget) = (tls.clone(), budget.clone());
            let spawn = spawn_http.clone();
            let serving = door_http::serve(listener, tls, budget, routes, options, spawn);
            open.spawn(serving);
        }
        if let Some(listener) = self.http {
            let connections = protocols.http.connections.clone();
            let operations = protocols.operations;
            let routes = door_http::routes(node, gate, connections, &METRICS, operations);
            let (budget, options) = (budget.clone(), protocols.http);
            let serving = door_http::serve(listener, tls, budget, routes, options, spawn_http);
            open.spawn(serving);
        }
        OpenListeners {
            tasks: open,
            kafka,
            slim,
        }
    }
}

/// Listeners that accept clients. Dropping this closes them.
pub(super) struct OpenListeners {
    pub(super) tasks: JoinSet<()>,
    /// The task that accepts Kafka clients.
    pub(super) kafka: Option<AbortHandle>,
    /// The SLIM listeners, which are closed before the node ends their connections.
    pub(super) slim: door_slim::Listeners,
}

/// Moves the SLIM listeners to descriptors above those of all connections.
fn lift(
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
    config: &Config,
) -> Result<(Option<TcpListener>, Option<UnixListener>), Failure> {
    let (_, descriptors) = descriptors::granted(config.native.connections_max);
    let failed = |error: io::Error| {
        let message = format!("cannot move the SLIM listener to a high file descriptor: {error}");
        Failure::new(Exit::Failed, message)
    };
    let tcp = tcp.map(|listener| lift_tcp(listener, descriptors));
    let unix = unix.map(|listener| lift_unix(listener, descriptors));
    Ok((
        tcp.transpose().map_err(failed)?,
        unix.transpose().map_err(failed)?,
    ))
}

pub(super) async fn bind_tcp(
    key: &str,
    listen: Option<&HostPort>,
) -> Result<Option<TcpListener>, Failure> {
    let Some(listen) = listen else {
        return Ok(None);
    };
    match net::listen_tcp(&listen.to_string()).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) => Err(listen_failure(key, listen, &error)),
    }
}

fn listen_failure(key: &str, listen: &HostPort, error: &io::Error) -> Failure {
    let flag = format!("--{}", key.replace('.', "-"));
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            Failure::new(Exit::Unavailable, format!("`{key}`: {listen} is in use"))
                .hint(format!(
                    "stop the program that listens there, or choose another port: {flag} HOST:PORT"
                ))
                .hint(format!(
                    "use any free port: {flag} {}",
                    HostPort {
                        port: 0,
                        ..listen.clone()
                    }
                ))
        }
        io::ErrorKind::PermissionDenied => {
            let message = format!("`{key}`: no permission to listen on {listen}");
            Failure::new(Exit::Denied, message)
                .hint("ports below 1024 need the capability CAP_NET_BIND_SERVICE")
        }
        _ => Failure::new(
            Exit::Failed,
            format!("`{key}`: cannot listen on {listen}: {error}"),
        )
        .hint(format!(
            "choose an address of this machine: {flag} HOST:PORT"
        )),
    }
}

async fn bind_unix(key: &str, path: Option<&Path>) -> Result<Option<UnixListener>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    let flag = key.replace('.', "-");
    let hint = format!("choose another path, or `none`: --{flag} PATH");
    // A socket that an earlier node left is replaced; any other file is kept.
    if std::fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
        let message = format!("`{key}`: {} exists and is not a socket", path.display());
        return Err(Failure::new(Exit::Failed, message).hint(hint));
    }
    let listening = net::listen_unix(path).await.map_err(|error| {
        let path = path.display();
        let (exit, reason) = match error.kind() {
            io::ErrorKind::AddrInUse => (Exit::Unavailable, format!("{path} is in use")),
            _ => (Exit::Failed, format!("cannot listen on {path}: {error}")),
        };
        Failure::new(exit, format!("`{key}`: {reason}")).hint(hint)
    });
    listening.map(Some)
}
