//! A member of a cluster of three: brokers, replicas, coordinators, and what a cluster refuses.

use std::sync::Arc;

use journal::ShardId;
use kafka::{
    ApiKey, ErrorCode, add_offsets_to_txn, add_partitions_to_txn, alter_partition_reassignments,
    api_versions, create_partitions, create_topics, describe_cluster, describe_configs,
    describe_quorum, describe_topic_partitions, describe_transactions, elect_leaders, end_txn,
    find_coordinator, incremental_alter_configs, init_producer_id, list_config_resources,
    list_transactions, metadata, offset_for_leader_epoch, txn_offset_commit, write_txn_markers,
};
use platform::testing::ThreeMembers;

use crate::{Bench, Client};

const CLUSTER_ID: u64 = 0x0102_0304_0506_0708;

/// A bench of the leader, and a client with a topic `t`.
async fn bench() -> (Arc<ThreeMembers>, Bench, Client) {
    let members = Arc::new(ThreeMembers::new(CLUSTER_ID));
    let mut bench = Bench::in_cluster(members.clone());
    let client = bench.with_topic("t").await;
    (members, bench, client)
}

fn topics_request() -> metadata::Request {
    metadata::Request {
        topics: None,
        ..metadata::Request::default()
    }
}

#[tokio::test]
async fn metadata_names_three_brokers_and_the_leader() {
    let (members, _bench, mut client) = bench().await;
    let response = client.ask(9, &topics_request()).await;
    let brokers = response.brokers.iter();
    let brokers: Vec<_> = brokers.map(|it| (it.node_id, &*it.host, it.port)).collect();
    assert_eq!(
        brokers,
        [
            (1, "node-1", 9092),
            (2, "node-2", 9092),
            (3, "node-3", 9092)
        ]
    );
    assert_eq!(response.controller_id, 1);
    assert_eq!(response.cluster_id.as_deref(), Some("AQIDBAUGBwg"));
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::None);
    assert_eq!(partition.leader_id, 1);
    assert_eq!(partition.replica_nodes, [1, 2, 3]);
    assert_eq!(partition.isr_nodes, [1, 2]);

    members.set_leader(Some(2));
    let response = client.ask(9, &topics_request()).await;
    assert_eq!(response.controller_id, 2);
    assert_eq!(response.topics[0].partitions[0].leader_id, 2);
}

#[tokio::test]
async fn unknown_leader_is_leader_not_available() {
    let (members, _bench, mut client) = bench().await;
    members.set_leader(None);
    let response = client.ask(9, &topics_request()).await;
    assert_eq!(response.controller_id, -1);
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::LeaderNotAvailable);
    assert_eq!(partition.leader_id, -1);
    assert_eq!(partition.replica_nodes, [1, 2, 3]);

    let request = describe_topic_partitions::Request::default();
    let response = client.ask(0, &request).await;
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::LeaderNotAvailable);
    assert_eq!(partition.leader_id, -1);

    let response = client.ask(4, &coordinator(0)).await;
    let found = &response.coordinators[0];
    assert_eq!(found.error_code, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(found.node_id, -1);

    let election = client.ask(1, &election()).await;
    let elected = &election.replica_election_results[0].partition_result[0];
    assert_eq!(elected.error_code, ErrorCode::EligibleLeadersNotAvailable);
}

fn coordinator(key_type: i8) -> find_coordinator::Request {
    find_coordinator::Request {
        key_type,
        coordinator_keys: vec!["g".to_owned()],
        ..find_coordinator::Request::default()
    }
}

fn election() -> elect_leaders::Request {
    elect_leaders::Request {
        topic_partitions: Some(vec![elect_leaders::TopicPartitions {
            topic: "t".to_owned(),
            partitions: vec![0],
        }]),
        ..elect_leaders::Request::default()
    }
}

#[tokio::test]
async fn creation_of_a_topic_waits_while_the_members_change() {
    let members = Arc::new(ThreeMembers::new(CLUSTER_ID));
    let mut bench = Bench::in_cluster_committing(members);
    let journal = bench.committed_by_bench.clone().unwrap();
    let shards = || (0..journal.shard_count()).map(ShardId);
    shards().for_each(|shard| journal.pause(shard));
    let mut client = bench.connect();
    client.create_topic("t").await;
    // Another connection goes on.
    bench.connect().flush_requests().await;
    assert!(bench.node.topics().unwrap().list().is_empty());
    shards().for_each(|shard| journal.resume(shard));
    while bench.node.topics().unwrap().list().is_empty() {
        tokio::task::yield_now().await;
    }
    bench.sync();
    client.created().await;
}

