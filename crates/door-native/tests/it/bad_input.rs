use model::ErrorCode;
use platform::Counter;
use wire::{Cast, Correlation, Flags, Header, Kind};

use crate::Bench;
use crate::agent::tag;

/// A client that says this after the handshake (or instead of it) is told `code` and is closed,
/// and another client notices nothing.
async fn check_fatal(greet: bool, bytes: &[u8], code: ErrorCode) {
    let bench = Bench::new();
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut bystander = bench.agent("").await;
    bystander.bind(1, "a/b/echo", Cast::Any).await;
    let mut culprit = bench.connect();
    if greet {
        culprit.hello("").await;
    }
    culprit.raw(bytes).await;
    let failure = culprit.next().await;
    assert_eq!(failure.header.correlation, Correlation::NONE);
    assert_eq!(failure.failure().code, code, "{failure:?}");
    assert!(!failure.failure().message.is_empty());
    assert!(culprit.try_next().await.is_none());
    bystander.request(1, 0, b"still here?").await;
    assert_eq!(responder.next().await.body(), b"still here?");
    let counters = bench.node.counters();
    assert!(counters.get(Counter::ProtocolErrors) + counters.failures(code) > 0);
}

fn header(length: u32, kind: Kind, route: u16, slot: u32) -> Vec<u8> {
    let header = Header {
        length,
        kind,
        flags: Flags::NONE,
        route,
        correlation: tag(slot),
    };
    header.encode().to_vec()
}

#[tokio::test]
async fn garbage_instead_of_a_hello() {
    check_fatal(
        false,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        ErrorCode::Protocol,
    )
    .await;
    check_fatal(false, &[0xff; 64], ErrorCode::Protocol).await;
}

#[tokio::test]
async fn an_invalid_hello() {
    let mut bytes = header(4, Kind::HELLO, 0, 0);
    bytes.extend_from_slice(b"HTTP");
    check_fatal(false, &bytes, ErrorCode::Protocol).await;
    check_fatal(false, &header(0, Kind::PING, 0, 0), ErrorCode::Protocol).await;
}

#[tokio::test]
async fn an_unknown_version() {
    let hello = wire::Hello {
        version_min: 7,
        version_max: 9,
        features: 0,
        window: crate::agent::WINDOW,
        token: "",
        name: "",
    };
    let mut bytes = Vec::new();
    hello.encode(&mut bytes);
    check_fatal(false, &bytes, ErrorCode::Unsupported).await;
}

#[tokio::test]
async fn an_invalid_name_in_the_hello() {
    let hello = wire::Hello {
        version_min: 1,
        version_max: 1,
        features: 0,
        window: crate::agent::WINDOW,
        token: "",
        name: "not a name",
    };
    let mut bytes = Vec::new();
    hello.encode(&mut bytes);
    check_fatal(false, &bytes, ErrorCode::InvalidArgument).await;
}

#[tokio::test]
async fn a_length_of_four_gigabytes() {
    check_fatal(
        true,
        &header(u32::MAX, Kind::SEND, 1, 0),
        ErrorCode::TooLarge,
    )
    .await;
}

#[tokio::test]
async fn an_unknown_kind_that_is_not_skippable() {
    check_fatal(true, &header(0, Kind(0x7f), 0, 0), ErrorCode::Protocol).await;
}

#[tokio::test]
async fn a_payload_that_is_too_short_for_its_kind() {
    check_fatal(true, &header(0, Kind::BIND, 1, 0), ErrorCode::Protocol).await;
    check_fatal(true, &header(0, Kind::CREDIT, 0, 0), ErrorCode::Protocol).await;
}

#[tokio::test]
async fn request_and_route_numbers_that_skip_others() {
    check_fatal(
        true,
        &header(0, Kind::REQUEST, 1, 4_000_000),
        ErrorCode::Protocol,
    )
    .await;
    let mut bytes = Vec::new();
    let bind = wire::Bind {
        route: 60_000,
        cast: Cast::Any,
        method: "",
        name: "a/b/c",
    };
    bind.encode(&mut bytes);
    check_fatal(true, &bytes, ErrorCode::Protocol).await;
}

#[tokio::test]
async fn a_skippable_kind_is_skipped() {
    let bench = Bench::new();
    let mut agent = bench.agent("").await;
    agent.raw(&header(0, Kind(0xff), 0, 0)).await;
    agent.expect_nothing().await;
}

#[tokio::test]
async fn payload_above_the_limit_fails_its_request_and_the_connection_stays_open() {
    let options = door_native::Options {
        frame_size_max: 1000,
        ..door_native::Options::default()
    };
    let bench = Bench::with(messaging::Limits::default(), options);
    let mut agent = bench.agent("").await;
    agent.bind(1, "a/b/nobody", Cast::Any).await;
    agent.request(1, 0, &[0; 1001]).await;
    let frame = agent.next().await;
    assert_eq!(frame.header.correlation, tag(0));
    assert_eq!(frame.failure().code, ErrorCode::TooLarge);
    assert!(frame.failure().message.contains("1000"), "{frame:?}");
    agent.request(1, 1, &[0; 1000]).await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::NoResponder);
    assert_eq!(bench.node.counters().get(Counter::Oversize), 1);
}

