//! The connection of one Kafka client: reads requests, handles them, and answers in their order.
//!
//! ```text
//! read ─▸ frame ─▸ handled at once ─▸ an answer that may have to wait ─▸ out, in order
//! ```
//!
//! A request is decided when it is read, in order. Only its answer may wait for the disk or for
//! records, until the limit on waiting answers is reached.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use door::Wakers;
use door::reading;
use door::{AnswerQueue, Bound};
use net::Source;
use platform::{Counter, Span};
use tokio::time::{Instant, Sleep};
use topic_service::Count;

use super::client::Client;
use super::deadline::DeadlineTimer;
use super::dispatch::dispatch;
use super::inbox::Inbox;
use super::metrics;
use super::outcome::{Fatal, Handled, Stall};
use super::outlet::KafkaOutlet;
use super::reply::{Answer, Reply};
use super::spans;

/// The number of reads before other connections of the thread get their turn.
const READS_PER_POLL: usize = 4;

/// While a client leaves this many bytes unread, no more answers are written, and soon nothing is
/// read from it.
const UNREAD_SIZE_MAX: usize = 1 << 20;

/// The bound on the waiting answers of a connection, and on the bytes of their requests and of
/// finished answers. Above it, no more requests are read.
const BOUND: Bound = Bound {
    count: 8_192,
    size: 16 << 20,
};

/// The time after which it is checked whether the client has read the bytes of files that were queued
/// for it. They keep these files open, also after they are removed; so none does for longer than twice
/// this time.
const FILES_UNREAD_MAX: Duration = Duration::from_secs(1800);

/// The size at which a finished answer is counted: it may list all topics.
const FINISHED_SIZE: usize = 128 << 10;

pub(super) struct Session {
    source: Box<dyn Source>,
    outlet: Arc<KafkaOutlet>,
    inbox: Inbox,
    /// Only the oldest is polled, so that its data is read when it can be sent: a connection that
    /// does not read its answers holds the memory of one.
    answers: AnswerQueue<TimedAnswer>,
    /// The timer for their deadlines.
    deadlines: DeadlineTimer,
    /// A request that delays all later ones.
    stalled: Option<StalledRequest>,
    client: Client,
    silence: Silence,
    /// The wakers that wait for the disk.
    wakers: Wakers,
    /// The end of the client's throttling.
    mute: Option<Pin<Box<Sleep>>>,
    /// Answers were written in this round.
    has_answered: bool,
    /// Bytes of files were queued, and may not all be sent.
    has_files: bool,
    /// The deadline for bytes of files, while there are any.
    files: Option<FilesDeadline>,
}

/// The deadline for reading the bytes of files that were queued up to now.
struct FilesDeadline {
    timer: Pin<Box<Sleep>>,
    /// The number of the last of them.
    last: u64,
}

/// An answer, with its request for the histogram of durations.
struct TimedAnswer {
    answer: Answer,
    request: Received,
}

/// A request that delays all later ones.
struct StalledRequest {
    stall: Box<dyn Stall>,
    size: usize,
    request: Received,
}

/// A request that was received.
struct Received {
    /// The number of its API.
    api: usize,
    at_ns: u64,
    /// Its span, if it is traced.
    span: Option<Box<Span>>,
}

