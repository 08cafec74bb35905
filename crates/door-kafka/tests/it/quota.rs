//! Quotas: produced bytes are charged, and a halted client is refused.

use std::time::Duration;

use kafka::ErrorCode;
use kafka::delete_records::{Partition, Request as DeleteRecords, Topic as RecordsOf};
use kafka::delete_topics::{Request as DeleteTopics, Topic};
use kafka::produce::{Request, Response};
use quota::Prefix;
use quota_service::{By, LimitConfig};

use crate::client::{batch, fetch, produce};
use crate::{Bench, Client};

const BY: By<'static> = By {
    who: "root",
    reason: "a test",
};

fn size() -> u64 {
    batch(b"1").len() as u64
}

fn limit(bench: &mut Bench, written: LimitConfig) {
    let limit = LimitConfig {
        name: "bytes".to_owned(),
        pattern: "*/*/*".to_owned(),
        unit: "appended_bytes".to_owned(),
        ..written
    };
    let limits = vec![limit.read().unwrap()];
    let quotas = bench.node.quotas();
    quotas.follow_configuration(limits).unwrap();
    bench.sync();
}

/// Of a limit that has room for one batch and ten bytes.
fn room_for_one(bench: &mut Bench) {
    limit(
        bench,
        LimitConfig {
            capacity: Some(size() + 10),
            refill: Some("1/s".to_owned()),
            ..LimitConfig::default()
        },
    );
}

async fn produced(bench: &mut Bench, client: &mut Client) -> Response {
    client.send(9, &produce("t", 1, batch(b"1"))).await;
    bench.connect().flush_requests().await;
    bench.sync();
    client.receive::<Request>(9).await.1
}

fn code_and_throttle(response: &Response) -> (ErrorCode, i32) {
    let partition = &response.responses[0].partition_responses[0];
    (partition.error_code, response.throttle_time_ms)
}

#[tokio::test(start_paused = true)]
async fn a_producer_over_its_limit_is_throttled_and_not_read_meanwhile() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    room_for_one(&mut bench);
    let first = produced(&mut bench, &mut client).await;
    assert_eq!(code_and_throttle(&first), (ErrorCode::None, 0));
    // It is done, and what it went over the limit has to come back first: a byte a second.
    let begin = tokio::time::Instant::now();
    let second = produced(&mut bench, &mut client).await;
    let throttle = Duration::from_secs(size() - 10);
    assert_eq!(
        code_and_throttle(&second),
        (ErrorCode::None, throttle.as_millis() as i32)
    );
    assert!(begin.elapsed() < throttle, "it is answered at once");
    let fetched = client.ask(12, &fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 2);
    assert!(begin.elapsed() >= throttle, "nothing was read meanwhile");
}

#[tokio::test]
async fn a_producer_whose_budget_is_spent_is_refused() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    limit(
        &mut bench,
        LimitConfig {
            budget: Some(size() + 10),
            every: Some("never".to_owned()),
            ..LimitConfig::default()
        },
    );
    let first = produced(&mut bench, &mut client).await;
    assert_eq!(code_and_throttle(&first), (ErrorCode::None, 0));
    let second = produced(&mut bench, &mut client).await;
    assert_eq!(code_and_throttle(&second), (ErrorCode::PolicyViolation, 0));
    let message = &second.responses[0].partition_responses[0].error_message;
    assert!(message.as_ref().unwrap().contains("limit `bytes`"));
    let fetched = client.ask(12, &fetch("t", 0, 0)).await;
    assert_eq!(fetched.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn a_halted_client_neither_produces_nor_fetches_nor_deletes() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    produced(&mut bench, &mut client).await;
    let prefix = Prefix {
        name: "default",
        run: "",
    };
    let _halted = bench.node.quotas().halt(prefix, BY).unwrap();
    const REFUSED: ErrorCode = ErrorCode::TopicAuthorizationFailed;
    let response = produced(&mut bench, &mut client).await;
    assert_eq!(code_and_throttle(&response), (REFUSED, 0));
    let message = &response.responses[0].partition_responses[0].error_message;
    assert_eq!(
        message.as_deref(),
        Some("`default` is halted: a test"),
        "{message:?}"
    );
    let fetched = client.ask(12, &fetch("t", 0, 0)).await;
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.error_code, REFUSED);
    let records = DeleteRecords {
        topics: vec![RecordsOf {
            name: "t".to_owned(),
            partitions: vec![Partition {
                partition_index: 0,
                offset: -1,
            }],
        }],
        timeout_ms: 1_000,
    };
    let deleted = client.ask(2, &records).await;
    assert_eq!(deleted.topics[0].partitions[0].error_code, REFUSED);
    let topics = DeleteTopics {
        topics: vec![Topic {
            name: Some("t".to_owned()),
            ..Topic::default()
        }],
        timeout_ms: 1_000,
        ..DeleteTopics::default()
    };
    let deleted = client.ask(6, &topics).await;
    assert_eq!(deleted.responses[0].error_code, REFUSED);
    let _resumed = bench.node.quotas().resume(prefix, BY).unwrap();
    let response = produced(&mut bench, &mut client).await;
    assert_eq!(code_and_throttle(&response), (ErrorCode::None, 0));
}
