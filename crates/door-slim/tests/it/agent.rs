//! An application: one connection, one stream, one link.

use std::collections::VecDeque;
use std::future::poll_fn;

use bytes::Bytes;
use futures_util::stream::SplitStream;
use futures_util::{SinkExt, StreamExt};
use h2::client::{self, ResponseFuture};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use slim::{Ack, Draft, Inbox, Initiator, Item, Link, Message, Name, Random};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message as Frame};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::{Bench, PATIENCE};

/// The path of the one method there is.
pub(crate) const PATH: &str = "/dataplane.proto.v1.DataPlaneService/OpenChannel";

/// What a test reads of a publish.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) ttl: u32,
    pub(crate) payload: Vec<u8>,
}

/// What its messages travel in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carrier {
    Grpc,
    WebSocket,
}

pub(crate) const CARRIERS: [Carrier; 2] = [Carrier::Grpc, Carrier::WebSocket];

pub(crate) struct Agent {
    way: Transport,
    link: Option<Link>,
    name: Name<'static>,
    next_id: u64,
}

enum Transport {
    Grpc {
        send: SendStream<Bytes>,
        receive: RecvStream,
        inbox: Inbox,
        items: VecDeque<Bytes>,
    },
    WebSocket {
        send: UnboundedSender<Frame>,
        receive: SplitStream<WebSocketStream<TcpStream>>,
    },
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
    call_on(socket, request).await
}

async fn call_on(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<()>,
) -> (ResponseFuture, SendStream<Bytes>) {
    let (client, connection) = client::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    client.send_request(request, false).unwrap()
}

