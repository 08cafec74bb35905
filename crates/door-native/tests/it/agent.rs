//! A client in bare frames.

use std::time::Duration;

use net::{Source, Stream};
use wire::{
    Bind, Cast, Correlation, Flags, Header, Hello, Inbox, Item, Kind, Payload, Subscribe, Welcome,
    Window,
};

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn body(&self) -> &[u8] {
        Payload::decode(self.header.flags, &self.payload)
            .unwrap()
            .body
    }

    pub(crate) fn failure(&self) -> model::Failure<'_> {
        assert_eq!(self.header.kind, Kind::ERROR, "{self:?}");
        wire::decode_failure(&self.payload).unwrap()
    }
}

pub(crate) struct Agent {
    source: Box<dyn Source>,
    sink: std::sync::Arc<dyn net::Sink>,
    inbox: Inbox,
    waiting: std::collections::VecDeque<Frame>,
}

pub(crate) const WINDOW: Window = Window {
    frame_size_max: 8 << 20,
    calls_max: 1000,
    credit_messages: 64,
    credit_bytes: 1 << 20,
    keepalive_ms: 15_000,
};

pub(crate) fn tag(slot: u32) -> Correlation {
    Correlation {
        slot,
        generation: 1,
    }
}

impl Agent {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            source: stream.source,
            sink: stream.sink,
            inbox: Inbox::new(8 << 20),
            waiting: Default::default(),
        }
    }

    /// Sends raw bytes, all of them.
    pub(crate) async fn raw(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.sink.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    std::future::poll_fn(|cx| self.sink.poll_writable(cx))
                        .await
                        .unwrap();
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

    /// Introduces itself; returns what it is granted.
    pub(crate) async fn hello(&mut self, name: &str) -> Window {
        let hello = Hello {
            version_min: 1,
            version_max: 1,
            features: wire::FEATURES,
            window: WINDOW,
            token: "",
            name,
        };
        self.frame(|out| hello.encode(out)).await;
        let frame = self.next().await;
        assert_eq!(frame.header.kind, Kind::WELCOME, "{frame:?}");
        Welcome::decode(&frame.payload).unwrap().window
    }

    pub(crate) async fn subscribe(&mut self, name: &str) -> String {
        self.frame(|out| {
            Subscribe {
                options: 0,
                name,
                description: None,
            }
            .encode(tag(0), out)
        })
        .await;
        let frame = self.next().await;
        assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
        wire::decode_name(&frame.payload).unwrap().to_owned()
    }

    pub(crate) async fn bind(&mut self, route: u16, name: &str, cast: Cast) {
        let bind = Bind {
            route,
            cast,
            method: "",
            name,
        };
        self.frame(|out| bind.encode(out)).await;
    }

    pub(crate) async fn request(&mut self, route: u16, slot: u32, body: &[u8]) {
        self.message(Kind::REQUEST, Flags::NONE, route, tag(slot), body)
            .await;
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

    /// The next frame but BIND; fails when the connection ends.
    pub(crate) async fn next(&mut self) -> Frame {
        self.try_next().await.expect("the connection ended")
    }

    /// The next frame but BIND, or `None` at the end of the connection.
    pub(crate) async fn try_next(&mut self) -> Option<Frame> {
        tokio::time::timeout(Duration::from_secs(20), self.read())
            .await
            .expect("nothing arrived in 20 s")
    }

    /// [`Agent::try_next`] with all the time in the world, for tests that own the clock.
    pub(crate) async fn try_next_patiently(&mut self) -> Option<Frame> {
        self.read().await
    }

    async fn read(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.waiting.pop_front() {
                if frame.header.kind == Kind::BIND {
                    continue;
                }
                return Some(frame);
            }
            let mut chunk = vec![0; 64 << 10];
            let source = &mut self.source;
            let count = std::future::poll_fn(|cx| source.poll_read(cx, &mut chunk)).await;
            let count = count.ok().filter(|count| *count > 0)?;
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

    /// [`Agent::expect_nothing`] for one whose messages are taken and credited.
    pub(crate) async fn expect_nothing_but_credit(&mut self) {
        let probe = Correlation {
            slot: 9,
            generation: 99,
        };
        self.frame(|out| wire::encode_ping(probe, out)).await;
        loop {
            let header = self.next().await.header;
            match header.kind {
                Kind::CREDIT | Kind::REPLY => {}
                kind => return assert_eq!((kind, header.correlation), (Kind::PONG, probe)),
            }
        }
    }

    /// Asserts that nothing but what the node was asked for afterwards arrives: a ping's answer
    /// comes behind everything that was on its way.
    pub(crate) async fn expect_nothing(&mut self) {
        let probe = Correlation {
            slot: 9,
            generation: 99,
        };
        self.frame(|out| wire::encode_ping(probe, out)).await;
        let frame = self.next().await;
        assert_eq!(
            (frame.header.kind, frame.header.correlation),
            (Kind::PONG, probe),
            "{frame:?}"
        );
    }
}
