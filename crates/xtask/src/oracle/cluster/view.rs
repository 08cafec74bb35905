//! The topic of the comparison, and a cluster as one of its brokers describes it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kafka::metadata;

/// Topic with three replicas, to whose first partition records are appended.
pub(super) const TOPIC: &str = "replicated";

/// Brokers of each cluster.
pub(super) const BROKERS: usize = 3;

/// A cluster as a broker describes it, with the first partition of [`TOPIC`].
pub(super) struct View {
    pub(super) addresses: BTreeMap<i32, String>,
    pub(super) leader: i32,
    pub(super) epoch: i32,
    pub(super) is_in_sync: bool,
}

impl View {
    /// Returns the view of a broker, if it knows the topic.
    pub(super) fn of(answer: metadata::Response) -> Option<View> {
        let brokers = answer.brokers.iter();
        let addresses = brokers.map(|it| (it.node_id, format!("{}:{}", it.host, it.port)));
        let topic = answer.topics.first()?;
        let all = || topic.partitions.iter();
        let first = all().find(|it| it.partition_index == 0)?;
        Some(View {
            addresses: addresses.collect(),
            leader: first.leader_id,
            epoch: first.leader_epoch,
            is_in_sync: all().all(|it| it.leader_id >= 0 && it.isr_nodes.len() == BROKERS),
        })
    }

    /// Returns the address of the leader.
    pub(super) fn leader(&self) -> &str {
        &self.addresses[&self.leader]
    }

    /// Returns the address of a broker that does not lead.
    pub(super) fn other(&self) -> Result<&str> {
        let mut others = self.addresses.iter().filter(|it| *it.0 != self.leader);
        let (_, address) = others.next().context("there is one broker only")?;
        Ok(address)
    }
}

/// Returns a request for the metadata of these topics.
pub(super) fn named(topics: &[&str]) -> metadata::Request {
    let topic = |name: &&str| metadata::TopicRequest {
        name: Some((*name).to_owned()),
        ..metadata::TopicRequest::default()
    };
    metadata::Request {
        topics: Some(topics.iter().map(topic).collect()),
        allow_auto_topic_creation: false,
        ..metadata::Request::default()
    }
}