/// Asks for a WebSocket: the path with its query, and one more header if it is not empty.
pub(crate) async fn connect_websocket(
    bench: &Bench,
    path: &str,
    (name, value): (&'static str, &str),
) -> Result<WebSocketStream<TcpStream>, Box<Error>> {
    let socket = TcpStream::connect(bench.address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let mut request = format!("ws://{}{path}", bench.address)
        .into_client_request()
        .unwrap();
    if !name.is_empty() {
        let headers = request.headers_mut();
        headers.insert(name, value.parse().unwrap());
    }
    let shaken = timeout(PATIENCE, client_async(request, socket));
    let (socket, _) = shaken.await.unwrap().map_err(Box::new)?;
    Ok(socket)
}

/// The status of an answer that is nothing else, and the one at the end of a stream.
pub(crate) fn status(headers: &http::HeaderMap) -> &str {
    headers["grpc-status"].to_str().unwrap()
}

impl Agent {
    /// A stream without a link.
    pub(crate) async fn open(bench: &Bench) -> Self {
        Self::begun(call(bench, request().body(()).unwrap()).await).await
    }

    /// Opens a stream with that authorization.
    pub(crate) async fn open_with(bench: &Bench, shown: &str) -> Self {
        let asked = request().header("authorization", shown);
        Self::begun(call(bench, asked.body(()).unwrap()).await).await
    }

    /// Opens a stream over that connection.
    pub(crate) async fn open_on(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        Self::begun(call_on(io, request().body(()).unwrap()).await).await
    }

    async fn begun((response, send): (ResponseFuture, SendStream<Bytes>)) -> Self {
        // Nothing was sent, and the answer begins.
        let response = timeout(PATIENCE, response).await.unwrap().unwrap();
        assert_eq!(response.headers()["content-type"], "application/grpc");
        Self::of(response, send)
    }

    pub(crate) fn of(response: Response<RecvStream>, send: SendStream<Bytes>) -> Self {
        Self::by(Transport::Grpc {
            send,
            receive: response.into_body(),
            inbox: Inbox::new(u32::MAX),
            items: VecDeque::new(),
        })
    }

    fn by(way: Transport) -> Self {
        Self {
            way,
            link: None,
            name: Name::new(["org", "ns", "nobody"], None),
            next_id: 1,
        }
    }

    /// A WebSocket without a link.
    pub(crate) async fn open_socket(bench: &Bench) -> Self {
        Self::of_socket(connect_websocket(bench, "/", ("", "")).await.unwrap())
    }

    pub(crate) fn of_socket(socket: WebSocketStream<TcpStream>) -> Self {
        let (mut sink, receive) = socket.split();
        let (send, mut to_send) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(frame) = to_send.recv().await {
                if sink.send(frame).await.is_err() {
                    return;
                }
            }
        });
        Self::by(Transport::WebSocket { send, receive })
    }

    /// A stream with a link.
    pub(crate) async fn linked(bench: &Bench, agent: &'static str, id: u128) -> Self {
        Self::linked_over(bench, Carrier::Grpc, agent, id).await
    }

    /// Opens and negotiates a stream over that carrier.
    pub(crate) async fn linked_over(
        bench: &Bench,
        carrier: Carrier,
        agent: &'static str,
        id: u128,
    ) -> Self {
        let opened = match carrier {
            Carrier::Grpc => Self::open(bench).await,
            Carrier::WebSocket => Self::open_socket(bench).await,
        };
        opened.negotiated(agent, id).await
    }

    /// Negotiates the link.
    pub(crate) async fn negotiated(self, agent: &'static str, id: u128) -> Self {
        let mut this = self;
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
        Self::subscribed_over(bench, Carrier::Grpc, agent, id).await
    }

    /// Opens a stream over that carrier and subscribes to its own name.
    pub(crate) async fn subscribed_over(
        bench: &Bench,
        carrier: Carrier,
        agent: &'static str,
        id: u128,
    ) -> Self {
        let mut this = Self::linked_over(bench, carrier, agent, id).await;
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
        self.ask(name);
        self.ack(self.next_id).await
    }

    /// Asks to be subscribed, and does not wait for the answer.
    pub(crate) fn ask(&mut self, name: Name<'static>) {
        self.next_id += 1;
        let draft = self.draft(name, 1);
        self.send(&draft.subscribe(self.next_id, self.link()));
    }

    /// Subscribes as a reconnected client does: the node does not answer.
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
        let draft = self.draft(to, fanout);
        self.send(&draft.publish([1, 1, 1, 1], payload, self.link()));
    }

    /// What would be published to one.
    pub(crate) fn publication(&self, to: Name<'static>, payload: &[u8]) -> Vec<u8> {
        let draft = self.draft(to, 1);
        draft.publish([1, 1, 1, 1], payload, self.link())
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

    /// Sends the bytes as a message.
    pub(crate) fn send(&mut self, message: &[u8]) {
        match &self.way {
            Transport::Grpc { .. } => {
                let size = (message.len() as u32).to_be_bytes();
                self.send_bytes([&[0][..], &size, message].concat());
            }
            Transport::WebSocket { .. } => self.send_frame(Frame::binary(message.to_vec())),
        }
    }

    /// Sends bytes as they are.
    pub(crate) fn send_bytes(&mut self, bytes: Vec<u8>) {
        let Transport::Grpc { send, .. } = &mut self.way else {
            panic!("a WebSocket has frames");
        };
        send.send_data(bytes.into(), false).unwrap();
    }

    /// Sends a frame of a WebSocket.
    pub(crate) fn send_frame(&mut self, frame: Frame) {
        let Transport::WebSocket { send, .. } = &self.way else {
            panic!("gRPC has no frames");
        };
        send.send(frame).unwrap();
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Bytes {
        let next = async {
            match &mut self.way {
                Transport::Grpc {
                    receive,
                    inbox,
                    items,
                    ..
                } => next_message(receive, inbox, items).await,
                Transport::WebSocket { receive, .. } => loop {
                    match next_frame(receive).await {
                        Frame::Binary(message) => break message,
                        other => assert!(other.is_ping() || other.is_pong(), "{other:?}"),
                    }
                },
            }
        };
        timeout(PATIENCE, next).await.unwrap()
    }

    /// The next frame of a WebSocket.
    pub(crate) async fn frame(&mut self) -> Frame {
        let Transport::WebSocket { receive, .. } = &mut self.way else {
            panic!("gRPC has no frames");
        };
        timeout(PATIENCE, next_frame(receive)).await.unwrap()
    }

    /// The status at the end of the stream, or the code that closes the WebSocket.
    pub(crate) async fn end(mut self) -> String {
        let ending = async {
            match &mut self.way {
                Transport::Grpc { receive, .. } => {
                    while let Some(piece) = receive.data().await {
                        let size = piece.unwrap().len();
                        receive.flow_control().release_capacity(size).unwrap();
                    }
                    let trailers = receive.trailers().await.unwrap().unwrap();
                    status(&trailers).to_owned()
                }
                Transport::WebSocket { receive, .. } => loop {
                    if let Frame::Close(reason) = next_frame(receive).await {
                        break u16::from(reason.unwrap().code).to_string();
                    }
                },
            }
        };
        timeout(PATIENCE, ending).await.unwrap()
    }

    /// Waits until all sent messages have left.
    pub(crate) async fn has_sent(&mut self) {
        let Transport::Grpc { send, .. } = &mut self.way else {
            panic!("whoever sends much does so over gRPC");
        };
        send.reserve_capacity(1);
        let capacity = timeout(PATIENCE, poll_fn(|cx| send.poll_capacity(cx)));
        capacity.await.unwrap().unwrap().unwrap();
    }
}

async fn next_message(
    receive: &mut RecvStream,
    inbox: &mut Inbox,
    items: &mut VecDeque<Bytes>,
) -> Bytes {
    loop {
        if let Some(message) = items.pop_front() {
            return message;
        }
        let piece = receive.data().await.expect("the stream goes on").unwrap();
        let size = piece.len();
        receive.flow_control().release_capacity(size).unwrap();
        inbox.feed(piece);
        while let Some(Item::Message(message)) = inbox.pull().unwrap() {
            items.push_back(message);
        }
    }
}

async fn next_frame(receive: &mut SplitStream<WebSocketStream<TcpStream>>) -> Frame {
    let frame = receive.next().await.expect("the WebSocket goes on");
    frame.unwrap()
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
