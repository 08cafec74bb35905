//! A stream that begins while the node goes down.
//!
//! SLIM's library gives up for good when a stream cannot be opened or its link is not agreed on, and comes
//! back when an open stream ends. So the link is agreed on, and then the stream ends with UNAVAILABLE.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream};
use slim::{Accepted, Inbox, Item, Message, Random};
use tokio::time::Sleep;

use super::outlet::Framing;
use super::party::NODE_ID;
use super::status::{Code, Status};

/// See the module's documentation.
pub(super) struct Farewell {
    receive: RecvStream,
    send: SendStream<Bytes>,
    inbox: Inbox,
    /// Rings when the application has had its time to negotiate.
    alarm: Pin<Box<Sleep>>,
}

impl Farewell {
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

    /// Ready when the stream has ended.
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

    /// Answers the negotiation, if it is one, and ends the stream.
    fn end(&mut self, first: &[u8], random: &Random) {
        if let Ok(Message::Link(Some(asked))) = Message::scan(first)
            && let Ok(accepted) = Accepted::new(&asked, NODE_ID, random)
        {
            let mut reply = BytesMut::new();
            Framing::Grpc.put_head(accepted.reply.len(), &mut reply);
            reply.put_slice(&accepted.reply);
            // The application may have gone already.
            let _ = self.send.send_data(reply.freeze(), false);
        }
        let status = Status::new(Code::Unavailable, "the node is shutting down");
        let _ = self.send.send_trailers(status.trailers());
    }
}
