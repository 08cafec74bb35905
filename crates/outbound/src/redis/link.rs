//! `Link`: the shared connection to Redis, made on demand and again after failures.
//!
//! Commands of all callers are pipelined in order. While there is no connection and the pause
//! before the next attempt is not over, a request fails at once.

use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::future::{MaybeDone, join_all, maybe_done};
use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo, RedisError,
    RedisResult, TlsCertificates, Value,
};
use tokio::sync::Mutex;

use super::store::Options;

/// Error in the address of Redis.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// No address is configured.
    #[error("quota.store.redis is empty: it needs at least one address")]
    Missing,
    /// An address is not valid.
    #[error("quota.store.redis: address {place} is not a valid Redis URL: {reason}")]
    Malformed {
        /// Position in the list, from 1; the address itself may contain a password.
        place: usize,
        /// Reason from the parser.
        reason: String,
    },
    /// The certificate authorities cannot be loaded.
    #[error("quota.store.authorities: cannot load {}: {reason}", path.display())]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
}

/// Reason for a missing connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoConnection(pub(super) String);

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Maximum number of redirects of a command within the cluster.
const REDIRECTS_MAX: u32 = 4;

enum Servers {
    One(Box<Client>),
    Cluster(Box<ClusterClient>),
}

/// A connection to one server or to a cluster.
#[derive(Clone)]
pub(super) enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Makes and shares the connection.
pub(super) struct Link {
    servers: Servers,
    /// Time limit of an answer.
    deadline: Duration,
    state: Mutex<State>,
}

struct State {
    connection: Option<Connection>,
    /// Number of the connection, from 1.
    number: u64,
    pause: Duration,
    not_before: Option<(Instant, String)>,
}

impl Link {
    /// Creates a link to one server, or to a cluster if there are several addresses.
    pub(super) fn new(options: &Options) -> Result<Self, AddressError> {
        let deadline = options.deadline;
        let certificates = certificates(options)?;
        for (index, url) in options.urls.iter().enumerate() {
            client(url, certificates.clone()).map_err(|error| malformed(index, &error))?;
        }
        let servers = match &*options.urls {
            [] => return Err(AddressError::Missing),
            [url] => client(url, certificates).map(|client| Servers::One(Box::new(client))),
            urls => {
                let urls = urls.iter().map(String::as_str);
                let mut builder = ClusterClientBuilder::new(urls)
                    .connection_timeout(deadline / 2)
                    .response_timeout(deadline)
                    .retries(REDIRECTS_MAX)
                    .min_retry_wait(1)
                    .max_retry_wait(20);
                if let Some(certificates) = certificates {
                    builder = builder.certs(certificates);
                }
                let built = builder.build();
                built.map(|client| Servers::Cluster(Box::new(client)))
            }
        };
        Ok(Self {
            servers: servers.map_err(|error| malformed(0, &error))?,
            deadline,
            state: Mutex::new(State {
                connection: None,
                number: 0,
                pause: PAUSE_MIN,
                not_before: None,
            }),
        })
    }

    /// Returns the connection and its number.
    pub(super) async fn get(&self) -> Result<(Connection, u64), NoConnection> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.number));
        }
        if let Some((moment, reason)) = &state.not_before
            && now() < *moment
        {
            return Err(NoConnection(reason.clone()));
        }
        match self.connect().await {
            Ok(connection) => {
                state.number += 1;
                state.connection = Some(connection.clone());
                (state.pause, state.not_before) = (PAUSE_MIN, None);
                Ok((connection, state.number))
            }
            Err(reason) => {
                let spread = 0.75 + fastrand::f64() / 2.0;
                state.not_before = Some((now() + state.pause.mul_f64(spread), reason.clone()));
                state.pause = (state.pause * 2).min(PAUSE_MAX);
                Err(NoConnection(reason))
            }
        }
    }

    /// Discards the connection with this number after a failure.
    pub(super) async fn discard(&self, number: u64) {
        let mut state = self.state.lock().await;
        if state.number == number {
            state.connection = None;
        }
    }

    /// Connects within half of the deadline, so that the error arrives before the caller gives up.
    async fn connect(&self) -> Result<Connection, String> {
        let patience = self.deadline / 2;
        let made = match &self.servers {
            Servers::One(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(patience))
                    .set_response_timeout(Some(self.deadline));
                let made = client.get_multiplexed_async_connection_with_config(&config);
                made.await.map(Connection::One)
            }
            Servers::Cluster(client) => {
                let made = tokio::time::timeout(patience, client.get_async_connection());
                let Ok(made) = made.await else {
                    return Err("the cluster does not answer".to_owned());
                };
                made.map(Connection::Cluster)
            }
        };
        made.map_err(|error| reason(&error))
    }
}

impl Connection {
    /// Sends commands in order, all at once, and returns the result of each.
    pub(super) async fn send(
        &self,
        commands: Vec<Cmd>,
    ) -> Result<Vec<RedisResult<Value>>, RedisError> {
        match self {
            Self::One(connection) => {
                let mut pipeline = redis::Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command);
                }
                pipeline.ignore_errors();
                pipeline.query_async(&mut connection.clone()).await
            }
            Self::Cluster(connection) => {
                let ask = |command: Cmd| {
                    let mut connection = connection.clone();
                    Box::pin(async move { command.query_async(&mut connection).await })
                };
                Ok(in_order(commands.into_iter().map(ask).map(maybe_done).collect()).await)
            }
        }
    }

    /// Runs `INFO` on any server.
    pub(super) async fn info(&self) -> RedisResult<Value> {
        let mut info = redis::cmd("INFO");
        info.arg("server");
        match self {
            Self::One(connection) => info.query_async(&mut connection.clone()).await,
            Self::Cluster(connection) => {
                let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
                connection.clone().route_command(info, any).await
            }
        }
    }
}

/// Polls all futures once in order before waiting: a cluster connection sends a command at the
/// first poll.
async fn in_order<F: Future + Unpin>(mut asked: Vec<MaybeDone<F>>) -> Vec<F::Output> {
    std::future::poll_fn(|cx| {
        for one in &mut asked {
            let _ = Pin::new(one).poll(cx);
        }
        std::task::Poll::Ready(())
    })
    .await;
    join_all(asked.iter_mut()).await;
    let answers = asked.iter_mut().map(Pin::new);
    answers.filter_map(MaybeDone::take_output).collect()
}

fn client(url: &str, certificates: Option<TlsCertificates>) -> RedisResult<Client> {
    let info = url.into_connection_info()?;
    let is_encrypted = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    match certificates.filter(|_| is_encrypted) {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    }
}

/// Returns the trusted root certificates, if they are configured.
fn certificates(options: &Options) -> Result<Option<TlsCertificates>, AddressError> {
    let Some(path) = &options.certificate else {
        return Ok(None);
    };
    let root = std::fs::read(path).map_err(|error| AddressError::Certificate {
        path: path.clone(),
        reason: error.to_string(),
    })?;
    Ok(Some(TlsCertificates {
        client_tls: None,
        root_cert: Some(root),
    }))
}

#[expect(
    clippy::disallowed_methods,
    reason = "reconnect pauses need the real clock, because the server is an external process"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Creates an error without the address, which may contain a password.
fn malformed(index: usize, error: &RedisError) -> AddressError {
    AddressError::Malformed {
        place: index + 1,
        reason: error.category().to_owned(),
    }
}

/// Returns the server's own error text, if there is one.
pub(super) fn reason(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => error.to_string(),
    }
}
