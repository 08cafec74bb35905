//! Authorized operations, and the configuration of the broker.

use kafka::{
    ErrorCode, alter_partition_reassignments, api_versions, consumer_group_heartbeat,
    describe_cluster, describe_configs, describe_groups, describe_quorum,
    describe_topic_partitions, elect_leaders, list_config_resources, list_partition_reassignments,
    metadata,
};

use crate::Bench;

#[tokio::test]
async fn all_authorized_operations_are_granted_if_requested() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let (topic, cluster, group) = (0x0df8, 0x1fa0, 0x0d48);
    let metadata = |is_asked| metadata::Request {
        topics: Some(vec![metadata::TopicRequest {
            name: Some("t".to_owned()),
            ..metadata::TopicRequest::default()
        }]),
        include_topic_authorized_operations: is_asked,
        include_cluster_authorized_operations: is_asked,
        ..metadata::Request::default()
    };
    let response = client.ask(9, &metadata(true)).await;
    assert_eq!(response.topics[0].topic_authorized_operations, topic);
    assert_eq!(response.cluster_authorized_operations, cluster);
    let response = client.ask(9, &metadata(false)).await;
    assert_eq!(response.topics[0].topic_authorized_operations, i32::MIN);
    assert_eq!(response.cluster_authorized_operations, i32::MIN);

    let request = describe_cluster::Request {
        include_cluster_authorized_operations: true,
        endpoint_type: 1,
        ..describe_cluster::Request::default()
    };
    let response = client.ask(1, &request).await;
    assert_eq!(response.cluster_authorized_operations, cluster);

    let request = describe_groups::Request {
        groups: vec!["g".to_owned()],
        include_authorized_operations: true,
    };
    let response = client.ask(5, &request).await;
    assert_eq!(response.groups[0].authorized_operations, group);

    let request = describe_topic_partitions::Request {
        response_partition_limit: 10,
        ..describe_topic_partitions::Request::default()
    };
    let response = client.ask(0, &request).await;
    assert_eq!(response.topics[0].topic_authorized_operations, topic);
}