#[tokio::test]
async fn groups_are_coordinated_by_the_leader() {
    let (members, _bench, mut client) = bench().await;
    members.set_leader(Some(3));
    let response = client.ask(4, &coordinator(0)).await;
    let found = &response.coordinators[0];
    assert_eq!(found.error_code, ErrorCode::None);
    assert_eq!(
        (found.node_id, &*found.host, found.port),
        (3, "node-3", 9092)
    );
    let request = find_coordinator::Request {
        key: "g".to_owned(),
        ..find_coordinator::Request::default()
    };
    let response = client.ask(2, &request).await;
    assert_eq!((response.node_id, &*response.host), (3, "node-3"));
}

#[tokio::test]
async fn cluster_and_quorum_are_described() {
    let (_, _bench, mut client) = bench().await;
    let request = describe_cluster::Request {
        endpoint_type: 1,
        ..describe_cluster::Request::default()
    };
    let response = client.ask(1, &request).await;
    let ids: Vec<_> = response.brokers.iter().map(|it| it.broker_id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(response.controller_id, 1);
    assert_eq!(response.cluster_id, "AQIDBAUGBwg");

    let request = describe_quorum::Request {
        topics: vec![describe_quorum::Topic {
            topic_name: "__cluster_metadata".to_owned(),
            partitions: vec![describe_quorum::Partition { partition_index: 0 }],
        }],
    };
    let response = client.ask(2, &request).await;
    let partition = &response.topics[0].partitions[0];
    let voters = partition.current_voters.iter().map(|it| it.replica_id);
    assert_eq!(voters.collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(partition.leader_id, 1);
    assert_eq!(response.nodes.len(), 3);
}

/// Validates a new topic, and returns its error code.
async fn validated(client: &mut Client, topic: create_topics::Topic) -> ErrorCode {
    let request = create_topics::Request {
        topics: vec![topic],
        validate_only: true,
        ..create_topics::Request::default()
    };
    client.ask(7, &request).await.topics[0].error_code
}

fn new_topic(replication_factor: i16) -> create_topics::Topic {
    create_topics::Topic {
        name: "new".to_owned(),
        num_partitions: 1,
        replication_factor,
        ..create_topics::Topic::default()
    }
}

#[tokio::test]
async fn replication_factor_is_at_most_the_number_of_brokers() {
    let (_, _bench, mut client) = bench().await;
    let refused = ErrorCode::InvalidReplicationFactor;
    for (factor, expected) in [
        (-1, ErrorCode::None),
        (1, ErrorCode::None),
        (2, ErrorCode::None),
        (3, ErrorCode::None),
        (4, refused),
        (0, refused),
        (-2, refused),
    ] {
        let code = validated(&mut client, new_topic(factor)).await;
        assert_eq!(code, expected, "{factor}");
    }
}

#[tokio::test]
async fn assignments_name_members_once() {
    let (_, _bench, mut client) = bench().await;
    let refused = ErrorCode::InvalidReplicaAssignment;
    for (broker_ids, expected) in [
        (vec![1, 2, 3], ErrorCode::None),
        (vec![2], ErrorCode::None),
        (vec![1, 1], refused),
        (vec![4], refused),
        (vec![], refused),
    ] {
        let assignment = create_topics::Assignment {
            partition_index: 0,
            broker_ids: broker_ids.clone(),
        };
        let topic = create_topics::Topic {
            name: "new".to_owned(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: vec![assignment],
            ..create_topics::Topic::default()
        };
        let code = validated(&mut client, topic).await;
        assert_eq!(code, expected, "{broker_ids:?}");

        let request = create_partitions::Request {
            topics: vec![create_partitions::Topic {
                name: "t".to_owned(),
                count: 2,
                assignments: Some(vec![create_partitions::Assignment {
                    broker_ids: broker_ids.clone(),
                }]),
            }],
            validate_only: true,
            ..create_partitions::Request::default()
        };
        let response = client.ask(3, &request).await;
        assert_eq!(response.results[0].error_code, expected, "{broker_ids:?}");
    }
}

#[tokio::test]
async fn min_insync_replicas_is_the_quorum() {
    let (_, _bench, mut client) = bench().await;
    for (value, expected) in [
        ("1", ErrorCode::None),
        ("2", ErrorCode::None),
        ("3", ErrorCode::InvalidConfig),
    ] {
        let config = create_topics::Config {
            name: "min.insync.replicas".to_owned(),
            value: Some(value.to_owned()),
        };
        let topic = create_topics::Topic {
            configs: vec![config],
            ..new_topic(3)
        };
        let code = validated(&mut client, topic).await;
        assert_eq!(code, expected, "{value}");

        let request = incremental_alter_configs::Request {
            resources: vec![incremental_alter_configs::Resource {
                resource_type: 2,
                resource_name: "t".to_owned(),
                configs: vec![incremental_alter_configs::Config {
                    name: "min.insync.replicas".to_owned(),
                    config_operation: 0,
                    value: Some(value.to_owned()),
                }],
            }],
            validate_only: true,
        };
        let response = client.ask(1, &request).await;
        assert_eq!(response.responses[0].error_code, expected, "{value}");
    }
    let configs = described(&mut client, 2, "t").await.unwrap();
    let shown = configs.iter().find(|it| it.name == "min.insync.replicas");
    assert_eq!(shown.unwrap().value.as_deref(), Some("2"));
}

async fn described(
    client: &mut Client,
    resource_type: i8,
    name: &str,
) -> Result<Vec<describe_configs::Config>, ErrorCode> {
    let request = describe_configs::Request {
        resources: vec![describe_configs::Resource {
            resource_type,
            resource_name: name.to_owned(),
            configuration_keys: None,
        }],
        ..describe_configs::Request::default()
    };
    let mut response = client.ask(4, &request).await;
    let result = response.results.remove(0);
    match result.error_code {
        ErrorCode::None => Ok(result.configs),
        code => Err(code),
    }
}

#[tokio::test]
async fn configuration_of_each_broker_is_described() {
    let (_, _bench, mut client) = bench().await;
    let request = list_config_resources::Request {
        resource_types: vec![4],
    };
    let response = client.ask(1, &request).await;
    let names = response.config_resources.iter();
    let names: Vec<_> = names.map(|it| &*it.resource_name).collect();
    assert_eq!(names, ["1", "2", "3"]);
    let configs = described(&mut client, 4, "2").await.unwrap();
    let value = |name: &str| {
        let config = configs.iter().find(|it| it.name == name).unwrap();
        config.value.as_deref().unwrap()
    };
    assert_eq!(value("node.id"), "2");
    assert_eq!(value("advertised.listeners"), "PLAINTEXT://node-2:9092");
    assert_eq!(value("default.replication.factor"), "3");
    let unknown = described(&mut client, 4, "4").await;
    assert_eq!(unknown.unwrap_err(), ErrorCode::InvalidRequest);
}

#[tokio::test]
async fn partitions_stay_on_their_replicas() {
    let (_, _bench, mut client) = bench().await;
    let refused = ErrorCode::InvalidReplicaAssignment;
    for (replicas, expected) in [
        (vec![3, 1, 2], ErrorCode::None),
        (vec![1], refused),
        (vec![1, 2, 4], refused),
    ] {
        let request = alter_partition_reassignments::Request {
            topics: vec![alter_partition_reassignments::Topic {
                name: "t".to_owned(),
                partitions: vec![alter_partition_reassignments::Partition {
                    partition_index: 0,
                    replicas: Some(replicas.clone()),
                }],
            }],
            ..alter_partition_reassignments::Request::default()
        };
        let response = client.ask(0, &request).await;
        let code = response.responses[0].partitions[0].error_code;
        assert_eq!(code, expected, "{replicas:?}");
    }
    let election = client.ask(1, &election()).await;
    let elected = &election.replica_election_results[0].partition_result[0];
    assert_eq!(elected.error_code, ErrorCode::ElectionNotNeeded);
}

#[tokio::test]
async fn epochs_of_a_partition_led_elsewhere_are_refused() {
    let (members, _bench, mut client) = bench().await;
    let request = offset_for_leader_epoch::Request {
        topics: vec![offset_for_leader_epoch::Topic {
            topic: "t".to_owned(),
            partitions: vec![offset_for_leader_epoch::Partition {
                leader_epoch: 0,
                ..offset_for_leader_epoch::Partition::default()
            }],
        }],
        ..offset_for_leader_epoch::Request::default()
    };
    let response = client.ask(4, &request).await;
    assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::None);
    members.set_leader(Some(2));
    let response = client.ask(4, &request).await;
    assert_eq!(
        response.topics[0].partitions[0].error_code,
        ErrorCode::NotLeaderOrFollower
    );
}

#[tokio::test]
async fn transactions_are_refused_and_not_listed() {
    let (_, _bench, mut client) = bench().await;
    let versions = client.ask(0, &api_versions::Request::default()).await;
    let has = |key: ApiKey| versions.api_keys.iter().any(|it| it.api_key == key.code());
    for key in [
        ApiKey::AddPartitionsToTxn,
        ApiKey::AddOffsetsToTxn,
        ApiKey::EndTxn,
        ApiKey::WriteTxnMarkers,
        ApiKey::TxnOffsetCommit,
        ApiKey::DescribeTransactions,
        ApiKey::ListTransactions,
    ] {
        assert!(!has(key), "{key:?}");
    }
    assert!(has(ApiKey::InitProducerId) && has(ApiKey::Produce));

    let refused = ErrorCode::UnsupportedVersion;
    let id = || "tx".to_owned();
    let response = client.ask(4, &coordinator(1)).await;
    assert_eq!(response.coordinators[0].error_code, refused);
    let request = find_coordinator::Request {
        key: id(),
        key_type: 1,
        ..find_coordinator::Request::default()
    };
    let response = client.ask(2, &request).await;
    let code = ErrorCode::TransactionalIdAuthorizationFailed;
    assert_eq!(response.error_code, code, "the one that librdkafka shows");
    let message = response.error_message.unwrap_or_default();
    assert!(
        message.contains("a cluster has no transactions"),
        "{message}"
    );
    let request = init_producer_id::Request {
        transactional_id: Some(id()),
        transaction_timeout_ms: 1_000,
        ..init_producer_id::Request::default()
    };
    assert_eq!(client.ask(4, &request).await.error_code, refused);
    let request = add_partitions_to_txn::Request {
        v3_and_below_transactional_id: id(),
        v3_and_below_topics: vec![add_partitions_to_txn::Topic {
            name: "t".to_owned(),
            partitions: vec![0],
        }],
        ..add_partitions_to_txn::Request::default()
    };
    let response = client.ask(3, &request).await;
    let topic = &response.results_by_topic_v3_and_below[0];
    assert_eq!(topic.results_by_partition[0].partition_error_code, refused);
    let request = add_offsets_to_txn::Request {
        transactional_id: id(),
        group_id: "g".to_owned(),
        ..add_offsets_to_txn::Request::default()
    };
    assert_eq!(client.ask(3, &request).await.error_code, refused);
    let request = end_txn::Request {
        transactional_id: id(),
        ..end_txn::Request::default()
    };
    assert_eq!(client.ask(3, &request).await.error_code, refused);
    let request = txn_offset_commit::Request {
        transactional_id: id(),
        group_id: "g".to_owned(),
        topics: vec![txn_offset_commit::Topic {
            name: "t".to_owned(),
            partitions: vec![txn_offset_commit::Partition::default()],
        }],
        ..txn_offset_commit::Request::default()
    };
    let response = client.ask(3, &request).await;
    assert_eq!(response.topics[0].partitions[0].error_code, refused);
    let request = describe_transactions::Request {
        transactional_ids: vec![id()],
    };
    let response = client.ask(0, &request).await;
    assert_eq!(response.transaction_states[0].error_code, refused);
    let request = list_transactions::Request::default();
    assert_eq!(client.ask(1, &request).await.error_code, refused);
    let request = write_txn_markers::Request {
        markers: vec![write_txn_markers::Marker {
            topics: vec![write_txn_markers::Topic {
                name: "t".to_owned(),
                partition_indexes: vec![0],
            }],
            ..write_txn_markers::Marker::default()
        }],
    };
    let response = client.ask(1, &request).await;
    let partition = &response.markers[0].topics[0].partitions[0];
    assert_eq!(partition.error_code, refused);
}
