//! Comparison of requests at brokers that do not lead a partition, coordinate a group or control the
//! cluster.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use kafka::{
    alter_partition_reassignments, create_partitions, create_topics, delete_records, delete_topics,
    elect_leaders, find_coordinator, heartbeat, incremental_alter_configs, init_producer_id,
    list_offsets, list_partition_reassignments, offset_for_leader_epoch,
};
use recordbatch::Template;

use super::super::records::{append, batch, fetch_from};
use super::super::script::Script;
use super::super::topics::{make, topic};
use super::view::{TOPIC, View};

const GROUP: &str = "group";

pub(super) fn compare(script: &mut Script, views: &[View; 2]) -> Result<()> {
    compare_coordinators(script, views)?;
    let others = [views[0].other()?, views[1].other()?];
    script.connect(others)?;
    compare_records(script)?;
    compare_administration(script)
}

fn coordinator(version: i16, key: &str, key_type: i8) -> find_coordinator::Request {
    find_coordinator::Request {
        key: key.to_owned(),
        key_type,
        coordinator_keys: match version {
            4.. => vec![key.to_owned()],
            _ => Vec::new(),
        },
    }
}

/// Asks each broker for coordinators and for producer ids.
fn compare_coordinators(script: &mut Script, views: &[View; 2]) -> Result<()> {
    for version in 0..=6 {
        script.compare("of a group", version, &coordinator(version, GROUP, 0))?;
    }
    script.compare("of a transaction", 4, &coordinator(4, "transaction", 1))?;
    let (mut coordinators, mut producers) = ([BTreeSet::new(), BTreeSet::new()], BTreeSet::new());
    let both = views[0].addresses.iter().zip(&views[1].addresses);
    for ((id, theirs), (_, ours)) in both {
        script.connect([theirs, ours])?;
        let title = format!("of a group, at broker {id}");
        let answers = script.compare(&title, 4, &coordinator(4, GROUP, 0))?;
        for (answer, known) in answers.into_iter().flatten().zip(&mut coordinators) {
            known.extend(answer.coordinators.iter().map(|it| it.node_id));
        }
        let request = init_producer_id::Request {
            transaction_timeout_ms: 60_000,
            ..init_producer_id::Request::default()
        };
        let title = format!("without a transactional id, at broker {id}");
        let answers = script.compare(&title, 4, &request)?;
        producers.extend(
            answers
                .into_iter()
                .nth(1)
                .flatten()
                .map(|it| it.producer_id),
        );
    }
    let is_one = coordinators.iter().all(|it| it.len() == 1);
    script.check(is_one, "all brokers name the same coordinator");
    script.check(
        producers.len() == 3,
        "each broker gives out another producer id",
    );
    compare_at_another_coordinator(script, views, coordinators)
}

/// Sends a request of a group to a broker that does not coordinate it.
fn compare_at_another_coordinator(
    script: &mut Script,
    views: &[View; 2],
    coordinators: [BTreeSet<i32>; 2],
) -> Result<()> {
    let other = |view: &View, coordinators: &BTreeSet<i32>| {
        let mut brokers = view.addresses.iter();
        let other = brokers.find(|(id, _)| !coordinators.contains(id));
        other
            .map(|(_, address)| address.clone())
            .context("all brokers coordinate the group")
    };
    let theirs = other(&views[0], &coordinators[0])?;
    let ours = other(&views[1], &coordinators[1])?;
    script.connect([&theirs, &ours])?;
    let request = heartbeat::Request {
        group_id: GROUP.to_owned(),
        generation_id: 1,
        member_id: "no-such-member".to_owned(),
        ..heartbeat::Request::default()
    };
    script.compare("at another coordinator", 4, &request)?;
    Ok(())
}

/// Appends at a broker that does not lead. Only one of the clusters takes the records, so no later
/// response about the topic is compared.
pub(super) fn compare_append(script: &mut Script) -> Result<()> {
    for acks in [1, -1] {
        let records = batch(2, 1_000, &Template::default());
        let request = append(TOPIC, 0, acks, records);
        let title = format!("acks={acks}, at a broker that does not lead");
        script.compare(&title, 9, &request)?;
    }
    Ok(())
}

