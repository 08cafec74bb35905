//! Responses of a connection are sent in the order of its requests.

use kafka::api_versions::Request as ApiVersions;
use kafka::produce::Request as Produce;

use crate::Bench;
use crate::client::{batch, fetch, produce};

#[tokio::test]
async fn responses_are_sent_in_the_order_of_the_requests() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let first = client.send(9, &produce("t", 1, batch(b"1"))).await;
    let second = client.send(0, &ApiVersions::default()).await;
    let third = client.send(9, &produce("t", -1, batch(b"2"))).await;
    // Taken in, and nothing of it answered: another connection is served meanwhile.
    bench.connect().flush_requests().await;
    bench.sync();
    assert_eq!(client.receive::<Produce>(9).await.0, first);
    assert_eq!(client.receive::<ApiVersions>(0).await.0, second);
    let (number, response) = client.receive::<Produce>(9).await;
    let told = &response.responses[0].partition_responses[0];
    assert_eq!((number, told.base_offset), (third, 1));
}

#[tokio::test]
async fn a_batch_behind_a_long_poll_is_appended_at_once() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let waiting = client.send(12, &fetch("t", 0, 60_000)).await;
    let produced = client.send(9, &produce("t", 1, batch(b"1"))).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (number, fetched) = client.receive::<kafka::fetch::Request>(12).await;
    assert_eq!(number, waiting);
    assert!(fetched.responses[0].partitions[0].records.is_some());
    assert_eq!(client.receive::<Produce>(9).await.0, produced);
}

#[tokio::test]
async fn a_client_with_unread_responses_later_receives_all_of_them() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let value = vec![7; 900_000];
    let mut stored = 0;
    for _ in 0..2 {
        client.send(9, &produce("t", 1, batch(&value))).await;
        bench.connect().flush_requests().await;
        bench.sync();
        client.receive::<Produce>(9).await;
        stored += value.len();
    }
    // Far more than a pipe and an outbox hold.
    let asked = 40;
    for _ in 0..asked {
        client.send(12, &fetch("t", 0, 0)).await;
    }
    let mut received = 0;
    for _ in 0..asked {
        let (_, fetched) = client.receive::<kafka::fetch::Request>(12).await;
        let records = fetched.responses[0].partitions[0].records.clone();
        received += records.unwrap().size();
    }
    assert!(received >= asked * stored / 2, "{received}");
}

#[tokio::test]
async fn requests_beyond_the_pipelining_limit_are_answered_in_order() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let first = client.send(9, &produce("t", 1, batch(b"1"))).await;
    // Far more than are taken in while the first waits.
    let mut last = first;
    for _ in 0..2_000 {
        last = client.send(0, &ApiVersions::default()).await;
    }
    bench.connect().flush_requests().await;
    bench.sync();
    assert_eq!(client.receive::<Produce>(9).await.0, first);
    for number in first + 1..=last {
        assert_eq!(client.receive::<ApiVersions>(0).await.0, number);
    }
}
