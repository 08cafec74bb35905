//! Invalid clients of the native listener: each gets an error, is counted, and does not affect
//! others.

pub(crate) mod agent;

use model::ErrorCode;
use wire::{Cast, Correlation, Flags, Header, Hello, Kind};

use crate::support::{Node, Place, eventually};
use agent::{Agent, Pair, WINDOW, tag};

/// Connections of the node's own agents.
pub(crate) const OWN: u64 = 1;

/// Subscriptions of the node's own agents.
const OWN_SUBSCRIPTIONS: u64 = 2;

fn failures(node: &Node, code: ErrorCode) -> u64 {
    node.metric(&format!("telpher_failures_total{{code=\"{code}\"}}"))
}

/// Sends `bytes`, and checks that the client gets `code` and is disconnected and counted, while two
/// other agents communicate undisturbed.
fn check_fatal(greet: bool, bytes: &[u8], code: ErrorCode, counter: &str) {
    let place = Place::new();
    let node = place.serve("");
    let mut pair = Pair::new(&node);
    let mut stranger = Agent::connect(&node);
    if greet {
        stranger.hello("", "");
    }
    stranger.write(bytes);
    let frame = stranger.next().expect("an error comes before the end");
    assert_eq!(frame.header.correlation, Correlation::NONE);
    assert_eq!(frame.failure().code, code, "{}", frame.failure().message);
    assert!(!frame.failure().message.is_empty());
    assert!(stranger.next().is_none());
    assert_eq!(node.metric(counter), 1);
    pair.exchange();
    node.stop().expect(0);
}

fn header(length: u32, kind: Kind) -> Vec<u8> {
    let header = Header {
        length,
        kind,
        flags: Flags::NONE,
        route: 1,
        correlation: Correlation::NONE,
    };
    header.encode().to_vec()
}

fn hello(version: u16, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let hello = Hello {
        version_min: version,
        version_max: version,
        features: 0,
        window: WINDOW,
        token: "",
        name,
    };
    hello.encode(&mut bytes);
    bytes
}

#[test]
fn garbage_bytes() {
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let counter = "telpher_protocol_errors_total";
    check_fatal(false, http, ErrorCode::Protocol, counter);
    check_fatal(true, &[0x7f; 4096], ErrorCode::TooLarge, counter);
    check_fatal(true, &header(0, Kind(0x7f)), ErrorCode::Protocol, counter);
}

#[test]
fn a_length_of_four_gigabytes() {
    let bytes = header(u32::MAX, Kind::SEND);
    let counter = "telpher_oversize_frames_total";
    check_fatal(true, &bytes, ErrorCode::TooLarge, counter);
}

#[test]
fn an_unknown_version() {
    let counter = "telpher_failures_total{code=\"unsupported\"}";
    check_fatal(false, &hello(2, ""), ErrorCode::Unsupported, counter);
}

#[test]
fn an_invalid_name_in_the_first_frame() {
    let counter = "telpher_failures_total{code=\"invalid_argument\"}";
    check_fatal(false, &hello(1, "a b"), ErrorCode::InvalidArgument, counter);
}

#[test]
fn a_disconnect_within_a_frame_closes_only_that_connection() {
    let place = Place::new();
    let node = place.serve("");
    let mut pair = Pair::new(&node);
    let mut stranger = Agent::connect(&node);
    stranger.hello("", "");
    stranger.write(&header(1000, Kind::SEND)[..9]);
    pair.exchange();
    drop(stranger);
    pair.exchange();
    eventually("the half frame's connection is closed", || {
        node.metric("telpher_connections") == 2 + OWN
    });
}

#[test]
fn incomplete_first_frame_fails_after_the_handshake_timeout() {
    let place = Place::new();
    let node = place.serve("--native-handshake-timeout 200ms");
    let mut stranger = Agent::connect(&node);
    stranger.write(&hello(1, "")[..20]);
    let frame = stranger.next().expect("an error comes before the end");
    assert_eq!(frame.failure().code, ErrorCode::Protocol);
    assert!(frame.failure().message.contains("in time"));
    assert!(stranger.next().is_none());
    assert_eq!(node.metric("telpher_protocol_errors_total"), 1);
    Pair::new(&node).exchange();
}

