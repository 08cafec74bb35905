use model::ErrorCode;
use wire::{Cast, Correlation, Credit, Flags, Kind, Receipt};

use crate::agent::tag;
use crate::{Agent, Bench};

async fn send(agent: &mut Agent, route: u16, body: &[u8]) {
    agent
        .message(Kind::SEND, Flags::NONE, route, Correlation::NONE, body)
        .await;
}

async fn send_reported(agent: &mut Agent, route: u16, slot: u32, body: &[u8]) -> Receipt {
    agent
        .message(Kind::SEND, Flags::REPORT, route, tag(slot), body)
        .await;
    loop {
        let frame = agent.next().await;
        if frame.header.kind == Kind::RECEIPT {
            return Receipt::decode(&frame.payload).unwrap();
        }
        assert_eq!(frame.header.kind, Kind::FLOW, "{frame:?}");
    }
}

#[tokio::test]
async fn anycast_and_multicast_skip_the_sender() {
    let bench = Bench::new();
    let mut first = bench.subscriber("a/b/c/1").await;
    let mut second = bench.subscriber("a/b/c/2").await;
    second.bind(1, "a/b/c", Cast::Any).await;
    second.bind(2, "a/b/c", Cast::All).await;
    send(&mut second, 1, b"any").await;
    send(&mut second, 1, b"any").await;
    send(&mut second, 2, b"all").await;
    for expected in [b"any", b"any", b"all"] {
        assert_eq!(first.next().await.body(), expected);
    }
    second.expect_nothing().await;
}

#[tokio::test]
async fn a_subscriber_is_given_an_instance_that_a_rejoin_replaces() {
    let bench = Bench::new();
    let mut first = bench.agent("").await;
    let name = first.subscribe("a/b/c").await;
    assert!(name.starts_with("a/b/c/i-"), "{name}");
    let mut second = bench.agent("").await;
    assert_eq!(second.subscribe(&name).await, name);
    let ended = first.next().await;
    assert_eq!(ended.header.kind, Kind::ENDED);
    let ended = wire::SubscriptionEnd::decode(&ended.payload).unwrap();
    assert_eq!((ended.code, ended.name), (ErrorCode::Replaced, &*name));
    assert_eq!(bench.node.messaging().subscription_count(), 1);
}

#[tokio::test]
async fn messages_carry_their_source_if_the_subscriber_requests_it() {
    let bench = Bench::new();
    let mut receiver = bench.agent("").await;
    let subscribe = wire::Subscribe {
        options: wire::SUBSCRIBE_WITH_SOURCE,
        name: "a/b/c",
        description: None,
    };
    receiver.frame(|out| subscribe.encode(tag(0), out)).await;
    receiver.next().await;
    let mut sender = bench.agent("x/y/z").await;
    sender.bind(1, "a/b/c", Cast::Any).await;
    send(&mut sender, 1, b"hi").await;
    let frame = receiver.next().await;
    let payload = wire::Payload::decode(frame.header.flags, &frame.payload).unwrap();
    let source = wire::Metadata::new(payload.metadata).get(wire::SOURCE);
    assert_eq!((source, payload.body), (Some(&b"x/y/z"[..]), &b"hi"[..]));
}

#[tokio::test]
async fn a_full_subscriber_loses_copies_that_are_counted_and_reported() {
    let bench = Bench::new();
    let mut receiver = bench.subscriber("a/b/c/1").await;
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::All).await;
    for _ in 0..64 {
        send(&mut sender, 1, b"x").await;
    }
    let receipt = send_reported(&mut sender, 1, 0, b"x").await;
    assert_eq!(
        receipt,
        Receipt {
            delivered: 0,
            dropped: 1
        }
    );
    assert_eq!(bench.node.messaging().agents()[0].subscribers[0].dropped, 1);
    for _ in 0..64 {
        receiver.next().await;
    }
    let credit = Credit {
        messages: 64,
        bytes: 64,
    };
    receiver
        .frame(|out| credit.encode(Correlation::NONE, out))
        .await;
    receiver.expect_nothing().await;
    assert_eq!(
        send_reported(&mut sender, 1, 0, b"x").await,
        Receipt {
            delivered: 1,
            dropped: 0
        }
    );
}

#[tokio::test]
async fn flow_frames_pause_and_resume_a_sender() {
    let bench = Bench::new();
    let mut receiver = bench.subscriber("a/b/c/1").await;
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::Any).await;
    for _ in 0..40 {
        send(&mut sender, 1, b"x").await;
    }
    let flow = sender.next().await;
    assert_eq!((flow.header.kind, flow.header.route), (Kind::FLOW, 1));
    assert!(wire::decode_flow(&flow.payload).unwrap());
    for _ in 0..40 {
        receiver.next().await;
    }
    let credit = Credit {
        messages: 40,
        bytes: 40,
    };
    receiver
        .frame(|out| credit.encode(Correlation::NONE, out))
        .await;
    let flow = sender.next().await;
    assert_eq!(flow.header.kind, Kind::FLOW);
    assert!(!wire::decode_flow(&flow.payload).unwrap());
}

