//! Messages of the SLIM data plane from any bytes: nothing panics, and a forwarded publish is one
//! again, on its own link and with one hop less. Any bytes as a stream: the same messages, whole or
//! byte by byte, over gRPC and in a WebSocket.

use bytes::Bytes;
use slim::websocket::{Event, Frames, Violation};
use slim::{Accepted, Forward, Inbox, Initiator, Item, Link, Message, Random};

thread_local! {
    static LINK: Link = link();
}

fn link() -> Link {
    let random = Random::new();
    let initiator = Initiator::new("a link", &random).expect("random bytes");
    let request = initiator.request("client");
    let Ok(Message::Link(Some(asked))) = Message::scan(&request) else {
        unreachable!()
    };
    Accepted::new(&asked, "node", &random)
        .expect("a request of our own")
        .link
}

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    if let Ok(Message::Publish(routed)) = Message::scan(input) {
        let mut forward = Forward::default();
        if forward.prepare(&routed) {
            LINK.with(|link| {
                let passed = [forward.head(link), &input[routed.tail_start()..]].concat();
                let Ok(Message::Publish(again)) = Message::scan(&passed) else {
                    panic!("a forwarded message must be a publish");
                };
                assert!(link.verify(&again.header, &mut Vec::new()));
                assert_eq!(again.header.ttl, routed.header.ttl - 1);
                assert_eq!(again.header.destination, routed.header.destination);
                assert_eq!(passed[again.tail_start()..], input[routed.tail_start()..]);
            });
        }
    }
    let whole = input.len().max(1);
    assert_eq!(messages(input.chunks(1)), messages(input.chunks(whole)));
    assert_eq!(events(input.chunks(1)), events(input.chunks(whole)));
}

fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Event>, Option<Violation>) {
    let mut frames = Frames::new(64);
    let mut events = Vec::new();
    for piece in pieces {
        frames.feed(piece);
        loop {
            match frames.pull() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(violation) => return (events, Some(violation)),
            }
        }
    }
    (events, None)
}

fn messages<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Option<Item>> {
    let mut inbox = Inbox::new(64);
    let mut items = Vec::new();
    for piece in pieces {
        inbox.feed(Bytes::copy_from_slice(piece));
        loop {
            match inbox.pull() {
                Ok(Some(item)) => items.push(Some(item)),
                Ok(None) => break,
                Err(_) => {
                    items.push(None);
                    return items;
                }
            }
        }
    }
    items
}
