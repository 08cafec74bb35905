//! Comparison of topics: create, describe, change, delete.

use anyhow::Result;
use kafka::{
    alter_configs, alter_partition_reassignments, create_partitions, create_topics, delete_topics,
    describe_cluster, describe_configs, describe_topic_partitions, elect_leaders,
    incremental_alter_configs, list_config_resources, list_partition_reassignments, metadata,
};

use super::script::Script;

/// Resource type of topics in configuration requests.
const TOPIC: i8 = 2;

pub(super) fn compare(script: &mut Script) -> Result<()> {
    compare_metadata(script, "unknown topic", "absent")?;
    compare_metadata(script, "invalid name", "no good")?;
    compare_metadata(script, "empty name", "")?;
    compare_creations(script)?;
    compare_metadata(script, "existing topic", "plain")?;
    let pages = describe_topic_partitions::Request {
        topics: ["absent", "plain"].map(named).to_vec(),
        ..describe_topic_partitions::Request::default()
    };
    script.compare_eventually("existing and unknown topic", 0, &pages)?;
    compare_partitions(script)?;
    compare_configs(script)?;
    let cluster = describe_cluster::Request {
        endpoint_type: 2,
        ..describe_cluster::Request::default()
    };
    script.compare("of controllers", 1, &cluster)?;
    let cluster = describe_cluster::Request {
        include_cluster_authorized_operations: true,
        ..describe_cluster::Request::default()
    };
    script.compare("of brokers", 1, &cluster)?;
    compare_leaders(script)?;
    compare_deletions(script)
}

/// Compares responses about leadership, and about moves to other brokers.
fn compare_leaders(script: &mut Script) -> Result<()> {
    let of = |topic: &str, partitions: &[i32]| elect_leaders::Request {
        topic_partitions: Some(vec![elect_leaders::TopicPartitions {
            topic: topic.to_owned(),
            partitions: partitions.to_vec(),
        }]),
        timeout_ms: 10_000,
        ..elect_leaders::Request::default()
    };
    script.compare("partition with a leader", 2, &of("plain", &[0]))?;
    script.compare("unknown partition", 2, &of("plain", &[99]))?;
    script.compare("unknown topic", 2, &of("absent", &[0]))?;
    let to = |topic: &str, replicas: Option<Vec<i32>>| alter_partition_reassignments::Request {
        topics: vec![alter_partition_reassignments::Topic {
            name: topic.to_owned(),
            partitions: vec![alter_partition_reassignments::Partition {
                partition_index: 0,
                replicas,
            }],
        }],
        timeout_ms: 10_000,
        ..alter_partition_reassignments::Request::default()
    };
    script.compare("to the current replica", 0, &to("plain", Some(vec![1])))?;
    script.compare("to an unknown broker", 0, &to("plain", Some(vec![99])))?;
    script.compare("cancel", 0, &to("plain", None))?;
    script.compare("unknown topic", 0, &to("absent", Some(vec![1])))?;
    let all = list_partition_reassignments::Request::default();
    script.compare("all", 0, &all)?;
    let of_type = |resource_type| list_config_resources::Request {
        resource_types: vec![resource_type],
    };
    script.compare("of brokers", 1, &of_type(4))?;
    script.compare("of client metrics", 1, &of_type(16))?;
    script.compare("unknown type", 1, &of_type(77))?;
    Ok(())
}

fn named(name: &str) -> describe_topic_partitions::TopicRequest {
    describe_topic_partitions::TopicRequest {
        name: name.to_owned(),
    }
}

fn compare_metadata(script: &mut Script, title: &str, name: &str) -> Result<()> {
    for version in [1, 9, 12] {
        let request = metadata::Request {
            topics: Some(vec![metadata::TopicRequest {
                name: Some(name.to_owned()),
                ..metadata::TopicRequest::default()
            }]),
            allow_auto_topic_creation: false,
            include_topic_authorized_operations: true,
            include_cluster_authorized_operations: true,
        };
        // Version 1 cannot disable automatic creation.
        if version >= 4 {
            script.compare_eventually(title, version, &request)?;
        }
    }
    Ok(())
}

/// Returns a new topic with one partition.
pub(super) fn topic(name: &str) -> create_topics::Topic {
    create_topics::Topic {
        name: name.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..create_topics::Topic::default()
    }
}

/// Returns a new topic with a setting.
pub(super) fn topic_with(name: &str, setting: &str, value: &str) -> create_topics::Topic {
    create_topics::Topic {
        configs: vec![create_topics::Config {
            name: setting.to_owned(),
            value: Some(value.to_owned()),
        }],
        ..topic(name)
    }
}

