//! A member that does not lead: it passes requests to the leader, and answers them while there is none.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use door::Open;
use door_kafka::{
    Arrived, Door, Follower, KnownServices, KnownTopic, Leader, LeaderStream, Options,
};
use kafka::{
    ApiKey, ErrorCode, RequestBody, Uuid, api_versions, create_topics, fetch, find_coordinator,
    heartbeat, init_producer_id, join_group, leave_group, list_offsets, metadata, offset_commit,
    offset_fetch, offset_for_leader_epoch, produce, sync_group,
};
use net::Stream;
use parking_lot::Mutex;
use platform::testing::ThreeMembers;

use crate::client::{batch, produce as produce_request};
use crate::{Bench, Client};

/// The leader that a member finds, and what the member knows of its services.
struct Found {
    known: Option<KnownServices>,
    leader: Mutex<Option<Services>>,
}

/// The services of a leader.
#[derive(Clone)]
enum Services {
    Door(Door),
    /// They do not answer. The streams stay open here.
    Silent(Arc<Mutex<Vec<Stream>>>),
    /// They have ended when a connection to them is made.
    Ended,
}

impl Leader for Found {
    async fn connect(&self, _: Duration) -> Option<LeaderStream> {
        let services = self.leader.lock().clone()?;
        let (stream, far) = net::inproc::pair("leader");
        match services {
            Services::Door(door) => {
                let local = "127.0.0.1:9092".parse().unwrap();
                tokio::spawn(async move { door.serve(Arrived { stream: far, local }).await });
            }
            Services::Silent(streams) => streams.lock().push(far),
            Services::Ended => drop(far),
        }
        let end: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(std::future::pending());
        Some(LeaderStream { stream, end })
    }

    fn known(&self) -> Option<KnownServices> {
        self.known.clone()
    }
}

impl Found {
    fn none() -> Arc<Self> {
        Self::with(Some(known(false)), None)
    }

    fn with(known: Option<KnownServices>, leader: Option<Services>) -> Arc<Self> {
        let leader = Mutex::new(leader);
        Arc::new(Self { known, leader })
    }

    fn silent() -> (Arc<Self>, Arc<Mutex<Vec<Stream>>>) {
        let streams = Arc::<Mutex<Vec<Stream>>>::default();
        let leader = Services::Silent(streams.clone());
        (Self::with(Some(known(false)), Some(leader)), streams)
    }
}

/// Services with a topic `t` of two partitions.
fn known(has_users: bool) -> KnownServices {
    let topic = KnownTopic {
        name: "t".to_owned(),
        id: [7; 16],
        partitions: 2,
    };
    KnownServices {
        has_users,
        topics: Some(Arc::new([topic])),
    }
}

/// Connects to a member of three.
fn connect(leader: &Arc<Found>) -> Client {
    let (near, stream) = net::inproc::pair("follower");
    let members = Arc::new(ThreeMembers::new(7));
    members.set_leader(None);
    let follower = Follower::new(members, Arc::new(Open), Options::default());
    let leader = leader.clone();
    tokio::spawn(async move {
        let local = "127.0.0.1:9092".parse().unwrap();
        follower.serve(Arrived { stream, local }, &*leader).await;
    });
    Client::new(near)
}

fn of_topic(name: &str) -> metadata::Request {
    let topic = metadata::TopicRequest {
        name: Some(name.to_owned()),
        ..Default::default()
    };
    metadata::Request {
        topics: Some(vec![topic]),
        ..Default::default()
    }
}

#[tokio::test]
async fn member_without_a_leader_answers_new_connections() {
    let mut client = connect(&Found::none());
    let request = api_versions::Request {
        client_software_name: "test".to_owned(),
        client_software_version: "1".to_owned(),
    };
    let versions = client.ask(3, &request).await;
    assert_eq!(versions.error_code, ErrorCode::None);
    let serves = |key: ApiKey| versions.api_keys.iter().any(|it| it.api_key == key.code());
    assert!(serves(ApiKey::Produce));
    assert!(!serves(ApiKey::EndTxn), "a cluster has no transactions");

    let response = client.ask(9, &of_topic("t")).await;
    let brokers = response.brokers.iter().map(|it| (it.node_id, &*it.host));
    let expected = [(1, "node-1"), (2, "node-2"), (3, "node-3")];
    assert_eq!(brokers.collect::<Vec<_>>(), expected);
    assert_eq!(response.controller_id, -1);
    check_topic(&response.topics[0]);
    // Topics that this member does not know yet, and all topics.
    let response = client.ask(9, &of_topic("new")).await;
    let expected = ErrorCode::LeaderNotAvailable;
    assert_eq!(response.topics[0].error_code, expected);
    let response = client.ask(9, &metadata::Request::default()).await;
    assert_eq!(response.topics.len(), 1);
    check_topic(&response.topics[0]);

    let request = find_coordinator::Request {
        coordinator_keys: vec!["g".to_owned()],
        ..Default::default()
    };
    let found = client.ask(4, &request).await;
    let expected = ErrorCode::CoordinatorNotAvailable;
    assert_eq!(found.coordinators[0].error_code, expected);

    let produced = client.ask(9, &produce_request("t", -1, batch(b"a"))).await;
    let partition = &produced.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower);
}

