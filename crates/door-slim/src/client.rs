//! The HTTP/2 connection of one SLIM client: streams, keepalive and end.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Ping, PingPong, RecvStream};
use http::{Method, Request, header};
use messaging::Refusal;
use platform::Counter;
use tokio::time::Instant;

use super::admission::{Credentials, Denied, Entered, enter};
use super::client_task::ClientTask;
use super::ending_stream::EndingStream;
use super::handshake_error::HandshakeError;
use super::io::Io;
use super::keepalive::Keepalive;
use super::listener::Door;
use super::outlet::{Framing, SlimOutlet};
use super::round::Round;
use super::shared_client::{OwnedClient, SharedClient};
use super::status::{self, Code, Status};
use super::stream::Stream;
use super::waiting_streams::{WaitingStream, WaitingStreams};

const PATH: &str = "/dataplane.proto.v1.DataPlaneService/OpenChannel";

/// Clients open one stream per connection.
const STREAMS_MAX: u32 = 16;

/// The largest HTTP/2 frame: a message should be one frame, because a kernel may delay the end of a
/// split message by 40 ms.
const FRAME_SIZE_MAX: u32 = (1 << 24) - 1;

/// The bytes in transit to the node, on one stream and on the connection.
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

const HEADERS_SIZE_MAX: u32 = 16 << 10;

/// The number of rounds before other clients of the thread get their turn.
const ROUNDS_PER_POLL: usize = 8;

/// Serves a connection to its end; the handshake has to be done by `by`.
pub(super) async fn serve(
    door: &Door,
    mut io: Io,
    remote: &str,
    by: Instant,
) -> Result<(), HandshakeError> {
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_frame_size(FRAME_SIZE_MAX)
        .max_header_list_size(HEADERS_SIZE_MAX)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let task = Arc::<ClientTask>::default();
    io.set_task(task.clone());
    let connection = tokio::time::timeout_at(by, builder.handshake(io)).await??;
    let remote = remote.to_owned();
    let client = OwnedClient::new(|shared| Client::new(door, connection, remote, task, shared));
    poll_fn(|cx| client.poll(cx)).await;
    Ok(())
}

/// The reason why a request does not begin a stream now.
enum Refused {
    /// The request gets this answer.
    Answered(Box<http::Response<()>>),
    /// The node has no room, or shuts down.
    Full(Refusal),
}

impl From<http::Response<()>> for Refused {
    fn from(response: http::Response<()>) -> Self {
        Self::Answered(Box::new(response))
    }
}

/// The state of a connection, under the lock of its [`SharedClient`].
pub(super) struct Client {
    door: Door,
    remote: String,
    /// Where other threads find the client.
    shared: Weak<SharedClient>,
    task: Arc<ClientTask>,
    /// The waker that HTTP/2 is polled with, which is the same [`ClientTask`].
    http_waker: Waker,
    /// `None` once it has ended. The streams may still hold earlier data.
    connection: Option<server::Connection<Io, Bytes>>,
    ping: Option<PingPong>,
    keepalive: Keepalive,
    streams: Vec<Stream>,
    /// Requests that wait for room.
    waiting: WaitingStreams,
    /// Streams that began while the node shuts down.
    ending: Vec<EndingStream>,
}

impl Client {
    fn new(
        door: &Door,
        mut connection: server::Connection<Io, Bytes>,
        remote: String,
        task: Arc<ClientTask>,
        shared: Weak<SharedClient>,
    ) -> Self {
        Self {
            door: door.clone(),
            remote,
            shared,
            http_waker: Waker::from(task.clone()),
            task,
            ping: connection.ping_pong(),
            connection: Some(connection),
            keepalive: Keepalive::new(door.options.negotiation_timeout),
            streams: Vec::new(),
            waiting: WaitingStreams::default(),
            ending: Vec::new(),
        }
    }

