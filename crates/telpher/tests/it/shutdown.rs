//! Shutdown of a node with a call in flight.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use wire::{Bind, Cast, Correlation, Flags, Hello, Inbox, Item, Kind, Payload, Subscribe, Window};

use crate::support::{Node, Place, eventually};

const CALL: Correlation = Correlation {
    slot: 0,
    generation: 1,
};

/// A minimal client of the native protocol.
struct Peer {
    socket: TcpStream,
    inbox: Inbox,
    frames: VecDeque<(Kind, Correlation)>,
}

impl Peer {
    fn greet(node: &Node) -> Self {
        let socket = TcpStream::connect(node.address("native")).unwrap();
        let patience = Some(Duration::from_secs(60));
        socket.set_read_timeout(patience).unwrap();
        let mut peer = Self {
            socket,
            inbox: Inbox::new(1 << 20),
            frames: VecDeque::new(),
        };
        let window = Window {
            frame_size_max: 1 << 20,
            calls_max: 8,
            credit_messages: 8,
            credit_bytes: 1 << 20,
            keepalive_ms: 0,
        };
        let hello = Hello {
            version_min: 1,
            version_max: 1,
            features: 0,
            window,
            token: "",
            name: "",
        };
        peer.send_frame(|out| hello.encode(out));
        peer.next_of_kind(Kind::WELCOME).unwrap();
        peer
    }

    fn send_frame(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        self.socket.write_all(&bytes).unwrap();
    }

    /// Returns the correlation of the next frame of a kind; `None` if the connection ends before.
    fn next_of_kind(&mut self, kind: Kind) -> Option<Correlation> {
        loop {
            while let Some((found, correlation)) = self.frames.pop_front() {
                if found == kind {
                    return Some(correlation);
                }
            }
            let mut chunk = [0; 4096];
            let size = match self.socket.read(&mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
                size => size.unwrap(),
            };
            if size == 0 {
                return None;
            }
            let mut items = self.inbox.feed(&chunk[..size]);
            while let Some(item) = items.next() {
                match item {
                    Item::Frame(header, _) => {
                        self.frames.push_back((header.kind, header.correlation));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// Returns a caller, a responder, and the responder's correlation of the call between them.
fn call_in_flight(node: &Node) -> (Peer, Peer, Correlation) {
    let mut responder = Peer::greet(node);
    let name = "test/shutdown/slow";
    responder.send_frame(|out| {
        Subscribe {
            options: 0,
            name,
            description: None,
        }
        .encode(CALL, out)
    });
    responder.next_of_kind(Kind::REPLY).unwrap();
    let mut caller = Peer::greet(node);
    let route = Bind {
        route: 1,
        cast: Cast::Any,
        method: "",
        name,
    };
    caller.send_frame(|out| route.encode(out));
    caller
        .send_frame(|out| Payload::body(b"work").encode(Kind::REQUEST, Flags::NONE, 1, CALL, out));
    let call = responder.next_of_kind(Kind::REQUEST).unwrap();
    (caller, responder, call)
}

#[test]
fn a_call_in_flight_is_finished_before_the_node_ends() {
    let place = Place::new();
    let node = place.serve("--shutdown-drain 1h --shutdown-limit 1h");
    let (mut caller, mut responder, call) = call_in_flight(&node);
    node.signal(Signal::TERM);
    caller.next_of_kind(Kind::GOAWAY).unwrap();
    responder.next_of_kind(Kind::GOAWAY).unwrap();
    assert_eq!(node.get("/readyz", None).0, 503);
    assert_eq!(node.get("/livez", None).0, 200);

    responder
        .send_frame(|out| Payload::body(b"done").encode(Kind::REPLY, Flags::NONE, 0, call, out));
    assert_eq!(caller.next_of_kind(Kind::REPLY), Some(CALL));
    assert_eq!(
        caller.next_of_kind(Kind::REPLY),
        None,
        "the connection ends"
    );
    node.end().expect(0);
}

#[test]
fn a_call_that_is_not_finished_in_time_is_cut_off() {
    let place = Place::new();
    let node = place.serve("--shutdown-drain 200ms");
    let (mut caller, _responder, _) = call_in_flight(&node);
    node.signal(Signal::TERM);
    assert_eq!(caller.next_of_kind(Kind::REPLY), None, "there is no answer");
    let ended = node.end();
    assert!(
        ended.expect(0).stderr.contains("calls are cut off"),
        "{}",
        ended.stderr
    );
    // The node's own client does not come back to a node that goes down.
    assert!(
        !ended.stderr.contains("connection refused"),
        "{}",
        ended.stderr
    );
}

#[test]
fn second_signal_stops_the_node_at_once() {
    let place = Place::new();
    let node = place.serve("--shutdown-drain 1h --shutdown-limit 1h");
    let (mut caller, _responder, _) = call_in_flight(&node);
    node.signal(Signal::TERM);
    caller.next_of_kind(Kind::GOAWAY).unwrap();
    eventually("it drains", || node.get("/readyz", None).0 == 503);
    node.signal(Signal::INT);
    let ended = node.end();
    assert!(
        ended.expect(0).stderr.contains("second signal"),
        "{}",
        ended.stderr
    );
    assert!(!place.path("telpher-data/telpher.sock").exists());
}
