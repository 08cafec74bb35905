//! Kafka clients that repeat what they may repeat, until it is done.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka::{ErrorCode, create_topics, init_producer_id, metadata};
use recordbatch::{Producer, Template};
use sim::Transcript;

use super::observations::Shared;
use super::{BATCHES, PARTITIONS, PRODUCERS, TOPIC, TOPICS};
use crate::support::kafka::group::{Group, committed_offsets};
use crate::support::kafka::{Fetched, Kafka, fetch, pause, produce_to};

const GROUP: &str = "readers";

/// One in so many requests opens a new connection, to another node.
const CONNECTIONS: u8 = 8;

/// A client with what it needs.
pub(crate) struct Client {
    pub(crate) kafka: Kafka,
    pub(crate) dice: fastrand::Rng,
    pub(crate) transcript: Transcript,
    pub(crate) observations: Shared,
}

impl Client {
    async fn pause(&mut self, longest_ms: u64) {
        let pause = self.dice.u64(..longest_ms);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if self.dice.u8(..CONNECTIONS) == 0 {
            self.kafka.disconnect();
        }
    }
}

/// Asks for a producer id until there is one.
async fn producer_id(client: &mut Client) -> Producer {
    let request = init_producer_id::Request {
        transactional_id: None,
        transaction_timeout_ms: 60_000,
        ..init_producer_id::Request::default()
    };
    let asked = client
        .kafka
        .ask_until_done(4, &request, |it| it.error_code, || {});
    let response = asked.await;
    client
        .observations
        .lock()
        .note_producer_id(response.producer_id);
    Producer {
        id: response.producer_id,
        epoch: response.producer_epoch,
        sequence: 0,
    }
}

/// Produces batches to random partitions. A batch is repeated until it is acknowledged.
pub(crate) async fn produce(mut client: Client, number: usize) {
    create(&mut client, TOPIC, PARTITIONS).await;
    let producer = producer_id(&mut client).await;
    let mut sequences = BTreeMap::<i32, i32>::new();
    for batch in 0..BATCHES {
        let partition = client.dice.i32(0..PARTITIONS);
        let sequence = sequences.entry(partition).or_default();
        let count = client.dice.usize(1..4);
        let values = (0..count).map(|index| format!("{number}.{batch}.{index} value"));
        let values: Vec<_> = values.collect();
        let template = Template {
            producer: Some(Producer {
                sequence: *sequence,
                ..producer
            }),
            ..Template::default()
        };
        client
            .observations
            .lock()
            .sent
            .extend(values.iter().cloned());
        let request = produce_to(TOPIC, partition, &values, &template);
        let answer = |response: &kafka::produce::Response| {
            let partition = &response.responses[0].partition_responses[0];
            (partition.error_code, partition.base_offset)
        };
        let transcript = client.transcript.clone();
        let again = || transcript.note("again");
        let asked = client
            .kafka
            .ask_until_done(9, &request, |it| answer(it).0, again);
        let (_, offset) = answer(&asked.await);
        *sequence += count as i32;
        client
            .transcript
            .note(format!("produced {number}.{batch} at {partition} {offset}"));
        let places = (offset..).map(|offset| (partition, offset));
        for (place, value) in places.zip(values) {
            let earlier = client.observations.lock().produced.insert(place, value);
            assert_eq!(earlier, None, "{place:?} was acknowledged twice");
        }
        client.pause(300).await;
    }
}

