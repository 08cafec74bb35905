//! A full disk: producers get a retriable error, consumers read on, and deleting data frees space.

use std::time::Duration;

use kafka::{ErrorCode, RequestBody};
use store::StorageState;

use crate::client::{batch, fetch, produce};
use crate::{Bench, Client};

impl Bench {
    /// Asks, and lets the disk work until there is an answer.
    async fn ask<R: RequestBody>(
        &mut self,
        client: &mut Client,
        version: i16,
        request: &R,
    ) -> R::Response {
        client.send(version, request).await;
        loop {
            self.pass_second();
            let answer = client.receive::<R>(version);
            let waiting = tokio::time::timeout(Duration::from_millis(20), answer);
            if let Ok((_, response)) = waiting.await {
                return response;
            }
        }
    }

    /// What the producer of a large batch is told: an error and an offset.
    async fn produce(&mut self, client: &mut Client, topic: &str) -> (ErrorCode, i64) {
        let request = produce(topic, 1, batch(&[7; 500_000]));
        let response = self.ask(client, 9, &request).await;
        let told = &response.responses[0].partition_responses[0];
        (told.error_code, told.base_offset)
    }

    async fn commit(&mut self, client: &mut Client, offset: i64) -> ErrorCode {
        let response = self
            .ask(client, 8, &crate::stalled_disk::commit(offset))
            .await;
        response.topics[0].partitions[0].error_code
    }

    fn state(&self) -> StorageState {
        self.node.health().unwrap().view().state
    }
}

/// More than fit.
const BATCHES_MAX: i64 = 100;

#[tokio::test]
async fn a_full_disk_serves_reads_and_recovers_after_a_topic_deletion() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let mut other = bench.with_topic("other").await;
    assert_eq!(bench.commit(&mut client, 7).await, ErrorCode::None);
    let kept = bench.produce(&mut other, "other").await;
    assert_eq!(kept, (ErrorCode::None, 0));
    bench.disk.set_capacity(bench.disk.used() + (6 << 20));
    let mut count = 0;
    let refused = loop {
        match bench.produce(&mut client, "t").await {
            (ErrorCode::None, offset) => assert_eq!(offset, count),
            (refused, offset) => break (refused, offset),
        }
        count += 1;
        assert!(count < BATCHES_MAX);
    };
    assert_eq!(refused, (ErrorCode::KafkaStorageError, -1));
    assert_eq!(bench.state(), StorageState::DiskFull);

    // Consumers read every acknowledged record.
    for offset in 0..count {
        let fetched = client.ask(12, &fetch("t", offset, 0)).await;
        let partition = &fetched.responses[0].partitions[0];
        assert_eq!(partition.high_watermark, count);
        assert!(!partition.records.as_ref().unwrap().is_empty());
    }
    // A group keeps what it has, and is told to try again.
    let refused = bench.commit(&mut client, 8).await;
    assert_eq!(refused, ErrorCode::CoordinatorNotAvailable);
    let committed = crate::stalled_disk::committed(&mut client).await;
    assert_eq!(committed, (ErrorCode::None, Some(7)));
    client.create_topic("new").await;
    let (_, told) = client.receive::<kafka::create_topics::Request>(7).await;
    assert_eq!(told.topics[0].error_code, ErrorCode::KafkaStorageError);

    let deleting = kafka::delete_topics::Request {
        topic_names: vec!["t".to_owned()],
        timeout_ms: 1_000,
        ..Default::default()
    };
    let told = bench.ask(&mut client, 5, &deleting).await;
    assert_eq!(told.responses[0].error_code, ErrorCode::None);
    for _ in 0..100 {
        bench.pass_second();
    }
    assert_eq!(bench.state(), StorageState::Serving);
    let kept = bench.produce(&mut other, "other").await;
    assert_eq!(kept, (ErrorCode::None, 1));
    let mut client = bench.with_topic("t").await;
    assert_eq!(bench.commit(&mut client, 8).await, ErrorCode::None);
    let fetched = other.ask(12, &fetch("other", 0, 0)).await;
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.high_watermark, 2);
}
