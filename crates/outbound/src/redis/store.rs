//! `Redis`: implements the node's quota store port, with bounded concurrency and a deadline per
//! answer.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quota_service::quota_store::{
    Lease, QuotaStore, QuotaStoreView, RemoteCell, StoreFuture, StoreUnavailable,
};
use quota_service::quota_store::{RemoteDecision, RemoteTake, ReturnedLease};
use redis::{ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::link::{AddressError, Connection, Link, NoConnection, now, reason};
use super::script::{self, Call, Script};

/// Options of the Redis store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses of one server, or of several servers of a cluster: `redis://` or `rediss://`, with
    /// passwords.
    pub urls: Vec<String>,
    /// PEM file of the certificate authorities for `rediss://`; `None` uses those of the system.
    pub certificate: Option<PathBuf>,
    /// Time limit of an answer.
    pub deadline: Duration,
    /// Maximum number of takes that wait for an answer.
    pub waiting_max: usize,
    /// Number of nodes that share the cells.
    pub nodes: u32,
}

/// Quota store in Redis; see the module documentation.
#[derive(Clone)]
pub struct Redis(Arc<Shared>);

struct Shared {
    link: Link,
    script: Script,
    options: Options,
    room: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    view: QuotaStoreView,
    /// Time of the last warning that Redis is unreachable.
    last_warning: Option<Instant>,
}

/// Minimum time between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

impl Redis {
    /// Creates the store without connecting.
    pub fn new(options: Options) -> Result<Self, AddressError> {
        Ok(Self(Arc::new(Shared {
            link: Link::new(&options)?,
            script: Script::default(),
            room: Arc::new(Semaphore::new(options.waiting_max)),
            state: Mutex::default(),
            options,
        })))
    }
}

impl QuotaStore for Redis {
    fn decide(&self, takes: Vec<RemoteTake>) -> StoreFuture<Vec<RemoteDecision>> {
        let shared = self.0.clone();
        let room = shared.room(takes.len());
        Box::pin(async move {
            let _room = room?;
            let calls: Vec<Call> = takes.iter().map(|take| Call::take(take, None)).collect();
            let values = shared.ask(&calls).await?;
            let decisions = values.into_iter().map(script::decision).collect();
            shared.finish(decisions, |view| view.decided += calls.len() as u64)
        })
    }

    fn lease(
        &self,
        cell: RemoteCell,
        want: u64,
        before: Option<ReturnedLease>,
    ) -> StoreFuture<Lease> {
        let shared = self.0.clone();
        let room = shared.room(1);
        Box::pin(async move {
            let _room = room?;
            let call = Call::lease(&cell, want, before, shared.options.nodes, None);
            let values = shared.ask(&[call]).await?;
            let lease = script::leased(values.into_iter().next().unwrap_or(Value::Nil));
            shared.finish(lease, |view| view.leases += u64::from(want > 0))
        })
    }

    fn probe(&self) -> StoreFuture<String> {
        let shared = self.0.clone();
        let room = shared.room(1);
        Box::pin(async move {
            let _room = room?;
            let probed = shared.bounded(async |connection: Connection| connection.info().await);
            let version = version(probed.await?);
            shared.finish(version, |_| ())
        })
    }

    fn view(&self) -> QuotaStoreView {
        self.0.state.lock().view.clone()
    }
}

