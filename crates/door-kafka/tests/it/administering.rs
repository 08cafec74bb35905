//! Requests of administrators: users, configurations and the cluster id.

use std::sync::Arc;

use access::Principal;
use door::{Gate, Pass, Refused, Role};
use door_kafka::NoUsers;
use kafka::{ErrorCode, RequestBody, Secret, alter_user_scram_credentials as alter, metadata};
use kafka::{describe_configs, describe_user_scram_credentials as describe};

use crate::{Bench, Client};

/// Admits every client as an agent without administrator rights.
struct Agents;

impl Gate for Agents {
    fn admit(&self, _: &str) -> Result<Pass, Refused> {
        Ok(Pass::new(Principal::anonymous(Role::Agent)))
    }
}

/// Asks for a change, and lets it become durable.
async fn changed<R: RequestBody>(bench: &mut Bench, client: &mut Client, asked: &R) -> R::Response {
    client.send(0, asked).await;
    bench.connect().flush_requests().await;
    bench.sync();
    client.receive::<R>(0).await.1
}

fn upsertion(name: &str, mechanism: i8, iterations: i32) -> alter::Upsertion {
    let size = if mechanism == 2 { 64 } else { 32 };
    alter::Upsertion {
        name: name.to_owned(),
        mechanism,
        iterations,
        salt: Secret(vec![7; 16].into()),
        salted_password: Secret(vec![1; size].into()),
    }
}

fn deletion(name: &str, mechanism: i8) -> alter::Deletion {
    alter::Deletion {
        name: name.to_owned(),
        mechanism,
    }
}

fn codes(response: &alter::Response) -> Vec<(&str, ErrorCode)> {
    let results = response.results.iter();
    results
        .map(|it| (it.user.as_str(), it.error_code))
        .collect()
}

#[tokio::test]
async fn user_changes_succeed_independently_and_descriptions_omit_secrets() {
    let mut bench = Bench::new();
    let mut client = bench.connect();
    client.flush_requests().await;
    let request = alter::Request {
        deletions: vec![deletion("both", 1), deletion("nobody", 1)],
        upsertions: vec![
            upsertion("ann", 1, 4_096),
            upsertion("ann", 2, 8_192),
            upsertion("both", 1, 4_096),
            upsertion("few", 1, 4_095),
            upsertion("odd", 3, 4_096),
            upsertion("twice", 1, 4_096),
            upsertion("twice", 1, 8_192),
        ],
    };
    let response = changed(&mut bench, &mut client, &request).await;
    let expected = [
        ("ann", ErrorCode::None),
        ("both", ErrorCode::ResourceNotFound),
        ("few", ErrorCode::UnacceptableCredential),
        ("nobody", ErrorCode::ResourceNotFound),
        ("odd", ErrorCode::UnsupportedSaslMechanism),
        ("twice", ErrorCode::DuplicateResource),
    ];
    assert_eq!(codes(&response), expected);
    let described = client.ask(0, &describe::Request::default()).await;
    let [ann] = &described.results[..] else {
        panic!("{described:?}");
    };
    let infos = ann.credential_infos.iter();
    let infos: Vec<_> = infos.map(|it| (it.mechanism, it.iterations)).collect();
    assert_eq!(
        (ann.user.as_str(), infos),
        ("ann", vec![(1, 4_096), (2, 8_192)])
    );
    let users = ["ann", "bob"].map(|name| describe::UserName {
        name: name.to_owned(),
    });
    let users = Some(users.to_vec());
    let described = client.ask(0, &describe::Request { users }).await;
    let found: Vec<_> = described.results.iter().map(|it| it.error_code).collect();
    assert_eq!(found, [ErrorCode::None, ErrorCode::ResourceNotFound]);
    let request = alter::Request {
        deletions: vec![deletion("ann", 1), deletion("ann", 2)],
        ..alter::Request::default()
    };
    let response = changed(&mut bench, &mut client, &request).await;
    assert_eq!(codes(&response), [("ann", ErrorCode::None)]);
    let described = client.ask(0, &describe::Request::default()).await;
    assert!(described.results.is_empty());
}

#[tokio::test]
async fn only_an_administrator_changes_or_describes_users() {
    let bench = Bench::with(Arc::new(Agents), Arc::new(NoUsers));
    let mut client = bench.connect();
    let request = alter::Request {
        upsertions: vec![upsertion("ann", 1, 4_096)],
        ..alter::Request::default()
    };
    let response = client.ask(0, &request).await;
    let refused = ErrorCode::ClusterAuthorizationFailed;
    assert_eq!(codes(&response), [("ann", refused)]);
    let described = client.ask(0, &describe::Request::default()).await;
    assert_eq!(described.error_code, refused);
    let topics = bench.node.topics().unwrap();
    assert!(!topics.has_users());
}

#[tokio::test]
async fn only_an_administrator_writes_markers_of_transactions() {
    let bench = Bench::with(Arc::new(Agents), Arc::new(NoUsers));
    let mut client = bench.connect();
    let topic = |name: &str| kafka::write_txn_markers::Topic {
        name: name.to_owned(),
        partition_indexes: vec![0, 1],
    };
    let request = kafka::write_txn_markers::Request {
        markers: vec![kafka::write_txn_markers::Marker {
            producer_id: 7,
            topics: vec![topic("a"), topic("b")],
            ..Default::default()
        }],
    };
    let told = client.ask(1, &request).await;
    let partitions = told.markers[0].topics.iter().flat_map(|it| &it.partitions);
    let codes: Vec<_> = partitions
        .map(|it| (it.partition_index, it.error_code))
        .collect();
    let refused = ErrorCode::ClusterAuthorizationFailed;
    assert_eq!(
        codes,
        [(0, refused), (1, refused), (0, refused), (1, refused)]
    );
}

#[tokio::test]
async fn each_data_directory_is_a_cluster_of_its_own() {
    let cluster = async |journal_id| {
        let bench = Bench::of_journal(journal_id);
        let mut client = bench.connect();
        let response = client.ask(4, &metadata::Request::default()).await;
        response.cluster_id.unwrap()
    };
    let one = cluster(1).await;
    assert_eq!(cluster(1).await, one);
    assert_ne!(cluster(2).await, one);
}

#[tokio::test]
async fn configs_set_by_node_options_are_described_with_their_source() {
    let mut defaults = topics::Config::default();
    let set = topics::Alter::Set("1000");
    defaults.alter(topics::Key::RetentionMs, set).unwrap();
    let mut bench = Bench::of_topics(topic_service::Options {
        defaults,
        ..topic_service::Options::default()
    });
    let mut client = bench.with_topic("t").await;
    let resource = |resource_type, name: &str, key: &str| describe_configs::Resource {
        resource_type,
        resource_name: name.to_owned(),
        configuration_keys: Some(vec![key.to_owned()]),
    };
    let request = describe_configs::Request {
        resources: vec![
            resource(2, "t", "retention.ms"),
            resource(2, "t", "retention.bytes"),
            resource(4, "1", "log.retention.ms"),
        ],
        include_synonyms: true,
        ..describe_configs::Request::default()
    };
    let response = client.ask(4, &request).await;
    let shown: Vec<_> = response
        .results
        .iter()
        .map(|it| {
            let config = &it.configs[0];
            let sources = config
                .synonyms
                .iter()
                .map(|it| it.source)
                .collect::<Vec<_>>();
            (
                config.value.as_deref().unwrap(),
                config.config_source,
                sources,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("1000", 4, vec![4, 5]),
            ("-1", 5, vec![5]),
            ("1000", 4, vec![4, 5])
        ]
    );
}
