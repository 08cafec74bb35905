//! `Engine`: the task of one connection, which reads, writes and checks deadlines.
//!
//! A turn writes the queued frames, reads until no more bytes are available, and rests. Callers and
//! streaming handlers append to buffers and wake the task; only the task uses the socket. Read
//! buffers belong to the thread, so a resting connection has no buffers.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use model::{ErrorCode, Failure};
use net::Source;
use tokio::time::Instant;
use wire::{Correlation, Goaway, Header, Inbox, Item};

use crate::connection::intake::{CallingSide, GoawayNotice, Intake, PeerNotices};
use crate::connection::timer::{Beat, Heartbeat, Timer};
use crate::connection::writer::Writer;
use crate::connection::{buffers, handshake};
use crate::server::{Responder, Violation};
use crate::state::completions::Completions;
use crate::state::core::Life;
use crate::state::queue::earlier;

/// Size of unwritten answers in bytes at which the task stops reading from the peer.
const HIGH_MARK: usize = 1 << 20;

/// Chunks read per turn before other tasks of the thread run.
const CHUNKS_PER_TURN: usize = 8;

/// The task of one connection.
pub(crate) struct Engine {
    source: Box<dyn Source>,
    inbox: Inbox,
    writer: Writer,
    /// True if the batch being written contains calls.
    batch_has_calls: bool,
    /// True if bytes were written since the last read.
    has_written: bool,
    responder: Responder,
    calling_side: Option<CallingSide>,
    /// Answers to be written.
    out: Vec<u8>,
    /// Bytes read but not processed, because the peer does not read its answers.
    backlog: Vec<u8>,
    frame_size_max: u32,
    completions: Completions,
    notices: PeerNotices,
    timer: Timer,
    heartbeat: Heartbeat,
    task: Option<Waker>,
    /// Deadline of draining; while draining only calls in flight complete.
    drain_until: Option<Instant>,
}

/// Event that the owner of the connection must handle.
pub(crate) enum Event {
    /// The peer sent GOAWAY; the engine continues.
    Goaway(GoawayNotice),
    /// The connection has ended.
    End(End),
}

/// End of a connection.
pub(crate) struct End {
    pub(crate) reason: String,
    /// True if no byte of the last batch of calls was written.
    pub(crate) is_last_unwritten: bool,
    /// True if all calls in flight completed and all answers were written.
    pub(crate) is_finished: bool,
    /// Error to send to a peer that violated the protocol.
    pub(crate) violation: Option<(ErrorCode, String)>,
}

impl Engine {
    pub(crate) fn new(
        source: Box<dyn Source>,
        writer: Writer,
        responder: Responder,
        calling_side: Option<CallingSide>,
        frame_size_max: u32,
        keepalive_ms: u32,
    ) -> Self {
        let heartbeat = Heartbeat::new(keepalive_ms, Instant::now());
        Self {
            source,
            inbox: Inbox::new(frame_size_max),
            writer,
            batch_has_calls: false,
            has_written: false,
            responder,
            calling_side,
            out: Vec::new(),
            backlog: Vec::new(),
            frame_size_max,
            completions: Completions::default(),
            notices: PeerNotices::default(),
            timer: Timer::new(heartbeat.at),
            heartbeat,
            task: None,
            drain_until: None,
        }
    }

