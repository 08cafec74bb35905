//! Streams that begin while the node shuts down.
//!
//! SLIM's library gives up permanently when a stream cannot be opened or its link is not
//! negotiated, and reconnects when an open stream ends. So the link is negotiated, and then the
//! stream ends with UNAVAILABLE.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream};
use slim::{Accepted, Inbox, Item, Message, Random};
use tokio::time::Sleep;

use super::client_link::NODE_ID;
use super::outlet::Framing;
use super::status::{Code, Status};

/// A stream that ends after its negotiation.
pub(super) struct EndingStream {
    receive: RecvStream,
    send: SendStream<Bytes>,
    inbox: Inbox,
    /// The end of the time for the negotiation.
    alarm: Pin<Box<Sleep>>,
}

impl EndingStream {
    pub(super) fn new(
        receive: RecvStream,
        send: SendStream<Bytes>,
        message_size_max: u32,
        alarm: Sleep,
    ) -> Self {
        Self {
            receive,
            send,
            inbox: Inbox::new(message_size_max),
            alarm: Box::pin(alarm),
        }
    }

    /// Returns ready when the stream has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, random: &Random) -> Poll<()> {
        if self.alarm.as_mut().poll(cx).is_ready() {
            self.send.send_reset(Reason::CANCEL);
            return Poll::Ready(());
        }
        loop {
            match self.inbox.pull() {
                Ok(None) => {}
                Ok(Some(Item::Message(first))) => {
                    self.end(&first, random);
                    return Poll::Ready(());
                }
                Ok(Some(Item::Oversize(_))) | Err(_) => {
                    self.end(&[], random);
                    return Poll::Ready(());
                }
            }
            match self.receive.poll_data(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(piece))) => {
                    let _ = self.receive.flow_control().release_capacity(piece.len());
                    self.inbox.feed(piece);
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
            }
        }
    }

    /// Answers the first message if it is a negotiation, and ends the stream.
    fn end(&mut self, first: &[u8], random: &Random) {
        if let Ok(Message::Link(Some(asked))) = Message::scan(first)
            && let Ok(accepted) = Accepted::new(&asked, NODE_ID, random)
        {
            let mut reply = BytesMut::new();
            Framing::Grpc.put_head(accepted.reply.len(), &mut reply);
            reply.put_slice(&accepted.reply);
            // The application may have disconnected.
            let _ = self.send.send_data(reply.freeze(), false);
        }
        let status = Status::new(Code::Unavailable, "the node is shutting down");
        let _ = self.send.send_trailers(status.trailers());
    }
}
