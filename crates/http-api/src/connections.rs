//! The connections of an HTTP listener: their limits, idle connections, and shutdown.
//!
//! A new connection never waits to be accepted. If the limit is reached, the connection that has
//! been idle for the longest time is closed. If all connections have requests, the new one is an
//! *overflow* connection: health and metrics are answered, everything else is refused with 503. The
//! same applies to a connection whose socket is from the reserve of all listeners, unless an idle
//! one can be closed. Event streams and WebSockets may last for hours and have a separate limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use net::SocketPermit;
use parking_lot::Mutex;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Most connections that are served beyond the limit, only to be refused with an error.
const OVERFLOW_MAX: usize = 256;

/// Fraction of connections to close at once when there are too many: 1/64.
const CLOSED_SHARE: usize = 64;

/// Pause before idle connections are searched for again after none was found.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Limits of a listener's connections and streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at the same time, without event streams and WebSockets.
    pub connections_max: usize,
    /// Most event streams and WebSockets at the same time.
    pub streams_max: usize,
    /// Longest time that a client may leave written bytes unread.
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            streams_max: 10_000,
            write_timeout: Duration::from_secs(30),
        }
    }
}

/// Reason why a request or a connection was refused, for the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The limit of connections is reached.
    Connections,
    /// No socket is left.
    Sockets,
    /// The limit of event streams and WebSockets is reached.
    Streams,
    /// The request names a host that the node does not serve.
    Host,
    /// The page is of an origin that the node does not accept.
    Origin,
}

impl Refusal {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Connections, "connections"),
        (Self::Sockets, "sockets"),
        (Self::Streams, "streams"),
        (Self::Host, "host"),
        (Self::Origin, "origin"),
    ];
}

/// Phase of a listener's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Event streams and WebSockets end; requests are answered.
    Draining,
    /// No connections are accepted, and each connection ends after its current request.
    Closing,
}

/// The connections of one listener, or of several that share limits.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    phase: watch::Sender<Phase>,
    streams: Arc<Semaphore>,
    seats: Mutex<HashMap<u64, Arc<Seat>>>,
    /// Number of connections that count against the limit.
    regular: AtomicUsize,
    overflow: AtomicUsize,
    /// Counter that orders the times at which connections became idle; also the source of their
    /// ids.
    ticks: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    /// Time of the last search that found no idle connection.
    looked: Mutex<Option<Instant>>,
}

/// The shared state of a connection.
#[derive(Debug)]
struct Seat {
    id: u64,
    kind: Mutex<Kind>,
    /// Tick at which the connection became idle; 0 while it has a request.
    idle_since: AtomicU64,
    /// True while the client has not read everything that was written.
    is_writing: AtomicBool,
    task: OnceLock<AbortHandle>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Regular,
    Overflow(Shortage),
    /// Counted as a stream instead.
    Stream,
}

/// The reason why a connection is an overflow connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The limit of connections is reached.
    Connections,
    /// The process has only reserved sockets left.
    Sockets,
}

/// The kind of sockets that are left for a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Sockets that every listener may use are left.
    Shared,
    /// Only reserved sockets are left.
    Reserve,
}

impl Room {
    /// Returns the kind of a socket's permit.
    pub fn of(permit: &SocketPermit) -> Self {
        match permit.is_of_reserve() {
            true => Self::Reserve,
            false => Self::Shared,
        }
    }
}

