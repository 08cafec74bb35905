//! Raw connection to a node's data plane: a link, subscriptions, and messages without a session.
//!
//! SLIM's own libraries are not used, so thousands of connections cost little compared with the
//! node.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::client;
use h2::{RecvStream, SendStream};
use http::{Request, StatusCode};
use slim::{Draft, Inbox, Initiator, Item, Link, Message, Name, Random};
use tokio::net::TcpStream;
use tokio::time::timeout;

use bench::workload::role::Failure;
use bench::workload::surroundings::PATIENCE;

/// Path of the only gRPC method.
const PATH: &str = "/dataplane.proto.v1.DataPlaneService/OpenChannel";

/// Size of the gRPC header of a message.
const HEAD_SIZE: usize = 5;

/// Maximum wait for each acknowledgement of a subscription.
const ACK_LIMIT: Duration = PATIENCE;

/// Tells counted messages from those of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sent before the window.
    WarmUp,
    /// Sent within the window.
    Counted,
}

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Kind of the message.
    pub kind: Kind,
    /// Bytes after the header: at least those of the payload.
    pub size: usize,
}

/// Offset of the message number after the header. The session header is a tag and a size, followed
/// by four fields of a tag and a number below 128 each; the message number is the last of them.
const NUMBER_AT: usize = 9;

/// Sending half of the connection.
pub struct SendHalf {
    stream: SendStream<Bytes>,
    link: Link,
}

/// Receiving half of the connection.
pub struct ReceiveHalf {
    stream: RecvStream,
    inbox: Inbox,
    messages: VecDeque<Bytes>,
}

/// Connects to `HOST:PORT` and negotiates a link named `link`.
///
/// # Errors
/// When the node cannot be reached or rejects the link.
pub async fn open(address: &str, link: &str) -> Result<(SendHalf, ReceiveHalf), Failure> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = client::handshake(socket).await?;
    // Its streams report the error that ends it.
    tokio::spawn(connection);
    let request = Request::post(format!("http://{address}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (response, mut stream) = sender.ready().await?.send_request(request, false)?;
    let response = response.await?;
    if response.status() != StatusCode::OK {
        return Err(format!("{address} answers with {}", response.status()).into());
    }
    let mut receive_half = ReceiveHalf {
        stream: response.into_body(),
        inbox: Inbox::new(u32::MAX),
        messages: VecDeque::new(),
    };
    let initiator = Initiator::new(link, &Random::new())?;
    send(&mut stream, &initiator.request(link))?;
    let reply = timeout(PATIENCE, receive_half.next()).await??;
    let Message::Link(Some(reply)) = Message::scan(&reply)? else {
        return Err(format!("{address} rejects the link").into());
    };
    let link = initiator.complete(&reply)?;
    Ok((SendHalf { stream, link }, receive_half))
}

/// Connects and subscribes to a name.
///
/// # Errors
/// When the node cannot be reached or rejects the subscription.
pub async fn subscribed(address: &str, name: Name<'_>) -> Result<(SendHalf, ReceiveHalf), Failure> {
    let (mut send_half, mut receive_half) =
        open(address, &format!("link of {}", name.agent())).await?;
    send_half.subscribe(name, 1)?;
    match receive_half.acknowledged(1).await? {
        1 => Ok((send_half, receive_half)),
        _ => Err(format!("{address} rejects a subscription").into()),
    }
}

impl Kind {
    /// Returns the message number that marks this kind.
    fn number(self) -> u8 {
        match self {
            Self::Counted => 1,
            Self::WarmUp => 2,
        }
    }

    fn of(number: Option<u8>) -> Self {
        match number == Some(Self::WarmUp.number()) {
            true => Self::WarmUp,
            false => Self::Counted,
        }
    }
}

impl SendHalf {
    /// Subscribes to a name; the acknowledgement carries `id`.
    ///
    /// # Errors
    /// When the stream has ended.
    pub fn subscribe(&mut self, name: Name<'_>, id: u64) -> Result<(), Failure> {
        let message = draft(name, name).subscribe(id, &self.link);
        send(&mut self.stream, &message)
    }

    /// Sends a message to the subscriber of a name, when the connection has capacity.
    ///
    /// # Errors
    /// When the stream has ended.
    pub async fn publish(
        &mut self,
        from: Name<'_>,
        to: Name<'_>,
        kind: Kind,
        payload: &[u8],
    ) -> Result<(), Failure> {
        let number = kind.number().into();
        let message = draft(from, to).publish([1, 1, 1, number], payload, &self.link);
        self.stream.reserve_capacity(HEAD_SIZE + message.len());
        while self.stream.capacity() < HEAD_SIZE + message.len() {
            let more = poll_fn(|cx| self.stream.poll_capacity(cx)).await;
            more.ok_or("the node ended the stream")??;
        }
        send(&mut self.stream, &message)
    }
}

impl ReceiveHalf {
    /// Waits for `count` acknowledgements. Returns how many are positive.
    ///
    /// # Errors
    /// When the stream ends, an acknowledgement is late, or something else arrives.
    pub async fn acknowledged(&mut self, count: usize) -> Result<usize, Failure> {
        let mut held = 0;
        for _ in 0..count {
            let message = timeout(ACK_LIMIT, self.next()).await??;
            match Message::scan(&message)? {
                Message::Ack(ack) => held += usize::from(ack.error.is_none()),
                other => return Err(format!("expected an acknowledgement, not {other:?}").into()),
            }
        }
        Ok(held)
    }

    /// Waits for a message to a subscribed name.
    ///
    /// # Errors
    /// When the stream ends.
    pub async fn published(&mut self) -> Result<ReceivedMessage, Failure> {
        loop {
            let message = self.next().await?;
            if let Message::Publish(routed) = Message::scan(&message)? {
                let tail = &message[routed.tail_start()..];
                return Ok(ReceivedMessage {
                    kind: Kind::of(tail.get(NUMBER_AT).copied()),
                    size: tail.len(),
                });
            }
        }
    }

    async fn next(&mut self) -> Result<Bytes, Failure> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Ok(message);
            }
            let piece = self
                .stream
                .data()
                .await
                .ok_or("the node ended the stream")??;
            self.stream.flow_control().release_capacity(piece.len())?;
            self.inbox.feed(piece);
            while let Some(item) = self.inbox.pull()? {
                if let Item::Message(message) = item {
                    self.messages.push_back(message);
                }
            }
        }
    }
}

fn draft<'a>(source: Name<'a>, destination: Name<'a>) -> Draft<'a> {
    Draft {
        source,
        destination,
        identity: "token",
        fanout: 1,
        ttl: slim::TTL,
    }
}

fn send(stream: &mut SendStream<Bytes>, message: &[u8]) -> Result<(), Failure> {
    let size = u32::try_from(message.len())?.to_be_bytes();
    stream.send_data([&[0][..], &size, message].concat().into(), false)?;
    Ok(())
}
