//! A full write queue: producers wait for room, in order, until their timeout.

use std::time::Duration;

use kafka::ErrorCode;
use kafka::produce::{PartitionResponse, Request};

use crate::client::{batch, fetch, produce};
use crate::{Bench, Client};

/// What may wait for the disk; a batch is more than half of it.
const QUEUE_SIZE: u64 = 4_000;

fn large(name: u8) -> bytes::Bytes {
    batch(&[name; 2_500])
}

/// A request that may wait for so long.
fn request_with_timeout(name: u8, timeout_ms: i32) -> Request {
    Request {
        timeout_ms,
        ..produce("t", 1, large(name))
    }
}

async fn received_partition(client: &mut Client) -> PartitionResponse {
    let (_, response) = client.receive::<Request>(9).await;
    response.responses[0].partition_responses[0].clone()
}

/// Lets the disk work until the answer is there.
async fn sync_until_response(bench: &mut Bench, client: &mut Client) -> PartitionResponse {
    loop {
        bench.sync();
        let waiting = tokio::time::timeout(Duration::from_millis(20), received_partition(client));
        if let Ok(received_partition) = waiting.await {
            return received_partition;
        }
    }
}

#[tokio::test]
async fn a_produce_waits_for_room_in_the_queue_and_blocks_no_other() {
    let mut bench = Bench::with_queue(QUEUE_SIZE);
    let mut client = bench.with_topic("t").await;
    for name in 0..4 {
        client.send(9, &request_with_timeout(name, 60_000)).await;
    }
    // Nothing overtakes: the last of them is small and would find room.
    client.send(9, &produce("t", 1, batch(b"small"))).await;
    let mut other = bench.connect();
    other.flush_requests().await;
    let fetched = other.ask(12, &fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 0);
    for offset in 0..5 {
        let received_partition = sync_until_response(&mut bench, &mut client).await;
        let what = (
            received_partition.error_code,
            received_partition.base_offset,
        );
        assert_eq!(
            what,
            (ErrorCode::None, offset),
            "{:?}",
            received_partition.error_message
        );
    }
    let fetched = other.ask(12, &fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 5);
}

#[tokio::test]
async fn a_produce_that_finds_no_room_in_time_times_out() {
    let mut bench = Bench::with_queue(QUEUE_SIZE);
    let mut client = bench.with_topic("t").await;
    let mut late = bench.connect();
    client.send(9, &request_with_timeout(1, 60_000)).await;
    bench.connect().flush_requests().await;
    late.send(9, &request_with_timeout(2, 50)).await;
    let refused = received_partition(&mut late).await;
    assert_eq!(refused.error_code, ErrorCode::RequestTimedOut);
    assert_eq!(refused.base_offset, -1);
    let kept = sync_until_response(&mut bench, &mut client).await;
    assert_eq!((kept.error_code, kept.base_offset), (ErrorCode::None, 0));
    late.send(9, &request_with_timeout(2, 60_000)).await;
    let kept = sync_until_response(&mut bench, &mut late).await;
    assert_eq!((kept.error_code, kept.base_offset), (ErrorCode::None, 1));
}

#[tokio::test]
async fn a_produce_not_synced_in_time_times_out_but_may_be_stored() {
    let mut bench = Bench::with_queue(QUEUE_SIZE);
    let mut client = bench.with_topic("t").await;
    client.send(9, &request_with_timeout(1, 50)).await;
    let late = received_partition(&mut client).await;
    let what = (late.error_code, late.base_offset);
    assert_eq!(what, (ErrorCode::RequestTimedOut, -1));
    bench.sync();
    let fetched = client.ask(12, &fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn a_produce_that_waits_for_room_does_not_delay_the_shutdown() {
    let mut bench = Bench::with_queue(QUEUE_SIZE);
    let mut client = bench.with_topic("t").await;
    let mut late = bench.connect();
    client.send(9, &request_with_timeout(1, 60_000)).await;
    bench.connect().flush_requests().await;
    late.send(9, &request_with_timeout(2, 60_000)).await;
    bench.connect().flush_requests().await;
    bench.node.messaging().drain(0);
    let refused = received_partition(&mut late).await;
    assert_eq!(refused.error_code, ErrorCode::RequestTimedOut);
    assert!(late.is_closed().await);
}
