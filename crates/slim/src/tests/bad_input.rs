//! Malformed messages, and edge cases of valid ones.

use prost::Message as _;

use super::oracle::{self, Header, Publish, encode, publish};
use crate::wire::{put_bytes, put_number};
use crate::{EncodedName, Forward, Link, Malformed, Message, Name};

fn scan(publish: Publish) -> Result<(), Malformed> {
    Message::scan(&encode(publish, &[])).map(drop)
}

fn with(change: impl FnOnce(&mut Header)) -> Publish {
    let mut publish = publish();
    change(publish.header.as_mut().unwrap());
    publish
}

#[test]
fn a_publish_needs_its_names_and_both_headers() {
    assert_eq!(scan(publish()), Ok(()));
    let missing = |what| Err(Malformed::Missing(what));
    assert_eq!(scan(with(|header| header.source = None)), missing("source"));
    assert_eq!(
        scan(with(|header| header.destination = None)),
        missing("destination")
    );
    let nameless = with(|header| header.destination.as_mut().unwrap().name = None);
    assert_eq!(scan(nameless), missing("encoded name"));
    assert_eq!(
        scan(Publish {
            header: None,
            ..publish()
        }),
        missing("header")
    );
    assert_eq!(
        scan(Publish {
            session: None,
            ..publish()
        }),
        missing("session header")
    );
    assert_eq!(Message::scan(b"").map(drop), missing("kind"));
    // A name may lack its texts.
    assert_eq!(
        scan(with(|header| header
            .destination
            .as_mut()
            .unwrap()
            .str_name = None)),
        Ok(())
    );
}

#[test]
fn duplicate_fields_are_refused() {
    let once = encode(publish(), &[]);
    let twice = [&once[..], &once[..]].concat();
    assert_eq!(Message::scan(&twice).map(drop), Err(Malformed::Twice(3)));
    for field in [1, 2] {
        let mut header = publish().header.unwrap().encode_to_vec();
        put_bytes(
            field,
            &oracle::name(["x", "y", "z"], 3).encode_to_vec(),
            &mut header,
        );
        assert_eq!(
            Message::scan(&wrap(&header)).map(drop),
            Err(Malformed::Twice(field))
        );
    }
    for field in [4, 6] {
        let mut header = publish().header.unwrap().encode_to_vec();
        put_number(field, 9, &mut header);
        assert_eq!(
            Message::scan(&wrap(&header)).map(drop),
            Err(Malformed::Twice(field))
        );
    }
}

/// A publish with these bytes as its header.
fn wrap(header: &[u8]) -> Vec<u8> {
    let mut inner = Vec::new();
    put_bytes(1, header, &mut inner);
    put_bytes(2, &publish().session.unwrap().encode_to_vec(), &mut inner);
    let mut whole = Vec::new();
    put_bytes(3, &inner, &mut whole);
    whole
}

#[test]
fn a_message_that_the_receivers_decoder_refuses_is_refused() {
    let good = publish().header.unwrap().encode_to_vec();
    let with_tail = |field: u32, bytes: &[u8]| {
        let mut inner = Vec::new();
        put_bytes(1, &good, &mut inner);
        put_bytes(2, &publish().session.unwrap().encode_to_vec(), &mut inner);
        put_bytes(field, bytes, &mut inner);
        let mut whole = Vec::new();
        put_bytes(3, &inner, &mut whole);
        assert!(oracle::decode(&whole).is_err(), "{field} {bytes:?}");
        Message::scan(&whole).map(drop)
    };
    // Contents whose payload type is not text, is not a message, and is truncated.
    assert_eq!(
        with_tail(3, &[0x0a, 3, 0x0a, 1, 0xff]),
        Err(Malformed::Text(1))
    );
    assert_eq!(with_tail(3, &[0x08, 1]), Err(Malformed::Type(1)));
    assert_eq!(with_tail(3, &[0x0a, 9, 0]), Err(Malformed::Truncated));
    // A session header whose number is a text.
    assert_eq!(with_tail(2, &[0x0a, 0]), Err(Malformed::Type(1)));
    // A command whose channel name has an invalid text, three levels down.
    let channel = [0x12, 7, 0x1a, 5, 0x12, 3, 0x12, 1, 0xff];
    assert_eq!(with_tail(3, &channel), Err(Malformed::Truncated));
    let channel = [0x12, 9, 0x1a, 7, 0x12, 5, 0x12, 3, 0x0a, 1, 0xff];
    assert_eq!(with_tail(3, &channel), Err(Malformed::Text(1)));
    // Metadata.
    let mut whole = encode(publish(), &[]);
    put_bytes(4, &[0x12, 1, 0xff], &mut whole);
    assert_eq!(Message::scan(&whole).map(drop), Err(Malformed::Text(2)));
}