/// The reason why a session ended.
enum End {
    /// The client closed the connection, or it broke.
    Left,
    /// Everything is answered, and the node shuts down.
    Drained,
    /// The authentication failed, and the client was told.
    Refused,
    /// The client was idle for too long.
    Silent,
    /// The client did not read an answer.
    Unread,
    /// The client violated the protocol, or sent a request that ends the connection.
    Fatal(Fatal),
    /// The node closes the connection.
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
            answers: AnswerQueue::new(BOUND),
            deadlines: DeadlineTimer::default(),
            stalled: None,
            client,
            silence,
            wakers: Wakers::default(),
            mute: None,
            has_answered: false,
            has_files: false,
            files: None,
        }
    }

    pub(super) async fn run(mut self) {
        let remote = self.client.remote().to_owned();
        tracing::debug!(%remote, "kafka connection opened");
        let end = std::future::poll_fn(|cx| self.poll_round(cx)).await;
        match end {
            End::Left => match self.outlet.outbox.take_failure() {
                Some(error) => {
                    tracing::warn!(%remote, %error, "kafka connection closed within an answer");
                }
                None => tracing::debug!(%remote, "kafka connection closed"),
            },
            End::Drained => tracing::debug!(%remote, "kafka connection drained"),
            End::Refused => {
                tracing::debug!(%remote, "kafka connection closed: authentication failed")
            }
            End::Silent => tracing::debug!(%remote, "kafka connection closed: it was idle"),
            End::Unread => {
                tracing::info!(%remote, "kafka connection closed: it does not read its answers");
                self.outlet.outbox.close();
            }
            End::Fatal(Fatal { message }) => {
                self.client.node().counters().count(Counter::ProtocolErrors);
                tracing::info!(%remote, reason = %message, "kafka connection closed");
            }
            End::Dismissed(reason) => {
                tracing::info!(%remote, %reason, "kafka connection closed");
            }
        }
        // Answers that were written before the end still arrive.
        self.outlet.outbox.flush();
        self.outlet.outbox.finish();
    }

    /// Runs one round. Its appends go to the disk at the end of the thread's pass, or when the task is
    /// polled again, and therefore after the other connections of the thread: one sync serves all
    /// of them.
    fn poll_round(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.client.end_round();
        let polled = self.poll(cx);
        if !self.client.leave_round_to_pass() {
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
        // Requests that were read before the end are answered, as far as their answers are
        // finished.
        let answered = self.poll_answers(cx);
        if std::mem::take(&mut self.has_answered) {
            self.outlet.outbox.flush();
        }
        if let Err(end) = read {
            return Poll::Ready(end);
        }
        if let Err(fatal) = answered {
            return Poll::Ready(End::Fatal(fatal));
        }
        // Bytes that the client has not read yet would be lost with the connection.
        let is_written = || self.outlet.outbox.queued_size() == 0;
        if !self.is_waited_for() && self.outlet.is_leaving() && is_written() {
            return Poll::Ready(End::Drained);
        }
        if !self.is_waited_for() && self.client.is_refused() {
            return Poll::Ready(End::Refused);
        }
        if self.poll_files(cx).is_ready() {
            return Poll::Ready(End::Unread);
        }
        let is_waiting = self.is_waited_for() || self.mute.is_some();
        self.silence.poll(cx, is_waiting).map(|()| End::Silent)
    }

    /// Returns ready when the client has not read bytes of files for too long.
    fn poll_files(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.has_files {
            let files = self.outlet.outbox.files();
            if files.unsent == 0 {
                (self.has_files, self.files) = (false, None);
                break;
            }
            let deadline = self.files.get_or_insert_with(|| FilesDeadline {
                timer: Box::pin(tokio::time::sleep(FILES_UNREAD_MAX)),
                last: files.pushed,
            });
            ready!(deadline.timer.as_mut().poll(cx));
            if files.pushed - files.unsent < deadline.last {
                return Poll::Ready(());
            }
            self.files = None;
        }
        Poll::Pending
    }

    /// Reads while bytes are available and the limits allow.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        self.go_on(cx).map_err(End::Fatal)?;
        if self.is_muted(cx) {
            return Ok(());
        }
        if !self.outlet.is_leaving() {
            // Frames that were received when no more requests were allowed.
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
        // There may be more bytes; other connections of the thread come first.
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Returns whether the client is throttled; the task is woken when that ends.
    fn is_muted(&mut self, cx: &mut Context<'_>) -> bool {
        let is_over = |mute: &mut Pin<Box<Sleep>>| mute.as_mut().poll(cx).is_ready();
        if self.mute.as_mut().is_some_and(is_over) {
            self.mute = None;
        }
        self.mute.is_some()
    }

    /// Returns whether the limit on waiting requests is reached.
    fn is_full(&self) -> bool {
        self.stalled.is_some() || self.answers.is_full()
    }

    /// Returns whether the client waits for an answer.
    fn is_waited_for(&self) -> bool {
        self.stalled.is_some() || !self.answers.is_empty()
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let read = match self.poll_read_long(cx) {
            Some(read) => read,
            None => self.poll_read_chunk(cx),
        };
        let Some(count) = ready!(read) else {
            return Poll::Ready(Err(End::Left));
        };
        let counts = self.client.topics().counts();
        counts.add(Count::Received, count as u64);
        self.silence.heard = true;
        Poll::Ready(self.take_in(cx).map_err(End::Fatal))
    }

    /// Reads bytes of a long frame straight into its memory; `None` if no such frame is expected, or
    /// if the transport cannot do that.
    fn poll_read_long(&mut self, cx: &mut Context<'_>) -> Option<Poll<Option<usize>>> {
        let (memory, size) = self.inbox.room()?;
        let read = self.source.poll_read_behind(cx, memory, size);
        self.inbox.rest();
        Some(read?.map(reading::count))
    }

    /// Reads into the buffer of the thread, from which the inbox copies.
    fn poll_read_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let most = self.inbox.read_max();
        reading::with_chunk(|chunk| {
            let most = most.min(chunk.len());
            let chunk = &mut chunk[..most];
            let read = reading::poll_count(&mut *self.source, cx, chunk);
            if let Poll::Ready(Some(count)) = read {
                self.inbox.feed(&chunk[..count]);
            }
            read
        })
    }

    /// Handles received frames, while the limits allow.
    fn take_in(&mut self, cx: &mut Context<'_>) -> Result<(), Fatal> {
        while !self.is_full() && !self.is_muted(cx) {
            let frame = self.inbox.next(self.client.trust());
            let Some(frame) = frame.map_err(|error| Fatal::new(error.to_string()))? else {
                return Ok(());
            };
            let (size, at_ns) = (frame.len(), self.now_ns());
            let api = metrics::api_number(&frame);
            let handled = dispatch(&mut self.client, &frame)?;
            let span = self.client.take_span();
            let request = Received { api, at_ns, span };
            match handled {
                Handled::Answer(answer) => self.queue(answer, size, request),
                Handled::Stalled(stall) => {
                    self.stalled = Some(StalledRequest {
                        stall,
                        size,
                        request,
                    });
                    self.go_on(cx)?;
                }
            }
            if let Some(throttle) = self.client.take_throttle() {
                self.mute = Some(Box::pin(tokio::time::sleep(throttle)));
            }
        }
        Ok(())
    }

    /// Polls the stalled request.
    fn go_on(&mut self, cx: &mut Context<'_>) -> Result<(), Fatal> {
        let Some(stalled) = &mut self.stalled else {
            return Ok(());
        };
        let disk = self.wakers.of(cx.waker());
        if let Poll::Ready(answer) = stalled.stall.poll(&mut self.client, cx, disk)
            && let Some(StalledRequest { size, request, .. }) = self.stalled.take()
        {
            self.queue(answer?, size, request);
        }
        Ok(())
    }

    /// Returns the node's monotonic clock in nanoseconds.
    fn now_ns(&self) -> u64 {
        self.client.door.node.ports().clock.now_ns()
    }

    /// Adds the newest answer; its request has `size` bytes.
    fn queue(&mut self, answer: Answer, size: usize, request: Received) {
        let size = match answer {
            Answer::Now(_) => size + FINISHED_SIZE,
            Answer::Later(_) | Answer::Waiting(_) | Answer::Never => size,
        };
        self.answers.push(TimedAnswer { answer, request }, size);
    }

    /// Returns the oldest reply with its request, once it is finished. `disk` is woken for data, `cx` at
    /// deadlines.
    fn next_reply(&mut self, cx: &mut Context<'_>, disk: &Waker) -> Option<(Reply, Received)> {
        loop {
            let deadlines = &mut self.deadlines;
            let poll = |oldest: &mut TimedAnswer| {
                let mut woken = Context::from_waker(disk);
                let is_over = |deadline| deadlines.poll_over(cx, deadline).is_ready();
                oldest.answer.poll(&mut woken, is_over)
            };
            let (timed, reply) = self.answers.poll_next(poll)?;
            if let Some(reply) = reply {
                return Some((reply, timed.request));
            }
        }
    }

    /// Writes finished answers, as far as the client reads them.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> Result<(), Fatal> {
        if self.answers.is_empty() {
            self.deadlines.rest();
            return Ok(());
        }
        let was_full = self.is_full();
        let disk = self.wakers.of(cx.waker()).clone();
        let mut unread = self.outlet.outbox.queued_size();
        loop {
            if unread > UNREAD_SIZE_MAX {
                self.outlet.outbox.flush();
                unread = self.outlet.outbox.queued_size();
                if unread > UNREAD_SIZE_MAX {
                    self.wait_until_taken(cx);
                    break;
                }
            }
            let Some((reply, request)) = self.next_reply(cx, &disk) else {
                break;
            };
            let (mut written, mut size) = (Ok(Vec::new()), 0);
            let has_files = &mut self.has_files;
            self.outlet.outbox.push_output(|out| {
                let before = out.size();
                written = reply.write(out);
                size = out.size() - before;
                *has_files |= out.files() > 0;
            });
            self.has_answered = true;
            unread += size;
            let errors =
                written.map_err(|error| Fatal::new(format!("cannot encode an answer: {error}")))?;
            let took_ns = self.now_ns().saturating_sub(request.at_ns);
            let counts = self.client.topics().counts();
            counts.durations(request.api).record(took_ns);
            metrics::count_answer(self.client.topics(), size, &errors);
            if let Some(span) = request.span {
                spans::end(*span, &errors);
            }
        }
        if was_full && !self.is_full() {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Wakes the task when the client has read; a blocked sink wakes it by itself.
    fn wait_until_taken(&self, cx: &mut Context<'_>) {
        // Registers the waker; the result is checked when the task is polled again.
        let _ = self.outlet.outbox.poll_drain(cx);
        if !self.outlet.outbox.is_blocked() {
            cx.waker().wake_by_ref();
        }
    }
}

/// Closes idle connections.
struct Silence {
    timer: Pin<Box<Sleep>>,
    /// The time that a client may be idle.
    limit: Duration,
    /// True if bytes arrived since the timer was set.
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

    /// Returns ready when the client was idle for too long; a client that waits for an answer is
    /// not idle.
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
