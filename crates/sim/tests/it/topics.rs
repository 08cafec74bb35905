//! Kafka clients of a node with power failures, over a network with cuts, under many seeds:
//! idempotent producers, a consumer group that commits, and transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kafka::{add_partitions_to_txn, end_txn, init_producer_id};
use parking_lot::Mutex;
use recordbatch::{Attributes, Producer, Template};
use sim::{DurableNode, Network, Transcript, Weather, run, run_all};

use crate::support::kafka::group::{Group, committed_offsets};
use crate::support::kafka::{Kafka, create, produce, read};

const TOPIC: &str = "produced";
const TRANSACTED: &str = "transacted";
const GROUP: &str = "readers";
const PRODUCERS: usize = 2;
const BATCHES: usize = 25;
const TRANSACTIONS: usize = 12;

/// The promises that the node has made.
#[derive(Default)]
struct Acknowledged {
    /// The value at each acknowledged offset.
    produced: BTreeMap<i64, String>,
    /// Values of committed and of aborted transactions, as far as their end was acknowledged.
    committed: BTreeSet<String>,
    aborted: BTreeSet<String>,
    /// The newest acknowledged offset of the group, and the newest that was sent.
    offset: i64,
    offset_sent: i64,
}

type Shared = Arc<Mutex<Acknowledged>>;

/// Runs a world: two producers, a transactional one, and a consumer; cuts and power failures.
fn world(seed: u64) -> Vec<String> {
    run(async move {
        let transcript = Transcript::start();
        let network = Network::new(seed, Weather::CALM);
        let mut node = DurableNode::start(seed, &network);
        let acknowledged_state = Shared::default();
        let mut admin = Kafka::new(node.dialer("admin"));
        for topic in [TOPIC, TRANSACTED] {
            create(&mut admin, topic).await;
        }
        let mut clients = Vec::new();
        for number in 0..PRODUCERS {
            let kafka = Kafka::new(node.dialer("producer"));
            let log = (acknowledged_state.clone(), transcript.clone());
            let dice = fastrand::Rng::with_seed(seed + number as u64);
            clients.push(tokio::spawn(write(kafka, number, dice, log)));
        }
        let kafka = Kafka::new(node.dialer("transactional"));
        let log = (acknowledged_state.clone(), transcript.clone());
        let dice = fastrand::Rng::with_seed(seed + 10);
        clients.push(tokio::spawn(transact(kafka, dice, log)));
        let kafka = Kafka::new(node.dialer("consumer"));
        let log = (acknowledged_state.clone(), transcript.clone());
        clients.push(tokio::spawn(consume(kafka, log)));

        let mut dice = fastrand::Rng::with_seed(seed);
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(dice.u64(1..300))).await;
            match dice.u8(0..3) {
                0 => network.cut_all(),
                _ => {
                    let before = Snapshot::of(&acknowledged_state);
                    node.fail_power(Duration::from_millis(dice.u64(1..200)))
                        .await;
                    check(&mut admin, &before, &acknowledged_state, seed).await;
                }
            }
        }
        for client in clients {
            client.await.unwrap();
        }
        node.fail_power(Duration::from_millis(1)).await;
        check(
            &mut admin,
            &Snapshot::of(&acknowledged_state),
            &acknowledged_state,
            seed,
        )
        .await;
        let records = read(&mut admin, TOPIC, 0, false).await;
        let values: BTreeSet<_> = records.iter().map(|(_, value)| value).collect();
        assert_eq!(values.len(), records.len(), "seed {seed}: a record twice");
        let shown = read(&mut admin, TRANSACTED, 0, true).await;
        let shown: BTreeSet<_> = shown.into_iter().map(|(_, value)| value).collect();
        assert_eq!(shown, acknowledged_state.lock().committed, "seed {seed}");
        transcript.lines()
    })
}

/// A copy of the promises, made before a power failure.
struct Snapshot {
    produced: BTreeMap<i64, String>,
    committed: BTreeSet<String>,
    offset: i64,
}

