//! Messages that an endpoint must reject.

use proptest::prelude::*;

use super::pair::{LIMITS, Pair, RELIABLE, SECRET, Sent, Side, end, entropy};
use crate::session::content::Kind;
use crate::session::turn::{MessageAddress, Numbers, Turn};
use crate::session::{
    Endpoint, FullName, Identity, Rejected, SECRET_SIZE_MIN, ShortSecret, Untrusted,
};
use crate::{Link, Message};

use Side::Caller;

/// Delivers the first messages of a caller to a callee with other settings.
fn check(caller: Endpoint, unix_s_later: i64, expected: Rejected) {
    let mut pair = Pair::of(caller, end("callee", 2, LIMITS));
    pair.ask(None);
    pair.at.unix_s = pair.at.unix_s.saturating_add_signed(unix_s_later);
    pair.run();
    assert_eq!(pair.rejected, [expected]);
    assert_eq!(pair.callee.session_count(), 0);
}

#[test]
fn a_short_secret_is_refused() {
    let short = Identity::new("a", &SECRET[..SECRET_SIZE_MIN - 1], &entropy(1));
    assert_eq!(short.err(), Some(ShortSecret(SECRET_SIZE_MIN - 1)));
    assert!(Identity::new("a", &SECRET[..SECRET_SIZE_MIN], &entropy(1)).is_ok());
}

#[test]
fn a_token_signed_with_another_secret_is_rejected() {
    let identity = Identity::new("caller", &[b'x'; 32], &entropy(1)).unwrap();
    let caller = Endpoint::new(["org", "ns", "caller"], identity, 1, LIMITS);
    check(caller, 0, Rejected::Untrusted(Untrusted::Secret));
}

#[test]
fn a_token_outside_its_validity_period_is_rejected() {
    let expired = Rejected::Untrusted(Untrusted::Expired);
    check(end("caller", 1, LIMITS), 3601, expired);
    check(end("caller", 1, LIMITS), -6, expired);
    for near in [3600, -5] {
        let mut pair = Pair::new();
        pair.ask(None);
        pair.at.unix_s = pair.at.unix_s.saturating_add_signed(near);
        pair.run();
        assert_eq!(pair.rejected, []);
    }
}

/// Returns the result for a message of this type in which the last occurrence of some bytes is
/// replaced.
#[track_caller]
fn check_changed(kind: Kind, from: &[u8], to: &[u8], expected: Rejected) {
    assert_eq!(from.len(), to.len());
    let mut pair = Pair::new();
    pair.ask(None);
    while let Some(mut sent) = pair.wire.pop_front() {
        if sent.kind == kind {
            let at = sent.bytes.windows(from.len()).rposition(|it| it == from);
            let at = at.expect("the bytes are there");
            sent.bytes[at..at + to.len()].copy_from_slice(to);
            deliver_unlinked(&mut pair, &sent);
            assert_eq!(pair.rejected, [expected]);
            return;
        }
        pair.deliver(&sent);
    }
    panic!("there was no {kind:?}");
}

/// Signs and forwards a message as a node would.
fn deliver_unlinked(pair: &mut Pair, sent: &Sent) {
    let Message::Publish(routed) = Message::scan(&sent.bytes).unwrap() else {
        panic!("a publish")
    };
    let mut out = Vec::new();
    let end = match sent.from {
        Caller => &mut pair.callee,
        Side::Callee => &mut pair.caller,
    };
    if let Err(rejected) = end.receive(&routed, pair.at, &mut out) {
        pair.rejected.push(rejected);
    }
}

#[test]
fn modified_control_messages_are_rejected() {
    let signature = Rejected::Untrusted(Untrusted::Signature);
    check_changed(
        Kind::DiscoveryRequest,
        b"\x06caller",
        b"\x06collar",
        signature,
    );
    // The payload contains the name of the joining participant, as texts and numbers.
    let name = FullName::new(["org", "ns", "callee"], None).key().prefix[2];
    let mut number = Vec::new();
    crate::wire::put_number(3, name, &mut number);
    let mut other = number.clone();
    other[1] ^= 1;
    check_changed(Kind::JoinReply, &number, &other, signature);
}

#[test]
fn a_modified_token_is_rejected() {
    let secret = Rejected::Untrusted(Untrusted::Secret);
    check_changed(Kind::JoinRequest, b":1800000000:", b":1800000001:", secret);
}

