//! Reliable sessions: each message is delivered once and in order, whatever the network does.

use proptest::prelude::*;

use super::pair::{Pair, RELIABLE, Side, message};
use crate::session::content::Kind;
use crate::session::{Ending, NotPublished, Rejected};

use Side::{Callee, Caller};

#[test]
fn an_acknowledged_message_is_not_sent_again() {
    let mut pair = Pair::open(RELIABLE);
    pair.send_text(Caller, "ping");
    assert_eq!(pair.kinds(), [Kind::Message]);
    let sent = pair.cut().remove(0);
    pair.deliver(&sent);
    assert_eq!(pair.kinds(), [Kind::Acknowledgement]);
    pair.run();
    pair.wait(5);
    assert_eq!(pair.kinds(), []);
    assert_eq!(pair.take_notes(), ["Callee hears ping"]);
}

#[test]
fn a_lost_message_is_sent_again() {
    let mut pair = Pair::open(RELIABLE);
    pair.send_text(Caller, "ping");
    pair.cut();
    pair.wait(1);
    pair.run();
    assert_eq!(pair.take_notes(), ["Callee hears ping"]);
}

#[test]
fn a_lost_acknowledgement_causes_no_duplicate() {
    let mut pair = Pair::open(RELIABLE);
    pair.send_text(Caller, "ping");
    let sent = pair.cut().remove(0);
    pair.deliver(&sent);
    pair.cut();
    pair.wait(1);
    pair.run();
    assert_eq!(pair.take_notes(), ["Callee hears ping"]);
    pair.wait(5);
    assert_eq!(pair.kinds(), []);
}

#[test]
fn a_receiver_requests_missing_messages_again() {
    let mut pair = Pair::open(RELIABLE);
    for text in ["one", "two", "three"] {
        pair.send_text(Caller, text);
    }
    let sent = pair.cut();
    pair.deliver(&sent[2]);
    assert_eq!(
        pair.kinds(),
        [Kind::Again, Kind::Again, Kind::Acknowledgement]
    );
    pair.run();
    let heard = ["Callee hears one", "Callee hears two", "Callee hears three"];
    assert_eq!(pair.take_notes(), heard);
}

#[test]
fn messages_the_sender_no_longer_has_are_skipped() {
    // One of two equal instances acknowledges messages that the other does not receive.
    let [mut pair, mut twin] = [(); 2].map(|()| Pair::open(RELIABLE));
    for pair in [&mut pair, &mut twin] {
        pair.send_text(Caller, "lost");
    }
    let sent = twin.cut().remove(0);
    twin.deliver(&sent);
    pair.wire = twin.wire;
    pair.run();
    pair.send_text(Caller, "kept");
    pair.run();
    assert_eq!(pair.take_notes(), ["Callee hears kept"]);
}

#[test]
fn a_peer_that_acknowledges_nothing_ends_the_session() {
    let mut pair = Pair::open(RELIABLE);
    pair.send_text(Caller, "ping");
    pair.wait(3);
    assert_eq!(pair.kinds(), [Kind::Message; 4]);
    pair.wait(1);
    assert_eq!(pair.take_notes(), [Pair::ended(Caller, Ending::Silent)]);
}

#[test]
fn send_and_receive_windows_are_bounded() {
    let mut pair = Pair::open(RELIABLE);
    for _ in 0..256 {
        pair.send_text(Caller, "x");
    }
    let session = pair.sessions[Caller as usize].unwrap();
    let (at, mut out) = (pair.at, Vec::new());
    let said = pair.caller.publish(session, &message("x"), at, &mut out);
    assert_eq!(said, Err(NotPublished::Full));
    // All but the first message are acknowledged, and one more can be sent; it is outside of the
    // receive window.
    let sent = pair.cut();
    for sent in &sent[1..] {
        pair.deliver(sent);
    }
    pair.wire.retain(|sent| sent.kind == Kind::Acknowledgement);
    pair.run();
    pair.send_text(Caller, "far");
    pair.run();
    assert_eq!(pair.rejected, [Rejected::TooFar]);
    pair.deliver(&sent[0]);
    pair.run();
    assert_eq!(pair.take_notes().len(), 256);
    pair.wait(1);
    pair.run();
    assert_eq!(pair.take_notes(), ["Callee hears far"]);
}

proptest! {
    /// The network loses, duplicates and reorders messages; no message is lost for good.
    #[test]
    fn each_message_is_delivered_once_and_in_order(
        fates in proptest::collection::vec(0..4_u8, 0..60),
        count in 1..12_usize,
    ) {
        let mut pair = Pair::open(RELIABLE);
        let texts: Vec<_> = (0..count).map(|number| number.to_string()).collect();
        for text in &texts {
            pair.send_text(Caller, text);
        }
        for fate in fates {
            match (fate, pair.wire.pop_front()) {
                (_, None) => break,
                // At most two of four attempts of each message are lost.
                (0, Some(sent)) if pair.at.now_ns == 0 => drop(sent),
                (1, Some(sent)) => pair.wire.push_back(sent),
                (2, Some(sent)) => {
                    pair.wire.push_back(sent.clone());
                    pair.deliver(&sent);
                }
                (_, Some(sent)) => pair.deliver(&sent),
            }
        }
        pair.run();
        for _ in 0..3 {
            pair.wait(1);
            pair.run();
        }
        let heard: Vec<_> = texts.iter().map(|text| format!("Callee hears {text}")).collect();
        prop_assert_eq!(pair.take_notes(), heard);
        prop_assert_eq!(pair.kinds(), []);
    }
}

#[test]
fn both_ends_of_a_session_send_concurrently() {
    let mut pair = Pair::open(RELIABLE);
    for _ in 0..3 {
        pair.send_text(Caller, "ping");
        pair.send_text(Callee, "pong");
    }
    pair.run();
    let notes = pair.take_notes();
    let heard = |what: &str| notes.iter().filter(|note| *note == what).count();
    assert_eq!(heard("Callee hears ping"), 3);
    assert_eq!(heard("Caller hears pong"), 3);
}
