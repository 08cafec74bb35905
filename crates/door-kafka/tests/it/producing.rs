//! Batches: acknowledged when they are on disk, refused with an error of their own.

use bytes::Bytes;
use journal::disk::simulated::{Call, Fault, Kind};
use kafka::ErrorCode;
use kafka::produce::{PartitionResponse, Request};
use recordbatch::{Builder, Compression, Template};

use crate::client::{batch, fetch, produce};
use crate::{Bench, Client};

/// Produces, syncs the disk, and returns the response of the partition.
async fn partition_response(
    bench: &mut Bench,
    client: &mut Client,
    request: &Request,
) -> PartitionResponse {
    client.send(9, request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, response) = client.receive::<Request>(9).await;
    response.responses[0].partition_responses[0].clone()
}

#[tokio::test]
async fn produce_is_acknowledged_once_the_batch_is_durable() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    client.send(9, &produce("t", 1, batch(b"1"))).await;
    let mut other = bench.connect();
    other.flush_requests().await;
    // Records that may still be lost are not fetched.
    let fetched = other.ask(12, &fetch("t", 0, 0)).await;
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.high_watermark, 0);
    assert!(partition.records.as_ref().unwrap().is_empty());
    bench.sync();
    let (_, response) = client.receive::<Request>(9).await;
    let partition_response = &response.responses[0].partition_responses[0];
    assert_eq!(
        (
            partition_response.error_code,
            partition_response.base_offset
        ),
        (ErrorCode::None, 0)
    );
    let fetched = other.ask(12, &fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn an_invalid_batch_is_refused_with_an_error_of_its_partition() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let good = batch(b"1");
    let damaged = {
        let mut bytes = good.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        Bytes::from(bytes)
    };
    let old = {
        let mut bytes = good.to_vec();
        bytes[16] = 1;
        Bytes::from(bytes)
    };
    let two = Bytes::from([&*good, &*good].concat());
    let cases = [
        (
            "damaged",
            produce("t", 1, damaged),
            ErrorCode::CorruptMessage,
        ),
        (
            "cut off",
            produce("t", 1, good.slice(..good.len() - 1)),
            ErrorCode::InvalidRecord,
        ),
        (
            "an old format",
            produce("t", 1, old),
            ErrorCode::InvalidRecord,
        ),
        ("two", produce("t", 1, two), ErrorCode::InvalidRecord),
        (
            "none",
            produce("t", 1, Bytes::new()),
            ErrorCode::InvalidRecord,
        ),
        (
            "no topic",
            produce("other", 1, good.clone()),
            ErrorCode::UnknownTopicOrPartition,
        ),
        (
            "acks",
            produce("t", 2, good.clone()),
            ErrorCode::InvalidRequiredAcks,
        ),
        (
            "large",
            produce("t", 1, batch(&vec![0; 1 << 20])),
            ErrorCode::MessageTooLarge,
        ),
    ];
    for (name, request, expected) in cases {
        let partition_response = partition_response(&mut bench, &mut client, &request).await;
        let what = (
            partition_response.error_code,
            partition_response.base_offset,
        );
        assert_eq!(
            what,
            (expected, -1),
            "{name}: {:?}",
            partition_response.error_message
        );
    }
    let first = partition_response(&mut bench, &mut client, &produce("t", 1, good)).await;
    assert_eq!((first.error_code, first.base_offset), (ErrorCode::None, 0));
}

/// A batch with fields overwritten, and a checksum that is right again.
fn with_forged_fields(good: &[u8], fields: &[(usize, i32)]) -> Bytes {
    let mut bytes = good.to_vec();
    for (at, field) in fields {
        bytes[*at..at + 4].copy_from_slice(&field.to_be_bytes());
    }
    let crc = crc32c::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&crc);
    bytes.into()
}

/// A compressed batch of one record, in which every byte of the value is the same.
pub(crate) fn packed(size: usize) -> Bytes {
    let mut builder = Builder::new();
    builder.push(1, Some(b"key"), Some(&vec![0; size]), &[]);
    let mut bytes = Vec::new();
    builder.finish_compressed(&Template::default(), Compression::Zstd, &mut bytes);
    bytes.into()
}

/// Makes a topic one that is compacted: its batches are looked into.
pub(crate) async fn compact(bench: &mut Bench, client: &mut Client, topic: &str) {
    use kafka::incremental_alter_configs::{Config, Request, Resource};
    let config = Config {
        name: "cleanup.policy".to_owned(),
        value: Some("compact".to_owned()),
        ..Config::default()
    };
    let resource = Resource {
        resource_type: 2,
        resource_name: topic.to_owned(),
        configs: vec![config],
    };
    let request = Request {
        resources: vec![resource],
        ..Request::default()
    };
    client.send(1, &request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, response) = client.receive::<Request>(1).await;
    assert_eq!(response.responses[0].error_code, ErrorCode::None);
}

#[tokio::test]
async fn decompressed_size_is_limited_over_all_batches_of_a_request() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    compact(&mut bench, &mut client, "t").await;
    let batch = packed(40 << 20);
    assert!(batch.len() < 20_000, "{}", batch.len());
    let mut request = produce("t", 1, batch);
    let partitions = &mut request.topic_data[0].partition_data;
    let first = partitions[0].clone();
    partitions.extend([first.clone(), first]);
    client.send(9, &request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, response) = client.receive::<Request>(9).await;
    let partition_response = response.responses[0].partition_responses.iter();
    let codes: Vec<_> = partition_response.map(|it| it.error_code).collect();
    let refused = ErrorCode::MessageTooLarge;
    assert_eq!(codes, [ErrorCode::None, refused, refused]);
}