#[test]
fn an_invalid_name_leaves_the_connection_alive() {
    let place = Place::new();
    let node = place.serve("");
    let mut agent = Agent::connect(&node);
    agent.hello("", "");
    agent.bind(1, "not/a name/x", Cast::Any);
    agent.message(Kind::REQUEST, Flags::NONE, 1, tag(0), b"x");
    let frame = agent.next().unwrap();
    assert_eq!(frame.failure().code, ErrorCode::InvalidArgument);
    assert!(frame.failure().message.contains("' '"));
    assert_eq!(failures(&node, ErrorCode::InvalidArgument), 1);
    agent.subscribe("a/b/alive");
}

#[test]
fn a_payload_above_the_limit_leaves_the_connection_alive() {
    let place = Place::new();
    let node = place.serve("--native-frame-size-max 64KiB");
    let mut agent = Agent::connect(&node);
    agent.hello("", "");
    agent.bind(1, "a/b/nobody", Cast::Any);
    let body = vec![0; 65 << 10];
    agent.message(Kind::REQUEST, Flags::NONE, 1, tag(0), &body);
    let frame = agent.next().unwrap();
    assert_eq!(frame.header.correlation, tag(0));
    assert_eq!(frame.failure().code, ErrorCode::TooLarge);
    assert!(frame.failure().message.contains("65536"));
    assert_eq!(node.metric("telpher_oversize_frames_total"), 1);
    assert_eq!(failures(&node, ErrorCode::TooLarge), 1);
    agent.subscribe("a/b/alive");
}

#[test]
fn ten_thousand_subscriptions_are_added_and_removed() {
    let place = Place::new();
    let node = place.serve("");
    let mut agent = Agent::connect(&node);
    agent.hello("", "");
    for index in 0..10_000 {
        agent.subscribe(&format!("many/names/agent-{index}"));
    }
    assert_eq!(
        node.metric("telpher_subscriptions"),
        10_000 + OWN_SUBSCRIPTIONS
    );
    let mut pair = Pair::new(&node);
    pair.exchange();
    drop(agent);
    eventually("the subscriptions are gone", || {
        node.metric("telpher_subscriptions") == 1 + OWN_SUBSCRIPTIONS
    });
    pair.exchange();
}

#[test]
fn subscriptions_above_the_limit_are_refused_without_affecting_others() {
    let place = Place::new();
    let node = place.serve("--native-subscriptions-per-connection-max 100");
    let mut agent = Agent::connect(&node);
    agent.hello("", "");
    for index in 0..100 {
        agent.subscribe(&format!("many/names/agent-{index}"));
    }
    agent.ask_to_subscribe("many/names/one-more");
    let frame = agent.next().unwrap();
    assert_eq!(frame.failure().code, ErrorCode::Busy);
    assert!(frame.failure().message.contains("100"));
    assert_eq!(failures(&node, ErrorCode::Busy), 1);
    assert_eq!(
        node.metric("telpher_subscriptions"),
        100 + OWN_SUBSCRIPTIONS
    );
}

#[test]
fn a_connection_above_the_limit_is_refused_without_affecting_others() {
    let place = Place::new();
    let node = place.serve("--native-connections-max 3");
    let mut pair = Pair::new(&node);
    let mut late = Agent::connect(&node);
    late.introduce("", "");
    let frame = late.next().unwrap();
    assert_eq!(frame.failure().code, ErrorCode::Unavailable);
    assert!(frame.failure().message.contains("limit 3"));
    assert!(late.next().is_none());
    assert_eq!(node.metric("telpher_connections_refused_total"), 1);
    pair.exchange();
}

#[test]
fn a_wrong_token_is_refused_and_the_right_one_is_accepted() {
    let place = Place::new();
    let added = place.run("token add tester --for */*/* --json");
    let token = added.expect(0).json()["token"].as_str().unwrap().to_owned();
    let node = place.serve("");
    for (wrong, says) in [("", "required"), ("tlp_wrong", "unknown")] {
        let mut stranger = Agent::connect(&node);
        stranger.introduce("", wrong);
        let frame = stranger.next().unwrap();
        assert_eq!(frame.failure().code, ErrorCode::Unauthenticated);
        assert!(frame.failure().message.contains(says));
        assert!(stranger.next().is_none());
    }
    let mut friend = Agent::connect(&node);
    friend.hello("", &token);
    assert_eq!(node.get("/metrics", None).0, 401);
    let (status, text) = node.get("/metrics", Some(&token));
    assert_eq!(status, 200);
    assert!(
        text.contains("\ntelpher_unauthenticated_total 3\n"),
        "{text}"
    );
}
