//! Any bytes, in any pieces: frames come out the same, nothing panics, and no more memory is held
//! than bytes arrived.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Bind, Credit, Ended, Failure, Flags, Goaway, Hello, Inbox, Item, Kind, Metadata};
use wire::{Outcome, Outcomes, Payload, Receipt, Settle, Subscribe, Takes, Welcome};

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let size = usize::from(*first).max(1);
    let whole = read(bytes, bytes.len().max(1));
    let pieces = read(bytes, size);
    assert_eq!(whole, pieces, "pieces of {size}");
});

/// Every item, decoded by its kind, with the stream cut into pieces of `size`.
fn read(bytes: &[u8], size: usize) -> Vec<String> {
    let mut inbox = Inbox::new(4096);
    let mut items = Vec::new();
    for piece in bytes.chunks(size) {
        let mut frames = inbox.feed(piece);
        while let Some(item) = frames.next() {
            if let Item::Frame(header, payload) = &item {
                items.push(decode(header.kind, header.flags, header.route, payload));
            }
            items.push(format!("{item:?}"));
        }
        assert!(inbox.held_size() <= 2 * bytes.len().max(16));
    }
    items
}

fn decode(kind: Kind, flags: Flags, route: u16, payload: &[u8]) -> String {
    match kind {
        Kind::HELLO => format!("{:?}", Hello::decode(payload)),
        Kind::WELCOME => format!("{:?}", Welcome::decode(payload)),
        Kind::BIND => format!("{:?}", Bind::decode(route, payload)),
        Kind::SUBSCRIBE => format!("{:?}", Subscribe::decode(payload)),
        Kind::ERROR => format!("{:?}", Failure::decode(payload)),
        Kind::CREDIT => format!("{:?}", Credit::decode(payload)),
        Kind::RECEIPT => format!("{:?}", Receipt::decode(payload)),
        Kind::GOAWAY => format!("{:?}", Goaway::decode(payload)),
        Kind::ENDED => format!("{:?}", Ended::decode(payload)),
        Kind::FLOW => format!("{:?}", wire::decode_flow(payload)),
        Kind::TAKE => takes(payload),
        Kind::SETTLE => format!("{:?}", Settle::decode(payload)),
        Kind::PEEK => format!("{:?}", wire::decode_name(payload)),
        Kind::REPLY => format!("{} {:?}", outcomes(payload), Payload::decode(flags, payload)),
        _ => match Payload::decode(flags, payload) {
            Ok(parts) => format!("{:?}", Metadata::new(parts.metadata).iter().collect::<Vec<_>>()),
            Err(error) => format!("{error:?}"),
        },
    }
}

/// What is counted is there, and what is encoded again is the same.
fn takes(payload: &[u8]) -> String {
    let takes = match Takes::decode(payload) {
        Ok(takes) => takes,
        Err(error) => return format!("{error:?}"),
    };
    let mut again = Vec::new();
    for take in takes.iter() {
        take.encode(&mut again);
    }
    assert_eq!(again, payload);
    assert_eq!(takes.iter().count(), takes.count);
    format!("{:?}", takes.iter().collect::<Vec<_>>())
}

/// An answer to takes names each limit that its outcomes speak of.
fn outcomes(payload: &[u8]) -> String {
    let outcomes = match Outcomes::decode(payload) {
        Ok(outcomes) => outcomes,
        Err(error) => return format!("{error:?}"),
    };
    let limits = outcomes.limits().count();
    for outcome in outcomes.iter() {
        match outcome {
            Outcome::Admitted(admitted) => {
                assert!(admitted.standings().all(|one| usize::from(one.limit) < limits));
            }
            Outcome::Denied(denied) => assert!(usize::from(denied.limit) < limits),
            Outcome::Refused { .. } => {}
        }
    }
    assert_eq!(outcomes.iter().count(), outcomes.count);
    format!("{:?}", outcomes.iter().collect::<Vec<_>>())
}
