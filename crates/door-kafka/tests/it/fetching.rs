//! Fetches: long polls are answered when records become durable or the wait ends.

use kafka::ErrorCode;
use kafka::fetch::Request;

use crate::Bench;
use crate::client::{batch, fetch, produce};

#[tokio::test]
async fn a_waiting_fetch_is_answered_when_records_are_durable() {
    let mut bench = Bench::new();
    let mut producer = bench.with_topic("t").await;
    let mut reader = bench.connect();
    reader.send(12, &fetch("t", 0, 60_000)).await;
    producer.send(9, &produce("t", 1, batch(b"1"))).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, fetched) = reader.receive::<Request>(12).await;
    let partition = &fetched.responses[0].partitions[0];
    let records = partition.records.clone().unwrap().into_bytes();
    // As it was produced, but for the offset and the epoch in front.
    assert_eq!(records[16..], batch(b"1")[16..]);
    assert_eq!(partition.high_watermark, 1);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_without_records_is_empty_after_its_max_wait() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let before = tokio::time::Instant::now();
    let fetched = client.ask(12, &fetch("t", 0, 500)).await;
    assert!(before.elapsed().as_millis() >= 500);
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::None);
    assert!(partition.records.as_ref().unwrap().is_empty());
}

#[tokio::test]
async fn a_fetch_that_fails_is_answered_at_once() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    for (request, expected) in [
        (
            fetch("other", 0, 60_000),
            ErrorCode::UnknownTopicOrPartition,
        ),
        (fetch("t", 1, 60_000), ErrorCode::OffsetOutOfRange),
        (fetch("t", -1, 60_000), ErrorCode::OffsetOutOfRange),
    ] {
        let fetched = client.ask(12, &request).await;
        let partition = &fetched.responses[0].partitions[0];
        assert_eq!(partition.error_code, expected);
    }
    let unknown = fetch("", 0, 60_000);
    let fetched = client.ask(13, &unknown).await;
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::UnknownTopicId);
}

#[tokio::test]
async fn an_unknown_fetch_session_is_refused() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let request = Request {
        session_id: 7,
        session_epoch: 1,
        ..fetch("t", 0, 60_000)
    };
    let fetched = client.ask(12, &request).await;
    assert_eq!(fetched.error_code, ErrorCode::FetchSessionIdNotFound);
}

#[tokio::test]
async fn a_node_that_shuts_down_answers_waiting_fetches_and_closes() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    client.send(12, &fetch("t", 0, 60_000)).await;
    bench.connect().flush_requests().await;
    bench.node.messaging().drain(1_000);
    let (_, fetched) = client.receive::<Request>(12).await;
    assert_eq!(fetched.error_code, ErrorCode::None);
    assert!(client.is_closed().await);
}
