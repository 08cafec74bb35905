//! Unreliable sessions: opening, messages, closing.

use super::pair::{LIMITS, Pair, SECOND_NS, Side, end, message};
use crate::session::content::Kind;
use crate::session::{Decision, Ending, Limits, NotPublished, Rejected};

use Side::{Callee, Caller};

#[test]
fn a_session_takes_six_messages_to_begin() {
    let mut pair = Pair::new();
    pair.ask(None);
    let mut kinds = Vec::new();
    while let Some(sent) = pair.wire.pop_front() {
        kinds.push(sent.kind);
        pair.deliver(&sent);
    }
    let expected = [
        Kind::DiscoveryRequest,
        Kind::DiscoveryReply,
        Kind::JoinRequest,
        Kind::JoinReply,
        Kind::Welcome,
        Kind::GroupAck,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(pair.rejected, []);
}

#[test]
fn messages_and_metadata_are_delivered_both_ways() {
    let mut pair = Pair::open(None);
    pair.send_text(Caller, "ping");
    pair.run();
    pair.send_text(Callee, "pong");
    pair.send_text(Callee, "");
    pair.run();
    let heard = ["Callee hears ping", "Caller hears pong", "Caller hears "];
    assert_eq!(pair.take_notes(), heard);

    pair.send_text(Caller, "whole");
    let sent = pair.cut().remove(0);
    let crate::Message::Publish(routed) = crate::Message::scan(&sent.bytes).unwrap() else {
        panic!("a publish")
    };
    let mut out = Vec::new();
    pair.callee.receive(&routed, pair.at, &mut out).unwrap();
    let Some(Decision::Deliver { message: heard, .. }) = out.pop() else {
        panic!("{out:?}")
    };
    assert_eq!(heard, message("whole"));
}

#[test]
fn either_end_may_close_and_the_other_is_notified() {
    for (side, other) in [(Caller, Callee), (Callee, Caller)] {
        let mut pair = Pair::open(None);
        pair.close(side);
        pair.run();
        let ended = [
            Pair::ended(other, Ending::Closed),
            Pair::ended(side, Ending::Left),
        ];
        assert_eq!(pair.take_notes(), ended);
        assert_eq!(pair.caller.session_count() + pair.callee.session_count(), 0);
        assert_eq!(pair.rejected, []);
    }
}

#[test]
fn leaving_succeeds_without_an_answer() {
    for side in [Caller, Callee] {
        let mut pair = Pair::open(None);
        pair.close(side);
        let session = pair.sessions[side as usize].unwrap();
        let (at, mut out) = (pair.at, Vec::new());
        let said = pair
            .end_of(side)
            .publish(session, &message("late"), at, &mut out);
        assert_eq!(said, Err(NotPublished::NotOpen));
        pair.wait(2);
        assert_eq!(pair.take_notes(), [""; 0]);
        assert_eq!(pair.kinds().len(), 3, "it is said again");
        pair.wait(1);
        assert_eq!(pair.take_notes(), [Pair::ended(side, Ending::Left)]);
    }
}

#[test]
fn discovery_of_an_unknown_name_ends_after_its_retries() {
    let mut pair = Pair::new();
    pair.ask(None);
    pair.wait(2);
    assert_eq!(pair.kinds(), [Kind::DiscoveryRequest; 3]);
    pair.wait(1);
    assert_eq!(pair.take_notes(), [Pair::ended(Caller, Ending::Nobody)]);
    assert_eq!(pair.caller.session_count(), 0);
}

#[test]
fn lost_opening_messages_are_retransmitted() {
    for lost in 0..6 {
        let mut pair = Pair::new();
        pair.ask(None);
        let mut index = 0;
        for _ in 0..3 {
            while let Some(sent) = pair.wire.pop_front() {
                if index != lost {
                    pair.deliver(&sent);
                }
                index += 1;
            }
            pair.wait(1);
        }
        pair.run();
        let notes = pair.take_notes();
        assert_eq!(notes.len(), 2, "{lost}: {notes:?}");
        pair.send_text(Caller, "ping");
        pair.run();
        assert_eq!(pair.take_notes(), ["Callee hears ping"], "{lost}");
    }
}

#[test]
fn idle_sessions_send_heartbeats() {
    let mut pair = Pair::open(None);
    for _ in 0..6 {
        pair.wait(10);
        assert_eq!(pair.kinds(), [Kind::Heartbeat; 2]);
        pair.run();
    }
    assert_eq!(pair.take_notes(), [""; 0]);
    assert_eq!(pair.rejected, []);
}

#[test]
fn a_live_instance_answers_a_check() {
    let mut pair = Pair::open(None);
    pair.take_notes();
    pair.check();
    pair.run();
    assert_eq!(pair.take_notes(), ["Caller alive"]);
    // The check was answered; a second answer belongs to no check.
    pair.send_text(Caller, "still there");
    pair.run();
    assert_eq!(pair.take_notes().len(), 1);
}

#[test]
fn an_unanswered_check_lets_the_session_be_abandoned() {
    let mut pair = Pair::open(None);
    pair.take_notes();
    pair.check();
    pair.cut();
    pair.run();
    assert_eq!(pair.take_notes(), [""; 0]);
    pair.abandon();
    assert_eq!(pair.take_notes(), [Pair::ended(Caller, Ending::Left)]);
    assert_eq!(pair.end_of(Caller).session_count(), 0);
}

#[test]
fn a_session_ends_after_thirty_seconds_of_silence() {
    let mut pair = Pair::open(None);
    pair.wait(29);
    assert_eq!(pair.take_notes(), [""; 0]);
    pair.wait(1);
    let ended = [
        Pair::ended(Caller, Ending::Silent),
        Pair::ended(Callee, Ending::Silent),
    ];
    assert_eq!(pair.take_notes(), ended);
}

#[test]
fn time_without_a_link_does_not_count_as_silence() {
    let mut pair = Pair::open(None);
    pair.at.now_ns += 3600 * SECOND_NS;
    let at = pair.at;
    pair.caller.resume(at);
    pair.callee.resume(at);
    pair.wait(1);
    pair.run();
    pair.send_text(Caller, "still there");
    pair.run();
    assert_eq!(pair.take_notes(), ["Callee hears still there"]);
}

#[test]
fn sessions_are_bounded_on_both_sides() {
    let limits = Limits {
        sessions_max: 1,
        ..LIMITS
    };
    let mut pair = Pair::of(end("caller", 1, limits), end("callee", 2, limits));
    pair.ask(None);
    pair.run();
    let mut out = Vec::new();
    let to = ["org", "ns", "callee"];
    let opened = pair.caller.open(to, None, pair.at, &mut out);
    assert_eq!(opened, Err(Rejected::Full));

    pair.caller = end("another", 3, limits);
    pair.ask(None);
    pair.run();
    assert_eq!(pair.rejected, [Rejected::Full]);
    assert_eq!(pair.callee.session_count(), 1);

    let nobodys = Limits {
        asked_max: 0,
        ..LIMITS
    };
    let mut pair = Pair::of(end("caller", 1, limits), end("callee", 2, nobodys));
    pair.ask(None);
    pair.run();
    assert_eq!(pair.rejected, [Rejected::Full]);
}

#[test]
fn an_ended_session_frees_its_slot() {
    let limits = Limits {
        asked_max: 1,
        ..LIMITS
    };
    let mut pair = Pair::of(end("caller", 1, limits), end("callee", 2, limits));
    for _ in 0..3 {
        pair.ask(None);
        pair.run();
        pair.close(Caller);
        pair.run();
    }
    assert_eq!(pair.rejected, []);
}
