//! The WebSocket of one client: messages as binary frames, keepalive and end.
//!
//! ```text
//! ## Open => Closing => Closed: a close frame follows the queued data; the client has read it
//! ```

mod upgrade;

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use platform::Counter;
use slim::websocket::{Event, Frames, Opcode, Violation};
use tokio::time::Instant;

use super::admission::Entered;
use super::client_link::ClientLink;
use super::handshake_error::HandshakeError;
use super::io::Io;
use super::keepalive::Keepalive;
use super::listener::Door;
use super::round::Round;
use super::status::{Code, Status};

/// The number of rounds before other clients of the thread get their turn.
const ROUNDS_PER_POLL: usize = 8;

/// The size of a ping without a payload.
const PING_SIZE: usize = 2;

/// Serves a connection to its end, from its HTTP request on.
pub(super) async fn serve(
    door: &Door,
    io: Io,
    remote: &str,
    by: Instant,
) -> Result<(), HandshakeError> {
    if let Some((entered, io)) = upgrade::answer(door, io, remote, by).await? {
        let mut socket = Box::new(Socket::new(door, entered, io, remote));
        poll_fn(|cx| socket.poll(cx)).await;
    }
    Ok(())
}

struct Socket {
    door: Door,
    remote: String,
    link: ClientLink,
    io: Io,
    frames: Frames,
    keepalive: Keepalive,
    /// The bytes that are being sent.
    outgoing: Bytes,
    /// The client sends no more, or nothing that is read.
    is_over: bool,
    closing: Closing,
}

/// The state of the closing handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Open,
    /// The close frame is being sent.
    Said,
    /// The close frame was sent.
    Done,
}

impl Socket {
    fn new(door: &Door, entered: Entered, io: Io, remote: &str) -> Self {
        Self {
            link: ClientLink::new(door, entered),
            io,
            frames: Frames::new(door.options.message_size_max),
            keepalive: Keepalive::new(door.options.keepalive),
            outgoing: Bytes::new(),
            is_over: false,
            closing: Closing::Open,
            door: door.clone(),
            remote: remote.to_owned(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS_PER_POLL {
            self.link.outlet().register(cx);
            if self.link.poll_time(cx).is_ready() || self.poll_keepalive(cx).is_ready() {
                return Poll::Ready(());
            }
            let has_read = self.read(cx);
            let has_written = self.write(cx).is_ready();
            if has_written && self.is_over && self.closing == Closing::Done {
                return Poll::Ready(());
            }
            if !has_read {
                return Poll::Pending;
            }
            self.keepalive.hear();
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads; returns whether bytes arrived.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        if self.is_over || self.link.is_held(cx) {
            return false;
        }
        let is_ending = self.link.outlet().ending().is_some();
        let frames = &mut self.frames;
        // Data after the end is only read to find the end of the connection.
        let arrived = self.io.poll_arrived(cx, |bytes| {
            if !is_ending {
                frames.feed(bytes);
            }
        });
        match arrived {
            Poll::Pending => return false,
            Poll::Ready(true) => {}
            Poll::Ready(false) => {
                self.is_over = true;
                self.link.outlet().end(Status::new(Code::Ok, ""));
            }
        }
        Round::with(|round| {
            if let Err(violation) = self.take_in(round) {
                let code = match violation {
                    Violation::Text => Code::Unimplemented,
                    _ => Code::InvalidArgument,
                };
                self.link
                    .violation(Status::new(code, violation.to_string()));
            }
        });
        true
    }

    fn take_in(&mut self, round: &mut Round) -> Result<(), Violation> {
        while self.link.outlet().ending().is_none()
            && let Some(event) = self.frames.pull()?
        {
            match event {
                Event::Message(message) => {
                    if let Err(status) = self.link.take(message, round) {
                        self.link.outlet().end(status);
                    }
                }
                Event::Oversize(size) => self.link.skip(size),
                Event::Ping(payload) => {
                    self.link.outlet().put_control(Opcode::Pong, &payload);
                }
                Event::Pong => self.keepalive.answer(),
                Event::Close => self.link.outlet().end(Status::new(Code::Ok, "")),
            }
        }
        Ok(())
    }

    /// Returns ready when everything was sent.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.io.poll_write_piece(cx, &mut self.outgoing));
            match self.next_piece() {
                Some(piece) => self.outgoing = piece,
                None => break,
            }
            // Accepted data shows that the client is alive; a ping alone does not.
            if self.outgoing.len() > PING_SIZE {
                self.keepalive.hear();
            }
        }
        ready!(self.io.poll_sent(cx));
        if self.closing == Closing::Said {
            self.closing = Closing::Done;
            self.io.finish();
        }
        Poll::Ready(())
    }

    /// Returns the next piece to send: the queued data, then the close frame if the link has ended.
    fn next_piece(&mut self) -> Option<Bytes> {
        if self.closing != Closing::Open {
            return None;
        }
        let outlet = self.link.outlet();
        if let Some(piece) = outlet.take() {
            return Some(piece);
        }
        let (code, text) = outlet.ending()?.close_reason();
        self.closing = Closing::Said;
        let mut frame = BytesMut::new();
        Opcode::Close.put_head(2 + text.len(), &mut frame);
        frame.put_u16(code);
        frame.put_slice(text.as_bytes());
        Some(frame.freeze())
    }

    /// Returns ready when the client is gone.
    fn poll_keepalive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.keepalive.poll(cx).is_ready() {
            let keepalive = self.door.options.keepalive;
            let is_heard = self.keepalive.rest(Instant::now(), keepalive);
            let is_ending = self.link.outlet().ending().is_some();
            if is_heard || is_ending || !self.link.is_linked() {
                continue;
            }
            if self.keepalive.is_asked() {
                self.door.node.counters().count(Counter::Silent);
                tracing::info!(remote = %self.remote, "SLIM connection closed: silent");
                return Poll::Ready(());
            }
            self.link.outlet().put_control(Opcode::Ping, &[]);
            self.keepalive.ask();
        }
        Poll::Pending
    }
}