impl Snapshot {
    fn of(acknowledged_state: &Shared) -> Self {
        let acknowledged_state = acknowledged_state.lock();
        Self {
            produced: acknowledged_state.produced.clone(),
            committed: acknowledged_state.committed.clone(),
            offset: acknowledged_state.offset,
        }
    }
}

/// Checks all that was promised before a power failure.
async fn check(kafka: &mut Kafka, before: &Snapshot, acknowledged_state: &Shared, seed: u64) {
    let records: BTreeMap<_, _> = read(kafka, TOPIC, 0, false).await.into_iter().collect();
    for (offset, value) in &before.produced {
        assert_eq!(records.get(offset), Some(value), "seed {seed}: {offset}");
    }
    let contiguous = records.keys().copied().eq(0..records.len() as i64);
    assert!(contiguous, "seed {seed}: offsets are left out");
    let shown = read(kafka, TRANSACTED, 0, true).await;
    let shown: BTreeSet<_> = shown.into_iter().map(|(_, value)| value).collect();
    let lost: Vec<_> = before.committed.difference(&shown).collect();
    assert!(
        lost.is_empty(),
        "seed {seed}: lost of a transaction: {lost:?}"
    );
    let aborted = acknowledged_state.lock().aborted.clone();
    assert!(
        shown.is_disjoint(&aborted),
        "seed {seed}: aborted and shown"
    );
    let offset = committed_offset(kafka).await;
    let sent = acknowledged_state.lock().offset_sent;
    assert!(
        (before.offset..=sent).contains(&offset),
        "seed {seed}: offset {offset} of the group"
    );
}

async fn init(kafka: &mut Kafka, id: Option<&str>) -> Producer {
    let request = init_producer_id::Request {
        transactional_id: id.map(str::to_owned),
        transaction_timeout_ms: 60_000,
        ..init_producer_id::Request::default()
    };
    let response = kafka
        .ask_until_done(4, &request, |it| it.error_code, || {})
        .await;
    Producer {
        id: response.producer_id,
        epoch: response.producer_epoch,
        sequence: 0,
    }
}

/// Sends a batch until it is acknowledged, and returns its offset. A repeated batch is known by its
/// sequence.
async fn send(
    kafka: &mut Kafka,
    request: &kafka::produce::Request,
    transcript: &Transcript,
) -> i64 {
    let partition = |response: &kafka::produce::Response| {
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    };
    let again = || transcript.note("again");
    let response = kafka
        .ask_until_done(9, request, |it| partition(it).0, again)
        .await;
    partition(&response).1
}

async fn write(
    mut kafka: Kafka,
    number: usize,
    mut dice: fastrand::Rng,
    (acknowledged_state, transcript): (Shared, Transcript),
) {
    let mut producer = init(&mut kafka, None).await;
    for batch in 0..BATCHES {
        let count = dice.usize(1..4);
        let value = |index| format!("{number}.{batch}.{index} {}", "x".repeat(1_000));
        let values: Vec<_> = (0..count).map(value).collect();
        let template = Template {
            producer: Some(producer),
            ..Template::default()
        };
        let request = produce(TOPIC, &values, &template);
        let offset = send(&mut kafka, &request, &transcript).await;
        transcript.note(format!("produced {number}.{batch} at {offset}"));
        producer.sequence += count as i32;
        acknowledged_state
            .lock()
            .produced
            .extend((offset..).zip(values));
        tokio::time::sleep(Duration::from_millis(dice.u64(0..30))).await;
    }
}