#[test]
fn a_session_rejects_messages_of_another_identity() {
    let mut pair = Pair::open(None);
    // Another application with the same name and id has a different token.
    pair.send_text(Caller, "mine");
    let sent = pair.cut().remove(0);
    let Message::Publish(routed) = Message::scan(&sent.bytes).unwrap() else {
        panic!("a publish")
    };
    let mut stranger = Identity::new("stranger", SECRET, &entropy(9)).unwrap();
    let token = stranger.token(pair.at.unix_s);
    let draft = crate::Draft {
        source: routed.header.source,
        destination: routed.header.destination,
        identity: &token,
        fanout: 1,
        ttl: 8,
    };
    let fields = crate::session::incoming::Incoming::read(&routed).unwrap();
    let session = [1, 1, fields.session(), 2];
    let bytes = draft.publish(session, b"his", &pair.link);
    let kind = Kind::Message;
    let from = Caller;
    pair.deliver(&Sent { from, kind, bytes });
    assert_eq!(pair.rejected, [Rejected::Stranger]);
    pair.deliver(&sent);
    assert_eq!(pair.take_notes(), ["Callee hears mine"]);
}

#[test]
fn invitations_with_mls_fail_at_once() {
    let mut pair = Pair::new();
    let mut identity = Identity::new("caller", SECRET, &entropy(1)).unwrap();
    let us = pair.caller.name().clone();
    let mut out = Vec::new();
    let mut turn = Turn {
        us: &us,
        identity: &mut identity,
        numbers: &mut Numbers::new(1),
        at: pair.at,
        out: &mut out,
    };
    let to = MessageAddress {
        peer: pair.callee.name(),
        session: 5,
        kind: Kind::JoinRequest,
        number: 6,
    };
    // A command, an invitation, MLS settings without content.
    turn.control(to, vec![0x12, 4, 0x1a, 2, 0x22, 0]);
    pair.decide(Caller, out);
    let asked = pair.cut().remove(0);
    pair.deliver(&asked);
    assert_eq!(pair.rejected, [Rejected::WantsMls]);
    assert_eq!(pair.kinds(), [Kind::JoinReply]);
    assert_eq!(pair.callee.session_count(), 0);
}

#[test]
fn a_message_for_another_endpoint_is_rejected() {
    let mut pair = Pair::of(end("caller", 1, LIMITS), end("other", 2, LIMITS));
    pair.ask(None);
    pair.run();
    assert_eq!(pair.rejected, [Rejected::NotForUs]);
}

#[test]
fn a_message_of_an_unknown_session_gets_no_answer() {
    let mut pair = Pair::open(RELIABLE);
    pair.send_text(Caller, "late");
    let sent = pair.cut().remove(0);
    pair.close(Caller);
    pair.run();
    pair.deliver(&sent);
    assert_eq!(pair.rejected, [Rejected::UnknownSession]);
    assert_eq!(pair.kinds(), []);
}

#[test]
fn a_duplicate_answer_is_rejected_and_changes_nothing() {
    let mut pair = Pair::new();
    pair.ask(None);
    let mut seen = Vec::new();
    while let Some(sent) = pair.wire.pop_front() {
        pair.deliver(&sent);
        seen.push(sent);
    }
    for sent in seen.iter().filter(|sent| sent.from == Side::Callee) {
        pair.deliver(sent);
    }
    assert_eq!(pair.rejected.len(), 3, "{:?}", pair.rejected);
    assert_eq!(pair.kinds(), []);
    pair.send_text(Caller, "ping");
    pair.run();
    assert_eq!(pair.take_notes().last().unwrap(), "Callee hears ping");
}

proptest! {
    /// For any changed bytes, an endpoint accepts or rejects the message.
    #[test]
    fn changed_bytes_are_accepted_or_rejected_without_a_panic(at in 0..2000_usize, byte: u8, step in 0..7_usize) {
        let mut pair = Pair::new();
        pair.ask(RELIABLE);
        for _ in 0..step {
            if let Some(sent) = pair.wire.pop_front() {
                pair.deliver(&sent);
            }
        }
        if pair.wire.is_empty() {
            pair.send_text(Caller, "ping");
        }
        let mut sent = pair.wire.pop_front().unwrap();
        let at = at % sent.bytes.len();
        sent.bytes[at] = byte;
        if let Ok(Message::Publish(routed)) = Message::scan(&sent.bytes) {
            let end = match sent.from {
                Caller => &mut pair.callee,
                Side::Callee => &mut pair.caller,
            };
            let mut out = Vec::new();
            let _ = end.receive(&routed, pair.at, &mut out);
            end.tick(pair.at, &mut out);
            for decision in out {
                if let crate::session::Decision::Send(packet) = decision {
                    packet.encode(&Link::with_secret(b"x", "y"));
                }
            }
        }
    }
}
