//! Offsets: lookup by the highest timestamp with transactions, and deletion without the group.

use bytes::Bytes;
use kafka::{
    ErrorCode, RequestBody, add_partitions_to_txn, delete_groups, end_txn, init_producer_id,
    list_groups, list_offsets, offset_commit, offset_delete,
};
use recordbatch::{Attributes, Builder, Producer, Template};

use crate::client::produce;
use crate::{Bench, Client};

/// The only `transactional.id`.
const TRANSACTION: &str = "payments";

/// Sends the request, syncs the disk, and returns the response.
async fn synced_response<R: RequestBody>(
    bench: &mut Bench,
    client: &mut Client,
    version: i16,
    request: &R,
) -> R::Response {
    client.send(version, request).await;
    bench.connect().flush_requests().await;
    for _ in 0..5 {
        bench.sync();
        bench.connect().flush_requests().await;
    }
    client.receive::<R>(version).await.1
}

/// A batch of two records of a transaction; the first has the higher timestamp.
fn batch_of(producer: Producer) -> Bytes {
    let mut builder = Builder::new();
    builder.push(1_700_000_000_500, Some(b"a"), Some(b"1"), &[]);
    builder.push(1_700_000_000_400, Some(b"b"), Some(b"2"), &[]);
    let template = Template {
        attributes: Attributes(1 << 4),
        producer: Some(producer),
        ..Template::default()
    };
    let mut out = Vec::new();
    builder.finish(&template, &mut out);
    out.into()
}

#[tokio::test]
async fn the_highest_timestamp_is_found_behind_a_transactions_marker() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let request = init_producer_id::Request {
        transactional_id: Some(TRANSACTION.to_owned()),
        transaction_timeout_ms: 60_000,
        ..init_producer_id::Request::default()
    };
    let made = synced_response(&mut bench, &mut client, 4, &request).await;
    assert_eq!(made.error_code, ErrorCode::None);
    let producer = Producer {
        id: made.producer_id,
        epoch: made.producer_epoch,
        sequence: 0,
    };
    let request = add_partitions_to_txn::Request {
        v3_and_below_transactional_id: TRANSACTION.to_owned(),
        v3_and_below_producer_id: producer.id,
        v3_and_below_producer_epoch: producer.epoch,
        v3_and_below_topics: vec![add_partitions_to_txn::Topic {
            name: "t".to_owned(),
            partitions: vec![0],
        }],
        ..add_partitions_to_txn::Request::default()
    };
    let added = synced_response(&mut bench, &mut client, 3, &request).await;
    let added = &added.results_by_topic_v3_and_below[0].results_by_partition[0];
    assert_eq!(added.partition_error_code, ErrorCode::None);
    let mut request = produce("t", -1, batch_of(producer));
    request.transactional_id = Some(TRANSACTION.to_owned());
    let placed = synced_response(&mut bench, &mut client, 9, &request).await;
    let placed = &placed.responses[0].partition_responses[0];
    assert_eq!(
        (placed.error_code, placed.base_offset),
        (ErrorCode::None, 0)
    );
    let request = end_txn::Request {
        transactional_id: TRANSACTION.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        committed: true,
    };
    let ended = synced_response(&mut bench, &mut client, 3, &request).await;
    assert_eq!(ended.error_code, ErrorCode::None);
    bench.pass_second();

    let request = |timestamp| list_offsets::Request {
        replica_id: -1,
        topics: vec![list_offsets::Topic {
            name: "t".to_owned(),
            partitions: vec![list_offsets::Partition {
                timestamp,
                current_leader_epoch: -1,
                ..list_offsets::Partition::default()
            }],
        }],
        ..list_offsets::Request::default()
    };
    let latest = client.ask(7, &request(-1)).await;
    // Two records and the marker behind them.
    assert_eq!(latest.topics[0].partitions[0].offset, 3);
    let highest = client.ask(7, &request(-3)).await;
    let highest = &highest.topics[0].partitions[0];
    assert_eq!((highest.offset, highest.timestamp), (0, 1_700_000_000_500));
}

#[tokio::test]
async fn a_group_remains_when_its_last_offset_is_deleted() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let request = offset_commit::Request {
        group_id: "g".to_owned(),
        generation_id_or_member_epoch: -1,
        topics: vec![offset_commit::Topic {
            name: "t".to_owned(),
            partitions: vec![offset_commit::Partition {
                committed_offset: 0,
                ..offset_commit::Partition::default()
            }],
        }],
        ..offset_commit::Request::default()
    };
    let told_of = synced_response(&mut bench, &mut client, 8, &request).await;
    assert_eq!(told_of.topics[0].partitions[0].error_code, ErrorCode::None);
    let request = offset_delete::Request {
        group_id: "g".to_owned(),
        topics: vec![offset_delete::Topic {
            name: "t".to_owned(),
            partitions: vec![offset_delete::Partition { partition_index: 0 }],
        }],
    };
    let deleted = synced_response(&mut bench, &mut client, 0, &request).await;
    assert_eq!(deleted.topics[0].partitions[0].error_code, ErrorCode::None);
    let listed = client.ask(4, &list_groups::Request::default()).await;
    let names: Vec<_> = listed
        .groups
        .iter()
        .map(|it| it.group_id.as_str())
        .collect();
    assert_eq!(names, ["g"]);
    let request = delete_groups::Request {
        groups_names: vec!["g".to_owned()],
    };
    let deleted = synced_response(&mut bench, &mut client, 2, &request).await;
    assert_eq!(deleted.results[0].error_code, ErrorCode::None);
}