#[tokio::test]
async fn a_multicast_sender_resumes_when_the_last_subscriber_has_room() {
    let bench = Bench::new();
    let mut quick = bench.subscriber("a/b/c/1").await;
    let mut slow = bench.subscriber("a/b/c/2").await;
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::All).await;
    for _ in 0..64 {
        send(&mut sender, 1, b"x").await;
    }
    assert!(wire::decode_flow(&sender.next().await.payload).unwrap());
    let credit = Credit {
        messages: 64,
        bytes: 64,
    };
    quick
        .frame(|out| credit.encode(Correlation::NONE, out))
        .await;
    for _ in 0..64 {
        quick.next().await;
    }
    quick.expect_nothing().await;
    sender.expect_nothing().await;
    slow.frame(|out| credit.encode(Correlation::NONE, out))
        .await;
    let flow = sender.next().await;
    assert_eq!((flow.header.kind, flow.header.route), (Kind::FLOW, 1));
    assert!(!wire::decode_flow(&flow.payload).unwrap());
    assert_eq!(bench.node.counters().get(platform::Counter::Dropped), 0);
}

#[tokio::test]
async fn a_stalled_subscriber_pauses_its_sender_for_a_bounded_time() {
    let bench = Bench::new();
    let _stopped = bench.subscriber("a/b/c/1").await;
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::Any).await;
    for _ in 0..40 {
        send(&mut sender, 1, b"x").await;
    }
    assert!(wire::decode_flow(&sender.next().await.payload).unwrap());
    bench.clock.advance_ms(251);
    bench.node.sweep();
    assert!(!wire::decode_flow(&sender.next().await.payload).unwrap());
    for _ in 0..10 {
        send(&mut sender, 1, b"x").await;
    }
    sender.expect_nothing().await;
}

#[tokio::test]
async fn a_memory_write_counts_its_receivers_and_a_disk_write_is_refused() {
    let bench = Bench::new();
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::Any).await;
    sender
        .message(Kind::WRITE, Flags::MEMORY, 1, tag(0), b"x")
        .await;
    let frame = sender.next().await;
    assert_eq!(wire::decode_copies(&frame.payload).unwrap(), 0);
    let mut receiver = bench.subscriber("a/b/c").await;
    sender
        .message(Kind::WRITE, Flags::MEMORY, 1, tag(0), b"x")
        .await;
    let frame = sender.next().await;
    assert_eq!(wire::decode_copies(&frame.payload).unwrap(), 1);
    assert_eq!(receiver.next().await.header.kind, Kind::SEND);
    sender
        .message(Kind::WRITE, Flags::NONE, 1, tag(0), b"x")
        .await;
    assert_eq!(sender.next().await.failure().code, ErrorCode::Unsupported);
}

#[tokio::test]
async fn a_write_goes_to_one_subscriber_and_multicast_routes_are_refused() {
    let bench = Bench::new();
    let mut first = bench.subscriber("a/b/c/1").await;
    let mut second = bench.subscriber("a/b/c/2").await;
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::Any).await;
    for slot in 0..2 {
        sender
            .message(Kind::WRITE, Flags::MEMORY, 1, tag(slot), b"x")
            .await;
        let frame = sender.next().await;
        assert_eq!(wire::decode_copies(&frame.payload).unwrap(), 1);
    }
    assert_eq!(first.next().await.body(), b"x");
    assert_eq!(second.next().await.body(), b"x");
    sender.bind(2, "a/b/c", Cast::All).await;
    sender
        .message(Kind::WRITE, Flags::MEMORY, 2, tag(2), b"x")
        .await;
    let refused = sender.next().await;
    assert_eq!(refused.failure().code, ErrorCode::InvalidArgument);
    first.expect_nothing().await;
    second.expect_nothing().await;
}

#[tokio::test]
async fn sender_credit_is_returned_after_half_of_the_window() {
    let limits = messaging::Limits {
        credit_messages: 10,
        ..messaging::Limits::default()
    };
    let bench = Bench::with(limits, door_native::Options::default());
    let mut sender = bench.connect();
    // What it is granted is what the node keeps to.
    assert_eq!(sender.hello("").await.credit_messages, 10);
    sender.bind(1, "a/b/nobody", Cast::Any).await;
    for _ in 0..5 {
        send(&mut sender, 1, b"xyz").await;
    }
    let frame = sender.next().await;
    assert_eq!(frame.header.kind, Kind::CREDIT);
    let credit = Credit::decode(&frame.payload).unwrap();
    assert_eq!(
        credit,
        Credit {
            messages: 5,
            bytes: 15
        }
    );
}

