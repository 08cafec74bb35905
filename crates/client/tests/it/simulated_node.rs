//! A simulated node: the frames that a client sends and accepts.

use std::time::Duration;

use client::{Cast, Client, ErrorCode, Server};
use model::{ByteSize, Failure};
use net::inproc::Listener;
use tokio::time::Instant;
use wire::{Bind, Correlation, Credit, Flags, Kind, Subscribe, SubscriptionEnd, Window};

use crate::support::{Bare, WINDOW, bounded, inproc, listen, name, wait_until_idle};

const SMALL: Window = Window {
    credit_messages: 4,
    ..WINDOW
};

async fn pair(window: Window) -> (Client, Bare, Listener) {
    let address = inproc();
    let listener = listen(&address);
    let builder = Client::builder().window(4, ByteSize::mebibytes(16));
    let builder = builder.reconnect(Duration::from_millis(1), Duration::from_millis(1));
    let (client, node) = tokio::join!(
        async { builder.connect(&address).await.unwrap() },
        Bare::accept_as_node(&listener, window),
    );
    (client, node, listener)
}

/// Confirms the next SUBSCRIBE with `full_name`.
async fn confirm(node: &mut Bare, full_name: &str) {
    let frame = node.next().await;
    assert_eq!(frame.header.kind, Kind::SUBSCRIBE);
    let subscribe = Subscribe::decode(&frame.payload).unwrap();
    assert!(full_name.starts_with(subscribe.name), "{subscribe:?}");
    let to = frame.header.correlation;
    node.frame(|out| wire::encode_subscribed(full_name, to, out))
        .await;
}

/// Returns the frames of a kind that arrived once all tasks are idle.
async fn arrived(node: &mut Bare, kind: Kind) -> Vec<Correlation> {
    let probe = Correlation {
        slot: 77,
        generation: 77,
    };
    wait_until_idle().await;
    node.frame(|out| wire::encode_ping(probe, out)).await;
    let mut found = Vec::new();
    loop {
        let frame = node.next().await;
        if frame.header.kind == Kind::PONG {
            return found;
        }
        assert_eq!(frame.header.kind, kind, "{frame:?}");
        found.push(frame.header.correlation);
    }
}

