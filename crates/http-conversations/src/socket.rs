//! `/v1/ws`: many conversations over one WebSocket.
//!
//! This task decides commands as it reads them: there is no task and no lock per message.
//! Acknowledgements are sent in the order of the commands, all that are due in one write. The node
//! stops reading from a client that does not read, and buffers nothing for it except a bounded
//! number of pending appends and the position of each watch.

mod command;
mod reply;
mod watches;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use conversation_service::{Appended, Pending};
use door::{AnswerQueue, Bound, Patience, Wakers};
use futures_util::{Sink, Stream};
use http_api::Client;
use http_api::Problem;
use http_api::Shared;
use model::ErrorCode;
use platform::Durable;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::command::Outcome;
use self::watches::Watches;
use super::append::{AROUND, not_durable};
use super::place::of;

/// The bound on the appends of a connection that wait for the disk. Above it, the node stops
/// reading. Their messages are in the journal's buffers, so their sizes do not count.
const BOUND: Bound = Bound {
    count: 1024,
    size: usize::MAX,
};

/// Most steps before other tasks get a turn.
const TURN: usize = 256;

/// Size of the read buffer, in bytes.
const READ_SIZE: usize = 32 << 10;

/// The WebSocket sub-protocol. A browser that sends its token as a second sub-protocol,
/// `bearer.TOKEN`, requires that one is confirmed.
const PROTOCOL: &str = "telpher";

