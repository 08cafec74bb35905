//! Recorded messages that `slim-bindings` sent and accepted: every session kind, with and without
//! MLS.

use std::collections::BTreeMap;

use super::oracle;
use crate::{ConnectionKind, Forward, Link, Message, Name, Routed};

const TRANSCRIPT: &str = include_str!("transcript.txt");

/// Link number, message type and bytes of a message.
type RecordedMessage = (&'static str, &'static str, Vec<u8>);

/// Id and shared secret of a link.
struct RecordedLink {
    id: &'static str,
    secret: Vec<u8>,
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(pair).collect()
}

/// Links by number, and the recorded messages.
fn transcript() -> (BTreeMap<&'static str, RecordedLink>, Vec<RecordedMessage>) {
    let (mut links, mut messages) = (BTreeMap::new(), Vec::new());
    for line in TRANSCRIPT.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["link", number, id, secret, _] => {
                let secret = unhex(secret);
                links.insert(number, RecordedLink { id, secret });
            }
            [number, kind, bytes] => messages.push((number, kind, unhex(bytes))),
            _ => panic!("{line}"),
        }
    }
    (links, messages)
}

/// Messages by type.
pub(crate) fn messages() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let (_, messages) = transcript();
    messages.into_iter().map(|(_, kind, bytes)| (kind, bytes))
}

impl RecordedLink {
    fn link(&self) -> Link {
        Link::with_secret(&self.secret, self.id)
    }
}

pub(crate) fn publish<'a>(bytes: &'a [u8]) -> Routed<'a> {
    match Message::scan(bytes).unwrap() {
        Message::Publish(routed) => routed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_recorded_client_message_decodes_and_its_mac_verifies() {
    let (links, messages) = transcript();
    let mut kinds = Vec::new();
    for (number, kind, bytes) in &messages {
        let link = links[number].link();
        let mut scratch = Vec::new();
        let mut verify = |header: &crate::Header<'_>| link.verify(header, &mut scratch);
        let is_right = match Message::scan(bytes).unwrap() {
            Message::Subscribe {
                header,
                subscription_id,
            } => {
                assert_ne!(subscription_id, 0, "an answer is wanted");
                *kind == "subscribe" && verify(&header)
            }
            Message::Unsubscribe { header, .. } => *kind == "unsubscribe" && verify(&header),
            Message::Publish(routed) => kind.contains('-') && verify(&routed.header),
            Message::Link(Some(asked)) => {
                assert_eq!(asked.kind, ConnectionKind::Edge);
                assert_eq!((asked.version, asked.public_key.len()), ("3.4.6", 32));
                *kind == "link" && asked.link_id == links[number].id
            }
            other => panic!("{other:?}"),
        };
        assert!(is_right, "{number} {kind}");
        kinds.push(*kind);
    }
    for kind in [
        "p2p-msg-ack",
        "group-update-mls",
        "group-welcome-mls",
        "group-leave-reply",
    ] {
        assert!(kinds.contains(&kind), "{kind} is in the transcript");
    }
}

#[test]
fn a_mac_verifies_only_for_its_own_link_and_header() {
    let (links, messages) = transcript();
    let (number, _, bytes) = messages
        .iter()
        .find(|(_, kind, _)| *kind == "p2p-msg")
        .unwrap();
    let (own, other) = (links[number].link(), links["2"].link());
    let mut scratch = Vec::new();
    let header = publish(bytes).header;
    assert!(own.verify(&header, &mut scratch));
    assert!(!other.verify(&header, &mut scratch));
    let changes: [fn(&mut crate::Header<'_>); 9] = [
        |header| header.fanout = 256,
        |header| header.ttl += 1,
        |header| header.identity = "somebody",
        |header| header.recv_from = Some(1),
        |header| header.forward_to = Some(1),
        |header| header.error = Some(false),
        |header| header.destination = Name::new(["org", "ns", "other"], None),
        |header| header.source.texts = None,
        |header| header.header_mac = None,
    ];
    for change in changes {
        let mut header = publish(bytes).header;
        change(&mut header);
        assert!(!own.verify(&header, &mut scratch), "{header:?}");
    }
}

#[test]
fn names_are_hashed_as_clients_hash_them() {
    let (_, messages) = transcript();
    for (_, kind, bytes) in messages {
        let (Message::Subscribe { header, .. } | Message::Unsubscribe { header, .. }) =
            Message::scan(&bytes).unwrap()
        else {
            continue;
        };
        for name in [header.source, header.destination] {
            assert!(name.is_consistent(), "{kind}");
            let made = Name::new(name.texts.unwrap(), name.encoded.key().id);
            assert_eq!(made, name);
        }
    }
}

#[test]
fn forwarded_messages_differ_only_in_hop_count_and_mac() {
    let (links, messages) = transcript();
    let out = links["2"].link();
    let mut forward = Forward::default();
    let mut scratch = Vec::new();
    for (_, kind, bytes) in &messages {
        let Message::Publish(routed) = Message::scan(bytes).unwrap() else {
            continue;
        };
        assert!(forward.prepare(&routed));
        let passed = [forward.head(&out), &bytes[routed.tail_start()..]].concat();
        let again = publish(&passed).header;
        assert!(out.verify(&again, &mut scratch), "{kind}");
        assert_eq!(again.ttl, 7);
        let mut expected = oracle::decode(bytes).unwrap();
        let Some(oracle::Kind::Publish(publish)) = &mut expected.kind else {
            panic!("{kind}");
        };
        let header = publish.header.as_mut().unwrap();
        header.ttl = 7;
        header.header_mac = again.header_mac.map(<[u8]>::to_vec);
        // The client's connection number has no meaning for the node.
        header.incoming_conn = None;
        assert_eq!(oracle::decode(&passed).unwrap(), expected, "{kind}");
    }
}