impl Shared {
    fn room(&self, count: usize) -> Result<OwnedSemaphorePermit, StoreUnavailable> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let room = self.room.clone().try_acquire_many_owned(count);
        room.map_err(|_| {
            self.state.lock().view.errors += 1;
            StoreUnavailable {
                may_be_done: false,
                reason: format!(
                    "too many takes wait for Redis (limit {}, quota.store.waiting_max)",
                    self.options.waiting_max
                ),
            }
        })
    }

    async fn ask(&self, calls: &[Call]) -> Result<Vec<Value>, StoreUnavailable> {
        let asked =
            self.bounded(async |connection: Connection| self.send(&connection, calls).await);
        asked.await
    }

    /// Connects if necessary and runs `ask`, all within the deadline.
    async fn bounded<T>(
        &self,
        ask: impl AsyncFnOnce(Connection) -> Result<T, RedisError>,
    ) -> Result<T, StoreUnavailable> {
        let deadline = tokio::time::sleep(self.options.deadline);
        tokio::pin!(deadline);
        let got = tokio::select! {
            got = self.link.get() => got,
            () = &mut deadline => {
                let late = "cannot connect to Redis within the deadline";
                Err(NoConnection(late.to_owned()))
            }
        };
        let (connection, number) = got.map_err(|NoConnection(reason)| {
            self.failed(StoreUnavailable {
                may_be_done: false,
                reason,
            })
        })?;
        let asked = tokio::select! {
            asked = ask(connection.clone()) => asked,
            () = &mut deadline => {
                let late = "Redis did not answer within the deadline";
                Err(io::Error::new(io::ErrorKind::TimedOut, late).into())
            }
        };
        if asked
            .as_ref()
            .is_err_and(|error| is_broken(error, &connection))
        {
            self.link.discard(number).await;
        }
        asked.map_err(|error| self.failed(away(&error, &connection)))
    }

    /// Sends calls in order, all at once. Of the calls that fail with `NOSCRIPT`, the first is sent
    /// again with the whole source and the others after it. Each round makes the function known to
    /// at least one more server.
    async fn send(
        &self,
        connection: &Connection,
        calls: &[Call],
    ) -> Result<Vec<Value>, RedisError> {
        let mut answers = vec![None; calls.len()];
        let mut asked: Vec<usize> = (0..calls.len()).collect();
        let commands = calls
            .iter()
            .map(|call| self.script.by_digest(call))
            .collect();
        let mut values = connection.send(commands).await?;
        loop {
            let mut unknown = Vec::new();
            for (place, value) in asked.into_iter().zip(values) {
                match value {
                    Ok(value) => answers[place] = Some(value),
                    Err(error) if is_unknown_script(&error) => unknown.push(place),
                    Err(error) => return Err(error),
                }
            }
            let Some((first, others)) = unknown.split_first() else {
                break;
            };
            let mut commands = vec![self.script.with_source(&calls[*first])];
            commands.extend(
                others
                    .iter()
                    .map(|place| self.script.by_digest(&calls[*place])),
            );
            values = connection.send(commands).await?;
            asked = unknown;
        }
        let missing = || (ErrorKind::UnexpectedReturnType, "an answer is missing").into();
        let answers = answers.into_iter().map(|value| value.ok_or_else(missing));
        answers.collect()
    }

    fn finish<T>(
        &self,
        answer: Result<T, RedisError>,
        count: impl FnOnce(&mut QuotaStoreView),
    ) -> Result<T, StoreUnavailable> {
        let answer = answer.map_err(|error| {
            self.failed(StoreUnavailable {
                may_be_done: true,
                reason: reason(&error),
            })
        })?;
        let mut state = self.state.lock();
        count(&mut state.view);
        state.view.is_connected = true;
        if state.view.error.take().is_some() {
            tracing::info!("the quota store in Redis works again");
        }
        Ok(answer)
    }

    fn failed(&self, away: StoreUnavailable) -> StoreUnavailable {
        let mut state = self.state.lock();
        state.view.errors += 1;
        state.view.is_connected = false;
        state.view.error = Some(away.reason.clone());
        let is_due = |last_warning: Instant| now().duration_since(last_warning) >= WARNING_INTERVAL;
        if state.last_warning.is_none_or(is_due) {
            state.last_warning = Some(now());
            tracing::warn!(reason = away.reason, "the quota store in Redis failed");
        }
        away
    }
}

fn version(info: Value) -> Result<String, RedisError> {
    let info: String = FromRedisValue::from_redis_value(info)?;
    let mut lines = info.lines();
    let version = lines.find_map(|line| line.strip_prefix("redis_version:"));
    let unsaid = || (ErrorKind::UnexpectedReturnType, "INFO has no redis_version").into();
    version.map(str::to_owned).ok_or_else(unsaid)
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// True if the connection must be replaced. A cluster connection repairs itself. For a single
/// server, READONLY means that it became a replica, and its name may resolve to another server now.
fn is_broken(error: &RedisError, connection: &Connection) -> bool {
    let is_read_only = error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly);
    let is_lost = error.is_io_error() || error.is_timeout() || error.is_unrecoverable_error();
    matches!(connection, Connection::One(_)) && (is_read_only || is_lost)
}

/// Converts an error. A server that refuses a call has not executed any of it: it checks memory,
/// disk and role before the first write of a script. A call in transit when the connection broke
/// may have been executed; a cluster connection does not report its attempts before a refusal.
fn away(error: &RedisError, connection: &Connection) -> StoreUnavailable {
    let is_refused = match connection {
        Connection::One(_) => error.code().is_some() || error.is_connection_refusal(),
        Connection::Cluster(_) => false,
    };
    StoreUnavailable {
        may_be_done: !is_refused,
        reason: reason(error),
    }
}
