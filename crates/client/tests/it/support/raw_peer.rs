//! Peers in raw frames: a misbehaving client, or a server played by the test.

use std::collections::VecDeque;
use std::sync::Arc;

use net::inproc::Listener;
use net::{Sink, Source, Stream};
use wire::{
    Bind, Cast, Correlation, Flags, Header, Hello, Inbox, Item, Kind, Payload, Role, Welcome,
    Window,
};

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn body(&self) -> &[u8] {
        let decoded = Payload::decode(self.header.flags, &self.payload);
        decoded.unwrap().body
    }

    pub(crate) fn failure(&self) -> model::Failure<'_> {
        assert_eq!(self.header.kind, Kind::ERROR, "{self:?}");
        wire::decode_failure(&self.payload).unwrap()
    }
}

pub(crate) struct Bare {
    source: Box<dyn Source>,
    sink: Arc<dyn Sink>,
    inbox: Inbox,
    waiting: VecDeque<Frame>,
}

/// Window of a raw peer.
pub(crate) const WINDOW: Window = Window {
    frame_size_max: 8 << 20,
    calls_max: 1000,
    credit_messages: 64,
    credit_bytes: 16 << 20,
    keepalive_ms: 0,
};

/// First use of a slot.
pub(crate) fn tag(slot: u32) -> Correlation {
    Correlation {
        slot,
        generation: 1,
    }
}

impl Bare {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            source: stream.source,
            sink: stream.sink,
            inbox: Inbox::new(8 << 20),
            waiting: VecDeque::new(),
        }
    }

    /// Connects without a handshake.
    pub(crate) async fn connect(address: &str) -> Self {
        let address = address.parse().unwrap();
        Self::new(net::connect(&address, None).await.unwrap())
    }

    /// Connects and performs the handshake.
    pub(crate) async fn introduced(address: &str) -> Self {
        let mut bare = Self::connect(address).await;
        let hello = Hello {
            version_min: 1,
            version_max: 1,
            features: 0,
            window: WINDOW,
            token: "",
            name: "",
        };
        bare.frame(|out| hello.encode(out)).await;
        assert_eq!(bare.next().await.header.kind, Kind::WELCOME);
        bare
    }

    /// Accepts a connection as a server that grants `window`.
    pub(crate) async fn accept(listener: &Listener, window: Window) -> Self {
        Self::welcome(listener.accept().await, Role::Server, window).await
    }

    /// Accepts a connection as a node that grants `window`.
    pub(crate) async fn accept_as_node(listener: &Listener, window: Window) -> Self {
        Self::welcome(listener.accept().await, Role::Node, window).await
    }

    /// Accepts a connection and performs the handshake.
    pub(crate) async fn welcome(stream: Stream, role: Role, window: Window) -> Self {
        let mut bare = Self::new(stream);
        assert_eq!(bare.next().await.header.kind, Kind::HELLO);
        let welcome = Welcome {
            version: 1,
            role,
            features: 0,
            window,
            connection: 1,
            software: "bare",
        };
        bare.frame(|out| welcome.encode(out)).await;
        bare
    }

    /// Sends raw bytes; the connection may have ended.
    pub(crate) async fn raw(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.sink.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let writable = std::future::poll_fn(|cx| self.sink.poll_writable(cx));
                    writable.await.unwrap();
                }
                Err(_) => return,
            }
        }
    }

    pub(crate) async fn frame(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        self.raw(&bytes).await;
    }

    pub(crate) async fn bind(&mut self, route: u16, method: &str) {
        let bind = Bind {
            route,
            cast: Cast::Any,
            method,
            name: "",
        };
        self.frame(|out| bind.encode(out)).await;
    }

    pub(crate) async fn request(&mut self, route: u16, slot: u32, body: &[u8]) {
        self.message(Kind::REQUEST, Flags::NONE, route, tag(slot), body)
            .await;
    }

    pub(crate) async fn reply(&mut self, to: Correlation, body: &[u8]) {
        self.message(Kind::REPLY, Flags::NONE, 0, to, body).await;
    }

    pub(crate) async fn message(
        &mut self,
        kind: Kind,
        flags: Flags,
        route: u16,
        correlation: Correlation,
        body: &[u8],
    ) {
        self.frame(|out| Payload::body(body).encode(kind, flags, route, correlation, out))
            .await;
    }

    /// Returns the next frame other than BIND; fails when the connection ends.
    pub(crate) async fn next(&mut self) -> Frame {
        self.try_next().await.expect("the connection ended")
    }

    /// Returns the next frame other than BIND, or `None` at the end of the connection.
    pub(crate) async fn try_next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.waiting.pop_front() {
                if frame.header.kind == Kind::BIND {
                    continue;
                }
                return Some(frame);
            }
            let mut chunk = vec![0; 64 << 10];
            let source = &mut self.source;
            let read = std::future::poll_fn(|cx| source.poll_read(cx, &mut chunk)).await;
            let count = read.ok().filter(|count| *count > 0)?;
            let mut frames = self.inbox.feed(&chunk[..count]);
            while let Some(item) = frames.next() {
                match item {
                    Item::Frame(header, payload) => self.waiting.push_back(Frame {
                        header,
                        payload: payload.to_vec(),
                    }),
                    Item::Oversize { header, .. } => panic!("oversize {header:?}"),
                }
            }
        }
    }
}
