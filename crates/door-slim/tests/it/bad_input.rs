//! Invalid input of a client does not affect other clients.

use door_slim::Options;
use platform::Counter;
use slim::{Draft, Message, Name};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::agent::CARRIERS;
use crate::log;
use crate::{Agent, Bench, PATIENCE, until};

#[tokio::test]
async fn garbage_and_other_protocols_on_the_port_are_closed_and_counted() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    let http1 = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // A connection that sends nothing is not an error.
    for (count, bytes) in (0..).zip([&b""[..], http1, &[0xff; 4096], b"\x16\x03\x01\x02\x00\x01"]) {
        let mut socket = TcpStream::connect(bench.address).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // It ends, in order or not.
        let _ = timeout(PATIENCE, socket.read_to_end(&mut answer))
            .await
            .unwrap();
        bench.counted(Counter::ProtocolErrors, count).await;
    }
    a.publish(b.name(), 1, b"unharmed");
    assert_eq!(b.received().await.payload, b"unharmed");
}

#[tokio::test]
async fn malformed_messages_are_dropped_and_the_stream_continues() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    // Garbage, nothing at all, and a publish whose content no decoder takes.
    let mut broken = publish(&a, b.name());
    let end = broken.len() - 8;
    broken[end..].fill(0xff);
    for (count, bytes) in (1..).zip([&b"garbage"[..], b"", &broken]) {
        a.send(bytes);
        bench.counted(Counter::SlimMalformed, count).await;
    }
    a.publish(b.name(), 1, b"good");
    assert_eq!(b.received().await.payload, b"good");
}

fn publish(from: &Agent, to: Name<'static>) -> Vec<u8> {
    publish_with(from, to, slim::TTL)
}

fn publish_with(from: &Agent, to: Name<'static>, ttl: u32) -> Vec<u8> {
    let draft = Draft {
        source: from.name(),
        destination: to,
        identity: "",
        fanout: 1,
        ttl,
    };
    draft.publish([1, 1, 1, 1], b"payload", from.link())
}

#[tokio::test]
async fn a_header_with_another_mac_is_dropped() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    // Signed for another link.
    let foreign = publish(&b, b.name());
    a.send(&foreign);
    bench.counted(Counter::SlimBadMacs, 1).await;
    // Changed after it was signed: the fan-out stands behind the identity, which is empty.
    let mut changed = publish(&a, b.name());
    let fields = [0x1a, 0, 0x20, 1];
    let at = changed
        .windows(4)
        .position(|bytes| bytes == fields)
        .unwrap();
    changed[at + 3] = 7;
    assert!(matches!(Message::scan(&changed), Ok(Message::Publish(_))));
    a.send(&changed);
    bench.counted(Counter::SlimBadMacs, 2).await;
    a.publish(b.name(), 1, b"good");
    assert_eq!(b.received().await.payload, b"good");
}

#[tokio::test]
async fn a_message_above_the_limit_is_counted_and_skipped() {
    let options = Options {
        message_size_max: 1000,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    a.publish(b.name(), 1, &[7; 100_000]);
    a.publish(b.name(), 1, b"small");
    assert_eq!(b.received().await.payload, b"small");
    assert_eq!(bench.count(Counter::Oversize), 1);
}

#[tokio::test]
async fn a_compressed_message_ends_its_own_stream_only() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    a.send_bytes(vec![1, 0, 0, 0, 1, 9]);
    // UNIMPLEMENTED
    assert_eq!(a.end().await, "12");
    assert_eq!(b.subscribe(b.name()).await, None);
}

#[tokio::test]
async fn a_message_without_a_hop_left_is_dropped() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    for (count, ttl) in [(1, 0), (2, 1)] {
        a.send(&publish_with(&a, b.name(), ttl));
        bench.counted(Counter::SlimExpired, count).await;
    }
    a.publish(b.name(), 1, b"good");
    assert_eq!(b.received().await.payload, b"good");
}

#[tokio::test]
async fn messages_with_incomplete_names_are_dropped_and_counted_as_malformed() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    // A subscription and a publish whose header has a source without a name in it, and one without
    // a header.
    let bad: [&[u8]; 3] = [
        &[0x0a, 4, 0x0a, 2, 0x0a, 0],
        &[0x1a, 4, 0x0a, 2, 0x0a, 0],
        &[0x1a, 0],
    ];
    for (count, bytes) in (1..).zip(bad) {
        a.send(bytes);
        bench.counted(Counter::SlimMalformed, count).await;
    }
    a.publish(b.name(), 1, b"good");
    assert_eq!(b.received().await.payload, b"good");
    assert_eq!(bench.door.subscription_count(), 1);
}

#[tokio::test]
async fn a_connection_lost_within_a_message_leaves_others_unharmed() {
    let bench = Bench::new().await;
    let mut a = Agent::linked(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    let mut c = Agent::subscribed(&bench, "c", 3).await;
    // The beginning of a message of 1,000 bytes.
    c.send_bytes(vec![0, 0, 0, 0x03, 0xe8, 0x1a, 7]);
    drop(c);
    until("its connection to end", || {
        bench.node.messaging().connection_count() == 2
    })
    .await;
    assert_eq!(bench.door.subscription_count(), 1);
    assert_eq!(bench.count(Counter::SlimMalformed), 0);
    a.publish(b.name(), 1, b"good");
    assert_eq!(b.received().await.payload, b"good");
}

#[tokio::test]
async fn repeated_mistakes_of_a_client_are_logged_once() {
    let bench = Bench::new().await;
    for carrier in CARRIERS {
        let logged = log::lines_with("a SLIM client sent");
        let mut a = Agent::linked_over(&bench, carrier, "a", 1).await;
        let malformed = bench.count(Counter::SlimMalformed);
        for _ in 0..20 {
            a.send(b"garbage");
        }
        bench.counted(Counter::SlimMalformed, malformed + 20).await;
        assert_eq!(log::lines_with("a SLIM client sent"), logged + 1);
    }
}
