//! One client's HTTP/2 connection: its streams, its keepalive, its end.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Ping, PingPong, RecvStream};
use http::{Method, Request, header};
use node::{Counter, Facts};
use tokio::time::{Instant, Sleep};

use super::Door;
use super::admission::{Admitted, admit};
use super::exchange::Round;
use super::io::Io;
use super::outlet::SlimOutlet;
use super::status::{self, Code, Status};
use super::stream::Stream;

const PATH: &str = "/dataplane.proto.v1.DataPlaneService/OpenChannel";

/// Clients open one stream per connection.
const STREAMS_MAX: u32 = 16;

/// A message is one frame as far as the protocol allows: a client whose kernel delays the end of
/// one that is cut waits 40 ms for it.
const FRAME_SIZE_MAX: u32 = (1 << 24) - 1;

/// What may be under way to the node, of a stream and of all of them.
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

const HEADERS_SIZE_MAX: u32 = 16 << 10;

/// Rounds before other clients of the thread get their turn.
const ROUNDS_PER_POLL: usize = 8;

/// Serves a connection to its end.
pub(super) async fn serve(door: &Door, stream: net::Stream) {
    let remote = stream.peer.clone();
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_frame_size(FRAME_SIZE_MAX)
        .max_header_list_size(HEADERS_SIZE_MAX)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let handshake = builder.handshake(Io::new(stream));
    let time = door.options.negotiation_timeout;
    let reason = match tokio::time::timeout(time, handshake).await {
        Ok(Ok(connection)) => {
            let mut client = Box::new(Client::new(door, connection, remote));
            return poll_fn(|cx| client.poll(cx)).await;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no HTTP/2 in time".to_owned(),
    };
    door.node.counters().count(Counter::ProtocolErrors);
    tracing::info!(%remote, %reason, "SLIM connection refused");
}

struct Client {
    door: Door,
    remote: String,
    connection: server::Connection<Io, Bytes>,
    ping: Option<PingPong>,
    /// A ping was sent that is not answered.
    is_pinged: bool,
    /// Something was heard since the alarm rang last.
    is_heard: bool,
    streams: Vec<Stream>,
    alarm: Pin<Box<Sleep>>,
}

impl Client {
    fn new(door: &Door, mut connection: server::Connection<Io, Bytes>, remote: String) -> Self {
        let alarm = tokio::time::sleep(door.options.negotiation_timeout);
        Self {
            door: door.clone(),
            remote,
            ping: connection.ping_pong(),
            connection,
            is_pinged: false,
            is_heard: false,
            streams: Vec::new(),
            alarm: Box::pin(alarm),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS_PER_POLL {
            // This is also what reads from the network, and writes what the last round brought.
            loop {
                match self.connection.poll_accept(cx) {
                    Poll::Pending => break,
                    Poll::Ready(Some(Ok((request, respond)))) => self.open(request, respond),
                    Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                }
            }
            if self.poll_alarm(cx).is_ready() {
                return Poll::Ready(());
            }
            if !self.poll_streams(cx) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether something went in or out.
    fn poll_streams(&mut self, cx: &mut Context<'_>) -> bool {
        Round::with(|round| {
            let mut progress = false;
            let mut poll = |stream: &mut Stream| stream.poll(cx, round, &mut progress).is_pending();
            self.streams.retain_mut(&mut poll);
            for outlet in round.dirty.drain(..) {
                outlet.wake();
            }
            self.is_heard |= progress;
            progress
        })
    }

    fn open(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let outlet = Arc::new(SlimOutlet::new(
            self.remote.clone(),
            self.door.options.queue_size_max,
        ));
        let (connection, name) = match self.admit(&request, &outlet) {
            Ok(admitted) => admitted,
            Err(response) => {
                // It may have gone already.
                let _ = respond.send_response(response, true);
                return;
            }
        };
        // A client sends nothing before it has this.
        match respond.send_response(status::accepted(), false) {
            Ok(send) => {
                let receive = request.into_body();
                let stream = Stream::new(&self.door, connection, name, outlet, receive, send);
                self.streams.push(stream);
            }
            Err(error) => tracing::debug!(%error, "a SLIM stream ended before it began"),
        }
    }

    fn admit(
        &self,
        request: &Request<RecvStream>,
        outlet: &Arc<SlimOutlet>,
    ) -> Result<(node::Connection, Arc<str>), http::Response<()>> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let is_grpc = content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/grpc"));
        if !is_grpc {
            return Err(status::not_grpc());
        }
        if request.method() != Method::POST || request.uri().path() != PATH {
            return Err(Status::new(Code::Unimplemented, "only OpenChannel is served").response());
        }
        let admitted = admit(&self.door, request.headers());
        let Admitted { name, token } = admitted.map_err(|denied| {
            self.door.node.counters().count(Counter::Unauthenticated);
            Status::new(Code::Unauthenticated, denied.to_string()).response()
        })?;
        let facts = Facts {
            name: None,
            remote: self.remote.clone(),
            door: "slim",
            token,
            trusted: false,
            calls_max: 0,
            credit_messages: 0,
            credit_bytes: 0,
        };
        let opened = self.door.node.open(facts, |_| outlet.clone());
        let refused =
            |refusal: node::Refusal| Status::new(Code::Unavailable, refusal.to_string()).response();
        Ok((opened.map_err(refused)?, name))
    }

    /// Ready when the client is not there any more, or never came to the point.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(ping) = &mut self.ping
            && self.is_pinged
            && let Poll::Ready(Ok(_)) = ping.poll_pong(cx)
        {
            (self.is_pinged, self.is_heard) = (false, true);
        }
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            self.streams
                .iter_mut()
                .for_each(|stream| stream.check_time(now));
            let options = &self.door.options;
            let is_linked = self.streams.iter().any(Stream::is_linked);
            let is_heard = std::mem::take(&mut self.is_heard);
            if !is_linked && self.streams.is_empty() && !is_heard {
                return Poll::Ready(());
            }
            if is_linked && !is_heard {
                if self.is_pinged {
                    self.door.node.counters().count(Counter::Silent);
                    tracing::info!(remote = %self.remote, "SLIM connection closed: silent");
                    return Poll::Ready(());
                }
                let ping = self
                    .ping
                    .as_mut()
                    .map(|ping| ping.send_ping(Ping::opaque()));
                self.is_pinged = ping.is_some_and(|sent| sent.is_ok());
            }
            let next = match is_linked {
                true => options.keepalive,
                false => options.negotiation_timeout,
            };
            self.alarm.as_mut().reset(now + next);
        }
        Poll::Pending
    }
}