/// Reads and deletes at a broker that does not lead.
fn compare_records(script: &mut Script) -> Result<()> {
    let title = "at a broker that does not lead";
    let records = batch(2, 1_000, &Template::default());
    let unknown = append(TOPIC, 9, -1, records);
    script.compare("unknown partition, at another broker", 9, &unknown)?;
    for version in [4, 11, 12] {
        script.compare(title, version, &fetch_from(TOPIC, 0, 0))?;
    }
    let ends = list_offsets::Request {
        replica_id: -1,
        topics: vec![list_offsets::Topic {
            name: TOPIC.to_owned(),
            partitions: vec![list_offsets::Partition {
                timestamp: -1,
                ..list_offsets::Partition::default()
            }],
        }],
        ..list_offsets::Request::default()
    };
    script.compare(title, 7, &ends)?;
    let epochs = offset_for_leader_epoch::Request {
        replica_id: -1,
        topics: vec![offset_for_leader_epoch::Topic {
            topic: TOPIC.to_owned(),
            partitions: vec![offset_for_leader_epoch::Partition::default()],
        }],
    };
    script.compare(title, 4, &epochs)?;
    let deletion = delete_records::Request {
        topics: vec![delete_records::Topic {
            name: TOPIC.to_owned(),
            partitions: vec![delete_records::Partition::default()],
        }],
        timeout_ms: 5_000,
    };
    script.compare(title, 2, &deletion)?;
    Ok(())
}

/// Changes topics at a broker that is not the controller, or passes requests on to it.
fn compare_administration(script: &mut Script) -> Result<()> {
    let name = "administered";
    let title = "at another broker";
    let created = create_topics::Topic {
        replication_factor: 3,
        ..topic(name)
    };
    script.compare(title, 4, &make(vec![created.clone()]))?;
    script.compare(&format!("existing topic, {title}"), 4, &make(vec![created]))?;
    let more = create_partitions::Request {
        topics: vec![create_partitions::Topic {
            name: name.to_owned(),
            count: 3,
            assignments: None,
        }],
        timeout_ms: 10_000,
        validate_only: false,
    };
    script.compare(title, 2, &more)?;
    for count in ["1", "2", "3", "4"] {
        let change = incremental_alter_configs::Request {
            resources: vec![incremental_alter_configs::Resource {
                resource_type: 2,
                resource_name: name.to_owned(),
                configs: vec![incremental_alter_configs::Config {
                    name: "min.insync.replicas".to_owned(),
                    config_operation: 0,
                    value: Some(count.to_owned()),
                }],
            }],
            validate_only: false,
        };
        script.compare(&format!("min.insync.replicas={count}"), 1, &change)?;
    }
    compare_moves(script, name)?;
    let deletion = delete_topics::Request {
        topic_names: vec![name.to_owned()],
        timeout_ms: 10_000,
        ..delete_topics::Request::default()
    };
    script.compare(title, 5, &deletion)?;
    Ok(())
}

/// Elects leaders and moves replicas.
fn compare_moves(script: &mut Script, name: &str) -> Result<()> {
    let election = elect_leaders::Request {
        topic_partitions: Some(vec![elect_leaders::TopicPartitions {
            topic: name.to_owned(),
            partitions: vec![0],
        }]),
        timeout_ms: 10_000,
        ..elect_leaders::Request::default()
    };
    script.compare_eventually("partition with a leader", 2, &election)?;
    let moves: [(&str, Option<&[i32]>); 4] = [
        ("to an unknown broker", Some(&[1, 2, 9])),
        ("to one broker twice", Some(&[1, 1])),
        ("to no broker", Some(&[])),
        ("cancel", None),
    ];
    for (title, replicas) in moves {
        let request = alter_partition_reassignments::Request {
            topics: vec![alter_partition_reassignments::Topic {
                name: name.to_owned(),
                partitions: vec![alter_partition_reassignments::Partition {
                    partition_index: 0,
                    replicas: replicas.map(<[i32]>::to_vec),
                }],
            }],
            timeout_ms: 10_000,
            ..alter_partition_reassignments::Request::default()
        };
        script.compare(title, 0, &request)?;
    }
    let all = list_partition_reassignments::Request::default();
    script.compare("all", 0, &all)?;
    Ok(())
}