/// Registration of a connection, until it is dropped.
#[derive(Debug)]
pub struct Connection {
    all: Arc<Connections>,
    seat: Arc<Seat>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Connections {
    /// Creates an empty set of connections.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            phase: watch::Sender::new(Phase::Serving),
            streams: Arc::new(Semaphore::new(limits.streams_max)),
            seats: Mutex::default(),
            regular: AtomicUsize::new(0),
            overflow: AtomicUsize::new(0),
            ticks: AtomicU64::new(1),
            refused: Default::default(),
            looked: Mutex::default(),
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Registers a new connection; `None` if the overflow is full, too.
    pub fn enter(self: &Arc<Self>, room: Room) -> Option<Connection> {
        let kind = match self.shortage(room) {
            None => {
                self.regular.fetch_add(1, Ordering::Relaxed);
                Kind::Regular
            }
            Some(shortage) => {
                self.count(match shortage {
                    Shortage::Connections => Refusal::Connections,
                    Shortage::Sockets => Refusal::Sockets,
                });
                if self.overflow.load(Ordering::Relaxed) >= OVERFLOW_MAX {
                    return None;
                }
                self.overflow.fetch_add(1, Ordering::Relaxed);
                Kind::Overflow(shortage)
            }
        };
        let id = self.tick();
        let seat = Arc::new(Seat {
            id,
            kind: Mutex::new(kind),
            idle_since: AtomicU64::new(id),
            is_writing: AtomicBool::new(false),
            task: OnceLock::new(),
        });
        self.seats.lock().insert(id, seat.clone());
        Some(Connection {
            all: self.clone(),
            seat,
        })
    }

    /// Closes idle connections if needed. Returns the reason why a new connection is still beyond a
    /// limit.
    fn shortage(&self, room: Room) -> Option<Shortage> {
        let max = self.limits.connections_max;
        let is_free = || self.regular.load(Ordering::Relaxed) < max;
        // Several are closed at once, since the search visits all connections.
        let count = (max / CLOSED_SHARE).max(1);
        let has_closed = !is_free() && self.close_idlest(count);
        if !is_free() {
            return Some(Shortage::Connections);
        }
        let has_socket = room == Room::Shared || has_closed || self.close_idlest(1);
        (!has_socket).then_some(Shortage::Sockets)
    }

    /// Closes up to `count` connections that have been idle for the longest time. Returns false if
    /// there are none.
    fn close_idlest(&self, count: usize) -> bool {
        let now = Instant::now();
        let mut looked = self.looked.lock();
        if looked.is_some_and(|at| now < at + LOOK_PAUSE) {
            return false;
        }
        let is_closable = |seat: &&Arc<Seat>| {
            seat.is_idle() && seat.task.get().is_some() && *seat.kind.lock() == Kind::Regular
        };
        let mut idle: Vec<Arc<Seat>> = self
            .seats
            .lock()
            .values()
            .filter(is_closable)
            .cloned()
            .collect();
        if idle.is_empty() {
            *looked = Some(now);
            return false;
        }
        idle.sort_unstable_by_key(|seat| seat.idle_since.load(Ordering::Relaxed));
        idle.truncate(count);
        for seat in &idle {
            if let Some(task) = seat.task.get() {
                task.abort();
            }
            // The connection leaves the count now, not when its task is dropped.
            self.leave(seat);
        }
        true
    }

    /// Removes a connection from the counts. Idempotent.
    fn leave(&self, seat: &Seat) {
        if self.seats.lock().remove(&seat.id).is_some() {
            self.uncount(*seat.kind.lock());
        }
    }

    fn uncount(&self, kind: Kind) {
        match kind {
            Kind::Regular => self.regular.fetch_sub(1, Ordering::Relaxed),
            Kind::Overflow(_) => self.overflow.fetch_sub(1, Ordering::Relaxed),
            Kind::Stream => 0,
        };
    }

    /// Returns a permit for an event stream or a WebSocket; `None` if there are too many.
    pub fn stream(&self) -> Option<OwnedSemaphorePermit> {
        let permit = self.streams.clone().try_acquire_owned().ok();
        if permit.is_none() {
            self.count(Refusal::Streams);
        }
        permit
    }

    /// Counts a refusal for the metric.
    pub fn count(&self, refusal: Refusal) {
        let found = Refusal::ALL.iter().zip(&self.refused);
        for ((known, _), count) in found {
            if *known == refusal {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends event streams and WebSockets with a last message. Requests are still answered.
    pub fn drain(&self) {
        self.phase.send_replace(Phase::Draining);
    }

    /// Stops accepting and closes connections: idle ones now, others after their answer.
    pub fn close(&self) {
        self.phase.send_replace(Phase::Closing);
    }

    /// Returns true if no request is being answered and no stream or WebSocket is open.
    pub fn is_idle(&self) -> bool {
        self.stream_count() == 0 && self.seats.lock().values().all(|seat| seat.is_idle())
    }

    /// Completes when event streams and WebSockets must end.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reached(Phase::Draining)
    }

    /// Returns true if each connection ends after its current request.
    pub fn is_closing(&self) -> bool {
        *self.phase.borrow() >= Phase::Closing
    }

    /// Completes when connections must end.
    pub fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reached(Phase::Closing)
    }

    fn reached(&self, phase: Phase) -> impl Future<Output = ()> + Send + 'static {
        let mut phases = self.phase.subscribe();
        async move {
            if phases.wait_for(|it| *it >= phase).await.is_err() {
                // The listener was dropped without having been closed.
                std::future::pending().await
            }
        }
    }

    fn stream_count(&self) -> usize {
        self.limits.streams_max - self.streams.available_permits()
    }

    /// Appends the gauges and counters of connections.
    pub fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let connections =
            self.regular.load(Ordering::Relaxed) + self.overflow.load(Ordering::Relaxed);
        for (name, help, value) in [
            (
                "http_connections",
                "HTTP connections, without event streams and WebSockets",
                connections,
            ),
            (
                "http_streams",
                "Event streams and WebSockets",
                self.stream_count(),
            ),
        ] {
            let value = ConstGauge::new(value as i64);
            value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
        }
        let help = "HTTP requests and connections refused by a limit or by their host or origin";
        let kind = ConstCounter::new(0u64).metric_type();
        let mut family = encoder.encode_descriptor("http_refused", help, None, kind)?;
        for ((_, reason), count) in Refusal::ALL.iter().zip(&self.refused) {
            let value = ConstCounter::new(count.load(Ordering::Relaxed));
            value.encode(family.encode_family(&[("reason", *reason)])?)?;
        }
        Ok(())
    }
}

