use messaging::Limits;
use model::ErrorCode;
use wire::{Cast, Correlation, Flags, Kind, Payload};

use crate::agent::tag;
use crate::{Agent, Bench};

async fn reply(agent: &mut Agent, correlation: Correlation, body: &[u8]) {
    agent
        .message(Kind::REPLY, Flags::NONE, 0, correlation, body)
        .await;
}

#[tokio::test]
async fn a_request_reaches_the_responder_and_its_reply_the_caller() {
    let bench = Bench::new();
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    caller.request(1, 0, b"ping").await;
    let request = responder.next().await;
    assert_eq!(
        (request.header.kind, request.body()),
        (Kind::REQUEST, &b"ping"[..])
    );
    reply(&mut responder, request.header.correlation, b"pong").await;
    let answer = caller.next().await;
    assert_eq!(answer.header.correlation, tag(0));
    assert_eq!(
        (answer.header.kind, answer.body()),
        (Kind::REPLY, &b"pong"[..])
    );
    // A second reply to the same call is ignored.
    reply(&mut responder, request.header.correlation, b"again").await;
    responder.expect_nothing().await;
    caller.expect_nothing().await;
    assert_eq!(bench.node.counters().get(platform::Counter::LateReplies), 1);
}

#[tokio::test]
async fn a_name_without_subscribers_is_answered_at_once() {
    let bench = Bench::new();
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/nobody", Cast::Any).await;
    caller.request(1, 0, b"x").await;
    let failure = caller.next().await;
    assert_eq!(failure.failure().code, ErrorCode::NoResponder);
    assert!(!failure.failure().sent);
    assert_eq!(bench.node.messaging().agents()[0].undeliverable, 1);
}

#[tokio::test]
async fn a_lost_responder_ends_its_calls_as_unconfirmed() {
    let bench = Bench::new();
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    caller.request(1, 0, b"x").await;
    responder.next().await;
    drop(responder);
    let failure = caller.next().await;
    assert_eq!(failure.failure().code, ErrorCode::Unconfirmed);
    assert!(failure.failure().sent);
}

#[tokio::test]
async fn a_passed_deadline_ends_the_call_at_both_sides() {
    let bench = Bench::new();
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    let payload = Payload {
        deadline_ms: Some(100),
        metadata: &[],
        body: b"x",
    };
    caller
        .frame(|out| payload.encode(Kind::REQUEST, Flags::NONE, 1, tag(0), out))
        .await;
    let request = responder.next().await;
    bench.clock.advance_ms(99);
    bench.node.sweep();
    caller.expect_nothing().await;
    bench.clock.advance_ms(2);
    bench.node.sweep();
    assert_eq!(
        caller.next().await.failure().code,
        ErrorCode::DeadlineExceeded
    );
    let cancel = responder.next().await;
    assert_eq!(cancel.header.kind, Kind::CANCEL);
    assert_eq!(cancel.header.correlation, request.header.correlation);
    assert_eq!(bench.node.messaging().pending_call_count(), 0);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_both_sides() {
    let bench = Bench::new();
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    caller.request(1, 0, b"x").await;
    responder.next().await;
    caller.frame(|out| wire::encode_cancel(tag(0), out)).await;
    assert_eq!(caller.next().await.failure().code, ErrorCode::Cancelled);
    assert_eq!(responder.next().await.header.kind, Kind::CANCEL);
}

#[tokio::test]
async fn calls_of_a_disconnected_caller_are_cancelled() {
    let bench = Bench::new();
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    caller.request(1, 0, b"x").await;
    responder.next().await;
    drop(caller);
    assert_eq!(responder.next().await.header.kind, Kind::CANCEL);
    assert_eq!(bench.node.messaging().pending_call_count(), 0);
}

#[tokio::test]
async fn a_stream_carries_items_and_credit() {
    let bench = Bench::new();
    let mut responder = bench.subscriber("a/b/echo").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    caller
        .message(Kind::REQUEST, Flags::STREAM, 1, tag(0), b"x")
        .await;
    let request = responder.next().await;
    assert!(request.header.flags.contains(Flags::STREAM));
    let call = request.header.correlation;
    responder
        .message(Kind::REPLY, Flags::MORE, 0, call, b"one")
        .await;
    let item = caller.next().await;
    assert!(item.header.flags.contains(Flags::MORE));
    let credit = wire::Credit {
        messages: 1,
        bytes: 0,
    };
    caller.frame(|out| credit.encode(tag(0), out)).await;
    let returned = responder.next().await;
    assert_eq!(
        (returned.header.kind, returned.header.correlation),
        (Kind::CREDIT, call)
    );
    reply(&mut responder, call, b"").await;
    assert!(!caller.next().await.header.flags.contains(Flags::MORE));
}

#[tokio::test]
async fn full_instances_are_skipped_and_a_call_is_busy_without_others() {
    let bench = Bench::new();
    let mut first = bench.connect();
    let window = wire::Window {
        calls_max: 1,
        ..crate::agent::WINDOW
    };
    let hello = wire::Hello {
        version_min: 1,
        version_max: 1,
        features: 0,
        window,
        token: "",
        name: "",
    };
    first.frame(|out| hello.encode(out)).await;
    first.next().await;
    first.subscribe("a/b/echo/1").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    caller.request(1, 0, b"x").await;
    first.next().await;
    caller.request(1, 1, b"y").await;
    let failure = caller.next().await;
    assert_eq!(failure.failure().code, ErrorCode::Busy);

    let mut second = bench.subscriber("a/b/echo/2").await;
    caller.request(1, 2, b"z").await;
    caller.request(1, 3, b"z").await;
    assert_eq!(second.next().await.body(), b"z");
    assert_eq!(second.next().await.body(), b"z");
}

#[tokio::test]
async fn calls_above_the_nodes_limit_are_refused_as_busy() {
    let limits = Limits {
        calls_max: 2,
        ..Limits::default()
    };
    let bench = Bench::with(limits, door_native::Options::default());
    let _responder = bench.subscriber("a/b/echo").await;
    let mut caller = bench.agent("").await;
    caller.bind(1, "a/b/echo", Cast::Any).await;
    for slot in 0..3 {
        caller.request(1, slot, b"x").await;
    }
    let failure = caller.next().await;
    assert_eq!(
        (failure.failure().code, failure.header.correlation),
        (ErrorCode::Busy, tag(2))
    );
}