#[test]
fn unknown_fields_are_forwarded_at_every_level() {
    let mut header = publish().header.unwrap().encode_to_vec();
    put_bytes(13, b"new in the header", &mut header);
    let mut inner = Vec::new();
    put_number(9, 1, &mut inner);
    put_bytes(1, &header, &mut inner);
    put_bytes(2, &publish().session.unwrap().encode_to_vec(), &mut inner);
    put_bytes(9, b"new in the publish", &mut inner);
    let mut whole = Vec::new();
    put_bytes(7, b"new before", &mut whole);
    put_bytes(3, &inner, &mut whole);
    put_bytes(8, b"new behind", &mut whole);
    let passed = forwarded(&whole);
    for new in [
        "new in the header",
        "new in the publish",
        "new before",
        "new behind",
    ] {
        let count = |bytes: &[u8]| {
            bytes
                .windows(new.len())
                .filter(|it| *it == new.as_bytes())
                .count()
        };
        assert_eq!(count(&passed), 1, "{new}");
    }
    assert_eq!(passed.len(), whole.len());
}

fn forwarded(bytes: &[u8]) -> Vec<u8> {
    let Message::Publish(routed) = Message::scan(bytes).unwrap() else {
        panic!("{bytes:?}");
    };
    let mut forward = Forward::default();
    assert!(forward.prepare(&routed));
    let head = forward.head(&Link::with_secret(&[1; 32], "out")).to_vec();
    [&head, &bytes[routed.tail_start()..]].concat()
}

#[test]
fn connection_numbers_are_not_forwarded() {
    let sent = with(|header| {
        header.recv_from = Some(1);
        header.forward_to = Some(u64::MAX);
        header.incoming_conn = Some(3);
        header.error = Some(true);
        header.e2e_header_sig = Some(vec![1, 2, 3]);
    });
    let passed = oracle::decode(&forwarded(&encode(sent, &[("key", "value")]))).unwrap();
    assert_eq!(passed.metadata["key"], "value");
    let Some(oracle::Kind::Publish(publish)) = passed.kind else {
        panic!("{passed:?}");
    };
    let header = publish.header.unwrap();
    assert_eq!(
        (header.recv_from, header.forward_to, header.incoming_conn),
        (None, None, None)
    );
    // End-to-end fields are unchanged.
    assert_eq!(
        (header.error, header.e2e_header_sig),
        (Some(true), Some(vec![1, 2, 3]))
    );
}

#[test]
fn a_message_ends_with_its_last_hop() {
    for (ttl, goes_on) in [(0, false), (1, false), (2, true), (u32::MAX, true)] {
        let bytes = encode(with(|header| header.ttl = ttl), &[]);
        let Message::Publish(routed) = Message::scan(&bytes).unwrap() else {
            panic!("{ttl}");
        };
        assert_eq!(Forward::default().prepare(&routed), goes_on, "{ttl}");
    }
}

#[test]
fn a_missing_id_and_one_of_all_ones_mean_any() {
    let id = |id| {
        EncodedName {
            prefix: [1, 2, 3],
            id,
        }
        .key()
        .id
    };
    assert_eq!(id(None), None);
    assert_eq!(id(Some([u64::MAX, u64::MAX])), None);
    assert_eq!(id(Some([u64::MAX, 0])), Some(u128::from(u64::MAX) << 64));
    assert_eq!(id(Some([0, 0])), Some(0));
}

#[test]
fn a_name_is_shown_with_its_id_or_by_its_numbers() {
    let name = Name::new(
        ["org", "ns", "agent"],
        Some(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
    );
    assert_eq!(
        name.to_string(),
        "org/ns/agent/01234567-89ab-cdef-0123-456789abcdef"
    );
    assert_eq!(
        Name::new(["org", "ns", "agent"], None).to_string(),
        "org/ns/agent"
    );
    let bare = Name {
        texts: None,
        ..Name::new(["org", "ns", "agent"], None)
    };
    assert!(bare.to_string().starts_with("87"), "{bare}");
    let wrong = Name {
        texts: Some(["org", "ns", "other"]),
        ..name
    };
    assert!(!wrong.is_consistent() && name.is_consistent() && bare.is_consistent());
}

#[test]
fn numbers_are_at_most_64_bits() {
    let tag = |bytes: &[u8]| Message::scan(&[&[0x38][..], bytes].concat()).map(drop);
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(tag(&most), Err(Malformed::Missing("kind")));
    let more = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    assert_eq!(tag(&more), Err(Malformed::Number));
    assert_eq!(tag(&[0x80]), Err(Malformed::Truncated));
    assert_eq!(Message::scan(&[0x00, 0x00]).map(drop), Err(Malformed::Tag));
    assert_eq!(Message::scan(&[0x3b]).map(drop), Err(Malformed::Tag));
    assert_eq!(
        Message::scan(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f]).map(drop),
        Err(Malformed::Truncated)
    );
}
