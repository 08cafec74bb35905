//! Comparison of the descriptions of a cluster and of its topics.

use anyhow::Result;
use kafka::{describe_cluster, describe_topic_partitions, metadata};

use super::super::script::Script;
use super::view::{TOPIC, named};

/// Name of the topic in which Apache Kafka stores offsets.
const OFFSETS: &str = "__consumer_offsets";

pub(super) fn compare(script: &mut Script) -> Result<()> {
    for version in 0..=13 {
        script.compare_unordered("replicated topic", version, &named(&[TOPIC]), tidy)?;
    }
    for version in [4, 9, 12] {
        script.compare_unordered("unknown topic", version, &named(&["absent"]), tidy)?;
    }
    for (title, name) in [
        ("topic with one replica", "factor1"),
        ("topic with the default replicas", "factor-1"),
        ("topic with three replicas", "factor3"),
        ("topic with an assigned replica", "assigned-2"),
    ] {
        script.compare_unordered(title, 12, &named(&[name]), tidy)?;
    }
    describe_partitions(script, "replicated topic", tidy_pages)?;
    for version in 0..=2 {
        let request = describe_cluster::Request {
            include_fenced_brokers: version >= 2,
            ..describe_cluster::Request::default()
        };
        script.compare("of three brokers", version, &request)?;
    }
    Ok(())
}

/// Compares the descriptions after a broker was killed. The brokers have other ids, so in-sync replicas
/// are counted only.
pub(super) fn compare_after_kill(script: &mut Script) -> Result<()> {
    let count = |answer: &mut metadata::Response| {
        tidy(answer);
        for partition in answer.topics.iter_mut().flat_map(|it| &mut it.partitions) {
            partition.isr_nodes = counted(&partition.isr_nodes);
            partition.offline_replicas = counted(&partition.offline_replicas);
        }
    };
    let title = "one broker was killed";
    script.compare_unordered(title, 12, &named(&[TOPIC]), count)?;
    script.compare_unordered(title, 4, &named(&[TOPIC]), |answer| {
        tidy(answer);
        answer.brokers.clear();
        for partition in answer.topics.iter_mut().flat_map(|it| &mut it.partitions) {
            partition.isr_nodes = counted(&partition.isr_nodes);
        }
    })?;
    describe_partitions(script, title, |answer| {
        tidy_pages(answer);
        for partition in answer.topics.iter_mut().flat_map(|it| &mut it.partitions) {
            partition.isr_nodes = counted(&partition.isr_nodes);
            partition.offline_replicas = counted(&partition.offline_replicas);
        }
    })?;
    script.compare(title, 1, &describe_cluster::Request::default())?;
    Ok(())
}

fn describe_partitions(
    script: &mut Script,
    title: &str,
    tidy: fn(&mut describe_topic_partitions::Response),
) -> Result<()> {
    let request = describe_topic_partitions::Request {
        topics: vec![describe_topic_partitions::TopicRequest {
            name: TOPIC.to_owned(),
        }],
        ..describe_topic_partitions::Request::default()
    };
    script.compare_unordered(title, 0, &request, tidy)?;
    Ok(())
}

/// Replaces ids by their number.
fn counted(ids: &[i32]) -> Vec<i32> {
    vec![-1; ids.len()]
}

/// Orders partitions and replicas: the first replica is the preferred leader, which a cluster of ours
/// does not have.
fn tidy(answer: &mut metadata::Response) {
    answer
        .topics
        .retain(|it| it.name.as_deref() != Some(OFFSETS));
    for topic in &mut answer.topics {
        topic.partitions.sort_by_key(|it| it.partition_index);
        for partition in &mut topic.partitions {
            partition.replica_nodes.sort_unstable();
            partition.isr_nodes.sort_unstable();
        }
    }
}

fn tidy_pages(answer: &mut describe_topic_partitions::Response) {
    for topic in &mut answer.topics {
        topic.partitions.sort_by_key(|it| it.partition_index);
        for partition in &mut topic.partitions {
            partition.replica_nodes.sort_unstable();
            partition.isr_nodes.sort_unstable();
        }
    }
}
