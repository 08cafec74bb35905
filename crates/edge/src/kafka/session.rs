//! One client's connection: reads, has each request handled, and answers in the order of requests.
//!
//! ```text
//! read ─▸ frame ─▸ handled at once ─▸ an answer that may have to wait ─▸ out, in order
//! ```
//!
//! What a request changes is decided when it is read, in order; waiting for the disk or for records
//! keeps only answers waiting, until as many wait as are allowed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use net::Source;
use node::topics::Count;
use node::{Counter, Outlet};
use tokio::time::{Instant, Sleep};

use super::answers::Answers;
use super::client::Client;
use super::dispatch::{Fatal, Handled, dispatch};
use super::inbox::Inbox;
use super::metrics;
use super::outlet::KafkaOutlet;
use super::stall::Stall;
use crate::reading;
use crate::together::Wakers;

/// Reads in one go before other connections of the thread get their turn.
const READS_PER_POLL: usize = 4;

/// While a client leaves this much unread it is not answered further, and soon not read from.
const UNREAD_SIZE_MAX: usize = 1 << 20;

pub(super) struct Session {
    source: Box<dyn Source>,
    outlet: Arc<KafkaOutlet>,
    inbox: Inbox,
    answers: Answers,
    /// A request that waits, and its size.
    stalled: Option<(Box<dyn Stall>, usize)>,
    client: Client,
    silence: Silence,
    /// What the disk is given.
    wakers: Wakers,
    /// Rings when a client that is throttled is read from again.
    mute: Option<Pin<Box<Sleep>>>,
}

/// Why a session ended.
enum End {
    /// The client left, or the connection broke.
    Left,
    /// Everything is answered, and the node goes down.
    Drained,
    /// The client has not shown what would let it in, and was told.
    Refused,
    /// The client said nothing for too long.
    Silent,
    /// The client broke the protocol, or asked for its end by it.
    Fatal(Fatal),
    /// The node sends the client away.
    Dismissed(String),
}

impl Session {
    pub(super) fn new(
        source: Box<dyn Source>,
        outlet: Arc<KafkaOutlet>,
        client: Client,
        handshake_timeout: Duration,
        idle_timeout: Duration,
    ) -> Self {
        let silence = match client.is_admitted() {
            true => Silence::new(idle_timeout, idle_timeout),
            false => Silence::new(handshake_timeout, idle_timeout),
        };
        Self {
            source,
            outlet,
            inbox: Inbox::default(),
            answers: Answers::default(),
            stalled: None,
            client,
            silence,
            wakers: Wakers::default(),
            mute: None,
        }
    }

    pub(super) async fn run(mut self) {
        let remote = self.client.remote().to_owned();
        tracing::debug!(%remote, "kafka connection opened");
        let end = std::future::poll_fn(|cx| self.poll_round(cx)).await;
        match end {
            End::Left => tracing::debug!(%remote, "kafka connection closed"),
            End::Drained => tracing::debug!(%remote, "kafka connection drained"),
            End::Refused => tracing::debug!(%remote, "kafka connection closed: not let in"),
            End::Silent => tracing::debug!(%remote, "kafka connection closed: it was idle"),
            End::Fatal(Fatal { message }) => {
                self.client.node().counters().count(Counter::ProtocolErrors);
                tracing::info!(%remote, reason = %message, "kafka connection closed");
            }
            End::Dismissed(reason) => {
                tracing::info!(%remote, %reason, "kafka connection closed");
            }
        }
        // What was answered before the end still arrives.
        self.outlet.outbox.flush();
        self.outlet.outbox.finish();
    }

    /// What a round appends goes to the disk when the task is polled again, and so behind whatever the
    /// other connections of the thread have brought: one sync serves them all.
    fn poll_round(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.client.end_round();
        let polled = self.poll(cx);
        if self.client.is_producing() {
            cx.waker().wake_by_ref();
        }
        polled
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.outlet.outbox.poll_drain(cx).is_ready() {
            return Poll::Ready(End::Left);
        }
        if let Some(reason) = self.outlet.dismissal() {
            return Poll::Ready(End::Dismissed(reason.to_owned()));
        }
        let read = self.poll_read(cx);
        // What was asked before the end is answered, as far as that is known.
        let answered = self.poll_answers(cx);
        self.outlet.outbox.flush();
        if let Err(end) = read {
            return Poll::Ready(end);
        }
        if let Err(fatal) = answered {
            return Poll::Ready(End::Fatal(fatal));
        }
        if !self.is_waited_for() && self.outlet.is_leaving() {
            return Poll::Ready(End::Drained);
        }
        if !self.is_waited_for() && self.client.is_refused() {
            return Poll::Ready(End::Refused);
        }
        let is_waiting = self.is_waited_for() || self.mute.is_some();
        self.silence.poll(cx, is_waiting).map(|()| End::Silent)
    }

