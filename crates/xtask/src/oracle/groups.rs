//! Comparison of consumer groups: join, commit, describe, leave.

use anyhow::Result;
use bytes::Bytes;
use kafka::{
    delete_groups, describe_groups, find_coordinator, heartbeat, join_group, leave_group,
    list_groups, offset_commit, offset_delete, offset_fetch, sync_group,
};

use super::script::Script;
use super::topics::{make, topic};

const TOPIC: &str = "grouped";
const GROUP: &str = "group";

/// Subscription of a consumer: version 0, one topic, no user data. It must be valid: Apache Kafka
/// never answers a join with a subscription that it cannot parse.
const SUBSCRIPTION: &[u8] = b"\0\0\0\0\0\x01\0\x07grouped\xff\xff\xff\xff";
/// Assignment of a consumer: version 0, partition 0 of the topic, no user data.
const ASSIGNMENT: &[u8] = b"\0\0\0\0\0\x01\0\x07grouped\0\0\0\x01\0\0\0\0\xff\xff\xff\xff";

/// Member id on each broker.
type Members = [String; 2];

pub(super) fn compare(script: &mut Script) -> Result<()> {
    script.compare("topic for groups", 4, &make(vec![topic(TOPIC)]))?;
    compare_coordinators(script)?;
    compare_without_members(script)?;
    if let Some(members) = join_members(script)? {
        compare_with_member(script, &members)?;
    }
    compare_emptied(script)
}

fn compare_coordinators(script: &mut Script) -> Result<()> {
    let find = |key: &str, key_type| find_coordinator::Request {
        key: key.to_owned(),
        key_type,
        coordinator_keys: vec![key.to_owned()],
    };
    // Apache Kafka creates its coordinators' internal topics when a coordinator is looked up, and
    // not before.
    script.compare("of a group", 3, &find(GROUP, 0))?;
    script.compare("of groups", 4, &find(GROUP, 0))?;
    script.compare("empty key", 4, &find("", 0))?;
    script.compare("unknown key type", 4, &find(GROUP, 9))?;
    // A coordinator that is still loading answers heartbeats without an error.
    for group in [GROUP, "nobody", "simple", "stranger", ""] {
        let name = format!("group {group:?}, not created yet");
        script.compare(&name, 5, &fetch(group, Some(&[(TOPIC, 0)])))?;
    }
    Ok(())
}

fn join(group: &str, member: &str) -> join_group::Request {
    join_group::Request {
        group_id: group.to_owned(),
        // Longer than all requests for a member take on a busy machine.
        session_timeout_ms: 120_000,
        rebalance_timeout_ms: 120_000,
        member_id: member.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![join_group::Protocol {
            name: "range".to_owned(),
            metadata: Bytes::from_static(SUBSCRIPTION),
        }],
        ..join_group::Request::default()
    }
}

fn beat(group: &str, generation_id: i32, member: &str) -> heartbeat::Request {
    heartbeat::Request {
        group_id: group.to_owned(),
        generation_id,
        member_id: member.to_owned(),
        ..heartbeat::Request::default()
    }
}

fn commit(
    group: &str,
    generation: i32,
    member: &str,
    topic: &str,
    partition: i32,
) -> offset_commit::Request {
    offset_commit::Request {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: generation,
        member_id: member.to_owned(),
        topics: vec![offset_commit::Topic {
            name: topic.to_owned(),
            partitions: vec![offset_commit::Partition {
                partition_index: partition,
                committed_offset: 5,
                committed_leader_epoch: 0,
                committed_metadata: Some("a note".to_owned()),
            }],
        }],
        ..offset_commit::Request::default()
    }
}

fn fetch(group: &str, topics: Option<&[(&str, i32)]>) -> offset_fetch::Request {
    let topic = |(name, partition): &(&str, i32)| offset_fetch::Topic {
        name: (*name).to_owned(),
        partition_indexes: vec![*partition],
    };
    let topics = topics.map(|topics| topics.iter().map(topic).collect::<Vec<_>>());
    offset_fetch::Request {
        group_id: group.to_owned(),
        topics: topics.clone(),
        groups: vec![offset_fetch::Group {
            group_id: group.to_owned(),
            topics,
            ..offset_fetch::Group::default()
        }],
        require_stable: false,
    }
}

