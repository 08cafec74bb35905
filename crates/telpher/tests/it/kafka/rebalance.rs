//! A node that is killed during a rebalance: committed offsets are kept, members continue, and
//! members of an old generation get an error.

use kafka::{
    ErrorCode, describe_groups, heartbeat, join_group, offset_commit, offset_fetch, sync_group,
};
use rustix::process::Signal;

use super::client::{Client, until};
use super::kcat;
use crate::support::{Node, Place};

const TOPIC: &str = "letters";
const GROUP: &str = "readers";

/// A member of the group.
struct Member {
    client: Client,
    id: String,
    generation: i32,
    is_leader: bool,
}

impl Member {
    fn new(node: &Node) -> Self {
        Self {
            client: Client::connect(node).unwrap(),
            id: String::new(),
            generation: -1,
            is_leader: false,
        }
    }

    /// Reconnects the member.
    fn reconnect(&mut self, node: &Node) {
        self.client = Client::connect(node).unwrap();
    }

    fn send_join(&mut self) {
        let request = join_group::Request {
            group_id: GROUP.to_owned(),
            session_timeout_ms: 60_000,
            rebalance_timeout_ms: 60_000,
            member_id: self.id.clone(),
            protocol_type: "consumer".to_owned(),
            protocols: vec![join_group::Protocol {
                name: "range".to_owned(),
                ..join_group::Protocol::default()
            }],
            ..join_group::Request::default()
        };
        self.client.send(5, &request).unwrap();
    }

    /// Joins the group; the error may assign the member id with which it must join again.
    fn joined(&mut self) -> ErrorCode {
        let joined = self.client.receive::<join_group::Request>(5).unwrap();
        match joined.error_code {
            ErrorCode::None => {
                self.is_leader = joined.leader == joined.member_id;
                self.generation = joined.generation_id;
                self.id = joined.member_id;
            }
            ErrorCode::MemberIdRequired => self.id = joined.member_id,
            _ => {}
        }
        joined.error_code
    }

    /// Gets a member id and joins with it.
    fn begin(&mut self) {
        self.send_join();
        assert_eq!(self.joined(), ErrorCode::MemberIdRequired);
        self.send_join();
    }

