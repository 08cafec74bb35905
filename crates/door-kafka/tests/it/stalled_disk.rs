//! A stalled disk: requests time out, and no answer denies a write that may be stored.

use kafka::ErrorCode;

use crate::client::{batch, fetch, produce};
use crate::{Bench, Client};

/// Error of group and transaction coordinators.
const NOT_NOW: ErrorCode = ErrorCode::CoordinatorNotAvailable;
/// Error of all other requests.
const LATE: ErrorCode = ErrorCode::RequestTimedOut;

const GROUP: &str = "g";
const TRANSACTION: &str = "x";

pub(crate) fn commit(offset: i64) -> kafka::offset_commit::Request {
    use kafka::offset_commit::{Partition, Request, Topic};
    let partition = Partition {
        committed_offset: offset,
        ..Partition::default()
    };
    let topic = Topic {
        name: "t".to_owned(),
        partitions: vec![partition],
    };
    Request {
        group_id: GROUP.to_owned(),
        topics: vec![topic],
        ..Request::default()
    }
}

pub(crate) async fn committed(client: &mut Client) -> (ErrorCode, Option<i64>) {
    use kafka::offset_fetch::{Group, Request};
    let group = Group {
        group_id: GROUP.to_owned(),
        ..Group::default()
    };
    let groups = vec![group];
    let request = Request {
        groups,
        ..Request::default()
    };
    let response = client.ask(8, &request).await;
    let group = &response.groups[0];
    let offset = group
        .topics
        .first()
        .map(|it| it.partitions[0].committed_offset);
    (group.error_code, offset)
}

/// A client that has written a record to the topic "t"; it is on disk.
async fn with_a_record(bench: &mut Bench) -> Client {
    let mut client = bench.with_topic("t").await;
    client.send(9, &produce("t", 1, batch(b"one"))).await;
    bench.connect().flush_requests().await;
    bench.sync();
    client.receive::<kafka::produce::Request>(9).await;
    client
}

#[tokio::test(start_paused = true)]
async fn group_requests_are_answered_while_the_disk_stalls() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let told = client.ask(8, &commit(7)).await;
    assert_eq!(told.topics[0].partitions[0].error_code, NOT_NOW);
    // All that a group says rests on what it was told before.
    assert_eq!(committed(&mut client).await, (NOT_NOW, None));
    let beating = kafka::heartbeat::Request {
        group_id: GROUP.to_owned(),
        ..Default::default()
    };
    assert_eq!(client.ask(4, &beating).await.error_code, NOT_NOW);
    let synchronizing = kafka::sync_group::Request {
        group_id: GROUP.to_owned(),
        ..Default::default()
    };
    assert_eq!(client.ask(3, &synchronizing).await.error_code, NOT_NOW);
    let leaving = kafka::leave_group::Request {
        group_id: GROUP.to_owned(),
        ..Default::default()
    };
    assert_eq!(client.ask(3, &leaving).await.error_code, NOT_NOW);
    let describing = kafka::describe_groups::Request {
        groups: vec![GROUP.to_owned()],
        ..Default::default()
    };
    let told = client.ask(5, &describing).await;
    assert_eq!(told.groups[0].error_code, NOT_NOW);
    let listing = kafka::list_groups::Request::default();
    assert_eq!(client.ask(4, &listing).await.error_code, NOT_NOW);
    let deleting = kafka::offset_delete::Request {
        group_id: GROUP.to_owned(),
        ..Default::default()
    };
    assert_eq!(client.ask(0, &deleting).await.error_code, NOT_NOW);
    // It is kept, when the disk is there again.
    bench.sync();
    assert_eq!(committed(&mut client).await, (ErrorCode::None, Some(7)));
    let deleting = kafka::delete_groups::Request {
        groups_names: vec![GROUP.to_owned()],
    };
    let told = client.ask(2, &deleting).await;
    assert_eq!(told.results[0].error_code, NOT_NOW);
    bench.sync();
    assert_eq!(committed(&mut client).await, (ErrorCode::None, None));
}

#[tokio::test(start_paused = true)]
async fn joining_a_group_is_answered_while_its_rebalance_does_not_end() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let protocol = kafka::join_group::Protocol {
        name: "range".to_owned(),
        ..Default::default()
    };
    let joining = kafka::join_group::Request {
        group_id: GROUP.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol],
        ..Default::default()
    };
    assert_eq!(client.ask(3, &joining).await.error_code, NOT_NOW);
}

/// Who the producer is that begins transactions, when that is on disk.
async fn producer(bench: &mut Bench, client: &mut Client) -> (i64, i16) {
    let asking = kafka::init_producer_id::Request {
        transactional_id: Some(TRANSACTION.to_owned()),
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    let refused = client.ask(4, &asking).await;
    assert_eq!((refused.error_code, refused.producer_epoch), (NOT_NOW, -1));
    client.send(4, &asking).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, told) = client.receive::<kafka::init_producer_id::Request>(4).await;
    assert_eq!(told.error_code, ErrorCode::None);
    (told.producer_id, told.producer_epoch)
}

