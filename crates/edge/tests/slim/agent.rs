//! An application: one connection, one stream, one link.

use std::collections::VecDeque;
use std::future::poll_fn;

use bytes::Bytes;
use h2::client::{self, ResponseFuture};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use slim::{Ack, Draft, Inbox, Initiator, Item, Link, Message, Name, Random};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Bench, PATIENCE};

/// The path of the one method there is.
pub(crate) const PATH: &str = "/dataplane.proto.v1.DataPlaneService/OpenChannel";

/// What a test reads of a publish.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) ttl: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Agent {
    send: SendStream<Bytes>,
    receive: RecvStream,
    inbox: Inbox,
    items: VecDeque<Bytes>,
    link: Option<Link>,
    name: Name<'static>,
    next_id: u64,
}

/// A request as clients make it.
pub(crate) fn request() -> http::request::Builder {
    Request::post(format!("http://127.0.0.1{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
}

/// Begins a call; the connection is driven on its own.
pub(crate) async fn call(
    bench: &Bench,
    request: Request<()>,
) -> (ResponseFuture, SendStream<Bytes>) {
    let socket = TcpStream::connect(bench.address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let (client, connection) = client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    client.send_request(request, false).unwrap()
}

/// The status of an answer that is nothing else, and the one at the end of a stream.
pub(crate) fn status(headers: &http::HeaderMap) -> &str {
    headers["grpc-status"].to_str().unwrap()
}

impl Agent {
    /// A stream without a link.
    pub(crate) async fn open(bench: &Bench) -> Self {
        let (response, send) = call(bench, request().body(()).unwrap()).await;
        // Nothing was sent, and the answer begins.
        let response = timeout(PATIENCE, response).await.unwrap().unwrap();
        assert_eq!(response.headers()["content-type"], "application/grpc");
        Self::of(response, send)
    }

    fn of(response: Response<RecvStream>, send: SendStream<Bytes>) -> Self {
        Self {
            send,
            receive: response.into_body(),
            inbox: Inbox::new(u32::MAX),
            items: VecDeque::new(),
            link: None,
            name: Name::new(["org", "ns", "nobody"], None),
            next_id: 1,
        }
    }

    /// A stream with a link.
    pub(crate) async fn linked(bench: &Bench, agent: &'static str, id: u128) -> Self {
        let mut this = Self::open(bench).await;
        this.name = Name::new(["org", "ns", agent], Some(id));
        let initiator = Initiator::new(&format!("link of {agent} {id}"), &Random::new()).unwrap();
        this.send(&initiator.request("client"));
        let reply = this.next().await;
        let Message::Link(Some(reply)) = Message::scan(&reply).unwrap() else {
            panic!("{reply:?}");
        };
        this.link = Some(initiator.complete(&reply).unwrap());
        this
    }

    /// A stream with a link that is subscribed to its own name.
    pub(crate) async fn subscribed(bench: &Bench, agent: &'static str, id: u128) -> Self {
        let mut this = Self::linked(bench, agent, id).await;
        assert_eq!(this.subscribe(this.name).await, None);
        this
    }

    fn draft(&self, destination: Name<'static>, fanout: u32) -> Draft<'static> {
        Draft {
            source: self.name,
            destination,
            identity: "token",
            fanout,
            ttl: slim::TTL,
        }
    }

    pub(crate) fn link(&self) -> &Link {
        self.link.as_ref().unwrap()
    }

    /// Subscribes; what it is answered if it is refused.
    pub(crate) async fn subscribe(&mut self, name: Name<'static>) -> Option<String> {
        self.next_id += 1;
        let draft = self.draft(name, 1);
        self.send(&draft.subscribe(self.next_id, self.link()));
        self.ack(self.next_id).await
    }

    /// Subscribes as a client does that has come back: nobody answers.
    pub(crate) fn replay(&mut self, name: Name<'static>) {
        self.send(&self.draft(name, 1).subscribe(0, self.link()));
    }

    /// Gives up the subscription with that number.
    pub(crate) async fn unsubscribe(&mut self, name: Name<'static>, id: u64) -> Option<String> {
        self.send(&self.draft(name, 1).unsubscribe(id, self.link()));
        self.ack(id).await
    }

    /// The number of the newest subscription.
    pub(crate) fn subscription_id(&self) -> u64 {
        self.next_id
    }

    async fn ack(&mut self, id: u64) -> Option<String> {
        let message = self.next().await;
        match Message::scan(&message).unwrap() {
            Message::Ack(Ack {
                subscription_id,
                error,
            }) => {
                assert_eq!(subscription_id, id);
                error.map(str::to_owned)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn publish(&mut self, to: Name<'static>, fanout: u32, payload: &[u8]) {
        let message = self
            .draft(to, fanout)
            .publish([1, 1, 1, 1], payload, self.link());
        self.send(&message);
    }

    /// What was published to it; its MAC is this link's.
    pub(crate) async fn received(&mut self) -> Received {
        let message = self.next().await;
        let Message::Publish(routed) = Message::scan(&message).unwrap() else {
            panic!("{message:?}");
        };
        assert!(self.link().verify(&routed.header, &mut Vec::new()));
        // Behind the session header.
        let content = &message[routed.tail_start() + 10..];
        Received {
            ttl: routed.header.ttl,
            payload: payload(content).to_vec(),
        }
    }

    /// The name it goes by.
    pub(crate) fn name(&self) -> Name<'static> {
        self.name
    }

    /// Sends a message, whatever it is.
    pub(crate) fn send(&mut self, message: &[u8]) {
        let size = (message.len() as u32).to_be_bytes();
        self.send_bytes([&[0][..], &size, message].concat());
    }

    /// Sends bytes as they are.
    pub(crate) fn send_bytes(&mut self, bytes: Vec<u8>) {
        self.send.send_data(bytes.into(), false).unwrap();
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Bytes {
        loop {
            if let Some(message) = self.items.pop_front() {
                return message;
            }
            let piece = timeout(PATIENCE, self.receive.data()).await.unwrap();
            let piece = piece.expect("the stream goes on").unwrap();
            self.receive
                .flow_control()
                .release_capacity(piece.len())
                .unwrap();
            self.inbox.feed(piece);
            while let Some(Item::Message(message)) = self.inbox.pull().unwrap() {
                self.items.push_back(message);
            }
        }
    }

    /// The status at the end of the stream.
    pub(crate) async fn end(mut self) -> String {
        let ending = async {
            while let Some(piece) = self.receive.data().await {
                let size = piece.unwrap().len();
                self.receive.flow_control().release_capacity(size).unwrap();
            }
            let trailers = self.receive.trailers().await.unwrap().unwrap();
            status(&trailers).to_owned()
        };
        timeout(PATIENCE, ending).await.unwrap()
    }

    /// Waits until whatever it sent has left.
    pub(crate) async fn has_sent(&mut self) {
        self.send.reserve_capacity(1);
        let capacity = timeout(PATIENCE, poll_fn(|cx| self.send.poll_capacity(cx)));
        capacity.await.unwrap().unwrap().unwrap();
    }
}

/// What stands behind the tags and sizes of content, payload and blob.
fn payload(content: &[u8]) -> &[u8] {
    let mut rest = content;
    for _ in 0..3 {
        let size = rest[1..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
        rest = &rest[1 + size..];
    }
    rest
}