impl Seat {
    fn is_idle(&self) -> bool {
        self.idle_since.load(Ordering::Relaxed) != 0 && !self.is_writing.load(Ordering::Relaxed)
    }
}

impl Connection {
    /// Sets the task of the connection, which may be aborted while the connection is idle.
    pub fn served_by(&self, task: AbortHandle) {
        // The task is set only once.
        let _ = self.seat.task.set(task);
    }

    /// Returns another handle to the connection.
    pub fn handle(&self) -> Handle {
        Handle {
            all: self.all.clone(),
            seat: self.seat.clone(),
        }
    }

    /// Returns the reason why the connection is beyond a limit, if it is. It serves health and
    /// metrics only.
    pub fn shortage(&self) -> Option<Shortage> {
        match *self.seat.kind.lock() {
            Kind::Overflow(shortage) => Some(shortage),
            Kind::Regular | Kind::Stream => None,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.leave(&self.seat);
    }
}

/// A handle by which a connection reports its activity.
#[derive(Clone, Debug)]
pub struct Handle {
    all: Arc<Connections>,
    seat: Arc<Seat>,
}

impl Handle {
    /// Returns the connections that this one belongs to.
    pub fn all(&self) -> &Arc<Connections> {
        &self.all
    }

    /// Marks the beginning of a request.
    pub fn begin(&self) {
        self.seat.idle_since.store(0, Ordering::Relaxed);
    }

    /// Marks the end of a request.
    pub fn end(&self) {
        self.seat
            .idle_since
            .store(self.all.tick(), Ordering::Relaxed);
    }

    /// Sets if the client has yet to read what was written.
    pub fn set_writing(&self, is_writing: bool) {
        self.seat.is_writing.store(is_writing, Ordering::Relaxed);
    }

    /// Counts the connection as a stream from now on.
    pub fn become_stream(&self) {
        let before = std::mem::replace(&mut *self.seat.kind.lock(), Kind::Stream);
        if self.all.seats.lock().contains_key(&self.seat.id) {
            self.all.uncount(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(connections_max: usize) -> Arc<Connections> {
        Arc::new(Connections::new(Limits {
            connections_max,
            ..Limits::default()
        }))
    }

    fn task() -> AbortHandle {
        tokio::spawn(std::future::pending::<()>()).abort_handle()
    }

    #[tokio::test(start_paused = true)]
    async fn idlest_connection_is_closed_at_the_limit_and_busy_ones_stay() {
        let all = connections(2);
        let (first, second) = (
            all.enter(Room::Shared).unwrap(),
            all.enter(Room::Shared).unwrap(),
        );
        let tasks = [task(), task()];
        first.served_by(tasks[0].clone());
        second.served_by(tasks[1].clone());
        first.handle().begin();
        let third = all.enter(Room::Shared).unwrap();
        third.served_by(task());
        tokio::task::yield_now().await;
        assert_eq!(tasks.map(|task| task.is_finished()), [false, true]);
        assert!(third.shortage().is_none());
        drop(second);
        third.handle().begin();
        let fourth = all.enter(Room::Shared).unwrap();
        assert!(fourth.shortage().is_some(), "all of them have a request");
        first.handle().end();
        tokio::time::advance(LOOK_PAUSE).await;
        assert!(all.enter(Room::Shared).unwrap().shortage().is_none());
        drop((first, third, fourth));
        assert_eq!(all.regular.load(Ordering::Relaxed), 0);
        assert_eq!(all.overflow.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn streams_do_not_count_as_connections() {
        let all = connections(1);
        let first = all.enter(Room::Shared).unwrap();
        first.handle().begin();
        first.handle().become_stream();
        let second = all.enter(Room::Shared).unwrap();
        assert!(second.shortage().is_none());
        drop((first, second));
        assert_eq!(all.regular.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn connections_above_the_limit_are_bounded() {
        let all = connections(0);
        let held: Vec<_> = std::iter::from_fn(|| all.enter(Room::Shared)).collect();
        assert_eq!(held.len(), OVERFLOW_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn reserve_socket_is_regular_once_an_idle_connection_is_closed() {
        let all = connections(100);
        let first = all.enter(Room::Shared).unwrap();
        let closed = task();
        first.served_by(closed.clone());
        let second = all.enter(Room::Reserve).unwrap();
        tokio::task::yield_now().await;
        assert!(closed.is_finished() && second.shortage().is_none());
        second.handle().begin();
        let third = all.enter(Room::Reserve).unwrap();
        assert_eq!(third.shortage(), Some(Shortage::Sockets));
        tokio::time::advance(LOOK_PAUSE).await;
        assert_eq!(all.enter(Room::Shared).unwrap().shortage(), None);
    }
}
