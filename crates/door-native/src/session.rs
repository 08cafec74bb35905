//! The connection of one native client: reads, passes each chunk to the node as one turn, and keeps
//! it alive.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use door::{Wakers, drop_at_pass_end, reading};
use messaging::Connection;
use model::{ErrorCode, Failure};
use net::Source;
use platform::Counter;
use tokio::time::{Instant, Sleep};
use wire::{Correlation, Inbox, Item, Kind};

use super::Door;
use super::dispatch::{dispatch, dispatch_sends, refuse_oversize};
use super::fatal::Fatal;
use super::outlet::{Farewell, NativeOutlet};
use super::quota::Owner;
use super::requests::Requests;

/// The number of reads before other connections of the thread get their turn.
const READS_PER_POLL: usize = 4;

/// After a fatal error: how long, and for how many bytes, the client may continue to send before
/// the connection is cut.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_SIZE_MAX: usize = 64 << 20;

pub(super) struct Session {
    source: Box<dyn Source>,
    outlet: Arc<NativeOutlet>,
    inbox: Inbox,
    frame_size_max: u32,
    connection: Connection,
    requests: Requests,
    /// The bytes that were read with the HELLO.
    rest: Vec<u8>,
    keepalive: Option<Keepalive>,
    /// The wakers that wait for the disk.
    wakers: Wakers,
}

/// The reason why a session ended.
enum End {
    /// The client closed the connection, or it broke.
    Left,
    /// The client was silent for too long.
    Silent,
    /// The client violated the protocol.
    Fatal(Fatal),
    /// The node closes the connection.
    Dismissed(Farewell),
}

impl Session {
    pub(super) fn new(
        door: &Door,
        source: Box<dyn Source>,
        outlet: Arc<NativeOutlet>,
        mut connection: Connection,
        owner: Owner,
        peer_keepalive_ms: u32,
        rest: Vec<u8>,
    ) -> Self {
        let frame_size_max = door.options.frame_size_max;
        let inbox = Inbox::new(frame_size_max);
        let keepalive = Keepalive::new(door.options.keepalive, peer_keepalive_ms);
        connection.keep_rounds();
        let requests = Requests::new(&door.node, outlet.clone(), owner);
        Self {
            source,
            outlet,
            inbox,
            frame_size_max,
            connection,
            requests,
            rest,
            keepalive,
            wakers: Wakers::default(),
        }
    }

    pub(super) async fn run(mut self) {
        let id = self.connection.id().0;
        tracing::debug!(connection = id, "connection opened");
        let end = std::future::poll_fn(|cx| self.poll_settled(cx)).await;
        match end {
            End::Left => tracing::debug!(connection = id, "connection closed"),
            End::Silent => {
                self.connection.count(Counter::Silent);
                tracing::info!(connection = id, "connection closed: the client was silent");
            }
            End::Fatal(Fatal { code, message }) => {
                self.connection.count(Counter::ProtocolErrors);
                tracing::info!(connection = id, reason = %message, "connection closed");
                self.say_goodbye(code, &message).await;
            }
            End::Dismissed(Farewell { code, message }) => {
                tracing::info!(connection = id, reason = %message, "connection closed");
                self.say_goodbye(code, &message).await;
            }
        }
    }

