use wire::{Correlation, HEADER_SIZE, Inbox, Item};

use super::*;
use crate::Server;

fn responder(window: Window) -> Responder {
    let server = Server::new().handle_sync("take", |request| Ok(request.body));
    let methods = Resolver::Methods(Arc::new(server.handlers));
    let port = Arc::new(Port::new(&window));
    Responder::new(methods, port, window, 1 << 20, 1 << 20)
}

/// Processes the frames that `encode` writes as one turn of a connection. Returns the answers.
fn take(responder: &mut Responder, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    let mut out = Vec::new();
    let mut inbox = Inbox::new(1 << 20);
    let mut frames = inbox.feed(&bytes);
    while let Some(Item::Frame(header, payload)) = frames.next() {
        assert!(responder.take(header, payload, &mut out).is_ok());
    }
    responder.return_credit();
    responder.poll(1 << 20, &mut out);
    out
}

#[test]
fn credit_covers_metadata_and_body_only() {
    let mut responder = responder(Window {
        frame_size_max: 1 << 20,
        calls_max: 8,
        credit_messages: 4,
        credit_bytes: 4000,
        keepalive_ms: 0,
    });
    let bind = Bind {
        route: 1,
        cast: wire::Cast::Any,
        method: "take",
        name: "",
    };
    take(&mut responder, |out| bind.encode(out));
    let mut metadata = Vec::new();
    wire::encode_metadata("run", b"42", &mut metadata);
    let message = Payload {
        deadline_ms: Some(5_000),
        metadata: &metadata,
        body: b"hello",
    };
    let out = take(&mut responder, |out| {
        message.encode(Kind::SEND, Flags::NONE, 1, Correlation::NONE, out);
    });
    let credit = Credit::decode(&out[HEADER_SIZE..]).unwrap();
    let size = metadata.len() + message.body.len();
    assert_eq!((credit.messages, credit.bytes), (1, size as u64));
}
