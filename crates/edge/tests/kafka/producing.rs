//! Batches: acknowledged when they are on disk, refused with an error of their own.

use bytes::Bytes;
use journal::disk::simulated::{Call, Fault, Kind};
use kafka::ErrorCode;
use kafka::produce::{PartitionResponse, Request};

use crate::client::{batch, fetch, produce};
use crate::{Bench, Client};

/// Produces, lets it become durable, and hands out what was said of the partition.
async fn told(bench: &mut Bench, client: &mut Client, request: &Request) -> PartitionResponse {
    client.send(9, request).await;
    bench.connect().is_heard().await;
    bench.sync();
    let (_, response) = client.receive::<Request>(9).await;
    response.responses[0].partition_responses[0].clone()
}

#[tokio::test]
async fn a_batch_is_acknowledged_when_it_is_on_disk_and_not_before() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    client.send(9, &produce("t", 1, batch(b"1"))).await;
    let mut other = bench.connect();
    other.is_heard().await;
    // Nobody is shown what may still be lost.
    let fetched = other.ask(12, &fetch("t", 0, 0)).await;
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.high_watermark, 0);
    assert!(partition.records.as_ref().unwrap().is_empty());
    bench.sync();
    let (_, response) = client.receive::<Request>(9).await;
    let told = &response.responses[0].partition_responses[0];
    assert_eq!((told.error_code, told.base_offset), (ErrorCode::None, 0));
    let fetched = other.ask(12, &fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn what_is_wrong_with_a_batch_is_said_of_its_partition() {
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
            ErrorCode::CorruptMessage,
        ),
        (
            "an old format",
            produce("t", 1, old),
            ErrorCode::UnsupportedForMessageFormat,
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
        let told = told(&mut bench, &mut client, &request).await;
        let what = (told.error_code, told.base_offset);
        assert_eq!(what, (expected, -1), "{name}: {:?}", told.error_message);
    }
    let first = told(&mut bench, &mut client, &produce("t", 1, good)).await;
    assert_eq!((first.error_code, first.base_offset), (ErrorCode::None, 0));
}

#[tokio::test]
async fn old_versions_are_advertised_and_refused() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    for version in 0..3 {
        let request = produce("t", 1, batch(b"1"));
        let response = client.ask(version, &request).await;
        let told = &response.responses[0].partition_responses[0];
        assert_eq!(told.error_code, ErrorCode::UnsupportedVersion);
    }
}

#[tokio::test]
async fn zstd_is_taken_from_those_who_know_it() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let mut bytes = batch(b"1").to_vec();
    bytes[22] = 4;
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let request = produce("t", 1, bytes.into());
    let response = client.ask(6, &request).await;
    let told = &response.responses[0].partition_responses[0];
    assert_eq!(told.error_code, ErrorCode::UnsupportedCompressionType);
    let told = self::told(&mut bench, &mut client, &request).await;
    assert_eq!(told.error_code, ErrorCode::None);
}

#[tokio::test]
async fn who_wants_no_answer_gets_none_and_hears_of_an_error_by_the_end() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    client.send(9, &produce("t", 0, batch(b"1"))).await;
    let told = told(&mut bench, &mut client, &produce("t", 1, batch(b"2"))).await;
    assert_eq!(told.base_offset, 1);
    client.send(9, &produce("other", 0, batch(b"1"))).await;
    assert!(client.is_over().await);
}

#[tokio::test]
async fn what_may_not_be_on_disk_is_no_success() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    client.send(9, &produce("t", 1, batch(b"1"))).await;
    bench.connect().is_heard().await;
    let is_sync = |call: &Call<'_>| call.kind == Kind::SyncData;
    bench.disk.fail_once(Fault::Broken, is_sync);
    bench.sync();
    let (_, response) = client.receive::<Request>(9).await;
    let told = &response.responses[0].partition_responses[0];
    assert_eq!(told.error_code, ErrorCode::KafkaStorageError);
    let response = client.ask(9, &produce("t", 1, batch(b"2"))).await;
    let told = &response.responses[0].partition_responses[0];
    assert_eq!(told.error_code, ErrorCode::KafkaStorageError);
}
