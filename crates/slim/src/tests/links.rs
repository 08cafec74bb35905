//! Link negotiation between two ends, and its errors.

use ring::rand::SystemRandom;

use super::oracle;
use crate::{Accepted, Ack, ConnectionKind, Draft, Initiator, Message, Name, Negotiation, Refused};

fn negotiation(bytes: &[u8]) -> Negotiation<'_> {
    match Message::scan(bytes).unwrap() {
        Message::Link(Some(negotiation)) => negotiation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn link_negotiation_gives_both_ends_a_shared_key() {
    let random = SystemRandom::new();
    let initiator = Initiator::new("a link", &random).unwrap();
    let request = initiator.request("client");
    let accepted = Accepted::new(&negotiation(&request), "node", &random).unwrap();
    let reply = negotiation(&accepted.reply);
    assert!(reply.is_reply);
    assert_eq!(
        (reply.link_id, reply.node_id, reply.deployment),
        ("a link", "node", "")
    );
    assert_eq!((reply.version, reply.kind), ("3.4.6", ConnectionKind::Edge));
    assert!(oracle::decode(&accepted.reply).is_ok());
    let link = initiator.complete(&reply).unwrap();
    let draft = Draft {
        source: Name::new(["org", "ns", "a"], Some(1)),
        destination: Name::new(["org", "ns", "b"], None),
        identity: "",
        fanout: 1,
        ttl: crate::TTL,
    };
    let mut scratch = Vec::new();
    for message in [
        draft.publish([1, 1, 9, 1], b"hello", &link),
        draft.subscribe(7, &link),
        draft.unsubscribe(0, &link),
    ] {
        assert!(oracle::decode(&message).is_ok());
        let (Message::Publish(crate::Routed { header, .. })
        | Message::Subscribe { header, .. }
        | Message::Unsubscribe { header, .. }) = Message::scan(&message).unwrap()
        else {
            panic!("{message:?}");
        };
        assert!(accepted.link.verify(&header, &mut scratch));
    }
}

#[test]
fn the_negotiation_reply_echoes_the_connection_kind() {
    let random = SystemRandom::new();
    let request = Initiator::new("a link", &random).unwrap().request("client");
    for kind in [
        ConnectionKind::Remote,
        ConnectionKind::Edge,
        ConnectionKind::Other(9),
    ] {
        let asked = Negotiation {
            kind,
            ..negotiation(&request)
        };
        let accepted = Accepted::new(&asked, "node", &random).unwrap();
        assert_eq!(negotiation(&accepted.reply).kind, kind);
        assert_eq!(accepted.link.kind(), kind);
        assert_eq!(accepted.link.id(), "a link");
    }
}

#[test]
fn a_refused_negotiation_names_the_invalid_field() {
    let random = SystemRandom::new();
    let request = Initiator::new("a link", &random).unwrap().request("client");
    let good = negotiation(&request);
    let long = "x".repeat(257);
    let with = |change: &dyn Fn(&mut Negotiation<'static>)| {
        let mut asked = Negotiation {
            link_id: "a link",
            version: "3.4.6",
            is_reply: false,
            public_key: &[9; 32],
            kind: ConnectionKind::Edge,
            node_id: "",
            deployment: "",
            kem: None,
        };
        change(&mut asked);
        Accepted::new(&asked, "node", &random).map(drop)
    };
    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(
        with(&|asked| asked.is_reply = true),
        Err(Refused::Direction)
    );
    assert_eq!(with(&|asked| asked.link_id = ""), Err(Refused::LinkId(0)));
    assert_eq!(
        with(&|asked| asked.public_key = &[]),
        Err(Refused::KeySize(0))
    );
    assert_eq!(
        with(&|asked| asked.public_key = &[1; 31]),
        Err(Refused::KeySize(31))
    );
    // A point of low order gives a secret that anyone can compute.
    assert_eq!(
        with(&|asked| asked.public_key = &[0; 32]),
        Err(Refused::Key)
    );
    assert_eq!(
        with(&|asked| asked.kind = ConnectionKind::Peer),
        Err(Refused::Replica)
    );
    assert_eq!(
        with(&|asked| asked.kem = Some(&[1; 1184])),
        Err(Refused::PostQuantum)
    );
    let long = Negotiation {
        link_id: &long,
        ..good
    };
    let refused = Accepted::new(&long, "node", &random).map(drop);
    assert_eq!(refused, Err(Refused::LinkId(257)));
}

#[test]
fn a_client_refuses_a_negotiation_reply_for_another_link() {
    let random = SystemRandom::new();
    let complete = |link_id: &str, change: &dyn Fn(&mut Negotiation<'_>)| {
        let initiator = Initiator::new("a link", &random).unwrap();
        let request = initiator.request("client");
        let asked = Negotiation {
            link_id,
            ..negotiation(&request)
        };
        let accepted = Accepted::new(&asked, "node", &random).unwrap();
        let mut reply = negotiation(&accepted.reply);
        change(&mut reply);
        initiator.complete(&reply).map(drop)
    };
    assert_eq!(complete("a link", &|_| {}), Ok(()));
    assert_eq!(complete("another", &|_| {}), Err(Refused::OtherLink));
    assert_eq!(
        complete("a link", &|it| it.is_reply = false),
        Err(Refused::Direction)
    );
    assert_eq!(
        complete("a link", &|it| it.public_key = &[1]),
        Err(Refused::KeySize(1))
    );
}

#[test]
fn acks_are_read_as_they_are_written() {
    for error in [None, Some("no such subscription")] {
        let ack = Ack {
            subscription_id: u64::MAX,
            error,
        };
        let bytes = ack.encode();
        assert_eq!(Message::scan(&bytes), Ok(Message::Ack(ack)));
        let Some(oracle::Kind::Ack(read)) = oracle::decode(&bytes).unwrap().kind else {
            panic!("{bytes:?}");
        };
        assert_eq!(
            (read.success, &read.error[..]),
            (error.is_none(), error.unwrap_or_default())
        );
    }
}
