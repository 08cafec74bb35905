//! Agents that communicate by name through a node.

use std::collections::BTreeMap;

use client::{
    Bytes, Cast, Client, ErrorCode, Name, Receipt, Retry, Sent, Server, SubscribeOptions,
};
use futures_util::StreamExt;

use crate::support::{Gate, Node, bounded, echo, inproc, name, wait_until_idle};

fn parse(name: &str) -> Name {
    Name::parse(name).unwrap()
}

#[tokio::test]
async fn anycast_sends_rotate_over_the_instances() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let name = name();
        let mut subscriptions = Vec::new();
        for instance in ["one", "two", "three"] {
            let client = node.client().await;
            let name = name.with_instance(instance).unwrap();
            subscriptions.push(client.subscribe(&name).await.unwrap());
        }
        let sender = node.client().await;
        for number in 0..300 {
            sender
                .send(&name, Cast::Any, number.to_string())
                .await
                .unwrap();
        }
        for subscription in &mut subscriptions {
            let mut last = None;
            for _ in 0..100 {
                let envelope = subscription.next().await.unwrap();
                assert!(!envelope.wants_reply());
                let number: u32 = std::str::from_utf8(&envelope.body)
                    .unwrap()
                    .parse()
                    .unwrap();
                assert!(last.is_none_or(|last| last < number));
                last = Some(number);
            }
        }
        // A named instance gets the message alone.
        let two = name.with_instance("two").unwrap();
        let receipt = sender
            .send_reported(&two, Cast::Any, "for two")
            .await
            .unwrap();
        assert_eq!((receipt.delivered, receipt.dropped), (1, 0));
        assert_eq!(subscriptions[1].next().await.unwrap().body, "for two");
        let receipt = sender
            .send_reported(&name, Cast::All, "for all")
            .await
            .unwrap();
        assert_eq!((receipt.delivered, receipt.dropped), (3, 0));
        for subscription in &mut subscriptions {
            assert_eq!(subscription.next().await.unwrap().body, "for all");
        }
        // A message may name a method.
        let on = sender.send(&two, Cast::Any, "now").method("on");
        assert_eq!(on.reported().await.unwrap().delivered, 1);
        let envelope = subscriptions[1].next().await.unwrap();
        assert_eq!((envelope.method(), &envelope.body[..]), ("on", &b"now"[..]));
    })
    .await;
}

#[tokio::test]
async fn requests_rotate_over_the_instances() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let mut attached = Vec::new();
        for _ in 0..3 {
            let server = Server::new().handle("who", |request: client::Request| async move {
                Ok(request.name().to_owned())
            });
            attached.push(server.attach(&node.client().await, &name()).await.unwrap());
        }
        let caller = node.client().await.caller(name().as_str()).unwrap();
        let mut seen = BTreeMap::new();
        for _ in 0..30 {
            let who = caller.call("who", "").await.unwrap();
            *seen
                .entry(String::from_utf8(who.to_vec()).unwrap())
                .or_insert(0) += 1;
        }
        let names = attached
            .iter()
            .map(|attached| (attached.name().to_owned(), 10));
        assert_eq!(seen, names.collect());
    })
    .await;
}

#[tokio::test]
async fn a_sender_does_not_receive_its_own_messages() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let name = name();
        let both = node.client().await;
        let mut own = both.subscribe(&name).await.unwrap();
        let receipt = both.send_reported(&name, Cast::Any, "x").await.unwrap();
        assert_eq!((receipt.delivered, receipt.dropped), (0, 0));
        let receipt = both.send_reported(&name, Cast::All, "x").await.unwrap();
        assert_eq!((receipt.delivered, receipt.dropped), (0, 0));
        let error = both.request(&name, "x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NoResponder);

        let mut other = node.client().await.subscribe(&name).await.unwrap();
        for _ in 0..10 {
            both.send(&name, Cast::Any, "to the other").await.unwrap();
            assert_eq!(other.next().await.unwrap().body, "to the other");
        }
        let another = node.client().await;
        another.send(&name, Cast::All, "to both").await.unwrap();
        assert_eq!(own.next().await.unwrap().body, "to both");
        assert_eq!(other.next().await.unwrap().body, "to both");
    })
    .await;
}

