//! Delivery of messages: unicast, anycast, multicast and subscriptions.

use door_slim::Options;
use platform::Counter;
use slim::Name;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::agent::{CARRIERS, Carrier, Received};
use crate::{Agent, Bench, PATIENCE, until};

const ONE: u32 = 1;
const ALL: u32 = 256;

fn name(agent: &'static str, id: Option<u128>) -> Name<'static> {
    Name::new(["org", "ns", agent], id)
}

#[tokio::test]
async fn a_delivered_message_has_one_hop_less_and_the_receivers_mac() {
    let bench = Bench::new().await;
    let mut a = Agent::subscribed(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    a.publish(b.name(), ONE, b"hello");
    let payload = b"hello".to_vec();
    assert_eq!(b.received().await, Received { ttl: 7, payload });
    b.publish(name("a", None), ONE, b"back");
    assert_eq!(a.received().await.payload, b"back");
    bench.counted(Counter::Delivered, 2).await;
    assert_eq!(bench.node.messaging().connections().len(), 2);
    assert_eq!(bench.node.messaging().connections()[0].door, "slim");
}

#[tokio::test]
async fn messages_of_mixed_sizes_arrive_in_order() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    for index in 0..60u8 {
        let size = if index % 3 == 0 { 40_000 } else { 20 };
        a.publish(b.name(), ONE, &vec![index; size]);
    }
    for index in 0..60u8 {
        let size = if index % 3 == 0 { 40_000 } else { 20 };
        assert_eq!(b.received().await.payload, vec![index; size]);
    }
}

#[tokio::test]
async fn anycast_reaches_each_instance_in_turn_except_the_sender() {
    let bench = Bench::new().await;
    let mut sender = Agent::subscribed(&bench, "worker", 9).await;
    let mut workers = Vec::new();
    for id in 1..=3 {
        workers.push(Agent::subscribed(&bench, "worker", id).await);
    }
    for _ in 0..8 {
        sender.publish(name("worker", None), ONE, b"job");
    }
    bench.counted(Counter::Delivered, 8).await;
    for worker in &mut workers {
        for _ in 0..2 {
            assert_eq!(worker.received().await.payload, b"job");
        }
    }
    // The sender has its own name, and is not reached by it.
    sender.publish(sender.name(), ONE, b"to myself");
    bench.counted(Counter::Undeliverable, 1).await;
}

#[tokio::test]
async fn multicast_reaches_every_subscriber_once_except_the_sender() {
    let bench = Bench::new().await;
    let channel = name("room", Some(77));
    let mut members = Vec::new();
    for id in 1..=3 {
        let mut member = Agent::subscribed(&bench, "member", id).await;
        assert_eq!(member.subscribe(channel).await, None);
        members.push(member);
    }
    members[0].publish(channel, ALL, b"to the room");
    members[1].publish(name("member", None), ALL, b"to all instances");
    assert_eq!(members[0].received().await.payload, b"to all instances");
    assert_eq!(members[1].received().await.payload, b"to the room");
    for payload in ["to the room", "to all instances"] {
        assert_eq!(members[2].received().await.payload, payload.as_bytes());
    }
    bench.counted(Counter::Delivered, 4).await;
}

#[tokio::test]
async fn a_replayed_subscription_counts_and_is_not_answered() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::linked(&bench, "b", 2).await;
    b.replay(b.name());
    // The next answer is the one to this.
    assert_eq!(b.subscribe(b.name()).await, None);
    let id = b.subscription_id();
    assert_eq!(b.unsubscribe(b.name(), id).await, None);
    a.publish(b.name(), ONE, b"still there");
    assert_eq!(b.received().await.payload, b"still there");
}

#[tokio::test]
async fn an_invalid_unsubscribe_is_answered_with_an_error_and_the_stream_continues() {
    let bench = Bench::new().await;
    let mut a = Agent::subscribed(&bench, "a", 1).await;
    let id = a.subscription_id();
    let unknown = a.unsubscribe(a.name(), id + 5).await.unwrap();
    assert!(unknown.contains(&(id + 5).to_string()), "{unknown}");
    assert!(a.unsubscribe(name("b", None), id).await.is_some());
    assert_eq!(a.unsubscribe(a.name(), id).await, None);
    assert!(a.unsubscribe(a.name(), id).await.is_some());
    assert_eq!(a.subscribe(a.name()).await, None);
}