fn describe(group: &str) -> describe_groups::Request {
    describe_groups::Request {
        groups: vec![group.to_owned()],
        include_authorized_operations: true,
    }
}

fn leave(group: &str, member: &str) -> leave_group::Request {
    leave_group::Request {
        group_id: group.to_owned(),
        member_id: member.to_owned(),
        members: vec![leave_group::Member {
            member_id: member.to_owned(),
            ..leave_group::Member::default()
        }],
    }
}

fn delete(group: &str) -> delete_groups::Request {
    delete_groups::Request {
        groups_names: vec![group.to_owned()],
    }
}

fn sync(group: &str, generation_id: i32, member: &str) -> sync_group::Request {
    sync_group::Request {
        group_id: group.to_owned(),
        generation_id,
        member_id: member.to_owned(),
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        assignments: vec![sync_group::Assignment {
            member_id: member.to_owned(),
            assignment: Bytes::from_static(ASSIGNMENT),
        }],
        ..sync_group::Request::default()
    }
}

fn compare_without_members(script: &mut Script) -> Result<()> {
    script.compare("unknown group", 4, &beat("nobody", 1, "x"))?;
    compare_without_name(script)?;
    script.compare("unknown group", 5, &sync("nobody", 1, "x"))?;
    script.compare("unknown group", 5, &leave("nobody", "x"))?;
    script.compare("unknown group", 6, &describe("nobody"))?;
    script.compare("unknown group, old version", 5, &describe("nobody"))?;
    script.compare("unknown group", 2, &delete("nobody"))?;
    for version in [5, 8] {
        script.compare(
            "unknown group",
            version,
            &fetch("nobody", Some(&[(TOPIC, 0)])),
        )?;
        script.compare("unknown group, all topics", version, &fetch("nobody", None))?;
    }
    script.compare("empty group id", 9, &join("", ""))?;
    script.compare("unknown member id", 9, &join("nobody", "x"))?;
    let session = |session_timeout_ms| join_group::Request {
        session_timeout_ms,
        ..join("nobody", "")
    };
    script.compare("session timeout too short", 9, &session(1))?;
    script.compare("session timeout too long", 9, &session(i32::MAX))?;
    let bare = join_group::Request {
        protocols: Vec::new(),
        ..join("nobody", "")
    };
    script.compare("without a protocol", 9, &bare)?;
    // A commit without a group creates one.
    script.compare("without membership", 8, &commit("simple", -1, "", TOPIC, 0))?;
    script.compare(
        "without membership, unknown topic",
        8,
        &commit("simple", -1, "", "absent", 0),
    )?;
    script.compare(
        "without membership, unknown partition",
        8,
        &commit("simple", -1, "", TOPIC, 9),
    )?;
    script.compare(
        "generation of an unknown group",
        8,
        &commit("stranger", 4, "x", TOPIC, 0),
    )?;
    let long = {
        let mut request = commit("simple", -1, "", TOPIC, 0);
        request.topics[0].partitions[0].committed_metadata = Some("x".repeat(5_000));
        request
    };
    script.compare("long metadata", 8, &long)?;
    for version in [5, 8] {
        script.compare(
            "committed partition",
            version,
            &fetch("simple", Some(&[(TOPIC, 0)])),
        )?;
        script.compare(
            "partition without an offset",
            version,
            &fetch("simple", Some(&[(TOPIC, 9)])),
        )?;
        script.compare("all topics", version, &fetch("simple", None))?;
    }
    script.compare_eventually("group without members", 5, &describe("simple"))?;
    Ok(())
}

fn compare_without_name(script: &mut Script) -> Result<()> {
    let name = "empty group id";
    script.compare(name, 4, &beat("", 1, "x"))?;
    script.compare(name, 5, &sync("", 1, "x"))?;
    script.compare(name, 5, &leave("", "x"))?;
    script.compare(name, 2, &leave("", "x"))?;
    script.compare(name, 5, &describe(""))?;
    script.compare(name, 2, &delete(""))?;
    script.compare(name, 8, &commit("", 1, "x", TOPIC, 0))?;
    script.compare(name, 8, &fetch("", Some(&[(TOPIC, 0)])))?;
    Ok(())
}

