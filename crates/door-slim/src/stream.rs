//! A gRPC stream over HTTP/2: the messages of a [`ClientLink`].

use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use messaging::Client as _;
use slim::{Inbox, Item};

use super::admission::Entered;
use super::client_link::ClientLink;
use super::listener::Door;
use super::outlet::SlimOutlet;
use super::round::Round;
use super::status::{Code, Status};

/// The number of pieces that are read before other clients of the thread get their turn.
const PIECES_PER_ROUND: usize = 16;

/// The state of an open stream.
pub(super) struct Stream {
    link: ClientLink,
    receive: RecvStream,
    send: SendStream<Bytes>,
    inbox: Inbox,
    /// The client sends no more.
    is_over: bool,
}

impl Stream {
    pub(super) fn new(
        door: &Door,
        entered: Entered,
        receive: RecvStream,
        send: SendStream<Bytes>,
    ) -> Self {
        Self {
            link: ClientLink::new(door, entered),
            receive,
            send,
            inbox: Inbox::new(door.options.message_size_max),
            is_over: false,
        }
    }

    /// Returns whether the link is negotiated.
    pub(super) fn is_linked(&self) -> bool {
        self.link.is_linked()
    }

    /// Returns whether `outlet` is the queue of this stream.
    pub(super) fn is_of(&self, outlet: &SlimOutlet) -> bool {
        std::ptr::eq(self.link.outlet(), outlet)
    }

    /// Reads and writes available data. Returns ready when the stream has ended; `progress` is set
    /// when data was received or sent. `http` is the context of the HTTP/2 connection.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        http: &mut Context<'_>,
        round: &mut Round,
        progress: &mut bool,
    ) -> Poll<()> {
        self.link.outlet().register(cx);
        if self.link.poll_time(cx).is_ready() {
            self.send.send_reset(Reason::CANCEL);
            return Poll::Ready(());
        }
        if self.link.outlet().ending().is_none() {
            self.read(cx, http, round, progress);
        }
        let written = self.write(http, progress);
        match self.link.outlet().ending() {
            // A client that accepts no more data may have sent some before.
            None => Poll::Pending,
            Some(_) => written,
        }
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        http: &mut Context<'_>,
        round: &mut Round,
        progress: &mut bool,
    ) {
        for _ in 0..PIECES_PER_ROUND {
            if self.is_over || self.link.is_held(cx) {
                return;
            }
            match self.receive.poll_data(http) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(piece))) => {
                    *progress = true;
                    // An error means that the stream has ended, which needs no window.
                    let _ = self.receive.flow_control().release_capacity(piece.len());
                    if let Err(status) = self.take_in(piece, round) {
                        self.link.outlet().end(status);
                        return;
                    }
                }
                Poll::Ready(Some(Err(_)) | None) => {
                    self.is_over = true;
                    self.link.outlet().end(Status::new(Code::Ok, ""));
                }
            }
        }
        http.waker().wake_by_ref();
    }

    fn take_in(&mut self, piece: Bytes, round: &mut Round) -> Result<(), Status> {
        self.inbox.feed(piece);
        loop {
            let item = self.inbox.pull();
            match item.map_err(|error| Status::new(Code::Unimplemented, error.to_string()))? {
                None => return Ok(()),
                Some(Item::Message(message)) => self.link.take(message, round)?,
                Some(Item::Oversize(size)) => self.link.skip(size.into()),
            }
        }
    }

    /// Returns ready when nothing more can be sent.
    fn write(&mut self, http: &mut Context<'_>, progress: &mut bool) -> Poll<()> {
        if ready!(self.write_queued(http, progress)).is_break() {
            return Poll::Ready(());
        }
        match self.link.outlet().ending() {
            None => Poll::Pending,
            Some(status) => {
                *progress = true;
                // The client may have disconnected.
                let _ = self.send.send_trailers(status.trailers());
                Poll::Ready(())
            }
        }
    }

    /// Passes the queued data to HTTP/2, as far as the client accepts it. Breaks when the client
    /// accepts no more for good.
    pub(super) fn write_queued(
        &mut self,
        http: &mut Context<'_>,
        progress: &mut bool,
    ) -> Poll<ControlFlow<()>> {
        let outlet = self.link.outlet();
        while outlet.queued_size() > 0 {
            if self.send.capacity() == 0 {
                self.send.reserve_capacity(outlet.queued_size());
            }
            while self.send.capacity() == 0 {
                match self.send.poll_capacity(http) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(ControlFlow::Break(())),
                }
            }
            let Some(piece) = outlet.take() else {
                break;
            };
            if self.send.send_data(piece, false).is_err() {
                return Poll::Ready(ControlFlow::Break(()));
            }
            *progress = true;
        }
        Poll::Ready(ControlFlow::Continue(()))
    }
}