/// Interval of pings on an idle connection.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Follow and append to many conversations over one WebSocket.
///
/// Commands are JSON texts: `{"op":"append","ref":"r1","conv":"c1","expect":41,"messages":[…]}`,
/// `{"op":"watch","conv":"c1","after":41}`, `{"op":"unwatch","conv":"c1"}`,
/// `{"op":"stop","conv":"c1","message":"a-9"}`. An append is answered by
/// `{"op":"ack","ref":"r1","first_seq":42,…}` when it is on disk, and a refused command by
/// `{"op":"error","ref":"r1","code":…}`. A watch sends `{"op":"message","conv":"c1","message":{…}}`
/// and `{"op":"head","conv":"c1","head_seq":42}`, each with a `position`. A watch with `position`
/// in place of `after` continues exactly there, even inside a message that is being streamed.
///
/// Browsers cannot send `Authorization` here; they send the token as a sub-protocol: `new
/// WebSocket(url, ["telpher", "bearer.TOKEN"])`.
#[utoipa::path(
    get, path = "/v1/ws", tag = "messages", operation_id = "socket",
    responses(
        (status = 101, description = "The connection is a WebSocket now"),
        (status = 400, description = "The request is not a WebSocket handshake", body = http_api::ProblemDocument),
        (status = 503, description = "Too many event streams and WebSockets are open", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn socket(
    State(shared): State<Shared>,
    client: Client,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|error| Problem::invalid(error.to_string()))?;
    let size_max = of(&shared)?.options().limits.batch_bytes_max + AROUND;
    let Some(place) = shared.connections.stream() else {
        let max = shared.connections.limits().streams_max;
        let detail =
            format!("too many event streams and WebSockets (limit {max}, http.streams_max)");
        return Err(Problem::of(ErrorCode::Busy, detail));
    };
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .max_message_size(size_max)
        .max_frame_size(size_max)
        .read_buffer_size(READ_SIZE);
    Ok(upgrade.on_upgrade(move |stream| Socket::new(shared, client, stream, place).run()))
}

/// An append that waits for the disk.
struct Waiting {
    /// The command's `ref` as JSON; empty for none.
    tag: Box<str>,
    /// Ids of the messages; `None` where the node makes one.
    ids: Vec<Option<Box<str>>>,
    /// The quota charge, which must be on disk before the acknowledgement.
    charged: Option<Durable>,
    pending: Pending<Appended>,
}

impl Waiting {
    fn poll(&mut self, disk: &Waker) -> Poll<Result<Appended, Problem>> {
        if let Some(charged) = &self.charged
            && let Err(error) = ready!(charged.poll_durable(disk))
        {
            return Poll::Ready(Err(not_durable(error)));
        }
        let outcome = self.pending.poll_answer(disk);
        outcome.map_err(Problem::from)
    }
}

/// A command that waits for the disk. Later commands are not read before it is done, so order is
/// preserved.
struct DeferredCommand {
    command: Bytes,
    /// The quota charge of the command.
    charged: Option<Durable>,
    fetching: JoinHandle<Option<Outcome>>,
}

struct Socket {
    shared: Shared,
    client: Client,
    stream: WebSocket,
    appends: AnswerQueue<Waiting>,
    /// The wakers that wait for the disk.
    wakers: Wakers,
    deferred: Option<DeferredCommand>,
    watches: Watches,
    /// The deadline of the next ping.
    ping: Patience,
    /// Ends when the client's pass is revoked.
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Ends when the node shuts down.
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_stopping: bool,
    /// True if something was written since the last flush.
    is_dirty: bool,
    /// The message that is being built.
    out: Vec<u8>,
    _place: OwnedSemaphorePermit,
}

// Codes of a close frame (RFC 6455, section 7.4.1).
const CLOSE_GOING_AWAY: u16 = 1001;
const CLOSE_PROTOCOL: u16 = 1002;
const CLOSE_POLICY: u16 = 1008;
const CLOSE_TOO_BIG: u16 = 1009;

/// The connection has ended.
struct ConnectionEnd;

impl Socket {
    fn new(shared: Shared, client: Client, stream: WebSocket, place: OwnedSemaphorePermit) -> Self {
        let pass = client.pass().clone();
        Self {
            revoked: Box::pin(async move { pass.revoked().await }),
            stop: Box::pin(shared.connections.draining()),
            is_stopping: false,
            shared,
            client,
            stream,
            appends: AnswerQueue::new(BOUND),
            wakers: Wakers::default(),
            deferred: None,
            watches: Watches::default(),
            ping: Patience::new(PING_INTERVAL),
            is_dirty: false,
            out: Vec::new(),
            _place: place,
        }
    }

    async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    /// Runs one turn: performs everything that can be done now, then flushes once.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let turn = self.turn(cx);
        let flushed = self.flush(cx);
        match (turn, flushed) {
            (Ok(is_done), Ok(())) => {
                if !is_done {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Returns true if nothing more can be done now.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        if self.revoked.as_mut().poll(cx).is_ready() {
            self.close(CLOSE_POLICY, "the token was revoked or changed");
            return Err(ConnectionEnd);
        }
        for _ in 0..TURN {
            if !self.is_writable(cx)? {
                return Ok(true);
            }
            // The oldest work goes first, so that nothing waits for later work.
            if !(self.acknowledge(cx)? || self.show(cx)? || self.read(cx)?) {
                self.keep_alive(cx)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Acknowledges the oldest append if it is due.
    fn acknowledge(&mut self, cx: &Context<'_>) -> Result<bool, ConnectionEnd> {
        let disk = self.wakers.of(cx.waker());
        let Some((waiting, outcome)) = self.appends.poll_next(|oldest| oldest.poll(disk)) else {
            return Ok(false);
        };
        match outcome {
            Ok(appended) => reply::push_ack(&mut self.out, &waiting.tag, &waiting.ids, &appended),
            Err(problem) => reply::push_error(&mut self.out, &waiting.tag, None, problem),
        }
        self.write().map(|()| true)
    }

    /// Sends the next event of the watches.
    fn show(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        let Poll::Ready(shown) = self.watches.poll_next(cx) else {
            return Ok(false);
        };
        reply::push_shown(&mut self.out, &shown);
        self.write().map(|()| true)
    }

    /// Reads and executes the next command.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        if let Some(deferred) = &mut self.deferred {
            let Poll::Ready(fetched) = Pin::new(&mut deferred.fetching).poll(cx) else {
                return Ok(false);
            };
            let command = std::mem::take(&mut deferred.command);
            let charged = deferred.charged.take();
            self.deferred = None;
            return match fetched {
                Ok(Some(Outcome::Append(waiting))) => {
                    self.appends.push(Waiting { charged, ..waiting }, 0);
                    Ok(true)
                }
                Ok(Some(outcome)) => self.finish(outcome, &command),
                Ok(None) => self.command(command),
                Err(_) => Err(ConnectionEnd),
            };
        }
        if self.is_stopping || self.stop.as_mut().poll(cx).is_ready() {
            return self.stop();
        }
        if self.appends.is_full() {
            return Ok(false);
        }
        match Pin::new(&mut self.stream).poll_next(cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(Some(Ok(Message::Text(text)))) => self.command(text.into()),
            Poll::Ready(Some(Ok(Message::Binary(bytes)))) => self.command(bytes),
            Poll::Ready(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {
                // The next flush sends the pong.
                self.is_dirty = true;
                Ok(true)
            }
            Poll::Ready(Some(Err(error))) => {
                let reason = error.to_string();
                let is_size = reason.to_ascii_lowercase().contains("too long");
                self.close(
                    if is_size {
                        CLOSE_TOO_BIG
                    } else {
                        CLOSE_PROTOCOL
                    },
                    &reason,
                );
                Err(ConnectionEnd)
            }
            Poll::Ready(Some(Ok(Message::Close(_)))) => {
                // The last flush sends the close frame.
                self.is_dirty = true;
                Err(ConnectionEnd)
            }
            Poll::Ready(None) => Err(ConnectionEnd),
        }
    }

    fn command(&mut self, json: Bytes) -> Result<bool, ConnectionEnd> {
        let outcome = command::run(&self.shared, &self.client, &mut self.watches, &json);
        self.finish(outcome, &json)
    }

    fn finish(&mut self, outcome: Outcome, json: &Bytes) -> Result<bool, ConnectionEnd> {
        match outcome {
            Outcome::Append(waiting) => self.appends.push(waiting, 0),
            Outcome::NeedsDisk { charged } => {
                let (shared, command) = (self.shared.clone(), json.clone());
                self.deferred = Some(DeferredCommand {
                    command: json.clone(),
                    charged,
                    fetching: tokio::task::spawn_blocking(move || {
                        command::fetch(&shared, &command)
                    }),
                });
            }
            Outcome::Silent => {}
            Outcome::Done { tag, conversation } => {
                reply::push_done(&mut self.out, &tag, &conversation);
                self.write()?;
            }
            Outcome::Refused { tag, problem } => {
                reply::push_error(&mut self.out, &tag, None, problem);
                self.write()?;
            }
        }
        Ok(true)
    }

    fn is_writable(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        match Pin::new(&mut self.stream).poll_ready(cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(_)) => Err(ConnectionEnd),
        }
    }

    /// Queues the built message for the next flush.
    fn write(&mut self) -> Result<(), ConnectionEnd> {
        let bytes = std::mem::take(&mut self.out);
        let Ok(text) = String::from_utf8(bytes) else {
            // A damaged record cannot be sent as text.
            return Err(ConnectionEnd);
        };
        self.send(Message::Text(Utf8Bytes::from(text)))
    }

    fn send(&mut self, message: Message) -> Result<(), ConnectionEnd> {
        self.is_dirty = true;
        let sent = Pin::new(&mut self.stream).start_send(message);
        sent.map_err(|_| ConnectionEnd)
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), ConnectionEnd> {
        if !self.is_dirty {
            return Ok(());
        }
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.is_dirty = false;
                Ok(())
            }
            Poll::Ready(Err(_)) => Err(ConnectionEnd),
        }
    }

    fn keep_alive(&mut self, cx: &mut Context<'_>) -> Result<(), ConnectionEnd> {
        if self.is_dirty {
            self.ping.renew(Instant::now());
        }
        while self.ping.poll_over(cx).is_ready() {
            self.ping.renew(Instant::now());
            self.send(Message::Ping(Bytes::new()))?;
        }
        Ok(())
    }

    /// Stops reading commands, and closes the connection when all read commands are answered.
    fn stop(&mut self) -> Result<bool, ConnectionEnd> {
        self.is_stopping = true;
        if !self.appends.is_empty() {
            return Ok(false);
        }
        self.close(CLOSE_GOING_AWAY, "the node is shutting down");
        Err(ConnectionEnd)
    }

    /// Sends a close frame with the reason, as far as possible.
    fn close(&mut self, code: u16, reason: &str) {
        let frame = CloseFrame {
            code,
            // A control frame has at most 125 bytes, two of which are the code.
            reason: reason
                .chars()
                .take(100)
                .filter(char::is_ascii)
                .collect::<String>()
                .into(),
        };
        // The connection ends even if the frame cannot be sent.
        let _ = self.send(Message::Close(Some(frame)));
    }
}