/// Joins a member on both brokers: the leader of the first generation.
fn join_members(script: &mut Script) -> Result<Option<Members>> {
    let answers = script.compare("without an id", 9, &join(GROUP, ""))?;
    let [Some(theirs), Some(ours)] = answers else {
        return Ok(None);
    };
    let members = [theirs.member_id, ours.member_id];
    script.compare_eventually("member that has not joined yet", 5, &describe(GROUP))?;
    let requests = members.clone().map(|member| join(GROUP, &member));
    script.compare_each("with the id", 9, [&requests[0], &requests[1]])?;
    Ok(Some(members))
}

fn compare_with_member(script: &mut Script, members: &Members) -> Result<()> {
    /// Sends the request for each broker's member.
    macro_rules! each {
        ($name:literal, $version:literal, |$member:ident| $request:expr) => {{
            let requests = members.each_ref().map(|$member| $request);
            script.compare_each($name, $version, [&requests[0], &requests[1]])?
        }};
    }
    script.compare_eventually("before the assignment", 5, &describe(GROUP))?;
    each!("another generation", 5, |member| sync(GROUP, 9, member));
    script.compare("unknown member", 5, &sync(GROUP, 1, "x"))?;
    each!("another protocol", 5, |member| sync_group::Request {
        protocol_name: Some("robin".to_owned()),
        ..sync(GROUP, 1, member)
    });
    each!("the leader's", 5, |member| sync(GROUP, 1, member));
    each!("the leader's again", 5, |member| sync(GROUP, 1, member));
    script.compare_eventually("stable", 5, &describe(GROUP))?;
    each!("in time", 4, |member| beat(GROUP, 1, member));
    each!("earlier generation", 4, |member| beat(GROUP, 0, member));
    each!("future generation", 4, |member| beat(GROUP, 2, member));
    script.compare("unknown member", 4, &beat(GROUP, 1, "x"))?;
    each!("of the member", 8, |member| commit(
        GROUP, 1, member, TOPIC, 0
    ));
    each!("future generation", 8, |member| commit(
        GROUP, 2, member, TOPIC, 0
    ));
    script.compare("unknown member", 8, &commit(GROUP, 1, "x", TOPIC, 0))?;
    script.compare(
        "without membership, group has members",
        8,
        &commit(GROUP, -1, "", TOPIC, 0),
    )?;
    let all = list_groups::Request::default();
    script.compare_eventually(
        "stable groups",
        4,
        &list_groups::Request {
            states_filter: vec!["Stable".to_owned()],
            ..all
        },
    )?;
    script.compare("with members", 2, &delete(GROUP))?;
    let offsets = |topic: &str| offset_delete::Request {
        group_id: GROUP.to_owned(),
        topics: vec![offset_delete::Topic {
            name: topic.to_owned(),
            partitions: vec![offset_delete::Partition { partition_index: 0 }],
        }],
    };
    script.compare("unknown topic", 0, &offsets("absent"))?;
    script.compare("subscribed topic", 0, &offsets(TOPIC))?;
    let foreign = join_group::Request {
        protocol_type: "stranger".to_owned(),
        ..join(GROUP, "")
    };
    script.compare("another protocol type", 3, &foreign)?;
    script.compare("unknown member", 5, &leave(GROUP, "x"))?;
    each!("of the member", 5, |member| leave(GROUP, member));
    each!("of the member again", 5, |member| leave(GROUP, member));
    Ok(())
}

fn compare_emptied(script: &mut Script) -> Result<()> {
    script.compare_eventually("after all members left", 5, &describe(GROUP))?;
    script.compare_eventually(
        "offsets of members that left",
        8,
        &fetch(GROUP, Some(&[(TOPIC, 0)])),
    )?;
    script.compare("empty group", 2, &delete(GROUP))?;
    script.compare("deleted group", 2, &delete(GROUP))?;
    script.compare_eventually(
        "offsets of a deleted group",
        8,
        &fetch(GROUP, Some(&[(TOPIC, 0)])),
    )?;
    let offsets = |group: &str| offset_delete::Request {
        group_id: group.to_owned(),
        topics: vec![offset_delete::Topic {
            name: TOPIC.to_owned(),
            partitions: vec![offset_delete::Partition { partition_index: 0 }],
        }],
    };
    script.compare("unknown group", 0, &offsets("stranger"))?;
    script.compare("group without members", 0, &offsets("simple"))?;
    script.compare_eventually("deleted offsets", 8, &fetch("simple", None))?;
    Ok(())
}