/// Returns a request that creates the topics.
pub(super) fn make(topics: Vec<create_topics::Topic>) -> create_topics::Request {
    create_topics::Request {
        topics,
        timeout_ms: 10_000,
        validate_only: false,
    }
}

fn compare_creations(script: &mut Script) -> Result<()> {
    script.compare("plain topic", 4, &make(vec![topic("plain")]))?;
    script.compare("existing topic", 4, &make(vec![topic("plain")]))?;
    let counts = |num_partitions, replication_factor| create_topics::Topic {
        num_partitions,
        replication_factor,
        ..topic("counts")
    };
    script.compare("no partitions", 4, &make(vec![counts(0, 1)]))?;
    script.compare(
        "negative number of partitions",
        4,
        &make(vec![counts(-2, 1)]),
    )?;
    script.compare("no replicas", 4, &make(vec![counts(1, 0)]))?;
    script.compare("more replicas than brokers", 4, &make(vec![counts(1, 3)]))?;
    let names = [
        "",
        ".",
        "..",
        "a b",
        "ä",
        &"x".repeat(249),
        &"x".repeat(250),
    ];
    for name in names {
        script.compare(&format!("named {:.9?}", name), 4, &make(vec![topic(name)]))?;
    }
    script.compare(
        "same topic twice",
        4,
        &make(vec![topic("twice"), topic("twice")]),
    )?;
    script.compare(
        "colliding names",
        4,
        &make(vec![topic("a.b"), topic("a_b")]),
    )?;
    let settings = [
        ("retention.ms", "1000"),
        ("retention.ms", "never"),
        ("retention.ms", "-2"),
        ("retention.bytes", "-1"),
        ("segment.bytes", "1"),
        ("max.message.bytes", "-1"),
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", "burn"),
        ("message.timestamp.type", "LogAppendTime"),
        ("message.timestamp.type", "Sundial"),
        ("compression.type", "producer"),
        ("compression.type", "brotli"),
        ("no.such.setting", "1"),
        ("compression.type", "zstd"),
        ("compression.type", "none"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "9"),
        ("compression.zstd.level", "23"),
        ("min.insync.replicas", "1"),
        ("min.insync.replicas", "0"),
        ("min.cleanable.dirty.ratio", "0.3"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.compaction.lag.ms", "-1"),
        ("max.compaction.lag.ms", "0"),
        ("segment.ms", "0"),
        ("segment.ms", "60000"),
        ("flush.messages", "0"),
        ("unclean.leader.election.enable", "false"),
        ("unclean.leader.election.enable", "perhaps"),
        ("preallocate", "True"),
        ("message.timestamp.after.max.ms", "-1"),
        ("message.timestamp.before.max.ms", "1000"),
        ("leader.replication.throttled.replicas", "0:1"),
        ("leader.replication.throttled.replicas", "0"),
        ("segment.index.bytes", "3"),
        ("remote.storage.enable", "true"),
    ];
    for (number, (setting, value)) in settings.into_iter().enumerate() {
        let name = format!("with-{number}");
        let request = make(vec![topic_with(&name, setting, value)]);
        script.compare(&format!("with {setting}={value}"), 4, &request)?;
    }
    let looked_at = create_topics::Request {
        validate_only: true,
        ..make(vec![topic("looked-at"), counts(-1, -1)])
    };
    script.compare("validate only", 4, &looked_at)?;
    let assigned = create_topics::Topic {
        num_partitions: 1,
        assignments: vec![create_topics::Assignment {
            partition_index: 0,
            broker_ids: vec![1],
        }],
        ..topic("assigned")
    };
    script.compare("with a count and an assignment", 4, &make(vec![assigned]))?;
    Ok(())
}

fn compare_partitions(script: &mut Script) -> Result<()> {
    let request = |name: &str, count| create_partitions::Request {
        topics: vec![create_partitions::Topic {
            name: name.to_owned(),
            count,
            assignments: None,
        }],
        timeout_ms: 10_000,
        validate_only: false,
    };
    script.compare("more partitions", 2, &request("plain", 3))?;
    script.compare("same number of partitions", 2, &request("plain", 3))?;
    script.compare("fewer partitions", 2, &request("plain", 2))?;
    script.compare("zero partitions", 2, &request("plain", 0))?;
    script.compare("unknown topic", 2, &request("absent", 3))?;
    let twice = create_partitions::Request {
        topics: [4, 5]
            .map(|count| request("plain", count).topics.remove(0))
            .to_vec(),
        ..request("plain", 4)
    };
    script.compare("same topic twice", 2, &twice)?;
    Ok(())
}

/// Topic settings that our node supports.
const SETTINGS: [&str; 32] = [
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "unclean.leader.election.enable",
];

fn describe(resource_type: i8, name: &str, settings: &[&str]) -> describe_configs::Request {
    let settings = settings.iter().map(|it| (*it).to_owned());
    describe_configs::Request {
        resources: vec![describe_configs::Resource {
            resource_type,
            resource_name: name.to_owned(),
            configuration_keys: Some(settings.collect()),
        }],
        ..describe_configs::Request::default()
    }
}

/// Compares one setting after the other, because settings have no order in a response.
fn compare_settings(script: &mut Script, when: &str) -> Result<()> {
    for setting in SETTINGS {
        let request = describe(TOPIC, "plain", &[setting]);
        script.compare_eventually(&format!("{setting} {when}"), 4, &request)?;
    }
    Ok(())
}

fn compare_configs(script: &mut Script) -> Result<()> {
    script.compare("unknown topic", 4, &describe(TOPIC, "absent", &SETTINGS))?;
    script.compare("invalid name", 4, &describe(TOPIC, "no good", &SETTINGS))?;
    script.compare(
        "unknown resource type",
        4,
        &describe(77, "plain", &SETTINGS),
    )?;
    compare_settings(script, "of a topic")?;
    let change = |name: &str, setting: &str, operation, value: Option<&str>| {
        incremental_alter_configs::Request {
            resources: vec![incremental_alter_configs::Resource {
                resource_type: TOPIC,
                resource_name: name.to_owned(),
                configs: vec![incremental_alter_configs::Config {
                    name: setting.to_owned(),
                    config_operation: operation,
                    value: value.map(str::to_owned),
                }],
            }],
            validate_only: false,
        }
    };
    let (set, delete, append) = (0, 1, 2);
    script.compare(
        "set",
        1,
        &change("plain", "retention.ms", set, Some("5000")),
    )?;
    compare_settings(script, "of a topic that was changed")?;
    script.compare("deleted", 1, &change("plain", "retention.ms", delete, None))?;
    script.compare(
        "set to nothing",
        1,
        &change("plain", "retention.ms", set, None),
    )?;
    script.compare(
        "set to a word",
        1,
        &change("plain", "retention.ms", set, Some("x")),
    )?;
    script.compare(
        "unknown setting",
        1,
        &change("plain", "no.such.setting", set, Some("1")),
    )?;
    script.compare(
        "unknown topic",
        1,
        &change("absent", "retention.ms", set, Some("1")),
    )?;
    script.compare(
        "append to a number",
        1,
        &change("plain", "retention.ms", append, Some("1")),
    )?;
    script.compare(
        "append to a list",
        1,
        &change("plain", "cleanup.policy", append, Some("compact")),
    )?;
    script.compare(
        "unknown operation",
        1,
        &change("plain", "retention.ms", 9, Some("1")),
    )?;
    let replace = |name: &str, value: &str| alter_configs::Request {
        resources: vec![alter_configs::Resource {
            resource_type: TOPIC,
            resource_name: name.to_owned(),
            configs: vec![alter_configs::Config {
                name: "retention.ms".to_owned(),
                value: Some(value.to_owned()),
            }],
        }],
        validate_only: false,
    };
    script.compare("replaced", 1, &replace("plain", "7000"))?;
    script.compare("replaced by a word", 1, &replace("plain", "x"))?;
    script.compare("unknown topic", 1, &replace("absent", "1"))?;
    compare_settings(script, "of a topic whose settings were replaced")
}

fn compare_deletions(script: &mut Script) -> Result<()> {
    let request = |names: &[&str]| delete_topics::Request {
        topic_names: names.iter().map(|name| (*name).to_owned()).collect(),
        timeout_ms: 10_000,
        ..delete_topics::Request::default()
    };
    script.compare("unknown topic", 5, &request(&["absent"]))?;
    script.compare("existing topic", 5, &request(&["plain"]))?;
    script.compare("deleted topic", 5, &request(&["plain"]))?;
    let by_nothing = delete_topics::Request {
        topics: vec![delete_topics::Topic::default()],
        timeout_ms: 10_000,
        ..delete_topics::Request::default()
    };
    script.compare("unknown topic id", 6, &by_nothing)?;
    Ok(())
}