    /// Sends the assignment of the leader.
    fn send_sync(&mut self, members: &[&str]) {
        let assignment = |id: &&str| sync_group::Assignment {
            member_id: (*id).to_owned(),
            assignment: bytes::Bytes::from(format!("for {id}")),
        };
        let request = sync_group::Request {
            group_id: GROUP.to_owned(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            assignments: members.iter().map(assignment).collect(),
            ..sync_group::Request::default()
        };
        self.client.send(3, &request).unwrap();
    }

    fn synced(&mut self) {
        let synced = self.client.receive::<sync_group::Request>(3).unwrap();
        let expected = format!("for {}", self.id);
        assert_eq!(
            (synced.error_code, &*synced.assignment),
            (ErrorCode::None, expected.as_bytes())
        );
    }

    fn send_heartbeat(&mut self) -> ErrorCode {
        let request = heartbeat::Request {
            group_id: GROUP.to_owned(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            ..heartbeat::Request::default()
        };
        self.client.ask(3, &request).unwrap().error_code
    }

    fn commit(&mut self, offset: i64) -> ErrorCode {
        let request = offset_commit::Request {
            group_id: GROUP.to_owned(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.id.clone(),
            topics: vec![offset_commit::Topic {
                name: TOPIC.to_owned(),
                partitions: vec![offset_commit::Partition {
                    committed_offset: offset,
                    ..offset_commit::Partition::default()
                }],
            }],
            ..offset_commit::Request::default()
        };
        let response = self.client.ask(7, &request).unwrap();
        response.topics[0].partitions[0].error_code
    }

    fn committed(&mut self) -> i64 {
        let request = offset_fetch::Request {
            group_id: GROUP.to_owned(),
            topics: Some(vec![offset_fetch::Topic {
                name: TOPIC.to_owned(),
                partition_indexes: vec![0],
            }]),
            ..offset_fetch::Request::default()
        };
        let response = self.client.ask(5, &request).unwrap();
        response.topics[0].partitions[0].committed_offset
    }
}

/// Waits until the group is in a state.
fn wait_for(node: &Node, state: &str) {
    let request = describe_groups::Request {
        groups: vec![GROUP.to_owned()],
        ..describe_groups::Request::default()
    };
    let mut client = Client::connect(node).unwrap();
    until(|| client.ask(4, &request).unwrap().groups[0].group_state == state);
}

fn kill(place: &Place, node: Node) -> Node {
    node.signal(Signal::KILL);
    node.end();
    place.serve("")
}

/// Forms a group of one member that has committed an offset.
fn group_of_one(node: &Node) -> Member {
    let mut first = Member::new(node);
    first.begin();
    assert_eq!(first.joined(), ErrorCode::None);
    first.send_sync(&[&first.id.clone()]);
    first.synced();
    assert_eq!(first.commit(3), ErrorCode::None);
    first
}

/// Forms one generation of both members, in which both commit.
fn form_generation(node: &Node, first: &mut Member, second: &mut Member) {
    join(node, first, second);
    let ids = [first.id.clone(), second.id.clone()];
    let (leader, other) = match first.is_leader {
        true => (first, second),
        false => (second, first),
    };
    leader.send_sync(&ids.each_ref().map(String::as_str));
    other.send_sync(&[]);
    leader.synced();
    other.synced();
    assert_eq!(leader.commit(7), ErrorCode::None);
    assert_eq!(other.commit(8), ErrorCode::None);
    assert_eq!(leader.committed(), 8);
}

/// Lets the second member join, and the first one rejoin.
fn join(node: &Node, first: &mut Member, second: &mut Member) {
    second.begin();
    wait_for(node, "PreparingRebalance");
    first.send_join();
    assert_eq!(first.joined(), ErrorCode::None);
    assert_eq!(second.joined(), ErrorCode::None);
    assert_eq!(first.generation, second.generation);
}

/// Starts a node with the topic.
fn with_topic() -> (Place, Node) {
    let place = Place::new();
    let node = place.serve("--topics-partitions 1");
    kcat(&place, &node, &format!("-L -t {TOPIC}"), "").expect(0);
    (place, node)
}

#[test]
fn kill9_during_a_join_phase_restores_the_previous_generation() {
    let (place, node) = with_topic();
    let mut first = group_of_one(&node);
    let mut second = Member::new(&node);
    second.begin();
    wait_for(&node, "PreparingRebalance");
    assert_eq!(first.send_heartbeat(), ErrorCode::RebalanceInProgress);
    assert_eq!(first.commit(5), ErrorCode::None);
    let node = kill(&place, node);
    first.reconnect(&node);
    assert_eq!(first.committed(), 5);
    assert_eq!(first.send_heartbeat(), ErrorCode::None);
    assert_eq!(first.commit(6), ErrorCode::None);
    second.reconnect(&node);
    second.send_join();
    assert_eq!(second.joined(), ErrorCode::UnknownMemberId);
    second.id.clear();
    form_generation(&node, &mut first, &mut second);
    node.stop().expect(0);
}

#[test]
fn kill9_before_the_assignment_restores_the_previous_generation() {
    let (place, node) = with_topic();
    let mut first = group_of_one(&node);
    let mut second = Member::new(&node);
    let before = first.generation;
    join(&node, &mut first, &mut second);
    assert!(first.generation > before);
    let node = kill(&place, node);
    first.reconnect(&node);
    second.reconnect(&node);
    assert_eq!(first.committed(), 3);
    assert_eq!(first.send_heartbeat(), ErrorCode::IllegalGeneration);
    assert_eq!(first.commit(9), ErrorCode::IllegalGeneration);
    assert_eq!(second.send_heartbeat(), ErrorCode::UnknownMemberId);
    second.id.clear();
    form_generation(&node, &mut first, &mut second);
    node.stop().expect(0);
}