#[tokio::test]
async fn a_send_without_subscribers_is_dropped_and_a_request_fails() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let client = node.client().await;
        client.send(&name(), Cast::Any, "x").await.unwrap();
        client.send(&name(), Cast::All, "x").await.unwrap();
        let receipt = client.send_reported(&name(), Cast::Any, "x").await.unwrap();
        assert_eq!(receipt, Receipt::default());
        let error = client
            .request(&name(), "x")
            .deadline(None)
            .await
            .unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::NoResponder, Sent::No));
        assert_eq!(error.retry(), Retry::Safe);
        assert!(error.message.contains("acme/test/server"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn writes_to_memory_are_counted_and_writes_to_disk_refused() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let writer = node.client().await;
        let name = name();
        let write = || writer.write_to_memory(&name, "x");
        assert_eq!(write().await.unwrap(), 0);
        let mut one = node.client().await.subscribe(&name).await.unwrap();
        assert_eq!(write().await.unwrap(), 1);
        assert_eq!(one.next().await.unwrap().body, "x");
        let error = writer.write(&name, "x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert!(error.message.contains("memory"), "{error}");
        // The refused message was not sent.
        assert_eq!(write().await.unwrap(), 1);
        assert_eq!(one.next().await.unwrap().body, "x");
        assert!(futures_util::FutureExt::now_or_never(one.next()).is_none());
    })
    .await;
}

#[tokio::test]
async fn a_request_is_answered_by_the_reader_of_the_envelope() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let mut subscription = node.client().await.subscribe(&name()).await.unwrap();
        let client = node.client().await;
        let answers = async {
            let envelope = subscription.next().await.unwrap();
            assert!(envelope.wants_reply() && envelope.method().is_empty());
            assert!(envelope.deadline_remaining().is_some());
            let reply = format!("{} for you", String::from_utf8_lossy(&envelope.body));
            envelope.reply(reply).unwrap();
            let fault = client::Fault::with_code(ErrorCode::Denied, "not for you");
            subscription.next().await.unwrap().refuse(fault).unwrap();
            drop(subscription.next().await.unwrap());
        };
        let questions = async {
            assert_eq!(client.request(&name(), "one").await.unwrap(), "one for you");
            let error = client.request(&name(), "two").await.unwrap_err();
            assert_eq!(
                (error.code, error.message.as_str()),
                (ErrorCode::Denied, "not for you")
            );
            let error = client.request(&name(), "three").await.unwrap_err();
            assert_eq!(error.code, ErrorCode::HandlerError);
            assert!(error.message.contains("without a reply"), "{error}");
        };
        tokio::join!(answers, questions);
        assert_eq!(client.in_flight(), 0);
        assert_eq!(node.handle.messaging().pending_call_count(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_subscription_is_a_stream_that_ends_when_its_client_is_closed() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let client = node.client().await;
        let subscription = client.subscribe(&name()).await.unwrap();
        let sender = node.client().await;
        for number in 0..5 {
            sender
                .send(&name(), Cast::Any, number.to_string())
                .await
                .unwrap();
        }
        let read = async {
            let mut read = 0;
            let mut subscription = subscription;
            while let Some(envelope) = StreamExt::next(&mut subscription).await {
                assert_eq!(envelope.body, read.to_string());
                read += 1;
                if read == 5 {
                    client.close().await;
                }
            }
            assert_eq!(subscription.ended(), Some(ErrorCode::Unavailable));
            read
        };
        assert_eq!(read.await, 5);
    })
    .await;
}