fn check_topic(topic: &metadata::Topic) {
    assert_eq!(topic.name.as_deref(), Some("t"));
    assert_eq!(topic.error_code, ErrorCode::None);
    assert_eq!(topic.partitions.len(), 2);
    for partition in &topic.partitions {
        assert_eq!(partition.error_code, ErrorCode::LeaderNotAvailable);
        assert_eq!(partition.leader_id, -1);
        assert_eq!(partition.replica_nodes, [1, 2, 3]);
    }
}

#[tokio::test]
async fn topics_are_found_by_their_id_without_a_leader() {
    let mut client = connect(&Found::none());
    let topic = metadata::TopicRequest {
        topic_id: Uuid([7; 16]),
        name: None,
    };
    let request = metadata::Request {
        topics: Some(vec![topic]),
        ..Default::default()
    };
    let response = client.ask(12, &request).await;
    check_topic(&response.topics[0]);
}

#[tokio::test]
async fn versions_that_are_not_supported_are_refused_without_a_leader() {
    let mut client = connect(&Found::none());
    let mut frame = vec![0, 0, 0, 10, 0, 18, 0, 99, 0, 0, 0, 1, 0xff, 0xff];
    client.raw(&frame).await;
    frame = client.frame().await.unwrap().to_vec();
    assert_eq!(frame[..6], [0, 0, 0, 1, 0, 35]);
}

/// Sends a request in every version, and checks each answer.
async fn check<R: RequestBody>(
    client: &mut Client,
    request: &R,
    codes: impl Fn(R::Response) -> Vec<ErrorCode>,
    expected: ErrorCode,
) {
    let api = R::KEY.api();
    for version in api.version_min..=api.version_max {
        let found = codes(client.ask(version, request).await);
        let (name, is_any) = (api.name, found.contains(&expected));
        let is_expected = |it: &ErrorCode| [expected, ErrorCode::None].contains(it);
        assert!(
            is_any && found.iter().all(is_expected),
            "{name} {version}: {found:?}"
        );
        assert!(expected.is_retriable());
    }
}

#[tokio::test]
async fn clients_repeat_requests_that_no_leader_answers() {
    let client = &mut connect(&Found::none());
    let moved = ErrorCode::NotLeaderOrFollower;
    let request = produce_request("t", 1, batch(b"a"));
    let codes = |it: produce::Response| {
        let partitions = it.responses[0].partition_responses.iter();
        partitions.map(|it| it.error_code).collect()
    };
    check(client, &request, codes, moved).await;
    let request = fetch::Request {
        topics: vec![fetch::Topic {
            topic: "t".to_owned(),
            partitions: vec![Default::default()],
            ..Default::default()
        }],
        ..Default::default()
    };
    let codes = |it: fetch::Response| {
        let partition = &it.responses[0].partitions[0];
        assert!(partition.records.is_some(), "clients read an empty field");
        vec![partition.error_code]
    };
    check(client, &request, codes, moved).await;
    let request = list_offsets::Request {
        topics: vec![list_offsets::Topic {
            name: "t".to_owned(),
            partitions: vec![Default::default()],
        }],
        ..Default::default()
    };
    let codes = |it: list_offsets::Response| vec![it.topics[0].partitions[0].error_code];
    check(client, &request, codes, moved).await;
    let request = offset_for_leader_epoch::Request {
        topics: vec![offset_for_leader_epoch::Topic {
            topic: "t".to_owned(),
            partitions: vec![Default::default()],
        }],
        ..Default::default()
    };
    let codes = |it: offset_for_leader_epoch::Response| vec![it.topics[0].partitions[0].error_code];
    check(client, &request, codes, moved).await;

    let moved = ErrorCode::NotCoordinator;
    let codes = |it: join_group::Response| vec![it.error_code];
    check(client, &join_group::Request::default(), codes, moved).await;
    let codes = |it: sync_group::Response| vec![it.error_code];
    check(client, &sync_group::Request::default(), codes, moved).await;
    let codes = |it: heartbeat::Response| vec![it.error_code];
    check(client, &heartbeat::Request::default(), codes, moved).await;
    let codes = |it: leave_group::Response| vec![it.error_code];
    check(client, &leave_group::Request::default(), codes, moved).await;
    let request = offset_commit::Request {
        topics: vec![offset_commit::Topic {
            name: "t".to_owned(),
            partitions: vec![Default::default()],
        }],
        ..Default::default()
    };
    let codes = |it: offset_commit::Response| vec![it.topics[0].partitions[0].error_code];
    check(client, &request, codes, moved).await;
    let topic = offset_fetch::Topic {
        name: "t".to_owned(),
        partition_indexes: vec![0],
    };
    let request = offset_fetch::Request {
        topics: Some(vec![topic.clone()]),
        groups: vec![offset_fetch::Group {
            group_id: "g".to_owned(),
            topics: Some(vec![topic]),
            ..Default::default()
        }],
        ..Default::default()
    };
    let codes = |it: offset_fetch::Response| {
        let partitions = it.topics.iter().flat_map(|it| &it.partitions);
        let mut codes: Vec<_> = partitions.map(|it| it.error_code).collect();
        codes.extend(it.groups.iter().map(|it| it.error_code));
        codes.push(it.error_code);
        codes
    };
    check(client, &request, codes, moved).await;

    let codes = |it: init_producer_id::Response| vec![it.error_code];
    let loading = ErrorCode::CoordinatorLoadInProgress;
    check(
        client,
        &init_producer_id::Request::default(),
        codes,
        loading,
    )
    .await;
}

