//! One sender floods ten subscribers, under many seeds.

use std::time::Duration;

use client::{ByteSize, Cast, Client, Name, Subscription};
use messaging::Limits;
use platform::Counter;
use sim::{Network, Node, Weather, run};
use tokio::task::JoinSet;
use tokio::time::Instant;

const SUBSCRIBERS: u64 = 10;
const MESSAGES: u32 = 1500;
/// A subscriber's window in messages. The sender is granted half of it.
const WINDOW: u32 = 64;

/// The longest wait according to `docs/messaging.md`, plus twice the longest delay of the network.
const HELD_UP_MAX: Duration = Duration::from_millis(351);

fn name() -> Name {
    Name::parse("sim/flood/all").unwrap()
}

fn node(seed: u64) -> Node {
    let limits = Limits {
        credit_messages: WINDOW / 2,
        ..Limits::default()
    };
    Node::start_within(limits, seed, &Network::new(seed, Weather::CALM))
}

async fn subscriber(node: &Node, seed: u64) -> (Client, Subscription) {
    let builder = node.client("subscriber", seed);
    let builder = builder.window(WINDOW, ByteSize::mebibytes(64));
    let client = builder.connect("tcp://sim:7400").await.unwrap();
    let subscription = client.subscribe(&name()).await.unwrap();
    (client, subscription)
}

async fn sender(node: &Node) -> Client {
    let client = node.client("sender", SUBSCRIBERS);
    client.connect("tcp://sim:7400").await.unwrap()
}

/// Sends all messages and returns the longest wait of one of them.
async fn flood(sender: &Client) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0..MESSAGES {
        let began = Instant::now();
        sender
            .send(&name(), Cast::All, number.to_string())
            .await
            .unwrap();
        longest = longest.max(began.elapsed());
    }
    longest
}

async fn read(mut subscription: Subscription, mut pause: impl FnMut() -> Option<Duration>) {
    for number in 0..MESSAGES {
        let envelope = subscription.next().await.unwrap();
        assert_eq!(envelope.body, number.to_string());
        if let Some(pause) = pause() {
            tokio::time::sleep(pause).await;
        }
    }
}

/// Each subscriber has its own pace, and a long pause now and then. A quarter of the window is
/// always read before a subscriber counts as stopped.
async fn slow_world(seed: u64) {
    let node = node(seed);
    let mut readers = JoinSet::new();
    for index in 0..SUBSCRIBERS {
        let (client, subscription) = subscriber(&node, index).await;
        let mut dice = fastrand::Rng::with_seed(seed * SUBSCRIBERS + index);
        let pace_us = dice.u64(0..2000);
        let mut number = dice.u32(0..WINDOW);
        readers.spawn(async move {
            let pause = || {
                number += 1;
                match number % WINDOW {
                    0 => Some(Duration::from_millis(150)),
                    _ => (pace_us > 300).then(|| Duration::from_micros(dice.u64(0..2 * pace_us))),
                }
            };
            read(subscription, pause).await;
            client.close().await;
        });
    }
    let sender = sender(&node).await;
    flood(&sender).await;
    while let Some(read) = readers.join_next().await {
        read.unwrap();
    }
    assert_eq!(
        node.handle.counters().get(Counter::Dropped),
        0,
        "seed {seed}"
    );
}

#[test]
fn a_flood_to_ten_subscribers_loses_nothing() {
    for seed in 0..30 {
        run(slow_world(seed));
    }
}

/// A subscriber never reads; the others lose nothing.
async fn stopped_world(seed: u64) {
    let node = node(seed);
    let stopped = subscriber(&node, SUBSCRIBERS).await;
    let mut readers = JoinSet::new();
    for index in 1..SUBSCRIBERS {
        let (client, subscription) = subscriber(&node, index).await;
        readers.spawn(async move {
            read(subscription, || None).await;
            client.close().await;
        });
    }
    let sender = sender(&node).await;
    let longest = flood(&sender).await;
    while let Some(read) = readers.join_next().await {
        read.unwrap();
    }
    assert!(longest <= HELD_UP_MAX, "seed {seed}: {longest:?}");
    let dropped = node.handle.counters().get(Counter::Dropped);
    assert_eq!(dropped, u64::from(MESSAGES - WINDOW), "seed {seed}");
    drop(stopped);
}

#[test]
fn stopped_subscriber_pauses_a_flood_only_briefly() {
    for seed in 0..30 {
        run(stopped_world(seed));
    }
}