#[tokio::test]
async fn a_dismissed_client_gets_the_reason_and_its_later_messages_are_ignored() {
    let bench = Bench::new();
    let mut stays = bench.subscriber("a/b/c/stays").await;
    let mut goes = bench.agent("x/y/goes").await;
    goes.bind(1, "a/b/c", Cast::All).await;
    send(&mut goes, 1, b"before").await;
    assert_eq!(stays.next().await.body(), b"before");
    let is_it = |facts: &messaging::Facts| {
        facts
            .name
            .as_ref()?
            .agent()
            .eq("goes")
            .then(|| "why".into())
    };
    assert_eq!(
        bench
            .node
            .messaging()
            .dismiss(ErrorCode::Unauthenticated, is_it),
        1
    );
    send(&mut goes, 1, b"after").await;
    let frame = goes.next().await;
    assert_eq!(frame.header.correlation, Correlation::NONE);
    let failure = frame.failure();
    assert_eq!(
        (failure.code, failure.message),
        (ErrorCode::Unauthenticated, "why")
    );
    assert!(goes.try_next().await.is_none());
    stays.expect_nothing().await;
    assert_eq!(bench.node.messaging().connection_count(), 1);
}

#[tokio::test]
async fn a_draining_node_sends_goaway_and_refuses_new_clients() {
    let bench = Bench::new();
    let mut agent = bench.agent("").await;
    bench.node.messaging().drain(5000);
    let frame = agent.next().await;
    let goaway = wire::Goaway::decode(&frame.payload).unwrap();
    assert_eq!((frame.header.kind, goaway.drain_ms), (Kind::GOAWAY, 5000));
    let mut late = bench.connect();
    let hello = wire::Hello {
        version_min: 1,
        version_max: 1,
        features: 0,
        window: crate::agent::WINDOW,
        token: "",
        name: "",
    };
    late.frame(|out| hello.encode(out)).await;
    assert_eq!(late.next().await.failure().code, ErrorCode::Unavailable);
    assert!(late.try_next().await.is_none());
}

#[tokio::test]
async fn messages_of_one_read_arrive_in_order_at_all_subscribers() {
    let bench = Bench::new();
    let mut first = bench.subscriber("a/b/c/1").await;
    let mut second = bench.subscriber("a/b/c/2").await;
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::All).await;
    let one = |route, number: u8, out: &mut Vec<u8>| {
        let none = Correlation::NONE;
        wire::Payload::body(&[number]).encode(Kind::SEND, Flags::NONE, route, none, out);
    };
    sender
        .frame(|out| {
            (0..40).for_each(|number| one(1, number, out));
            let bind = wire::Bind {
                route: 2,
                cast: Cast::All,
                method: "other",
                name: "a/b/c/2",
            };
            bind.encode(out);
            one(2, 40, out);
            one(2, 41, out);
            one(1, 42, out);
            wire::encode_ping(Correlation::NONE, out);
            one(1, 43, out);
        })
        .await;
    for number in (0..40).chain([42, 43]) {
        assert_eq!(first.next().await.body(), [number]);
    }
    for number in 0..44 {
        let mut frame = second.next().await;
        if frame.header.kind == Kind::BIND {
            frame = second.next().await;
        }
        assert_eq!(frame.body(), [number]);
    }
    let views = bench.node.messaging().agents();
    let delivered = views[0].subscribers.iter().map(|it| it.delivered);
    assert_eq!(delivered.sum::<u64>(), 42 + 44);
}

#[tokio::test]
async fn messages_before_a_malformed_one_are_delivered() {
    let bench = Bench::new();
    let mut receiver = bench.subscriber("a/b/c/1").await;
    let mut sender = bench.agent("").await;
    sender.bind(1, "a/b/c", Cast::All).await;
    sender
        .frame(|out| {
            let none = Correlation::NONE;
            for length in [0_u16, 0, 9, 0] {
                wire::encode_frame(out, Kind::SEND, Flags::METADATA, 1, none, |out| {
                    out.extend_from_slice(&length.to_le_bytes());
                    out.push(7);
                });
            }
        })
        .await;
    for _ in 0..2 {
        assert_eq!(receiver.next().await.body(), [7]);
    }
    assert_eq!(sender.next().await.failure().code, ErrorCode::Protocol);
    receiver.expect_nothing().await;
}