    /// Reads while there is something and room for what comes of it.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        self.go_on(cx).map_err(End::Fatal)?;
        if self.is_muted(cx) {
            return Ok(());
        }
        if !self.outlet.is_leaving() {
            // What was read when there was no room for more.
            self.take_in(cx).map_err(End::Fatal)?;
        }
        for _ in 0..READS_PER_POLL {
            if self.is_full() || self.is_muted(cx) || self.outlet.is_leaving() {
                return Ok(());
            }
            match self.read(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(outcome) => outcome?,
            }
        }
        // There may be more; others of the thread come first.
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Whether the client is throttled; the task is woken when that is over.
    fn is_muted(&mut self, cx: &mut Context<'_>) -> bool {
        let is_over = |mute: &mut Pin<Box<Sleep>>| mute.as_mut().poll(cx).is_ready();
        if self.mute.as_mut().is_some_and(is_over) {
            self.mute = None;
        }
        self.mute.is_some()
    }

    /// Whether so much waits that nothing more is read.
    fn is_full(&self) -> bool {
        self.stalled.is_some() || self.answers.is_full()
    }

    /// Whether the client has asked for something and was not answered.
    fn is_waited_for(&self) -> bool {
        self.stalled.is_some() || !self.answers.is_empty()
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        reading::with_chunk(|chunk| {
            let Some(count) = ready!(reading::poll_count(&mut *self.source, cx, chunk)) else {
                return Poll::Ready(Err(End::Left));
            };
            let counts = self.client.topics().counts();
            counts.add(Count::Received, count as u64);
            self.inbox.feed(&chunk[..count]);
            self.silence.heard = true;
            Poll::Ready(self.take_in(cx).map_err(End::Fatal))
        })
    }

    /// Handles what has arrived, while there is room for what comes of it.
    fn take_in(&mut self, cx: &mut Context<'_>) -> Result<(), Fatal> {
        while !self.is_full() && !self.is_muted(cx) {
            let frame = self.inbox.next(self.client.trust());
            let Some(frame) = frame.map_err(|error| Fatal::new(error.to_string()))? else {
                return Ok(());
            };
            match dispatch(&mut self.client, &frame)? {
                Handled::Answer(answer) => self.answers.push(answer, frame.len()),
                Handled::Stalled(stalled) => {
                    self.stalled = Some((stalled, frame.len()));
                    self.go_on(cx)?;
                }
            }
            if let Some(throttle) = self.client.take_throttle() {
                self.mute = Some(Box::pin(tokio::time::sleep(throttle)));
            }
        }
        Ok(())
    }

    /// Goes on with the request that waits.
    fn go_on(&mut self, cx: &mut Context<'_>) -> Result<(), Fatal> {
        let Some((stalled, size)) = &mut self.stalled else {
            return Ok(());
        };
        let disk = self.wakers.of(cx.waker());
        if let Poll::Ready(answer) = stalled.poll(&mut self.client, cx, disk) {
            let size = *size;
            self.stalled = None;
            self.answers.push(answer?, size);
        }
        Ok(())
    }

    /// Hands out what is due, as far as the client takes it.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> Result<(), Fatal> {
        let was_full = self.is_full();
        let disk = self.wakers.of(cx.waker()).clone();
        loop {
            if self.outlet.queued_size() > UNREAD_SIZE_MAX {
                self.outlet.outbox.flush();
                if self.outlet.queued_size() > UNREAD_SIZE_MAX {
                    self.wait_until_taken(cx);
                    break;
                }
            }
            let mut woken = Context::from_waker(&disk);
            let Poll::Ready(Some(reply)) = self.answers.poll_next(&mut woken) else {
                break;
            };
            let (mut written, mut size) = (Ok(Vec::new()), 0);
            self.outlet.outbox.push(|out| {
                let before = out.len();
                written = reply.write(out);
                size = out.len() - before;
            });
            let errors = written
                .map_err(|error| Fatal::new(format!("an answer cannot be said: {error}")))?;
            metrics::count_answer(self.client.topics(), size, &errors);
        }
        if was_full && !self.is_full() {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Comes back when the client has taken some: a blocked sink wakes the task by itself.
    fn wait_until_taken(&self, cx: &mut Context<'_>) {
        // Registers for it; what it says is looked at when the task is polled again.
        let _ = self.outlet.outbox.poll_drain(cx);
        if !self.outlet.outbox.is_blocked() {
            cx.waker().wake_by_ref();
        }
    }
}

/// Ends connections on which nothing happens.
struct Silence {
    timer: Pin<Box<Sleep>>,
    /// How long a client may be silent.
    limit: Duration,
    /// Something arrived since the timer was set.
    heard: bool,
}

impl Silence {
    fn new(first: Duration, limit: Duration) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep(first)),
            limit,
            heard: false,
        }
    }

    /// Ready when the client was silent for too long; whoever waits for an answer is not silent.
    fn poll(&mut self, cx: &mut Context<'_>, is_waiting: bool) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if !std::mem::take(&mut self.heard) && !is_waiting {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        Poll::Pending
    }
}
