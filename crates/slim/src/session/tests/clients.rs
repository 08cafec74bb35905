//! Recorded messages of `slim-bindings`, received and answered by an endpoint.

use crate::Name;
use crate::session::content::{self, JoinRequest, Kind};
use crate::session::identity::{Identity, Untrusted, name_id};
use crate::session::incoming::Incoming;
use crate::session::signing::PAYLOAD_SIGNATURE;
use crate::session::tests::pair::{LIMITS, entropy};
use crate::session::{Decision, Endpoint, Moment, Rejected};
use crate::tests::clients::{messages, publish};

/// Shared secret of the recorded clients.
const SECRET: &[u8] = b"demo-shared-secret-min-32-chars!!";

/// Time of a message, from its token.
fn moment(incoming: &Incoming<'_>) -> Moment {
    let made = incoming.header.identity.split(':').nth(1).unwrap();
    Moment {
        now_ns: 0,
        unix_s: made.parse().unwrap(),
    }
}

fn own_identity() -> Identity {
    Identity::new("us", SECRET, &entropy(1)).unwrap()
}

#[test]
fn every_recorded_session_message_verifies_until_its_token_expires() {
    let mut count = 0;
    for (kind, bytes) in messages().filter(|(kind, _)| kind.starts_with("p2p-")) {
        let routed = publish(&bytes);
        let incoming = Incoming::read(&routed).unwrap();
        let at = moment(&incoming);
        let own_identity = own_identity();
        let bearer = incoming.verify(&own_identity, at.unix_s).unwrap();
        let id = incoming.header.source.encoded.key().id;
        assert_eq!(id, Some(name_id(bearer.subject)), "{kind}");
        let has_payload_signature = incoming
            .metadata
            .iter()
            .any(|(key, _)| *key == PAYLOAD_SIGNATURE);
        let is_control = incoming.kind().unwrap().is_control();
        assert_eq!(has_payload_signature, is_control, "{kind}");
        let late = incoming.verify(&own_identity, at.unix_s + 3601);
        assert_eq!(late, Err(Untrusted::Expired), "{kind}");
        count += 1;
    }
    assert_eq!(count, 11);
}

#[test]
fn a_recorded_join_request_decodes() {
    let mut timings = Vec::new();
    for (_, bytes) in messages().filter(|(kind, _)| *kind == "p2p-join-request") {
        let routed = publish(&bytes);
        let incoming = Incoming::read(&routed).unwrap();
        timings.push(JoinRequest::read(incoming.content).unwrap());
    }
    assert_eq!(timings, [JoinRequest::default()]);
}

#[test]
fn endpoint_answers_equal_recorded_client_answers() {
    let of = |wanted: &str| {
        let mut messages = messages();
        messages.find(|(kind, _)| *kind == wanted).unwrap().1
    };
    let content_of = |wanted: &str| {
        let bytes = of(wanted);
        let routed = publish(&bytes);
        Incoming::read(&routed).unwrap().content.to_vec()
    };
    let reply = of("p2p-join-reply");
    let reply = publish(&reply);
    let joined = content::join_reply(reply.header.source);
    assert_eq!(content_of("p2p-join-reply"), joined);
    let discovered = content::bare(content::DISCOVERY_REPLY);
    assert_eq!(content_of("p2p-discovery-reply"), discovered);
    let asked = content::bare(content::DISCOVERY_REQUEST);
    assert_eq!(content_of("p2p-discovery-request"), asked);
    assert_eq!(content_of("p2p-ack"), content::bare(content::GROUP_ACK));
    let acknowledged = content::payload("", &[]);
    assert_eq!(content_of("p2p-msg-ack"), acknowledged);
    let asked = JoinRequest::default().content();
    assert_eq!(content_of("p2p-join-request"), asked);
}

/// An endpoint in place of the client's recorded peer.
#[test]
fn a_clients_session_begins_and_its_message_is_delivered() {
    let of = |wanted: &str| {
        let mut messages = messages();
        messages.find(|(kind, _)| *kind == wanted).unwrap().1
    };
    let discovery = of("p2p-discovery-request");
    let discovery = publish(&discovery);
    let incoming = Incoming::read(&discovery).unwrap();
    let texts = discovery.header.destination.texts.unwrap();
    let at = moment(&incoming);
    let mut end = Endpoint::new(texts, own_identity(), 7, LIMITS);
    let mut out = Vec::new();
    end.receive(&discovery, at, &mut out).unwrap();
    let [Decision::Send(packet)] = &out[..] else {
        panic!("{out:?}")
    };
    assert_eq!(packet.session[1], Kind::DiscoveryReply as u32);
    assert_eq!(packet.session[3], incoming.number());
    // Later messages went to the instance that answered then.
    let joining = of("p2p-join-request");
    let joining = publish(&joining);
    let rejected = end.receive(&joining, at, &mut out);
    assert_eq!(rejected, Err(Rejected::NotForUs));
    assert_eq!(end.name().name().texts, Some(texts));
    assert_ne!(end.name().key(), Name::new(texts, None).encoded.key());
}