#[tokio::test]
async fn inconsistent_batches_are_refused_by_compacted_topics() {
    const LAST_OFFSET_DELTA: usize = 23;
    const COUNT: usize = 57;
    let (more, small) = (9, packed(10_000));
    let invalid = ErrorCode::InvalidRecord;
    let lies = [
        (
            "a count alone",
            with_forged_fields(&small, &[(COUNT, more)]),
            invalid,
        ),
        (
            "a count and an end",
            with_forged_fields(&small, &[(COUNT, more), (LAST_OFFSET_DELTA, more - 1)]),
            invalid,
        ),
        (
            "no compression",
            with_forged_fields(&small, &[(COUNT + 4, -1)]),
            invalid,
        ),
        (
            "more than may be unpacked",
            packed(65 << 20),
            ErrorCode::MessageTooLarge,
        ),
    ];
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    compact(&mut bench, &mut client, "t").await;
    for (name, bytes, expected) in lies {
        assert!(bytes.len() < 20_000, "{name}: {}", bytes.len());
        let partition_response =
            partition_response(&mut bench, &mut client, &produce("t", 1, bytes)).await;
        let what = (
            partition_response.error_code,
            partition_response.base_offset,
        );
        assert_eq!(what, (expected, -1), "{name}: {partition_response:?}");
    }
    let taken = partition_response(&mut bench, &mut client, &produce("t", 1, small)).await;
    assert_eq!((taken.error_code, taken.base_offset), (ErrorCode::None, 0));
}

#[tokio::test]
async fn old_versions_are_advertised_and_refused() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    for version in 0..3 {
        let request = produce("t", 1, batch(b"1"));
        let response = client.ask(version, &request).await;
        let partition_response = &response.responses[0].partition_responses[0];
        assert_eq!(partition_response.error_code, ErrorCode::UnsupportedVersion);
    }
}

#[tokio::test]
async fn zstd_batches_are_refused_below_produce_version_7() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let mut bytes = batch(b"1").to_vec();
    bytes[22] = 4;
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let request = produce("t", 1, bytes.into());
    let response = client.ask(6, &request).await;
    let partition_response = &response.responses[0].partition_responses[0];
    assert_eq!(
        partition_response.error_code,
        ErrorCode::UnsupportedCompressionType
    );
    let partition_response = self::partition_response(&mut bench, &mut client, &request).await;
    assert_eq!(partition_response.error_code, ErrorCode::None);
}

#[tokio::test]
async fn acks_0_gets_no_response_and_an_error_closes_the_connection() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    client.send(9, &produce("t", 0, batch(b"1"))).await;
    let partition_response =
        partition_response(&mut bench, &mut client, &produce("t", 1, batch(b"2"))).await;
    assert_eq!(partition_response.base_offset, 1);
    client.send(9, &produce("other", 0, batch(b"1"))).await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_produce_whose_sync_fails_is_a_storage_error() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    client.send(9, &produce("t", 1, batch(b"1"))).await;
    bench.connect().flush_requests().await;
    let is_sync = |call: &Call<'_>| call.kind == Kind::SyncData;
    bench.disk.fail_once(Fault::Broken, is_sync);
    bench.sync();
    let (_, response) = client.receive::<Request>(9).await;
    let partition_response = &response.responses[0].partition_responses[0];
    assert_eq!(partition_response.error_code, ErrorCode::KafkaStorageError);
    let response = client.ask(9, &produce("t", 1, batch(b"2"))).await;
    let partition_response = &response.responses[0].partition_responses[0];
    assert_eq!(partition_response.error_code, ErrorCode::KafkaStorageError);
}

#[tokio::test]
async fn every_record_without_a_key_is_listed_in_the_error() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    let request = kafka::create_topics::Request {
        topics: vec![kafka::create_topics::Topic {
            name: "compacted".to_owned(),
            num_partitions: 1,
            replication_factor: 1,
            configs: vec![kafka::create_topics::Config {
                name: "cleanup.policy".to_owned(),
                value: Some("compact".to_owned()),
            }],
            ..kafka::create_topics::Topic::default()
        }],
        timeout_ms: 1_000,
        validate_only: false,
    };
    client.send(7, &request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    client.created().await;
    let mut builder = Builder::new();
    for index in 0..10_u8 {
        let key = (index % 3 != 1).then_some(&b"key"[..]);
        builder.push(1_700_000_000_000, key, Some(&[index]), &[]);
    }
    let mut records = Vec::new();
    builder.finish(&Template::default(), &mut records);
    let partition_response = partition_response(
        &mut bench,
        &mut client,
        &produce("compacted", 1, records.into()),
    )
    .await;
    assert_eq!(partition_response.error_code, ErrorCode::InvalidRecord);
    let named: Vec<_> = partition_response
        .record_errors
        .iter()
        .map(|it| it.batch_index)
        .collect();
    assert_eq!(named, [1, 4, 7]);
    assert!(
        partition_response
            .record_errors
            .iter()
            .all(|it| it.batch_index_error_message.is_some())
    );
}
