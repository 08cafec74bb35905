//! Kafka clients of a member that does not lead.

use kafka::{ErrorCode, api_versions, create_topics, metadata};
use rustix::process::Signal;

use super::Cluster;
use crate::kafka::client::Client;
use crate::support::eventually;

const PARTITIONS: i32 = 2;

fn create(client: &mut Client) {
    let topic = create_topics::Topic {
        name: "t".to_owned(),
        num_partitions: PARTITIONS,
        replication_factor: -1,
        ..Default::default()
    };
    let request = create_topics::Request {
        topics: vec![topic],
        timeout_ms: 10_000,
        ..Default::default()
    };
    let response = client.ask(7, &request).unwrap();
    assert_eq!(response.topics[0].error_code, ErrorCode::None);
}

/// Returns the leader of the topic, as a client is told: -1 if there is none, `None` if the member does not
/// know the topic yet.
fn leader(client: &mut Client) -> Option<i32> {
    let topic = metadata::TopicRequest {
        name: Some("t".to_owned()),
        ..Default::default()
    };
    let request = metadata::Request {
        topics: Some(vec![topic]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let response = client.ask(9, &request).unwrap();
    assert_eq!(response.brokers.len(), 3);
    let topic = &response.topics[0];
    if topic.error_code == ErrorCode::LeaderNotAvailable {
        return None;
    }
    assert_eq!(topic.error_code, ErrorCode::None);
    assert_eq!(topic.partitions.len(), PARTITIONS as usize);
    let leader = topic.partitions[0].leader_id;
    for partition in &topic.partitions {
        let expected = match leader {
            -1 => ErrorCode::LeaderNotAvailable,
            _ => ErrorCode::None,
        };
        assert_eq!(
            (partition.leader_id, partition.error_code),
            (leader, expected)
        );
    }
    Some(leader)
}

#[test]
fn member_answers_kafka_clients_while_no_member_leads() {
    let cluster = Cluster::start();
    create(&mut cluster.connect(cluster.leader()));
    let (mut late, mut was_told) = (None, [false; 3]);
    eventually("a member knows the topic without a leader", || {
        // A leader that is deposed closes its connections, so the member must not lead.
        let first = cluster.leader();
        let mut nodes = (0..3).filter(|it| *it != first);
        let (member, other) = (nodes.next().unwrap(), nodes.next().unwrap());
        let mut early = cluster.connect(member);
        let signal = |signal| [first, other].map(|it| cluster.signal(it, signal));
        signal(Signal::STOP);
        // A member that the leader has not told its services yet knows neither the topics nor whether clients
        // have to authenticate, and ends the connection.
        let is_told = early.ask(9, &metadata::Request::default()).is_ok();
        assert!(is_told || !was_told[member]);
        was_told[member] |= is_told;
        if !is_told {
            signal(Signal::CONT);
            return false;
        }
        eventually("there is no leader", || {
            leader(&mut early).unwrap_or(-1) == -1
        });
        let is_known = leader(&mut early).is_some();
        if is_known {
            let address = cluster.address(member, "kafka");
            let mut client = Client::connect_to(address).unwrap();
            let versions = client.ask(0, &api_versions::Request::default()).unwrap();
            assert_eq!(versions.error_code, ErrorCode::None);
            assert_eq!(leader(&mut client), Some(-1));
            late = Some(client);
        }
        signal(Signal::CONT);
        // Both stay connected. The leader tells its topics within a second.
        eventually("there is a leader", || {
            leader(&mut early).is_some_and(|it| it > 0)
        });
        is_known
    });
    let mut late = late.unwrap();
    eventually("there is a leader", || {
        leader(&mut late).is_some_and(|it| it > 0)
    });
}