#[tokio::test]
async fn a_lost_connection_ends_its_subscriptions() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let b = Agent::subscribed(&bench, "b", 2).await;
    assert_eq!(bench.door.subscription_count(), 1);
    let gone = b.name();
    drop(b);
    until("the subscription to end", || {
        bench.door.subscription_count() == 0
    })
    .await;
    a.publish(gone, ONE, b"anybody?");
    bench.counted(Counter::Undeliverable, 1).await;
    until("the connection to end", || {
        bench.node.messaging().connection_count() == 1
    })
    .await;
}

#[tokio::test]
async fn a_16_kib_message_leaves_at_once_in_one_write_per_frame() {
    let bench = Bench::new().await;
    let mut a = Agent::subscribed(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    // Acknowledgements of settings are behind us.
    for _ in 0..2 {
        a.publish(b.name(), ONE, b"warm");
        b.received().await;
    }
    let (before, told) = (bench.written(1), bench.acknowledged(0));
    let payload = vec![7; 16 << 10];
    a.publish(b.name(), ONE, &payload);
    assert_eq!(b.received().await.payload, payload);
    // Clients take frames of 16 KiB: there is one more for the header's bytes.
    assert_eq!(bench.written(1), before + 2);
    assert!(bench.is_without_delay(1));
    // The sender may hold back its next segment until this acknowledgement.
    assert!(bench.acknowledged(0) > told);
}

#[tokio::test]
async fn every_message_is_acknowledged_at_once() {
    let bench = Bench::new().await;
    for (number, carrier) in CARRIERS.into_iter().enumerate() {
        let connections = 2 * number;
        let mut a = Agent::subscribed_over(&bench, carrier, "a", connections as u128 + 1).await;
        let mut b = Agent::subscribed_over(&bench, carrier, "b", connections as u128 + 2).await;
        for _ in 0..10 {
            let before = bench.acknowledged(connections);
            // An application holds its next small message back until it hears of this one.
            a.publish(b.name(), ONE, b"small");
            b.received().await;
            assert!(bench.acknowledged(connections) > before, "{carrier:?}");
        }
    }
}

#[tokio::test]
async fn a_message_above_4_mib_is_delivered_to_websockets_only() {
    let options = Options {
        message_size_max: 64 << 20,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut sender = Agent::linked(&bench, "sender", 1).await;
    let mut socket = Agent::subscribed_over(&bench, Carrier::WebSocket, "room", 2).await;
    let mut grpc = Agent::subscribed(&bench, "room", 3).await;
    let room = name("room", None);
    let large = vec![7; 5 << 20];
    for fanout in [ONE, ONE, ALL] {
        sender.publish(room, fanout, &large);
        assert_eq!(socket.received().await.payload, large);
    }
    sender.publish(room, ALL, b"small");
    // It has lost what it cannot take, and nothing else.
    assert_eq!(grpc.received().await.payload, b"small");
    assert_eq!(socket.received().await.payload, b"small");
    bench.counted(Counter::Delivered, 5).await;
    assert_eq!(bench.count(Counter::Dropped), 1);
}

#[tokio::test]
async fn an_undeliverable_publish_is_counted_and_not_answered() {
    let bench = Bench::new().await;
    let mut a = Agent::subscribed(&bench, "a", 1).await;
    for fanout in [ONE, ALL] {
        a.publish(name("nobody", None), fanout, b"anybody?");
    }
    bench.counted(Counter::Undeliverable, 2).await;
    // The next message to it is the answer to this.
    assert_eq!(a.subscribe(name("more", None)).await, None);
}

#[tokio::test]
async fn http2_settings_allow_large_frames_and_a_large_window() {
    let bench = Bench::new().await;
    let mut socket = TcpStream::connect(bench.address).await.unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat();
    socket.write_all(&begin).await.unwrap();
    // The first frame is the node's settings (RFC 9113, 3.4 and 6.5).
    let mut head = [0; 9];
    let reading = timeout(PATIENCE, socket.read_exact(&mut head));
    reading.await.unwrap().unwrap();
    assert_eq!(head[3], 4);
    let mut settings = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
    let reading = timeout(PATIENCE, socket.read_exact(&mut settings));
    reading.await.unwrap().unwrap();
    let setting = |id: u16| {
        let found = settings.chunks(6).find(|one| one[..2] == id.to_be_bytes());
        found.map_or(0, |one| u32::from_be_bytes(one[2..].try_into().unwrap()))
    };
    let (window, frame_size_max) = (setting(4), setting(5));
    assert!(window >= 4 << 20, "{window}");
    assert!(frame_size_max >= 4 << 20, "{frame_size_max}");
}
