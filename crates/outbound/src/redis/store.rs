//! The store behind the node's port: bounded, with a deadline for every answer.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use node::ports::quota_store::{Asking, Away, Lease, QuotaStore, QuotaStoreView, RemoteCell};
use node::ports::quota_store::{RemoteDecision, RemoteTake, Returned};
use parking_lot::Mutex;
use redis::{ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::link::{AddressError, Connection, Link, Shut, now, reason};
use super::script::{self, Call, Script};

/// Where cells lie, and how long anybody waits for them.
#[derive(Clone, Debug)]
pub struct Options {
    /// One server, or several of a cluster, with their passwords: `redis://` or `rediss://`.
    pub urls: Vec<String>,
    /// Who issued the certificates of `rediss://`, as PEM; `None` for those whom this machine trusts.
    pub certificate: Option<PathBuf>,
    /// How long an answer may take.
    pub deadline: Duration,
    /// Takes that wait for their answers at most.
    pub waiting_max: usize,
    /// How many nodes share the cells.
    pub nodes: u32,
}

/// See the module's documentation.
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
    /// When it was told of last that the store is away.
    warned: Option<Instant>,
}

/// Between two warnings.
const WARNED_EVERY: Duration = Duration::from_secs(10);

impl Redis {
    /// Nothing is asked yet.
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
    fn decide(&self, takes: Vec<RemoteTake>) -> Asking<Vec<RemoteDecision>> {
        let shared = self.0.clone();
        let room = shared.room(takes.len());
        Box::pin(async move {
            let _room = room?;
            let calls: Vec<Call> = takes.iter().map(|take| Call::take(take, None)).collect();
            let values = shared.ask(&calls).await?;
            let decisions = values.into_iter().map(script::decision).collect();
            shared.told(decisions, |view| view.decided += calls.len() as u64)
        })
    }

    fn lease(&self, cell: RemoteCell, want: u64, before: Option<Returned>) -> Asking<Lease> {
        let shared = self.0.clone();
        let room = shared.room(1);
        Box::pin(async move {
            let _room = room?;
            let call = Call::lease(&cell, want, before, shared.options.nodes, None);
            let values = shared.ask(&[call]).await?;
            let lease = script::leased(values.into_iter().next().unwrap_or(Value::Nil));
            shared.told(lease, |view| view.leases += u64::from(want > 0))
        })
    }

    fn probe(&self) -> Asking<String> {
        let shared = self.0.clone();
        let room = shared.room(1);
        Box::pin(async move {
            let _room = room?;
            let probed = shared.bounded(async |connection: Connection| connection.info().await);
            let version = version(probed.await?);
            shared.told(version, |_| ())
        })
    }

    fn view(&self) -> QuotaStoreView {
        self.0.state.lock().view.clone()
    }
}

impl Shared {
    fn room(&self, count: usize) -> Result<OwnedSemaphorePermit, Away> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let room = self.room.clone().try_acquire_many_owned(count);
        room.map_err(|_| {
            self.state.lock().view.errors += 1;
            Away {
                may_be_done: false,
                reason: "too many takes wait for Redis".to_owned(),
            }
        })
    }

    async fn ask(&self, calls: &[Call]) -> Result<Vec<Value>, Away> {
        let asked =
            self.bounded(async |connection: Connection| self.send(&connection, calls).await);
        asked.await
    }

    /// Connects if need be and asks, within the deadline.
    async fn bounded<T>(
        &self,
        ask: impl AsyncFnOnce(Connection) -> Result<T, RedisError>,
    ) -> Result<T, Away> {
        let deadline = tokio::time::sleep(self.options.deadline);
        tokio::pin!(deadline);
        let got = tokio::select! {
            got = self.link.get() => got,
            () = &mut deadline => Err(Shut("Redis cannot be reached in time".to_owned())),
        };
        let (connection, number) = got.map_err(|Shut(reason)| {
            self.failed(Away {
                may_be_done: false,
                reason,
            })
        })?;
        let asked = tokio::select! {
            asked = ask(connection.clone()) => asked,
            () = &mut deadline => {
                let late = "Redis does not answer in time";
                Err(io::Error::new(io::ErrorKind::TimedOut, late).into())
            }
        };
        if asked
            .as_ref()
            .is_err_and(|error| is_broken(error, &connection))
        {
            self.link.drop_it(number).await;
        }
        asked.map_err(|error| self.failed(away(&error, &connection)))
    }

    /// Sends calls in order, all at once. Of those that a server does not know the function for, the
    /// first is sent again with all of it, and the others behind that: each turn at least one
    /// server more knows it.
    async fn send(
        &self,
        connection: &Connection,
        calls: &[Call],
    ) -> Result<Vec<Value>, RedisError> {
        let mut answers = vec![None; calls.len()];
        let mut asked: Vec<usize> = (0..calls.len()).collect();
        let commands = calls.iter().map(|call| self.script.short(call)).collect();
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
            let mut commands = vec![self.script.whole(&calls[*first])];
            commands.extend(others.iter().map(|place| self.script.short(&calls[*place])));
            values = connection.send(commands).await?;
            asked = unknown;
        }
        let missing = || (ErrorKind::UnexpectedReturnType, "an answer is missing").into();
        let answers = answers.into_iter().map(|value| value.ok_or_else(missing));
        answers.collect()
    }

    fn told<T>(
        &self,
        answer: Result<T, RedisError>,
        count: impl FnOnce(&mut QuotaStoreView),
    ) -> Result<T, Away> {
        let answer = answer.map_err(|error| {
            self.failed(Away {
                may_be_done: true,
                reason: reason(&error),
            })
        })?;
        let mut state = self.state.lock();
        count(&mut state.view);
        state.view.is_connected = true;
        if state.view.error.take().is_some() {
            tracing::info!("quotas in Redis can be asked again");
        }
        Ok(answer)
    }

    fn failed(&self, away: Away) -> Away {
        let mut state = self.state.lock();
        state.view.errors += 1;
        state.view.is_connected = false;
        state.view.error = Some(away.reason.clone());
        let is_due = |warned: Instant| now().duration_since(warned) >= WARNED_EVERY;
        if state.warned.is_none_or(is_due) {
            state.warned = Some(now());
            tracing::warn!(reason = away.reason, "quotas in Redis cannot be asked");
        }
        away
    }
}

fn version(info: Value) -> Result<String, RedisError> {
    let info: String = FromRedisValue::from_redis_value(info)?;
    let mut lines = info.lines();
    let version = lines.find_map(|line| line.strip_prefix("redis_version:"));
    let unsaid = || (ErrorKind::UnexpectedReturnType, "no version is told").into();
    version.map(str::to_owned).ok_or_else(unsaid)
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// A cluster's connection mends itself. A server that became a replica is behind a name that may
/// stand for another by now.
fn is_broken(error: &RedisError, connection: &Connection) -> bool {
    let is_read_only = error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly);
    let is_lost = error.is_io_error() || error.is_timeout() || error.is_unrecoverable_error();
    matches!(connection, Connection::One(_)) && (is_read_only || is_lost)
}

/// What a server refuses it has not begun: it looks at its memory, its disk and its part before the
/// first write of a function, and not after. What was on its way when a connection broke may be done;
/// a cluster's connection does not tell what it tried before it was refused.
fn away(error: &RedisError, connection: &Connection) -> Away {
    let is_refused = match connection {
        Connection::One(_) => error.code().is_some() || error.is_connection_refusal(),
        Connection::Cluster(_) => false,
    };
    Away {
        may_be_done: !is_refused,
        reason: reason(error),
    }
}