    /// Reads, handles and writes what is available, for the client's task.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.task.register(cx.waker());
        for _ in 0..ROUNDS_PER_POLL {
            self.poll_connection();
            self.task.clear_due();
            if self.poll_alarm(cx).is_ready() {
                return Poll::Ready(());
            }
            let has_answered = self.poll_waiting_streams(cx);
            self.poll_streams(cx);
            let has_ended = self.poll_ending_streams(cx);
            if !self.task.is_due() && !has_answered && !has_ended {
                return match self.connection {
                    None if self.streams.is_empty() => Poll::Ready(()),
                    _ => Poll::Pending,
                };
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Sends what is queued for the client, on a thread that has queued some of it: nothing is read
    /// and no timer is polled. Returns whether nothing is left to do for the client's task.
    pub(super) fn send_queued(&mut self, outlet: &SlimOutlet) -> bool {
        let stream = self.streams.iter_mut().find(|stream| stream.is_of(outlet));
        let (Some(connection), Some(stream)) = (&mut self.connection, stream) else {
            return false;
        };
        let http = &mut Context::from_waker(&self.http_waker);
        let mut progress = false;
        let written = stream.write_queued(http, &mut progress);
        if progress {
            self.keepalive.hear();
            self.task.clear_due();
            self.task.set_foreign(true);
            let closed = connection.poll_closed(http);
            self.task.set_foreign(false);
            if closed.is_ready() {
                return false;
            }
        }
        // Without room, HTTP/2 reports it to the task when the client has made some.
        !self.task.is_due() && written != Poll::Ready(ControlFlow::Break(()))
    }

    /// Reads from the network, and writes the data of the last round.
    fn poll_connection(&mut self) {
        let http_waker = self.http_waker.clone();
        let http = &mut Context::from_waker(&http_waker);
        while let Some(connection) = &mut self.connection {
            match connection.poll_accept(http) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok((request, respond)))) => self.open(request, respond),
                Poll::Ready(Some(Err(_)) | None) => self.connection = None,
            }
        }
    }

    /// Handles what the streams have received, and passes their queues to HTTP/2.
    fn poll_streams(&mut self, cx: &mut Context<'_>) {
        let http = &mut Context::from_waker(&self.http_waker);
        let mut progress = false;
        Round::with(|round| {
            let mut poll =
                |stream: &mut Stream| stream.poll(cx, http, round, &mut progress).is_pending();
            self.streams.retain_mut(&mut poll);
        });
        if progress {
            self.keepalive.hear();
        }
    }

    /// Answers the waiting requests when there is room; returns whether there were any.
    fn poll_waiting_streams(&mut self, cx: &mut Context<'_>) -> bool {
        let node = &self.door.node;
        let can_be_answered = || {
            let messaging = node.messaging();
            let connections_max = messaging.limits().connections_max;
            messaging.is_draining() || messaging.connection_count() < connections_max
        };
        let Poll::Ready(waiting) = self.waiting.poll(cx, can_be_answered) else {
            return false;
        };
        for WaitingStream { request, respond } in waiting {
            self.open(request, respond);
        }
        true
    }

    /// Drives the streams that are to end; returns whether one has ended.
    fn poll_ending_streams(&mut self, cx: &mut Context<'_>) -> bool {
        let (before, random) = (self.ending.len(), &self.door.exchange.random);
        self.ending
            .retain_mut(|stream| stream.poll(cx, random).is_pending());
        self.ending.len() < before
    }

    fn open(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let entered = match self.enter(&request) {
            Ok(entered) => entered,
            Err(Refused::Full(refusal)) => return self.turn_away(request, respond, &refusal),
            Err(Refused::Answered(response)) => {
                // It may have gone already.
                let _ = respond.send_response(*response, true);
                return;
            }
        };
        // A client sends nothing before it has this.
        match respond.send_response(status::accepted(), false) {
            Ok(send) => {
                entered.outlet.set_receiver(self.shared.clone());
                let stream = Stream::new(&self.door, entered, request.into_body(), send);
                self.streams.push(stream);
            }
            Err(error) => tracing::debug!(%error, "a SLIM stream ended before it began"),
        }
    }

    /// Refuses a request without ending what the client would not begin again: it waits for room,
    /// or its stream ends after the negotiation.
    fn turn_away(
        &mut self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        refusal: &Refusal,
    ) {
        if let Refusal::TooMany(_) = refusal {
            self.door.refusals.log_waiting(&self.remote, refusal);
            return self.waiting.push(WaitingStream { request, respond });
        }
        if let Ok(send) = respond.send_response(status::accepted(), false) {
            let options = &self.door.options;
            let alarm = tokio::time::sleep(options.negotiation_timeout);
            let size_max = options.message_size_max;
            let stream = EndingStream::new(request.into_body(), send, size_max, alarm);
            self.ending.push(stream);
        }
    }

    fn enter(&self, request: &Request<RecvStream>) -> Result<Entered, Refused> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let is_grpc = content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/grpc"));
        if !is_grpc {
            return Err(status::not_grpc().into());
        }
        if request.method() != Method::POST || request.uri().path() != PATH {
            let status = Status::new(Code::Unimplemented, "only OpenChannel is served");
            return Err(status.response().into());
        }
        let shown = Credentials::in_headers(request.headers());
        enter(&self.door, shown, &self.remote, Framing::Grpc).map_err(|denied| {
            let code = match denied {
                Denied::Full(refusal) => return Refused::Full(refusal),
                Denied::Legacy => Code::FailedPrecondition,
                _ => Code::Unauthenticated,
            };
            Status::new(code, denied.to_string()).response().into()
        })
    }

    /// Returns ready when the client is gone, or has not begun a link in time.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.connection.is_none() {
            return Poll::Pending;
        }
        if let Some(ping) = &mut self.ping
            && self.keepalive.is_asked()
            && let Poll::Ready(Ok(_)) = ping.poll_pong(cx)
        {
            self.keepalive.answer();
        }
        while self.keepalive.poll(cx).is_ready() {
            let options = &self.door.options;
            let is_linked = self.streams.iter().any(Stream::is_linked);
            let interval = match is_linked {
                true => options.keepalive,
                false => options.negotiation_timeout,
            };
            if self.keepalive.rest(Instant::now(), interval) {
                continue;
            }
            if !is_linked && self.waiting.is_empty() {
                if self.streams.is_empty() {
                    return Poll::Ready(());
                }
            } else if self.keepalive.is_asked() {
                self.door.node.counters().count(Counter::Silent);
                tracing::info!(remote = %self.remote, "SLIM connection closed: silent");
                return Poll::Ready(());
            } else if let Some(ping) = &mut self.ping
                && ping.send_ping(Ping::opaque()).is_ok()
            {
                self.keepalive.ask();
            }
        }
        Poll::Pending
    }
}