#[tokio::test(start_paused = true)]
async fn transaction_requests_are_answered_while_the_disk_stalls() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let (producer_id, producer_epoch) = producer(&mut bench, &mut client).await;
    let adding = kafka::add_partitions_to_txn::Request {
        v3_and_below_transactional_id: TRANSACTION.to_owned(),
        v3_and_below_producer_id: producer_id,
        v3_and_below_producer_epoch: producer_epoch,
        v3_and_below_topics: vec![kafka::add_partitions_to_txn::Topic {
            name: "t".to_owned(),
            partitions: vec![0],
        }],
        ..Default::default()
    };
    let told = client.ask(3, &adding).await;
    let topic = &told.results_by_topic_v3_and_below[0];
    assert_eq!(topic.results_by_partition[0].partition_error_code, NOT_NOW);
    let adding = kafka::add_offsets_to_txn::Request {
        transactional_id: TRANSACTION.to_owned(),
        producer_id,
        producer_epoch,
        group_id: GROUP.to_owned(),
    };
    assert_eq!(client.ask(3, &adding).await.error_code, NOT_NOW);
    let partition = kafka::txn_offset_commit::Partition {
        committed_offset: 7,
        ..Default::default()
    };
    let committing = kafka::txn_offset_commit::Request {
        transactional_id: TRANSACTION.to_owned(),
        group_id: GROUP.to_owned(),
        producer_id,
        producer_epoch,
        topics: vec![kafka::txn_offset_commit::Topic {
            name: "t".to_owned(),
            partitions: vec![partition],
        }],
        ..Default::default()
    };
    let told = client.ask(3, &committing).await;
    assert_eq!(told.topics[0].partitions[0].error_code, NOT_NOW);
    let ending = kafka::end_txn::Request {
        transactional_id: TRANSACTION.to_owned(),
        producer_id,
        producer_epoch,
        committed: true,
    };
    assert_eq!(client.ask(3, &ending).await.error_code, NOT_NOW);
    let writing = kafka::write_txn_markers::Request {
        markers: vec![kafka::write_txn_markers::Marker {
            producer_id: producer_id + 1,
            topics: vec![kafka::write_txn_markers::Topic {
                name: "t".to_owned(),
                partition_indexes: vec![0],
            }],
            ..Default::default()
        }],
    };
    let told = client.ask(1, &writing).await;
    let partition = &told.markers[0].topics[0].partitions[0];
    assert_eq!(partition.error_code, LATE);
}

#[tokio::test(start_paused = true)]
async fn topic_administration_is_answered_while_the_disk_stalls() {
    let mut bench = Bench::new();
    let mut client = with_a_record(&mut bench).await;

    client.create_topic("new").await;
    let (_, told) = client.receive::<kafka::create_topics::Request>(7).await;
    assert_eq!(told.topics[0].error_code, LATE);
    let growing = kafka::create_partitions::Request {
        topics: vec![kafka::create_partitions::Topic {
            name: "t".to_owned(),
            count: 2,
            ..Default::default()
        }],
        ..Default::default()
    };
    let told = client.ask(3, &growing).await;
    assert_eq!(told.results[0].error_code, LATE);
    let altering = kafka::incremental_alter_configs::Request {
        resources: vec![kafka::incremental_alter_configs::Resource {
            resource_type: 2,
            resource_name: "t".to_owned(),
            configs: Vec::new(),
        }],
        ..Default::default()
    };
    let told = client.ask(1, &altering).await;
    assert_eq!(told.responses[0].error_code, LATE);
    let altering = kafka::alter_configs::Request {
        resources: vec![kafka::alter_configs::Resource {
            resource_type: 2,
            resource_name: "t".to_owned(),
            configs: Vec::new(),
        }],
        ..Default::default()
    };
    let told = client.ask(2, &altering).await;
    assert_eq!(told.responses[0].error_code, LATE);
    let deleting = kafka::delete_records::Request {
        topics: vec![kafka::delete_records::Topic {
            name: "t".to_owned(),
            partitions: vec![kafka::delete_records::Partition {
                partition_index: 0,
                offset: 1,
            }],
        }],
        timeout_ms: 50,
    };
    let told = client.ask(2, &deleting).await;
    assert_eq!(told.topics[0].partitions[0].error_code, LATE);
    let deleting = kafka::delete_topics::Request {
        topic_names: vec!["t".to_owned()],
        timeout_ms: 50,
        ..Default::default()
    };
    let told = client.ask(5, &deleting).await;
    assert_eq!(told.responses[0].error_code, LATE);
    // All of it is done, when the disk is there again.
    bench.sync();
    let told = client.ask(12, &fetch("new", 0, 0)).await;
    assert_eq!(told.responses[0].partitions[0].error_code, ErrorCode::None);
    let told = client.ask(12, &fetch("t", 0, 0)).await;
    let gone = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(told.responses[0].partitions[0].error_code, gone);
}

#[tokio::test(start_paused = true)]
async fn user_changes_are_answered_while_the_disk_stalls() {
    let bench = Bench::with_stored_users();
    let mut client = bench.connect();
    let upsertion = kafka::alter_user_scram_credentials::Upsertion {
        name: "ann".to_owned(),
        mechanism: 1,
        iterations: 4_096,
        salt: kafka::Secret(vec![1; 16].into()),
        salted_password: kafka::Secret(vec![2; 32].into()),
    };
    let altering = kafka::alter_user_scram_credentials::Request {
        upsertions: vec![upsertion],
        ..Default::default()
    };
    let told = client.ask(0, &altering).await;
    assert_eq!(told.results[0].error_code, LATE);
}

#[tokio::test(start_paused = true)]
async fn reads_are_answered_while_the_disk_stalls() {
    let mut bench = Bench::new();
    let mut client = with_a_record(&mut bench).await;
    bench.block_disk_reads();
    let told = client.ask(12, &fetch("t", 0, 500)).await;
    let partition = &told.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::KafkaStorageError);
    assert!(partition.records.as_ref().unwrap().is_empty());
    let listing = kafka::list_offsets::Request {
        topics: vec![kafka::list_offsets::Topic {
            name: "t".to_owned(),
            partitions: vec![kafka::list_offsets::Partition {
                timestamp: 1,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let told = client.ask(9, &listing).await;
    assert_eq!(told.topics[0].partitions[0].error_code, LATE);
}