#[tokio::test]
async fn a_subscription_from_another_connection_replaces_the_same_instance() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let instance = name().with_instance("main").unwrap();
        let (older, newer) = (node.client().await, node.client().await);
        let mut first = older.subscribe(&instance).await.unwrap();
        let other = parse("acme/test/other");
        let mut unconcerned = older.subscribe(&other).await.unwrap();
        assert_eq!((first.name(), first.ended()), (instance.as_str(), None));
        let mut second = newer.subscribe(&instance).await.unwrap();
        assert!(first.next().await.is_none());
        assert_eq!(first.ended(), Some(ErrorCode::Replaced));
        assert!(first.next().await.is_none());

        let sender = node.client().await;
        sender.send(&instance, Cast::Any, "x").await.unwrap();
        assert_eq!(second.next().await.unwrap().body, "x");
        // Dropping the replaced subscription does not affect its successor.
        drop(first);
        sender.send(&other, Cast::Any, "y").await.unwrap();
        assert_eq!(unconcerned.next().await.unwrap().body, "y");
        sender.send(&instance, Cast::Any, "z").await.unwrap();
        assert_eq!(second.next().await.unwrap().body, "z");
        assert_eq!(second.ended(), None);

        let attached = echo().attach(&older, &instance).await.unwrap();
        assert!(second.next().await.is_none());
        let caller = sender.caller(instance.as_str()).unwrap();
        assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        let _third = newer.subscribe(&instance).await.unwrap();
        assert_eq!(attached.ended().await, ErrorCode::Replaced);
    })
    .await;
}

#[tokio::test]
async fn resubscribing_an_instance_ends_the_first_subscription_as_replaced() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let instance = name().with_instance("main").unwrap();
        let client = node.client().await;
        let sender = node.client().await;
        let mut first = client.subscribe(&instance).await.unwrap();
        sender
            .send(&instance, Cast::Any, "to the first")
            .await
            .unwrap();
        assert_eq!(first.next().await.unwrap().body, "to the first");
        let mut second = client.subscribe(&instance).await.unwrap();
        assert!(first.next().await.is_none());
        assert_eq!(first.ended(), Some(ErrorCode::Replaced));
        let receipt = sender
            .send_reported(&instance, Cast::Any, "x")
            .await
            .unwrap();
        assert_eq!(receipt.delivered, 1);
        assert_eq!(second.next().await.unwrap().body, "x");
        drop(first);
        sender.send(&instance, Cast::Any, "y").await.unwrap();
        assert_eq!(second.next().await.unwrap().body, "y");
    })
    .await;
}

/// A server that replies with its number.
fn numbered(number: &'static str) -> Server {
    Server::new().handle("which", move |_: client::Request| async move { Ok(number) })
}

#[tokio::test]
async fn attaching_the_same_instance_replaces_the_earlier_server() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let instance = name().with_instance("main").unwrap();
        let (client, other) = (node.client().await, node.client().await);
        let caller = node.client().await.caller(instance.as_str()).unwrap();
        let first = numbered("first").attach(&client, &instance).await.unwrap();
        assert_eq!(caller.call("which", "").await.unwrap(), "first");
        // First on the same connection, then on another one, and back.
        let second = numbered("second").attach(&client, &instance).await.unwrap();
        assert_eq!(first.ended().await, ErrorCode::Replaced);
        assert_eq!(caller.call("which", "").await.unwrap(), "second");
        let third = numbered("third").attach(&other, &instance).await.unwrap();
        assert_eq!(second.ended().await, ErrorCode::Replaced);
        assert_eq!(caller.call("which", "").await.unwrap(), "third");
        let _fourth = numbered("fourth").attach(&client, &instance).await.unwrap();
        assert_eq!(third.ended().await, ErrorCode::Replaced);
        assert_eq!(caller.call("which", "").await.unwrap(), "fourth");
        drop((first, second, third));
        assert_eq!(caller.call("which", "").await.unwrap(), "fourth");
    })
    .await;
}