    /// Runs until there is an event for the owner.
    pub(crate) async fn run(&mut self) -> Event {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Returns the id of the [`Link`], if the connection has one.
    pub(crate) fn link(&self) -> Option<u64> {
        self.calling_side
            .as_ref()
            .map(|calling_side| calling_side.link)
    }

    /// Begins to drain: only calls in flight complete, within `time`.
    pub(crate) fn begin_drain(&mut self, time: Duration) {
        self.drain_until = Some(Instant::now() + time);
    }

    /// Sends GOAWAY and begins to drain.
    fn send_goaway(&mut self, time: Duration) {
        let goaway = Goaway {
            code: ErrorCode::Unavailable,
            drain_ms: time.as_millis().try_into().unwrap_or(u32::MAX),
            address: "",
            message: "the server is shutting down",
        };
        goaway.encode(&mut self.out);
        self.begin_drain(time);
    }

    /// Closes the connection after the peer has read everything. Unread bytes from the peer, at
    /// least credit, would otherwise make the close discard bytes in transit.
    pub(crate) async fn close_gracefully(mut self) {
        handshake::linger(&mut *self.source, &self.writer).await;
    }

    /// Sends an error to a peer that violated the protocol, then closes the connection.
    pub(crate) async fn close_with_error(mut self, code: ErrorCode, message: &str) {
        let failure = Failure::new(code, message);
        wire::encode_failure(&failure, Correlation::NONE, &mut self.out);
        let out = std::mem::take(&mut self.out);
        let Self {
            mut source,
            mut writer,
            responder,
            ..
        } = self;
        drop(responder);
        let writing = async {
            std::future::poll_fn(|cx| writer.poll(cx)).await?;
            writer.load(out);
            std::future::poll_fn(|cx| writer.poll(cx)).await
        };
        let written = tokio::time::timeout(handshake::HANDSHAKE_TIMEOUT, writing).await;
        if let Ok(Ok(())) = written {
            handshake::linger(&mut *source, &writer).await;
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        self.register(cx);
        let mut chunk = buffers::take_chunk();
        let event = self.turn(cx, &mut chunk);
        buffers::give_chunk(chunk);
        if self.out.is_empty() {
            buffers::give(std::mem::take(&mut self.out));
        }
        event
    }

    /// Registers the waker of this task with the ports, if it has changed.
    fn register(&mut self, cx: &Context<'_>) {
        if !self
            .task
            .as_ref()
            .is_some_and(|task| task.will_wake(cx.waker()))
        {
            self.responder.register(cx.waker());
            self.timer.forget_task();
            self.task = Some(cx.waker().clone());
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>, chunk: &mut [u8]) -> Poll<Event> {
        if self.drain_until.is_none()
            && let Some(time) = self.responder.drain_time()
        {
            self.send_goaway(time);
        }
        for _ in 0..CHUNKS_PER_TURN {
            if self.timer.is_over()
                && let Some(event) = self.check_timers(Instant::now())
            {
                return Poll::Ready(event);
            }
            self.take_buffer();
            self.responder.poll(HIGH_MARK, &mut self.out);
            if let Err(error) = self.write(cx) {
                return Poll::Ready(self.end(&error.to_string()));
            }
            match self.read(cx, chunk) {
                Poll::Ready(Ok(ReadProgress::Data)) => {}
                Poll::Ready(Ok(ReadProgress::End)) => {
                    return Poll::Ready(self.end("the peer closed the connection"));
                }
                Poll::Ready(Err(ReadError::Io(error))) => {
                    return Poll::Ready(self.end(&error.to_string()));
                }
                Poll::Ready(Err(ReadError::Peer(code, message))) => {
                    return Poll::Ready(self.end_with_violation(code, message));
                }
                Poll::Pending => {
                    if let Some(resting) = self.rest(cx) {
                        return resting;
                    }
                }
            }
            if let Some(goaway) = self.notices.goaway.take() {
                return Poll::Ready(Event::Goaway(goaway));
            }
        }
        give_way(cx);
        Poll::Pending
    }

    /// Gives `out` memory from the pool, so that it does not grow from nothing.
    fn take_buffer(&mut self) {
        if self.out.capacity() == 0 {
            self.out = buffers::take();
        }
    }

    /// Writes the queued frames if the peer has taken the previous batch.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let mut is_clear = self.writer.is_clear();
        if !is_clear && let Poll::Ready(written) = self.writer.poll(cx) {
            written?;
            is_clear = true;
        }
        let mut batch = match &self.calling_side {
            Some(_) => self.begin_turn(cx, is_clear),
            None => Vec::new(),
        };
        if !is_clear {
            return Ok(());
        }
        if batch.is_empty() && self.out.is_empty() {
            return Ok(());
        }
        self.batch_has_calls = !batch.is_empty();
        match self.batch_has_calls {
            true => batch.append(&mut self.out),
            false => std::mem::swap(&mut batch, &mut self.out),
        }
        self.heartbeat.sent();
        self.has_written = true;
        self.writer.load(batch);
        match self.writer.poll(cx) {
            Poll::Ready(written) => written,
            Poll::Pending => Ok(()),
        }
    }

    /// Sets the start time of new calls and returns the bytes to write, if the writer is free.
    fn begin_turn(&mut self, cx: &Context<'_>, is_clear: bool) -> Vec<u8> {
        let Some(calling_side) = &self.calling_side else {
            return Vec::new();
        };
        let mut state = calling_side.core.state.lock();
        let Some(link) = state.link_mut(calling_side.link) else {
            return Vec::new();
        };
        link.begin_turn(cx.waker());
        if !is_clear {
            return Vec::new();
        }
        let batch = link.take_out();
        if !batch.is_empty() {
            state.settle(&mut self.completions);
            drop(state);
            self.completions.finish(&[]);
        }
        batch
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        chunk: &mut [u8],
    ) -> Poll<Result<ReadProgress, ReadError>> {
        if self.out.len() >= HIGH_MARK {
            return Poll::Pending;
        }
        if !self.backlog.is_empty() {
            let backlog = std::mem::take(&mut self.backlog);
            self.process(&backlog)?;
            return Poll::Ready(Ok(ReadProgress::Data));
        }
        let read = match std::mem::take(&mut self.has_written) {
            true => self.source.poll_read_answer(cx, chunk),
            false => self.source.poll_read(cx, chunk),
        };
        match read {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(ReadProgress::End)),
            Poll::Ready(Ok(count)) => {
                self.heartbeat.received();
                self.process(&chunk[..count])?;
                Poll::Ready(Ok(ReadProgress::Data))
            }
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {
                Poll::Ready(Ok(ReadProgress::Data))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(ReadError::Io(error))),
        }
    }

    fn process(&mut self, chunk: &[u8]) -> Result<(), ReadError> {
        // A write of this turn may have taken the buffer.
        self.take_buffer();
        let mut intake = Intake::new(
            self.calling_side.as_ref(),
            &mut self.responder,
            &mut self.completions,
            &mut self.out,
            chunk,
            self.frame_size_max,
            &mut self.notices,
        );
        let mut frames = self.inbox.feed(chunk);
        let mut outcome = Ok(());
        while let Some(item) = frames.next() {
            // Nothing is assigned to `outcome` for a frame that is in order: the old value would have
            // to be dropped each time.
            match item {
                Item::Frame(header, payload) => {
                    if let Err(violation) = intake.take(header, payload) {
                        outcome = Err(violation.into());
                        break;
                    }
                }
                Item::Oversize { header, fatal } => {
                    intake.take_oversize(header, fatal);
                    if fatal {
                        outcome = Err(oversize_error(header, self.frame_size_max));
                        break;
                    }
                }
            }
            if intake.out_size() >= HIGH_MARK {
                self.backlog = frames.into_rest().to_vec();
                break;
            }
        }
        intake.finish();
        self.completions.finish(chunk);
        outcome
    }

    /// Rests, unless there is new work.
    fn rest(&mut self, cx: &mut Context<'_>) -> Option<Poll<Event>> {
        if self.out.len() < HIGH_MARK && self.responder.has_work() {
            // The work was skipped while the peer did not read its answers.
            return None;
        }
        let mut wake_at = earlier(Some(self.heartbeat.at), self.responder.deadline_min());
        wake_at = earlier(wake_at, self.drain_until);
        let can_write = self.writer.is_clear();
        let mut is_finished = can_write && self.out.is_empty() && self.responder.is_idle();
        match &self.calling_side {
            // A server waits for the client to close; the client may have sent frames that have not
            // arrived.
            None => is_finished = false,
            Some(calling_side) => {
                let mut guard = calling_side.core.state.lock();
                let state = &mut *guard;
                let is_ending = state.life != Life::Open || self.drain_until.is_some();
                if state.is_current(calling_side.link) {
                    wake_at = earlier(wake_at, state.queue_deadline_min());
                }
                match state.link_mut(calling_side.link) {
                    None => is_finished = true,
                    Some(link) if can_write && link.has_out() => return None,
                    Some(link) => {
                        is_finished &= is_ending && link.is_quiet();
                        wake_at = earlier(wake_at, link.deadline_min());
                        link.end_turn();
                    }
                }
            }
        }
        if is_finished {
            return Some(Poll::Ready(self.end_finished()));
        }
        if let Some(at) = wake_at {
            self.timer.arm(at, cx);
        }
        Some(Poll::Pending)
    }

    /// Handles deadlines, keepalive and draining.
    fn check_timers(&mut self, now: Instant) -> Option<Event> {
        if self.heartbeat.at <= now {
            match self.heartbeat.beat(now) {
                Beat::Quiet => {}
                Beat::Ping => wire::encode_ping(Correlation::NONE, &mut self.out),
                Beat::Dead => {
                    return Some(self.end("the peer does not answer (keepalive timeout)"));
                }
            }
        }
        if self.drain_until.is_some_and(|until| until <= now) {
            return Some(self.end("the time to drain is over"));
        }
        self.responder.expire(now, &mut self.out);
        if let Some(calling_side) = &self.calling_side {
            let mut guard = calling_side.core.state.lock();
            let state = &mut *guard;
            if let Some(link) = state.link_mut(calling_side.link) {
                link.expire(now, &mut self.completions);
            }
            if state.is_current(calling_side.link) {
                state.sweep_queues(now, &mut self.completions);
            }
            state.finish_change(calling_side.link, &mut self.completions);
            drop(guard);
            self.completions.finish(&[]);
        }
        self.timer.restart(self.heartbeat.at);
        None
    }

    fn end(&mut self, reason: &str) -> Event {
        Event::End(End {
            reason: self.reason(reason),
            is_last_unwritten: self.batch_has_calls && self.writer.is_untouched(),
            is_finished: false,
            violation: None,
        })
    }

    fn end_finished(&mut self) -> Event {
        Event::End(End {
            reason: self.reason("the connection was closed"),
            is_last_unwritten: false,
            is_finished: true,
            violation: None,
        })
    }

    /// Returns the reason for the end; an error from the peer takes precedence.
    fn reason(&mut self, otherwise: &str) -> String {
        let closing_error = self.notices.closing_error.take();
        closing_error.unwrap_or_else(|| otherwise.to_owned())
    }

    fn end_with_violation(&mut self, code: ErrorCode, message: String) -> Event {
        Event::End(End {
            reason: format!("the peer violated the protocol: {message}"),
            is_last_unwritten: self.batch_has_calls && self.writer.is_untouched(),
            is_finished: false,
            violation: Some((code, message)),
        })
    }
}

/// Wakes the task again after the other tasks of the thread *and* the other sockets had their turn.
/// A connection that always finds bytes would otherwise keep the runtime from looking at these.
fn give_way(cx: &mut Context<'_>) {
    if pin!(tokio::task::yield_now()).poll(cx).is_ready() {
        cx.waker().wake_by_ref();
    }
}

enum ReadProgress {
    Data,
    End,
}

/// Failure of reading.
enum ReadError {
    Io(io::Error),
    Peer(ErrorCode, String),
}

/// Returns the error for a frame that is too large to be skipped.
fn oversize_error(header: Header, limit: u32) -> ReadError {
    let size = header.length;
    let message = format!(
        "a payload of {size} bytes is too far above the limit of {limit} to be skipped (`frame_size_max`)"
    );
    ReadError::Peer(ErrorCode::TooLarge, message)
}

impl From<Violation> for ReadError {
    fn from(Violation(message): Violation) -> Self {
        Self::Peer(ErrorCode::Protocol, message)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_task_that_gives_way_lets_other_sockets_be_read() {
        let (mut near, far) = tokio::net::UnixStream::pair().unwrap();
        let reading = tokio::spawn(async move { near.read_u8().await.unwrap() });
        // The reader is registered before the byte comes.
        tokio::task::yield_now().await;
        assert_eq!(far.try_write(&[7]).unwrap(), 1);
        let mut turns = 0;
        let giving_way = std::future::poll_fn(|cx| match reading.is_finished() {
            true => Poll::Ready(()),
            false => {
                turns += 1;
                give_way(cx);
                Poll::Pending
            }
        });
        giving_way.await;
        assert_eq!(reading.await.unwrap(), 7);
        assert!(turns < 5, "{turns} turns before the socket was read");
    }
}
