//! Writes to a mailbox on a node with power failures, over a network with cuts, under many seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use client::{Client, Fault, Name, RetryPolicy, Subscription};
use parking_lot::Mutex;
use sim::{DurableNode, Network, Transcript, Weather, run, run_all};

const WRITES: u32 = 60;

/// The offset of each acknowledged write, and the deliveries that subscribers have seen.
#[derive(Default)]
struct WriteOutcomes {
    stored: BTreeMap<u32, u64>,
    delivered: BTreeSet<u32>,
}

/// Runs a world: a writer that retries until each write is acknowledged, two subscribers that
/// refuse some deliveries, cuts and power failures, and a calm end.
fn world(seed: u64) -> Vec<String> {
    run(async move {
        let transcript = Transcript::start();
        let network = Network::new(seed, Weather::CALM);
        let mut node = DurableNode::start(seed, &network);
        let name = Name::parse("sim/durable/worker").unwrap();
        let seen = Arc::new(Mutex::new(WriteOutcomes::default()));

        let mut subscribers = Vec::new();
        for number in 0..2 {
            let client = node
                .client("worker", seed + number)
                .connect("tcp://sim:1")
                .await
                .unwrap();
            let subscription = client.subscribe(&name).await.unwrap();
            let dice = fastrand::Rng::with_seed(seed + 10 + number);
            let taking = take(subscription, dice, seen.clone(), transcript.clone());
            subscribers.push((client, tokio::spawn(taking)));
        }
        let writer = node
            .client("writer", seed + 2)
            .connect("tcp://sim:1")
            .await
            .unwrap();
        let writing = tokio::spawn(write(
            writer,
            name.clone(),
            seen.clone(),
            transcript.clone(),
        ));

        let mut dice = fastrand::Rng::with_seed(seed);
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_millis(dice.u64(1..400))).await;
            match dice.bool() {
                true => {
                    node.fail_power(Duration::from_millis(dice.u64(1..200)))
                        .await
                }
                false => network.cut_all(),
            }
        }
        writing.await.unwrap();

        // Every acknowledged write is delivered and acknowledged.
        let is_done =
            |seen: &WriteOutcomes| seen.stored.keys().all(|it| seen.delivered.contains(it));
        while !is_done(&seen.lock()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        loop {
            let mailboxes = node
                .handle()
                .messaging()
                .mailboxes()
                .unwrap()
                .list("", "", 10)
                .unwrap();
            assert_eq!(mailboxes.len(), 1, "seed {seed}");
            if mailboxes[0].messages == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let stored = seen.lock().stored.clone();
        assert_eq!(stored.len() as u32, WRITES, "seed {seed}");
        // A single writer, one write at a time: offsets are in the order of writes, and none is
        // reused.
        assert!(
            stored.values().is_sorted_by(|one, other| one < other),
            "seed {seed}: {stored:?}"
        );
        for (client, taking) in subscribers {
            client.close().await;
            taking.await.unwrap();
        }
        transcript.lines()
    })
}

async fn write(
    writer: Client,
    name: Name,
    seen: Arc<Mutex<WriteOutcomes>>,
    transcript: Transcript,
) {
    for number in 0..WRITES {
        let body = number.to_le_bytes();
        let write = writer.write(&name, body).deadline(Duration::from_secs(300));
        let written = write.retry(RetryPolicy::attempts(u32::MAX)).await.unwrap();
        transcript.note(format!("stored {number} {written:?}"));
        seen.lock().stored.insert(number, written.offset);
    }
}

async fn take(
    mut subscription: Subscription,
    mut dice: fastrand::Rng,
    seen: Arc<Mutex<WriteOutcomes>>,
    transcript: Transcript,
) {
    while let Some(envelope) = subscription.next().await {
        let number = u32::from_le_bytes(*envelope.body.first_chunk().unwrap());
        let delivery = envelope.delivery().unwrap();
        transcript.note(format!("delivered {number} {}", delivery.number));
        tokio::time::sleep(Duration::from_millis(dice.u64(0..5))).await;
        // A subscriber whose acknowledgement was lost gets the message again.
        let _ = match dice.u8(0..10) {
            0 => envelope.refuse(Fault::new("not now")),
            _ => {
                seen.lock().delivered.insert(number);
                envelope.reply("")
            }
        };
    }
}

#[test]
fn no_acknowledged_write_is_lost_under_faults() {
    check(0..60);
}

/// Long run, by `cargo xtask sim`.
#[test]
#[ignore = "minutes"]
fn no_acknowledged_write_is_lost_in_thousands_of_worlds() {
    check(crate::support::seeds(60..5_000));
}

fn check(seeds: std::ops::Range<u64>) {
    let lines = run_all(seeds, world).concat();
    // Worlds without any fault would prove nothing.
    let is_again = |line: &String| line.contains("delivered") && !line.ends_with(" 1");
    assert!(lines.iter().any(is_again));
}

#[test]
fn same_seed_gives_the_same_run_on_disk() {
    assert_eq!(world(7), world(7));
    assert_ne!(world(7), world(8));
}