/// Joins a group, reads on from its offsets, and commits after each round, until all is read.
pub(crate) async fn consume(mut client: Client) {
    create(&mut client, TOPIC, PARTITIONS).await;
    {
        let mut observations = client.observations.lock();
        observations.committed = vec![0; PARTITIONS as usize];
        observations.committed_max = vec![0; PARTITIONS as usize];
    }
    loop {
        let group = Group::join(&mut client.kafka, GROUP).await;
        let before = client.observations.lock().committed.clone();
        let offsets = committed_offsets(&mut client.kafka, GROUP, TOPIC, PARTITIONS).await;
        client.observations.lock().check_committed(&offsets);
        client
            .transcript
            .note(format!("the group is at {offsets:?}, after {before:?}"));
        let mut nexts = offsets;
        loop {
            for (partition, next) in (0..).zip(&mut nexts) {
                let (records, _) = fetch(&mut client.kafka, TOPIC, partition, *next).await;
                let mut observations = client.observations.lock();
                observations.note_fetched(partition, *next, &records);
                *next += records.len() as i64;
                let most = &mut observations.committed_max[partition as usize];
                *most = (*most).max(*next);
            }
            if !group.commit(&mut client.kafka, TOPIC, &nexts).await {
                break;
            }
            client.transcript.note(format!("committed {nexts:?}"));
            let is_all = {
                let mut observations = client.observations.lock();
                observations.committed.clone_from(&nexts);
                let produced = observations.produced.keys();
                let batches = observations.produced.values();
                let batches = batches.filter(|it| it.contains(".0 ")).count();
                let is_read =
                    |(partition, offset): &(i32, i64)| nexts[*partition as usize] > *offset;
                batches == PRODUCERS * BATCHES && produced.clone().all(is_read)
            };
            if is_all {
                return;
            }
            client.pause(200).await;
        }
    }
}

/// Creates topics, one after the other, and asks for a producer id after each.
pub(crate) async fn create_topics(mut client: Client) {
    for number in 0..TOPICS {
        let name = format!("topic-{number}");
        create(&mut client, &name, 3).await;
        client.transcript.note(format!("created {name}"));
        client.observations.lock().topics.push(name);
        producer_id(&mut client).await;
        client.pause(1500).await;
    }
}

/// Creates a topic, unless it exists.
async fn create(client: &mut Client, name: &str, partitions: i32) {
    use create_topics::{Request, Topic};
    let request = Request {
        topics: vec![Topic {
            name: name.to_owned(),
            num_partitions: partitions,
            replication_factor: -1,
            ..Topic::default()
        }],
        timeout_ms: 5_000,
        ..Request::default()
    };
    loop {
        let response = client.kafka.ask(7, &request, || {}).await;
        match response.topics[0].error_code {
            ErrorCode::None | ErrorCode::TopicAlreadyExists => return,
            code => assert!(code.is_retriable(), "{code:?}"),
        }
        pause().await;
    }
}

/// Returns whether a topic is known with its leaders, and the highest leader epoch of its partitions.
pub(crate) async fn epochs(kafka: &mut Kafka, topic: &str) -> (bool, i32) {
    let request = metadata::Request {
        topics: Some(vec![metadata::TopicRequest {
            name: Some(topic.to_owned()),
            ..metadata::TopicRequest::default()
        }]),
        allow_auto_topic_creation: false,
        ..metadata::Request::default()
    };
    let response = kafka.ask(9, &request, || {}).await;
    let topic = &response.topics[0];
    let epochs = topic.partitions.iter().map(|it| it.leader_epoch);
    (
        topic.error_code == ErrorCode::None,
        epochs.max().unwrap_or(-1),
    )
}

/// Returns whether a topic exists.
pub(crate) async fn topic_exists(kafka: &mut Kafka, topic: &str) -> bool {
    epochs(kafka, topic).await.0
}

/// Asks a node for the leader epochs of a topic, for ever. A leader that was deposed may answer late,
/// but no node goes back.
pub(crate) async fn watch_epochs(mut kafka: Kafka, observations: Shared) {
    let mut highest = -1;
    loop {
        let (exists, epoch) = epochs(&mut kafka, TOPIC).await;
        if exists {
            assert!(
                epoch >= highest,
                "the leader epoch falls from {highest} to {epoch}"
            );
            highest = epoch;
            let mut observations = observations.lock();
            observations.epoch = observations.epoch.max(epoch);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Fetches all records of a partition.
pub(crate) async fn fetch_all(kafka: &mut Kafka, partition: i32) -> Vec<Fetched> {
    let mut all = Vec::new();
    loop {
        let (records, end) = fetch(kafka, TOPIC, partition, all.len() as i64).await;
        all.extend(records);
        if end == Some(all.len() as i64) {
            return all;
        }
    }
}
