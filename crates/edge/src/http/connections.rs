//! The connections of an HTTP listener: how many there are, which may be closed, and how they end.
//!
//! A new connection is never left waiting to be accepted. If there are as many as allowed, the one
//! that has been without a request for the longest time is closed for it; if all of them have a request,
//! the new one is served in the *overflow*: health and metrics are answered there, everything else is
//! refused with 503. So is a connection whose socket is of the reserve of all listeners, unless an idle
//! one can be closed for it. Event streams and WebSockets may last for hours, and have a limit of their own.

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

/// Connections that are served beyond the limit, to be refused in words.
const OVERFLOW_MAX: usize = 256;

/// One in so many connections is closed at once where there are too many.
const CLOSED_SHARE: usize = 64;

/// How long no idle connection is looked for after there was none.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// How many connections and streams a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time, without event streams and WebSockets.
    pub connections_max: usize,
    /// Event streams and WebSockets at the same time.
    pub streams_max: usize,
    /// Time that a client may leave what was written to it unread.
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

/// Why a request or a connection was refused, for the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Connections,
    Sockets,
    Streams,
    Host,
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

/// How far a listener is on its way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Event streams and WebSockets end; requests are answered.
    Draining,
    /// Nothing is accepted, and connections end with the request that they have.
    Closing,
}

/// The connections of one listener, or of several that share their limits.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    phase: watch::Sender<Phase>,
    streams: Arc<Semaphore>,
    seats: Mutex<HashMap<u64, Arc<Seat>>>,
    /// Connections that count against the limit.
    regular: AtomicUsize,
    overflow: AtomicUsize,
    /// Orders the moments at which connections became idle; names connections, too.
    ticks: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    /// When no idle connection was found.
    looked: Mutex<Option<Instant>>,
}

/// A connection, as far as others must know of it.
#[derive(Debug)]
struct Seat {
    id: u64,
    kind: Mutex<Kind>,
    /// The tick at which it became idle; 0 while it has a request.
    idle_since: AtomicU64,
    /// Something written was not taken by the client yet.
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

/// The reason for which a connection is in the overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// There are as many connections as allowed.
    Connections,
    /// The process has no other socket left.
    Sockets,
}

/// Whether the process has sockets left for a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Sockets that every listener may use are left.
    Shared,
    /// Only sockets of the reserve are left.
    Reserve,
}

impl Room {
    /// The room that there was for this socket.
    pub(super) fn of(permit: &SocketPermit) -> Self {
        match permit.is_of_reserve() {
            true => Self::Reserve,
            false => Self::Shared,
        }
    }
}

/// A connection's place among those of its listener, until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    all: Arc<Connections>,
    seat: Arc<Seat>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Connections {
    /// No connections yet.
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

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A place for a new connection; `None` if even the overflow is full.
    pub(super) fn enter(self: &Arc<Self>, room: Room) -> Option<Connection> {
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

    /// The reason why a new connection is one too many, after idle ones were closed for it.
    fn shortage(&self, room: Room) -> Option<Shortage> {
        let max = self.limits.connections_max;
        let is_free = || self.regular.load(Ordering::Relaxed) < max;
        // A few at once, as finding them takes a look at all.
        let count = (max / CLOSED_SHARE).max(1);
        let has_closed = !is_free() && self.close_idlest(count);
        if !is_free() {
            return Some(Shortage::Connections);
        }
        let has_socket = room == Room::Shared || has_closed || self.close_idlest(1);
        (!has_socket).then_some(Shortage::Sockets)
    }

    /// Closes up to `count` connections, those that have been without a request for the longest time.
    /// False if there are none.
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
            // It is gone from the count now, not when its task comes to drop it.
            self.leave(seat);
        }
        true
    }

    /// Takes a connection out of the counts. More than once does nothing.
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

    /// A place for an event stream or a WebSocket; `None` if there are too many.
    pub(super) fn stream(&self) -> Option<OwnedSemaphorePermit> {
        let permit = self.streams.clone().try_acquire_owned().ok();
        if permit.is_none() {
            self.count(Refusal::Streams);
        }
        permit
    }

    pub(super) fn count(&self, refusal: Refusal) {
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

    /// Ends event streams and WebSockets, which are told so. Requests are still answered.
    pub fn drain(&self) {
        self.phase.send_replace(Phase::Draining);
    }

    /// Accepts nothing more and closes connections: idle ones now, others behind the answer.
    pub fn close(&self) {
        self.phase.send_replace(Phase::Closing);
    }

    /// Whether no request is being answered, and no stream or WebSocket is open.
    pub fn is_idle(&self) -> bool {
        self.stream_count() == 0 && self.seats.lock().values().all(|seat| seat.is_idle())
    }

    /// Ends when event streams and WebSockets have to.
    pub(super) fn draining(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reached(Phase::Draining)
    }

    /// Ends when connections have to.
    pub(super) fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        self.reached(Phase::Closing)
    }

    fn reached(&self, phase: Phase) -> impl Future<Output = ()> + Send + 'static {
        let mut phases = self.phase.subscribe();
        async move {
            if phases.wait_for(|it| *it >= phase).await.is_err() {
                // The listener is gone without having been closed.
                std::future::pending().await
            }
        }
    }

    fn stream_count(&self) -> usize {
        self.limits.streams_max - self.streams.available_permits()
    }

    /// Gauges and counters.
    pub(super) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
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
        let help = "HTTP requests and connections refused by a limit or as foreign";
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
    /// The task that serves it, which may be ended while it is idle.
    pub(super) fn served_by(&self, task: AbortHandle) {
        // There is one.
        let _ = self.seat.task.set(task);
    }

    /// Another handle to the same place; it is left with the last of them.
    pub(super) fn handle(&self) -> Handle {
        Handle {
            all: self.all.clone(),
            seat: self.seat.clone(),
        }
    }

    /// The reason why it is one too many, if it is: health and metrics only.
    pub(super) fn shortage(&self) -> Option<Shortage> {
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

/// What a connection tells of itself while it is served.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    all: Arc<Connections>,
    seat: Arc<Seat>,
}

impl Handle {
    pub(super) fn all(&self) -> &Arc<Connections> {
        &self.all
    }

    /// A request has come.
    pub(super) fn begin(&self) {
        self.seat.idle_since.store(0, Ordering::Relaxed);
    }

    /// It is answered.
    pub(super) fn end(&self) {
        self.seat
            .idle_since
            .store(self.all.tick(), Ordering::Relaxed);
    }

    /// Whether the client has yet to take what was written.
    pub(super) fn set_writing(&self, is_writing: bool) {
        self.seat.is_writing.store(is_writing, Ordering::Relaxed);
    }

    /// Counts the connection as a stream from here on.
    pub(super) fn become_stream(&self) {
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
    async fn idlest_connection_makes_room_and_busy_ones_stay() {
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
    fn overflow_is_bounded() {
        let all = connections(0);
        let held: Vec<_> = std::iter::from_fn(|| all.enter(Room::Shared)).collect();
        assert_eq!(held.len(), OVERFLOW_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn socket_of_the_reserve_is_regular_if_an_idle_connection_can_be_closed() {
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