    /// Runs one round. Before the task rests, it sends the answers whose records became durable; it
    /// is woken when there are more.
    ///
    /// The round's appends go to the disk at the end of the thread's pass, or when the task is polled
    /// again, and therefore after the other connections of the thread: one sync serves all of them.
    fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.connection.end_round();
        let polled = self.poll(cx);
        if polled.is_pending() {
            self.settle(cx);
            let connection = &mut self.connection;
            if connection.is_in_round() && !drop_at_pass_end(|| connection.take_round()) {
                cx.waker().wake_by_ref();
            }
        }
        polled
    }

    /// Sends the answers whose records are durable, and continues to read if that had to wait for
    /// it.
    fn settle(&mut self, cx: &mut Context<'_>) {
        let was_full = self.requests.is_full();
        let disk = self.wakers.of(cx.waker());
        if self.requests.settle(&mut self.connection, cx, disk) {
            self.wait_until_read(cx);
        }
        if was_full && !self.requests.is_full() {
            cx.waker().wake_by_ref();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.outlet.outbox.poll_drain(cx).is_ready() {
            return Poll::Ready(End::Left);
        }
        if let Some(farewell) = self.outlet.dismissal() {
            return Poll::Ready(End::Dismissed(farewell.clone()));
        }
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            if let Err(fatal) = self.take_in(&rest) {
                return Poll::Ready(End::Fatal(fatal));
            }
        }
        for _ in 0..READS_PER_POLL {
            if self.requests.is_full() {
                // The node does not read here, so the client does not count as silent.
                return Poll::Pending;
            }
            if self.outlet.is_unread() {
                self.outlet.outbox.flush();
                return self.wait_for_reader(cx);
            }
            match self.read(cx) {
                Poll::Pending => return self.poll_keepalive(cx),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(end)) => return Poll::Ready(end),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Waits until the sink accepts more: the client leaves its answers unread.
    fn wait_for_reader(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.outlet.outbox.poll_drain(cx).is_ready() {
            return Poll::Ready(End::Left);
        }
        self.wait_until_read(cx);
        self.poll_keepalive(cx)
    }

    /// Wakes the task when the client has read; a blocked sink wakes it by itself.
    fn wait_until_read(&self, cx: &Context<'_>) {
        if !self.outlet.outbox.is_blocked() {
            // Another thread is writing, or has just finished: check again.
            cx.waker().wake_by_ref();
        }
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        reading::with_chunk(|chunk| {
            let Some(count) = ready!(reading::poll_count(&mut *self.source, cx, chunk)) else {
                return Poll::Ready(Err(End::Left));
            };
            Poll::Ready(self.take_in(&chunk[..count]).map_err(End::Fatal))
        })
    }

    fn take_in(&mut self, chunk: &[u8]) -> Result<(), Fatal> {
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.heard = true;
        }
        let mut turn = self.connection.turn();
        let mut frames = self.inbox.feed(chunk);
        loop {
            if let Some(run) = frames.next_run(Kind::SEND) {
                dispatch_sends(&mut turn, &mut self.requests, &self.outlet, &run)?;
                continue;
            }
            let Some(item) = frames.next() else {
                break;
            };
            match item {
                Item::Frame(header, payload) => {
                    dispatch(&mut turn, &mut self.requests, &self.outlet, header, payload)?;
                }
                Item::Oversize { header, fatal } => {
                    let limit = self.frame_size_max;
                    refuse_oversize(&mut turn, &mut self.requests, header, limit, fatal)?;
                }
            }
        }
        turn.finish();
        self.requests.flush();
        Ok(())
    }

    fn poll_keepalive(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match &mut self.keepalive {
            Some(keepalive) => keepalive.poll(cx, &self.outlet).map(|()| End::Silent),
            None => Poll::Pending,
        }
    }

    /// Sends the error, and continues to read for a moment so that the client can receive it.
    async fn say_goodbye(mut self, code: ErrorCode, message: &str) {
        self.outlet.outbox.push(|out| {
            wire::encode_failure(&Failure::new(code, message), Correlation::NONE, out);
        });
        self.outlet.outbox.flush();
        self.outlet.outbox.finish();
        drop((self.connection, self.requests));
        let source = &mut self.source;
        let draining = async {
            let mut drained = 0;
            while drained < LINGER_SIZE_MAX {
                let read = std::future::poll_fn(|cx| {
                    reading::with_chunk(|chunk| source.poll_read(cx, chunk))
                });
                match read.await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => drained += count,
                }
            }
        };
        // A client that still sends after this time does not read.
        let _ = tokio::time::timeout(LINGER, draining).await;
    }
}

/// Pings a silent client, and gives up one that stays silent.
struct Keepalive {
    interval: Duration,
    timer: Pin<Box<Sleep>>,
    /// True if bytes arrived since the timer was set.
    heard: bool,
    /// The number of times that the timer has run out since bytes arrived.
    silent: u32,
}

impl Keepalive {
    fn new(own: Duration, peer_ms: u32) -> Option<Self> {
        // The side with the shorter interval pings; the other side only expects the pings.
        let peer = Duration::from_millis(u64::from(peer_ms));
        let interval = if own.is_zero() {
            return None;
        } else {
            own.max(peer)
        };
        let timer = Box::pin(tokio::time::sleep(interval));
        Some(Self {
            interval,
            timer,
            heard: false,
            silent: 0,
        })
    }

    /// Returns ready when the client is dead.
    fn poll(&mut self, cx: &mut Context<'_>, outlet: &NativeOutlet) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            match std::mem::take(&mut self.heard) {
                true => self.silent = 0,
                false => self.silent += 1,
            }
            match self.silent {
                0 => {}
                1 | 2 => {
                    outlet
                        .outbox
                        .push(|out| wire::encode_ping(Correlation::NONE, out));
                    outlet.outbox.flush();
                }
                _ => return Poll::Ready(()),
            }
            self.timer.as_mut().reset(Instant::now() + self.interval);
        }
        Poll::Pending
    }
}