#[tokio::test]
async fn payload_far_above_the_limit_gets_one_error_and_is_disconnected() {
    let options = door_native::Options {
        frame_size_max: 1000,
        ..door_native::Options::default()
    };
    for kind in [
        Kind::REQUEST,
        Kind::WRITE,
        Kind::SEND,
        Kind::REPLY,
        Kind(0xff),
    ] {
        let bench = Bench::with(messaging::Limits::default(), options);
        let mut agent = bench.agent("").await;
        agent.bind(1, "a/b/nobody", Cast::Any).await;
        let mut bytes = header(16_001, kind, 1, 0);
        bytes.extend([0; 16_001]);
        // What stands behind it is not looked at.
        bytes.extend(header(0, Kind::PING, 0, 0));
        agent.raw(&bytes).await;
        let frame = agent.next().await;
        assert_eq!(frame.header.correlation, Correlation::NONE, "{kind:?}");
        assert_eq!(frame.failure().code, ErrorCode::TooLarge);
        assert!(frame.failure().message.contains("1000"), "{frame:?}");
        assert_eq!(agent.try_next().await, None, "{kind:?}");
        assert_eq!(bench.node.counters().get(Counter::Oversize), 1);
    }
}

#[tokio::test]
async fn names_that_are_not_valid_are_refused_where_they_are_used() {
    let bench = Bench::new();
    let mut agent = bench.agent("").await;
    agent.bind(1, "no/name", Cast::Any).await;
    agent.request(1, 0, b"x").await;
    let frame = agent.next().await;
    assert_eq!(frame.failure().code, ErrorCode::InvalidArgument);
    agent.request(2, 1, b"x").await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
    let subscribe = wire::Subscribe {
        options: 0,
        name: "a//b",
        description: None,
    };
    agent.frame(|out| subscribe.encode(tag(2), out)).await;
    assert_eq!(
        agent.next().await.failure().code,
        ErrorCode::InvalidArgument
    );
    let subscribe = wire::Subscribe {
        options: 0,
        name: "telpher/system/node",
        description: None,
    };
    agent.frame(|out| subscribe.encode(tag(3), out)).await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::Denied);
}

#[tokio::test]
async fn subscriptions_above_the_limit_are_refused_and_ten_thousand_are_not() {
    let limits = messaging::Limits {
        subscriptions_per_connection_max: 10_000,
        ..messaging::Limits::default()
    };
    let bench = Bench::with(limits, door_native::Options::default());
    let mut agent = bench.agent("").await;
    for index in 0..10_001 {
        let name = format!("a/b/c{index}");
        let subscribe = wire::Subscribe {
            options: 0,
            name: &name,
            description: None,
        };
        agent.frame(|out| subscribe.encode(tag(0), out)).await;
        let frame = agent.next().await;
        match index {
            10_000 => assert_eq!(frame.failure().code, ErrorCode::Busy),
            _ => assert_eq!(frame.header.kind, Kind::REPLY),
        }
    }
    drop(agent);
    while bench.node.messaging().connection_count() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.node.messaging().subscription_count(), 0);
    assert!(bench.node.messaging().agents().is_empty());
}

#[tokio::test]
async fn a_client_that_stalls_within_a_frame_blocks_no_other() {
    let bench = Bench::new();
    let mut culprit = bench.agent("").await;
    culprit.raw(&header(1000, Kind::SEND, 1, 0)[..9]).await;
    let mut bystander = bench.agent("").await;
    bystander.expect_nothing().await;
    drop(culprit);
    while bench.node.messaging().connection_count() > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_caller_that_never_reads_is_held_back_and_bounded() {
    let options = door_native::Options {
        queue_size_max: 1 << 20,
        ..door_native::Options::default()
    };
    let bench = Bench::with(messaging::Limits::default(), options);
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut deaf = bench.agent("").await;
    deaf.bind(1, "a/b/echo", Cast::Any).await;
    let body = vec![7; 64 << 10];
    for slot in 0..200 {
        deaf.request(1, slot, b"x").await;
        let request = responder.next().await;
        responder
            .message(
                Kind::REPLY,
                Flags::NONE,
                0,
                request.header.correlation,
                &body,
            )
            .await;
        responder.expect_nothing().await;
        if bench.node.messaging().connection_count() == 1 {
            break;
        }
        let queued: usize = bench
            .node
            .messaging()
            .connections()
            .iter()
            .map(|c| c.queued_bytes)
            .sum();
        assert!(queued <= (4 << 20) + body.len() + 64, "{queued}");
        if queued > 1 << 20 {
            // From here on the node does not read from the deaf client any more.
            return;
        }
    }
    panic!("200 unread replies of 64 KiB were never held back");
}

#[tokio::test(start_paused = true)]
async fn silent_client_is_pinged_and_then_disconnected() {
    let bench = Bench::new();
    let mut silent = bench.agent("").await;
    assert_eq!(silent.next().await.header.kind, Kind::PING);
    assert_eq!(silent.next().await.header.kind, Kind::PING);
    assert!(silent.try_next_patiently().await.is_none());
    assert_eq!(bench.node.counters().get(Counter::Silent), 1);
}

#[tokio::test(start_paused = true)]
async fn client_that_sends_no_hello_in_time_is_disconnected() {
    let bench = Bench::new();
    let mut stranger = bench.connect();
    let failure = stranger.next().await;
    assert_eq!(failure.failure().code, ErrorCode::Protocol);
    assert!(stranger.try_next().await.is_none());
}