async fn return_credit(node: &mut Bare, messages: u32) {
    let credit = Credit {
        messages,
        bytes: u64::from(messages),
    };
    node.frame(|out| credit.encode(Correlation::NONE, out))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_sends_no_more_than_its_credit() {
    bounded(async {
        let (client, mut node, _listener) = pair(SMALL).await;
        let name = name();
        let send = async {
            for _ in 0..20 {
                client
                    .send(&name, Cast::Any, "x")
                    .deadline(None)
                    .await
                    .unwrap();
            }
        };
        let grant = async {
            assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 4);
            for _ in 0..4 {
                return_credit(&mut node, 3).await;
                assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 3);
            }
            return_credit(&mut node, 4).await;
            assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 4);
        };
        tokio::join!(send, grant);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_full_name_blocks_only_sends_to_that_name() {
    bounded(async {
        let (client, mut node, _listener) = pair(WINDOW).await;
        let (full, other) = (name(), client::Name::parse("a/b/c").unwrap());
        client.send(&full, Cast::Any, "x").await.unwrap();
        client.send(&other, Cast::Any, "x").await.unwrap();
        assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 2);
        node.frame(|out| wire::encode_flow(1, true, out)).await;
        wait_until_idle().await;
        let mut waiting = Box::pin(client.send(&full, Cast::Any, "x").into_future());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let error = client.try_send(&full, Cast::Any, "x").unwrap_err();
        assert_eq!(error.code, ErrorCode::Busy);
        client.send(&other, Cast::Any, "x").await.unwrap();
        // A message to all subscribers uses another route.
        client.send(&full, Cast::All, "x").await.unwrap();
        assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 2);
        node.frame(|out| wire::encode_flow(1, false, out)).await;
        waiting.await.unwrap();
        assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn writes_consume_the_granted_credit() {
    bounded(async {
        let (client, mut node, _listener) = pair(SMALL).await;
        let name = name();
        let writes = (0..6).map(|_| client.write_to_memory(&name, "x"));
        let writes = futures_util::future::join_all(writes);
        let grant = async {
            let mut asked = arrived(&mut node, Kind::WRITE).await;
            assert_eq!(asked.len(), 4);
            return_credit(&mut node, 4).await;
            asked.extend(arrived(&mut node, Kind::WRITE).await);
            for to in asked {
                node.frame(|out| wire::encode_copies(1, to, out)).await;
            }
        };
        let (outcomes, ()) = tokio::join!(writes, grant);
        for outcome in outcomes {
            assert_eq!(outcome.unwrap(), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_deadline_covers_the_wait_for_room_and_for_the_answer() {
    bounded(async {
        let (client, mut node, _listener) = pair(SMALL).await;
        let name = name();
        let limit = Duration::from_secs(10);
        let began = Instant::now();
        for _ in 0..4 {
            client.send(&name, Cast::Any, "x").await.unwrap();
        }
        assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 4);
        let reported = client.send_reported(&name, Cast::Any, "x");
        let write = client.write_to_memory(&name, "x");
        let room = async {
            wait_until_idle().await;
            tokio::time::sleep(limit * 6 / 10).await;
            return_credit(&mut node, 1).await;
            assert_eq!(arrived(&mut node, Kind::SEND).await.len(), 1);
            return_credit(&mut node, 1).await;
            assert_eq!(arrived(&mut node, Kind::WRITE).await.len(), 1);
        };
        let (reported, write, ()) = tokio::join!(reported, write, room);
        assert_eq!(reported.unwrap_err().code, ErrorCode::DeadlineExceeded);
        assert_eq!(write.unwrap_err().code, ErrorCode::DeadlineExceeded);
        // The clock is paused and only advances while all tasks are idle.
        let took = began.elapsed();
        assert!(took >= limit && took < limit + limit / 10, "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_exceeds_its_credit_is_disconnected() {
    bounded(async {
        let (client, mut node, listener) = pair(WINDOW).await;
        let full_name = format!("{}/main", name());
        let wanted = name();
        let subscribing = client.subscribe(&wanted);
        let (subscription, ()) = tokio::join!(subscribing, confirm(&mut node, &full_name));
        let mut subscription = subscription.unwrap();
        let bind = Bind {
            route: 1,
            cast: Cast::Any,
            method: "",
            name: &full_name,
        };
        node.frame(|out| bind.encode(out)).await;
        for body in ["1", "2", "3", "4", "5"] {
            node.message(
                Kind::SEND,
                Flags::NONE,
                1,
                Correlation::NONE,
                body.as_bytes(),
            )
            .await;
        }
        let told = node.next().await;
        assert_eq!(told.failure().code, ErrorCode::Protocol);
        assert!(node.try_next().await.is_none());
        for body in ["1", "2", "3", "4"] {
            assert_eq!(subscription.next().await.unwrap().body, body);
        }
        // Credit starts anew with the next connection.
        let mut node = Bare::accept_as_node(&listener, WINDOW).await;
        confirm(&mut node, &full_name).await;
        node.frame(|out| bind.encode(out)).await;
        for body in ["6", "7", "8", "9"] {
            node.message(
                Kind::SEND,
                Flags::NONE,
                1,
                Correlation::NONE,
                body.as_bytes(),
            )
            .await;
            assert_eq!(subscription.next().await.unwrap().body, body);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_refused_after_a_reconnect_ends_with_the_reason() {
    bounded(async {
        let (client, mut node, listener) = pair(WINDOW).await;
        let full_name = format!("{}/main", name());
        let wanted = name();
        let subscribing = client.subscribe(&wanted);
        let (subscription, ()) = tokio::join!(subscribing, confirm(&mut node, &full_name));
        let mut subscription = subscription.unwrap();
        drop(node);
        let mut node = Bare::accept_as_node(&listener, WINDOW).await;
        let frame = node.next().await;
        let subscribe = Subscribe::decode(&frame.payload).unwrap();
        assert_eq!(subscribe.name, full_name);
        let failure = Failure::new(ErrorCode::Denied, "not any more");
        let to = frame.header.correlation;
        node.frame(|out| wire::encode_failure(&failure, to, out))
            .await;
        assert!(subscription.next().await.is_none());
        assert_eq!(subscription.ended(), Some(ErrorCode::Denied));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_subscription_is_ended_after_its_confirmation() {
    bounded(async {
        let (client, mut node, _listener) = pair(WINDOW).await;
        let wanted = name();
        {
            let mut subscribing = Box::pin(client.subscribe(&wanted));
            assert!(futures_util::poll!(&mut subscribing).is_pending());
            wait_until_idle().await;
        }
        let full_name = format!("{}/main", name());
        confirm(&mut node, &full_name).await;
        let frame = node.next().await;
        assert_eq!(frame.header.kind, Kind::UNSUBSCRIBE);
        assert_eq!(wire::decode_name(&frame.payload).unwrap(), full_name);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_right_after_a_confirmation_are_received() {
    bounded(async {
        let (client, mut node, _listener) = pair(WINDOW).await;
        let wanted = name();
        let full_name = format!("{}/main", name());
        let confirm_and_send = async {
            let to = node.next().await.header.correlation;
            let bind = Bind {
                route: 1,
                cast: Cast::Any,
                method: "",
                name: &full_name,
            };
            node.frame(|out| {
                wire::encode_subscribed(&full_name, to, out);
                bind.encode(out);
                wire::Payload::body(b"first").encode(
                    Kind::SEND,
                    Flags::NONE,
                    1,
                    Correlation::NONE,
                    out,
                );
                let ended = SubscriptionEnd {
                    code: ErrorCode::Replaced,
                    name: &full_name,
                };
                ended.encode(out);
            })
            .await;
        };
        let (subscription, ()) = tokio::join!(client.subscribe(&wanted), confirm_and_send);
        let mut subscription = subscription.unwrap();
        assert_eq!(subscription.next().await.unwrap().body, "first");
        assert!(subscription.next().await.is_none());
        assert_eq!(subscription.ended(), Some(ErrorCode::Replaced));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn requests_for_an_unsubscribed_name_get_no_responder() {
    bounded(async {
        let (client, mut node, _listener) = pair(WINDOW).await;
        let full_name = format!("{}/main", name());
        let wanted = name();
        let server = Server::new().handle("x", |_: client::Request| async { Ok("x") });
        let attaching = server.attach(&client, &wanted);
        let (attached, ()) = tokio::join!(attaching, confirm(&mut node, &full_name));
        drop(attached.unwrap());
        assert_eq!(node.next().await.header.kind, Kind::UNSUBSCRIBE);
        let bind = Bind {
            route: 1,
            cast: Cast::Any,
            method: "x",
            name: &full_name,
        };
        node.frame(|out| bind.encode(out)).await;
        node.request(1, 0, b"x").await;
        assert_eq!(node.next().await.failure().code, ErrorCode::NoResponder);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn close_waits_until_sent_messages_are_read() {
    bounded(async {
        let (client, mut node, _listener) = pair(WINDOW).await;
        client.send(&name(), Cast::Any, "last").await.unwrap();
        let mut closing = Box::pin(client.close());
        assert!(futures_util::poll!(&mut closing).is_pending());
        // Unread credit must not discard bytes in transit.
        return_credit(&mut node, 1).await;
        wait_until_idle().await;
        assert!(futures_util::poll!(&mut closing).is_pending());
        assert_eq!(node.next().await.body(), b"last");
        assert!(node.try_next().await.is_none());
        assert!(futures_util::poll!(&mut closing).is_pending());
        drop(node);
        closing.await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_stops_reconnecting_after_repeated_token_refusals() {
    bounded(async {
        let (client, mut node, listener) = pair(WINDOW).await;
        let name = name();
        let subscribing = client.subscribe(&name).into_future();
        let (subscription, ()) =
            tokio::join!(subscribing, confirm(&mut node, "acme/test/server/1"));
        let mut subscription = subscription.unwrap();
        drop(node);
        for _ in 0..2 {
            let mut node = Bare::new(listener.accept().await);
            assert_eq!(node.next().await.header.kind, Kind::HELLO);
            let refusal = Failure::new(ErrorCode::Unauthenticated, "revoked");
            node.frame(|out| wire::encode_failure(&refusal, Correlation::NONE, out))
                .await;
        }
        assert!(subscription.next().await.is_none());
        assert_eq!(subscription.ended(), Some(ErrorCode::Unauthenticated));
        let error = client.send(&name, Cast::Any, "x").await.unwrap_err();
        assert!(error.message.contains("revoked"), "{error}");
    })
    .await;
}