#[tokio::test]
async fn detached_server_answers_no_calls() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let instance = name().with_instance("main").unwrap();
        let client = node.client().await;
        let caller = node.client().await.caller(instance.as_str()).unwrap();
        for number in ["first", "second", "third"] {
            let attached = numbered(number).attach(&client, &instance).await.unwrap();
            assert_eq!(caller.call("which", "").await.unwrap(), number);
            drop(attached);
            while node.handle.messaging().subscription_count() > 0 {
                tokio::task::yield_now().await;
            }
            let error = caller.call("which", "").await.unwrap_err();
            assert_eq!(error.code, ErrorCode::NoResponder);
        }
        // A subscription also replaces a server, and a server a subscription.
        let mut subscription = client.subscribe(&instance).await.unwrap();
        let answer = async { subscription.next().await.unwrap().reply("by hand").unwrap() };
        let (reply, ()) = tokio::join!(caller.call("which", ""), answer);
        assert_eq!(reply.unwrap(), "by hand");
        drop(subscription);
        let _attached = numbered("last").attach(&client, &instance).await.unwrap();
        assert_eq!(caller.call("which", "").await.unwrap(), "last");
    })
    .await;
}

#[tokio::test]
async fn dropping_a_subscription_unsubscribes() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let client = node.client().await;
        let subscription = client.subscribe(&name()).await.unwrap();
        let attached = echo()
            .attach(&client, &parse("acme/test/echo"))
            .await
            .unwrap();
        assert_eq!(node.handle.messaging().subscription_count(), 2);
        drop((subscription, attached));
        while node.handle.messaging().subscription_count() > 0 {
            tokio::task::yield_now().await;
        }
        let sender = node.client().await;
        let receipt = sender.send_reported(&name(), Cast::All, "x").await.unwrap();
        assert_eq!(receipt, Receipt::default());
        assert_eq!(client.in_flight(), 0);
    })
    .await;
}

#[tokio::test]
async fn names_of_the_node_itself_are_denied() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let client = node.client().await;
        let error = client
            .subscribe(&parse("telpher/system/node"))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied);
        let attached = echo().attach(&client, &parse("telpher/system/x")).await;
        assert_eq!(attached.unwrap_err().code, ErrorCode::Denied);
        assert!(client.caller("no/name").is_err());
    })
    .await;
}

#[tokio::test]
async fn client_with_many_names_both_calls_and_serves() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let (left, right) = (node.client().await, node.client().await);
        let mut attached = Vec::new();
        for index in 0..50 {
            for (side, client) in [("left", &left), ("right", &right)] {
                let name = parse(&format!("acme/{side}/agent-{index}"));
                attached.push(echo().attach(client, &name).await.unwrap());
            }
        }
        let calls = (0..50).flat_map(|index| {
            [("right", &left), ("left", &right)].map(|(side, client)| async move {
                let caller = client
                    .caller(&format!("acme/{side}/agent-{index}"))
                    .unwrap();
                let outcomes = caller.call_batch("echo", ["a", "b", "c"]).await;
                let replies: Vec<Bytes> = outcomes.into_iter().map(Result::unwrap).collect();
                assert_eq!(replies, ["a", "b", "c"]);
            })
        });
        futures_util::future::join_all(calls).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_stopped_agent_is_busy_and_retried() {
    bounded(async {
        let node = Node::start(&inproc()).await;
        let gate = Gate::new();
        let full = Client::builder().requests_size_max(model::ByteSize::bytes(1));
        let full = full.connect(node.address()).await.unwrap();
        let _stopped = gate.on(Server::new()).attach(&full, &name()).await.unwrap();
        let caller = node.client().await.caller(name().as_str()).unwrap();
        caller.on_reply("wait", "ahead", |_| {}).unwrap();
        gate.entered.reaches(1).await;
        let error = caller.call("wait", "x").await.unwrap_err();
        assert_eq!((error.code, error.retry()), (ErrorCode::Busy, Retry::Safe));
        wait_until_idle().await;
        gate.unblock(2);
        let policy = client::RetryPolicy::attempts(10);
        assert_eq!(caller.call("wait", "x").retry(policy).await.unwrap(), "x");
    })
    .await;
}

#[tokio::test]
async fn subscribe_options_compare_by_value() {
    assert_eq!(SubscribeOptions::new(), SubscribeOptions::default());
    assert_ne!(
        SubscribeOptions::new().with_source(),
        SubscribeOptions::new()
    );
}