#[tokio::test]
async fn the_broker_has_synonyms_and_documentation() {
    let bench = Bench::new();
    let mut client = bench.connect();
    let request = describe_configs::Request {
        resources: vec![describe_configs::Resource {
            resource_type: 4,
            resource_name: "1".to_owned(),
            configuration_keys: None,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    let response = client.ask(4, &request).await;
    let configs = &response.results[0].configs;
    let names: Vec<_> = configs.iter().map(|it| it.name.as_str()).collect();
    assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    for config in configs {
        assert!(config.read_only, "{}", config.name);
        assert!(config.documentation.is_some(), "{}", config.name);
        assert!(!config.synonyms.is_empty(), "{}", config.name);
        assert_eq!(config.synonyms[0].source, config.config_source);
        assert_eq!(config.synonyms[0].value, config.value);
    }
    let find = |name: &str| configs.iter().find(|it| it.name == name).unwrap();
    let value = |name: &str| find(name).value.as_deref().unwrap();
    assert_eq!(value("advertised.listeners"), "PLAINTEXT://127.0.0.1:9092");
    assert_eq!(value("min.insync.replicas"), "1");
    assert_eq!(value("message.max.bytes"), "1048588");
    assert_eq!(value("log.cleanup.policy"), "delete");
    assert_eq!(value("num.partitions"), "3");
    // What was not set is Kafka's default; what differs from it was given at the start.
    assert_eq!(find("min.insync.replicas").config_source, 5);
    assert_eq!(find("num.partitions").config_source, 4);
    assert_eq!(find("log.retention.ms").config_type, 5);
}

#[tokio::test]
async fn a_single_broker_answers_elections_reassignments_and_quorum_requests() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let request = elect_leaders::Request {
        topic_partitions: Some(vec![elect_leaders::TopicPartitions {
            topic: "t".to_owned(),
            partitions: vec![0, 7],
        }]),
        ..elect_leaders::Request::default()
    };
    let response = client.ask(2, &request).await;
    let results = &response.replica_election_results[0].partition_result;
    let codes: Vec<_> = results.iter().map(|it| it.error_code).collect();
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(codes, [ErrorCode::ElectionNotNeeded, unknown]);

    let moved = |index, replicas| alter_partition_reassignments::Partition {
        partition_index: index,
        replicas,
    };
    let request = alter_partition_reassignments::Request {
        topics: vec![alter_partition_reassignments::Topic {
            name: "t".to_owned(),
            partitions: vec![
                moved(0, Some(vec![1])),
                moved(0, Some(vec![2])),
                moved(0, None),
                moved(7, Some(vec![1])),
            ],
        }],
        ..alter_partition_reassignments::Request::default()
    };
    let response = client.ask(0, &request).await;
    let results = &response.responses[0].partitions;
    let codes: Vec<_> = results.iter().map(|it| it.error_code).collect();
    let expected = [
        ErrorCode::None,
        ErrorCode::InvalidReplicaAssignment,
        ErrorCode::NoReassignmentInProgress,
        unknown,
    ];
    assert_eq!(codes, expected);
    let request = list_partition_reassignments::Request::default();
    let response = client.ask(0, &request).await;
    assert_eq!(
        (response.error_code, response.topics.len()),
        (ErrorCode::None, 0)
    );

    let request = |topic: &str| describe_quorum::Request {
        topics: vec![describe_quorum::Topic {
            topic_name: topic.to_owned(),
            partitions: vec![describe_quorum::Partition { partition_index: 0 }],
        }],
    };
    let response = client.ask(1, &request("__cluster_metadata")).await;
    let quorum = &response.topics[0].partitions[0];
    let voters: Vec<_> = quorum
        .current_voters
        .iter()
        .map(|it| it.replica_id)
        .collect();
    assert_eq!(
        (quorum.error_code, quorum.leader_id, voters),
        (ErrorCode::None, 1, vec![1])
    );
    let response = client.ask(1, &request("t")).await;
    assert_eq!(response.topics[0].partitions[0].error_code, unknown);
}

#[tokio::test]
async fn resources_with_a_configuration_are_the_topics_and_the_broker() {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    let request = |types: &[i8]| list_config_resources::Request {
        resource_types: types.to_vec(),
    };
    for (types, expected) in [
        (&[][..], &[("t", 2), ("1", 4)][..]),
        (&[2], &[("t", 2)]),
        (&[4], &[("1", 4)]),
        (&[16, 32], &[]),
    ] {
        let response = client.ask(1, &request(types)).await;
        assert_eq!(response.error_code, ErrorCode::None);
        let shown = response.config_resources.iter();
        let shown: Vec<_> = shown
            .map(|it| (it.resource_name.as_str(), it.resource_type))
            .collect();
        assert_eq!(shown, expected);
    }
    let response = client.ask(1, &request(&[77])).await;
    assert_eq!(response.error_code, ErrorCode::UnsupportedVersion);
    // Version 0 asks for client metrics, of which there are none.
    let response = client.ask(0, &request(&[])).await;
    assert!(response.config_resources.is_empty());
}

#[tokio::test]
async fn the_consumer_protocol_is_advertised_and_refused_at_once() {
    let bench = Bench::new();
    let mut client = bench.connect();
    let request = api_versions::Request {
        client_software_name: "test".to_owned(),
        client_software_version: "1".to_owned(),
    };
    let served = client.ask(3, &request).await;
    // librdkafka asks for version 1, and waits silently for a broker that has version 0 only.
    let mut apis = served.api_keys.iter();
    assert!(apis.any(|api| api.api_key == 68 && api.max_version == 1));
    let request = consumer_group_heartbeat::Request {
        group_id: "g".to_owned(),
        subscribed_topic_names: Some(vec!["t".to_owned()]),
        topic_partitions: Some(Vec::new()),
        ..consumer_group_heartbeat::Request::default()
    };
    for version in [0, 1] {
        let response = client.ask(version, &request).await;
        assert_eq!(response.error_code, ErrorCode::UnsupportedVersion);
        let message = response.error_message.unwrap();
        assert!(message.contains("group.protocol=classic"), "{message}");
    }
}