async fn transact(
    mut kafka: Kafka,
    mut dice: fastrand::Rng,
    (acknowledged_state, transcript): (Shared, Transcript),
) {
    let id = "transactional";
    let mut producer = init(&mut kafka, Some(id)).await;
    for round in 0..TRANSACTIONS {
        add(&mut kafka, id, producer).await;
        let values: Vec<_> = (0..dice.usize(1..4))
            .map(|index| format!("{round}.{index}"))
            .collect();
        for value in &values {
            let template = Template {
                attributes: Attributes::default().transactional(),
                producer: Some(producer),
                ..Template::default()
            };
            let request = kafka::produce::Request {
                transactional_id: Some(id.to_owned()),
                ..produce(TRANSACTED, std::slice::from_ref(value), &template)
            };
            send(&mut kafka, &request, &transcript).await;
            producer.sequence += 1;
        }
        let committed = dice.u8(0..3) > 0;
        if !committed {
            // A record of it may never be shown, also while its end is not acknowledged.
            acknowledged_state
                .lock()
                .aborted
                .extend(values.iter().cloned());
        }
        end(&mut kafka, id, producer, committed).await;
        transcript.note(format!("ended {round} {committed}"));
        if committed {
            acknowledged_state.lock().committed.extend(values);
        }
        tokio::time::sleep(Duration::from_millis(dice.u64(0..60))).await;
    }
}

async fn add(kafka: &mut Kafka, id: &str, producer: Producer) {
    let request = add_partitions_to_txn::Request {
        v3_and_below_transactional_id: id.to_owned(),
        v3_and_below_producer_id: producer.id,
        v3_and_below_producer_epoch: producer.epoch,
        v3_and_below_topics: vec![add_partitions_to_txn::Topic {
            name: TRANSACTED.to_owned(),
            partitions: vec![0],
        }],
        ..add_partitions_to_txn::Request::default()
    };
    let code = |response: &add_partitions_to_txn::Response| {
        let topic = &response.results_by_topic_v3_and_below[0];
        topic.results_by_partition[0].partition_error_code
    };
    kafka.ask_until_done(3, &request, code, || {}).await;
}

async fn end(kafka: &mut Kafka, id: &str, producer: Producer, committed: bool) {
    let request = end_txn::Request {
        transactional_id: id.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        committed,
    };
    kafka
        .ask_until_done(3, &request, |it| it.error_code, || {})
        .await;
}

/// Joins a group, reads on from its offset, and commits after each read, until all is read.
async fn consume(mut kafka: Kafka, (acknowledged_state, transcript): (Shared, Transcript)) {
    let total = PRODUCERS * BATCHES;
    let mut seen = BTreeSet::new();
    let is_all = |seen: &BTreeSet<String>| {
        let batches: BTreeSet<_> = seen.iter().filter_map(|it| it.rsplit_once('.')).collect();
        let batches: BTreeSet<_> = batches.iter().map(|(batch, _)| *batch).collect();
        batches.len() == total
    };
    while !is_all(&seen) {
        let group = Group::join(&mut kafka, GROUP).await;
        let mut next = committed_offset(&mut kafka).await;
        loop {
            let records = read(&mut kafka, TOPIC, next, false).await;
            if let Some((last, _)) = records.last() {
                next = last + 1;
            }
            seen.extend(records.into_iter().map(|(_, value)| value));
            {
                let mut acknowledged_state = acknowledged_state.lock();
                acknowledged_state.offset_sent = acknowledged_state.offset_sent.max(next);
            }
            if !group.commit(&mut kafka, TOPIC, &[next]).await {
                // The member was forgotten.
                break;
            }
            transcript.note(format!("committed {next}"));
            acknowledged_state.lock().offset = next;
            if is_all(&seen) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

/// Returns the committed offset of the group; 0 for none.
async fn committed_offset(kafka: &mut Kafka) -> i64 {
    committed_offsets(kafka, GROUP, TOPIC, 1).await[0]
}

#[test]
fn acknowledged_records_offsets_and_transactions_survive_power_failures() {
    let lines = run_all(0..20, world).concat();
    // Worlds without any fault would prove nothing.
    assert!(lines.iter().any(|line| line.ends_with("again")));
}

/// Long run, by `cargo xtask sim`.
#[test]
#[ignore = "minutes"]
fn acknowledged_records_survive_in_thousands_of_worlds() {
    run_all(crate::support::seeds(20..2_000), world);
}

#[test]
fn same_seed_gives_the_same_topics() {
    assert_eq!(world(7), world(7));
    assert_ne!(world(7), world(8));
}
