//! A client in bare frames, on a blocking socket.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use wire::{
    Bind, Cast, Correlation, Flags, Header, Hello, Inbox, Item, Kind, Payload, Subscribe, Welcome,
    Window,
};

use crate::support::Node;

pub(crate) const WINDOW: Window = Window {
    frame_size_max: 8 << 20,
    calls_max: 1000,
    credit_messages: 1024,
    credit_bytes: 1 << 20,
    keepalive_ms: 0,
};

pub(crate) fn tag(slot: u32) -> Correlation {
    Correlation {
        slot,
        generation: 1,
    }
}

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    payload: Vec<u8>,
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
    socket: TcpStream,
    inbox: Inbox,
    waiting: VecDeque<Frame>,
}

impl Agent {
    pub(crate) fn connect(node: &Node) -> Self {
        let socket = TcpStream::connect(node.address("native")).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            socket,
            inbox: Inbox::new(8 << 20),
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn introduce(&mut self, name: &str, token: &str) {
        self.introduce_with(WINDOW, name, token);
    }

    fn introduce_with(&mut self, window: Window, name: &str, token: &str) {
        let hello = Hello {
            version_min: 1,
            version_max: 1,
            features: wire::FEATURES,
            window,
            token,
            name,
        };
        self.frame(|out| hello.encode(out));
    }

    pub(crate) fn hello(&mut self, name: &str, token: &str) {
        self.introduce(name, token);
        self.expect_welcome();
    }

    /// Grants the node unlimited credit.
    pub(crate) fn hello_with_credit(&mut self, messages: u32, bytes: u64) {
        let window = Window {
            credit_messages: messages,
            credit_bytes: bytes,
            ..WINDOW
        };
        self.introduce_with(window, "", "");
        self.expect_welcome();
    }

    fn expect_welcome(&mut self) {
        let frame = self.next().unwrap();
        assert_eq!(frame.header.kind, Kind::WELCOME, "{frame:?}");
        Welcome::decode(&frame.payload).unwrap();
    }

    pub(crate) fn ask_to_subscribe(&mut self, name: &str) {
        self.frame(|out| {
            Subscribe {
                options: 0,
                name,
                description: None,
            }
            .encode(tag(0), out)
        });
    }

    pub(crate) fn subscribe(&mut self, name: &str) {
        self.ask_to_subscribe(name);
        let frame = self.next().unwrap();
        assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    }

    pub(crate) fn bind(&mut self, route: u16, name: &str, cast: Cast) {
        let bind = Bind {
            route,
            cast,
            method: "",
            name,
        };
        self.frame(|out| bind.encode(out));
    }

    pub(crate) fn message(
        &mut self,
        kind: Kind,
        flags: Flags,
        route: u16,
        correlation: Correlation,
        body: &[u8],
    ) {
        self.frame(|out| Payload::body(body).encode(kind, flags, route, correlation, out));
    }

    /// Writes bytes; false if they were not accepted within two seconds.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> bool {
        let patience = Some(Duration::from_secs(2));
        self.socket.set_write_timeout(patience).unwrap();
        self.socket.write_all(bytes).is_ok()
    }

    pub(crate) fn frame(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        self.write(&bytes);
    }

    /// Writes bytes; a closed connection is noticed by the next read.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Returns the next frame other than BIND, FLOW and CREDIT; `None` at the end of the
    /// connection.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.waiting.pop_front() {
                if matches!(frame.header.kind, Kind::BIND | Kind::FLOW | Kind::CREDIT) {
                    continue;
                }
                return Some(frame);
            }
            let mut chunk = vec![0; 64 << 10];
            let count = match self.socket.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            };
            let mut frames = self.inbox.feed(&chunk[..count]);
            while let Some(item) = frames.next() {
                let Item::Frame(header, payload) = item else {
                    panic!("{item:?}")
                };
                self.waiting.push_back(Frame {
                    header,
                    payload: payload.to_vec(),
                });
            }
        }
    }
}

/// An echo agent and a caller, which detect disturbance by other clients.
pub(crate) struct Pair {
    responder: Agent,
    caller: Agent,
    generation: u32,
}

impl Pair {
    pub(crate) fn new(node: &Node) -> Self {
        let mut responder = Agent::connect(node);
        responder.hello("", "");
        responder.subscribe("test/pair/echo");
        let mut caller = Agent::connect(node);
        caller.hello("", "");
        caller.bind(1, "test/pair/echo", Cast::Any);
        Self {
            responder,
            caller,
            generation: 0,
        }
    }

    /// Makes a call and checks its reply.
    pub(crate) fn exchange(&mut self) {
        self.generation += 1;
        let correlation = Correlation {
            slot: 0,
            generation: self.generation,
        };
        self.caller
            .message(Kind::REQUEST, Flags::NONE, 1, correlation, b"ping");
        let request = self.responder.next().unwrap();
        assert_eq!(request.header.kind, Kind::REQUEST, "{request:?}");
        let call = request.header.correlation;
        self.responder
            .message(Kind::REPLY, Flags::NONE, 0, call, b"pong");
        let reply = self.caller.next().unwrap();
        assert_eq!(
            (reply.header.correlation, reply.body()),
            (correlation, &b"pong"[..])
        );
    }
}
