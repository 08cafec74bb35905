//! Records that are old, or have no timestamp, under the default configuration.

use kafka::{create_topics, list_offsets, produce};
use recordbatch::{Batch, Builder, NO_TIMESTAMP, PatchedBatch, Template};

use super::client::{Client, good, until};
use crate::support::Place;

const EARLIEST: i64 = -2;

fn batch(timestamp: i64, claimed_max: i64) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.push(timestamp, Some(b"key"), Some(b"value"), &[]);
    let mut bytes = Vec::new();
    builder.finish(&Template::default(), &mut bytes);
    let mut batch = PatchedBatch::new(&Batch::split(&bytes).unwrap().0);
    batch.set_max_timestamp(claimed_max);
    batch.to_vec()
}

fn create(client: &mut Client, name: &str, config: Option<(&str, &str)>) {
    let configs = config.map(|(name, value)| create_topics::Config {
        name: name.to_owned(),
        value: Some(value.to_owned()),
    });
    let request = create_topics::Request {
        topics: vec![create_topics::Topic {
            name: name.to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            configs: configs.into_iter().collect(),
            ..create_topics::Topic::default()
        }],
        timeout_ms: 5_000,
        ..create_topics::Request::default()
    };
    let response = client.ask(7, &request).unwrap();
    good(response.topics[0].error_code).unwrap();
}

/// Produces a batch with `acks=all`.
fn append(client: &mut Client, topic: &str, batch: Vec<u8>) {
    let request = produce::Request {
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![produce::Topic {
            name: topic.to_owned(),
            partition_data: vec![produce::Partition {
                index: 0,
                records: Some(bytes::Bytes::from(batch).into()),
            }],
            ..produce::Topic::default()
        }],
        ..produce::Request::default()
    };
    let response = client.ask(9, &request).unwrap();
    good(response.responses[0].partition_responses[0].error_code).unwrap();
}

/// Returns the offset and the timestamp of ListOffsets for a timestamp.
fn list(client: &mut Client, topic: &str, timestamp: i64) -> (i64, i64) {
    let request = list_offsets::Request {
        replica_id: -1,
        topics: vec![list_offsets::Topic {
            name: topic.to_owned(),
            partitions: vec![list_offsets::Partition {
                partition_index: 0,
                timestamp,
                ..list_offsets::Partition::default()
            }],
        }],
        ..list_offsets::Request::default()
    };
    let mut response = client.ask(7, &request).unwrap();
    let partition = response.topics.remove(0).partitions.remove(0);
    good(partition.error_code).unwrap();
    (partition.offset, partition.timestamp)
}

#[test]
fn fresh_records_with_old_timestamps_survive_retention() {
    let place = Place::new();
    let node = place.serve("");
    let mut client = Client::connect(&node).unwrap();
    let now = super::kill9::now_ms();
    create(&mut client, "dated", None);
    // The records of librdkafka's tests 0052 and 0053, and of aiokafka's tests of offsets for
    // times.
    let year = 365 * 24 * 3_600_000;
    let batches = [
        (NO_TIMESTAMP, NO_TIMESTAMP),
        (now, NO_TIMESTAMP),
        (1_234_567, 1_234_567),
        (now - year, now - year),
    ];
    for (timestamp, claimed_max) in batches {
        append(&mut client, "dated", batch(timestamp, claimed_max));
    }
    // Retention handles partitions in the order of their topics' names in one pass: once it has
    // handled this one, it has handled the other one too.
    create(&mut client, "looked", Some(("retention.bytes", "1")));
    let mut passes = 0;
    while passes < 3 {
        let before = list(&mut client, "looked", EARLIEST).0;
        for _ in 0..200 {
            append(&mut client, "looked", {
                let mut builder = Builder::new();
                builder.push(now, Some(b"key"), Some(&[0; 1_000]), &[]);
                let mut bytes = Vec::new();
                builder.finish(&Template::default(), &mut bytes);
                bytes
            });
        }
        until(|| list(&mut client, "looked", EARLIEST).0 > before);
        passes += 1;
    }
    assert_eq!(list(&mut client, "dated", EARLIEST).0, 0);
    assert_eq!(list(&mut client, "dated", 1_000_000), (1, now));
    assert_eq!(list(&mut client, "dated", now), (1, now));
    node.stop().expect(0);
}