#[tokio::test]
async fn connection_stays_when_the_leader_changes() {
    let mut bench = Bench::in_cluster(Arc::new(ThreeMembers::new(7)));
    bench.with_topic("t").await;
    let leader = Found::none();
    let mut client = connect(&leader);
    let response = client.ask(9, &of_topic("t")).await;
    check_topic(&response.topics[0]);

    *leader.leader.lock() = Some(Services::Door(bench.door.clone()));
    let response = client.ask(9, &of_topic("t")).await;
    assert_eq!(response.topics[0].partitions.len(), 1);
    assert_eq!(response.controller_id, 1);

    // The leader ends: its connections are closed.
    *leader.leader.lock() = None;
    bench.node.messaging().close_all();
    loop {
        let response = client.ask(9, &of_topic("t")).await;
        if response.controller_id == -1 {
            break;
        }
        // The end of the connection is on its way.
        tokio::task::yield_now().await;
    }
}

/// The time is paused: a request that is lost fails at once, not when a test runs too long.
#[tokio::test(start_paused = true)]
async fn no_request_is_lost_when_the_leader_has_just_ended() {
    let leader = Found::with(Some(known(false)), Some(Services::Ended));
    let (mut client, request) = (connect(&leader), of_topic("t"));
    // Reading and writing are polled in any order.
    for _ in 0..100 {
        let asked = client.ask(9, &request);
        let response = tokio::time::timeout(Duration::from_secs(10), asked).await;
        check_topic(&response.expect("no answer").topics[0]);
    }
}

#[tokio::test]
async fn requests_that_a_lost_leader_has_are_answered_in_their_order() {
    let (leader, streams) = Found::silent();
    let mut client = connect(&leader);
    let fetching = fetch::Request::default();
    let producing = produce_request("t", -1, batch(b"a"));
    let beating = heartbeat::Request::default();
    client.send(9, &producing).await;
    client.send(12, &fetching).await;
    client.send(4, &beating).await;
    while streams.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    *leader.leader.lock() = None;
    streams.lock().clear();
    // It may be written.
    let (number, produced) = client.receive::<produce::Request>(9).await;
    let partition = &produced.responses[0].partition_responses[0];
    assert_eq!(
        (number, partition.error_code),
        (1, ErrorCode::KafkaStorageError)
    );
    let (number, _) = client.receive::<fetch::Request>(12).await;
    assert_eq!(number, 2);
    let (number, beaten) = client.receive::<heartbeat::Request>(4).await;
    // The leader may have it, or not.
    let expected = [
        ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotCoordinator,
    ];
    assert_eq!(number, 3);
    assert!(expected.contains(&beaten.error_code));
}

#[tokio::test(start_paused = true)]
async fn leader_that_does_not_answer_delays_the_versions_briefly() {
    let (leader, _streams) = Found::silent();
    let mut client = connect(&leader);
    let began = tokio::time::Instant::now();
    let versions = client.ask(0, &api_versions::Request::default()).await;
    assert_eq!(versions.error_code, ErrorCode::None);
    // kafka-python gives up after two seconds.
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn change_that_a_lost_leader_has_ends_the_connection() {
    let (leader, streams) = Found::silent();
    let mut client = connect(&leader);
    client.send(7, &create_topics::Request::default()).await;
    while streams.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    *leader.leader.lock() = None;
    streams.lock().clear();
    assert!(client.is_closed().await, "whether it is done is unknown");
}

#[tokio::test]
async fn only_versions_are_answered_where_clients_have_to_authenticate() {
    for known in [Some(known(true)), None] {
        let mut client = connect(&Found::with(known, None));
        let versions = client.ask(0, &api_versions::Request::default()).await;
        assert_eq!(versions.error_code, ErrorCode::None);
        client.send(9, &of_topic("t")).await;
        assert!(client.is_closed().await);
    }
}
