//! [`Brokers`]: the nodes of the cluster as Kafka's clients see them.

use std::sync::Arc;

use kafka::ErrorCode;
use platform::{Member, Membership, ShardRole};
use topic_service::{Topic, Topics};

use super::client::Client;
use super::errors::Failed;
use super::listener::BrokerAddress;

/// The brokers at the time of a request. A node alone is the only one.
pub(super) struct Brokers<'a> {
    topics: &'a Topics,
    membership: &'a dyn Membership,
    members: Arc<[Member]>,
    /// The address of this node, as this client is told.
    own: &'a BrokerAddress,
}

/// A broker and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broker {
    pub(super) id: i32,
    pub(super) address: BrokerAddress,
}

/// The leader and the replicas of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replication {
    /// LEADER_NOT_AVAILABLE while the leader is unknown.
    pub(super) error_code: ErrorCode,
    /// The leader; -1 while it is unknown.
    pub(super) leader: i32,
    /// The leader epoch; -1 if it is unknown here.
    pub(super) leader_epoch: i32,
    pub(super) replicas: Vec<i32>,
    pub(super) in_sync: Vec<i32>,
}

/// The id of no broker.
pub(super) const NONE: i32 = -1;

impl<'a> Brokers<'a> {
    /// Returns the brokers as they are known now.
    pub(super) fn of(client: &'a Client) -> Self {
        let topics = client.topics();
        let membership = topics.membership();
        Self {
            topics,
            membership,
            members: membership.members(),
            own: &client.place,
        }
    }

    /// Returns whether the node belongs to a cluster.
    pub(super) fn is_clustered(&self) -> bool {
        self.membership.is_clustered()
    }

    /// Returns the members that have a Kafka listener.
    pub(super) fn list(&self) -> Vec<Broker> {
        let members = self.members.iter();
        let brokers = members.filter_map(|it| self.broker(it));
        brokers.collect()
    }

    /// Returns the ids of all members, with a Kafka listener or without.
    pub(super) fn ids(&self) -> Vec<i32> {
        self.members.iter().map(|it| encoded(it.id)).collect()
    }

    /// Returns the broker with that id.
    pub(super) fn find(&self, id: i32) -> Option<Broker> {
        let mut members = self.members.iter();
        let member = members.find(|it| encoded(it.id) == id)?;
        self.broker(member)
    }

    /// Returns whether that node is a member.
    fn has(&self, id: i32) -> bool {
        self.members.iter().any(|it| encoded(it.id) == id)
    }

    /// Returns the id of the node that administers topics; -1 while it is unknown.
    pub(super) fn controller(&self) -> i32 {
        let leader = self.leader(&self.topics.catalogue_role());
        leader.map_or(NONE, |it| it.id)
    }

    /// Returns the coordinator of a consumer group, if it is known.
    pub(super) fn coordinator(&self, group: &str) -> Option<Broker> {
        self.leader(&self.topics.group_role(group))
    }

    /// Returns the replication of a partition.
    pub(super) fn replication(&self, topic: &Topic, partition: u32) -> Replication {
        let role = self.topics.partition_role(topic, partition);
        let (error_code, leader) = match self.leader(&role) {
            Some(broker) => (ErrorCode::None, broker.id),
            None => (ErrorCode::LeaderNotAvailable, NONE),
        };
        Replication {
            error_code,
            leader,
            leader_epoch: self.topics.leader_epoch(topic, partition),
            replicas: encoded_all(&role.replicas),
            in_sync: encoded_all(&role.in_sync),
        }
    }

    /// Returns whether this node leads a partition.
    pub(super) fn is_leader(&self, topic: &Topic, partition: u32) -> bool {
        let role = self.topics.partition_role(topic, partition);
        role.leader == Some(self.membership.own_id())
    }

    /// Checks the number of replicas of a new topic. Every partition has those of the cluster, so a
    /// smaller number is taken, too.
    pub(super) fn check_factor(&self, replication_factor: i16) -> Result<(), Failed> {
        let count = self.members.len();
        match usize::try_from(replication_factor) {
            Err(_) if i32::from(replication_factor) == NONE => Ok(()),
            Ok(wanted) if (1..=count).contains(&wanted) => Ok(()),
            _ => {
                let brokers = match count {
                    1 => "one broker".to_owned(),
                    _ => format!("{count} brokers"),
                };
                let message = format!(
                    "replication factor {replication_factor} is not possible with {brokers}"
                );
                Err(Failed::new(ErrorCode::InvalidReplicationFactor, message))
            }
        }
    }

    /// Returns whether these nodes are possible replicas of a partition: members, each named once.
    pub(super) fn may_replicate(&self, ids: &[i32]) -> bool {
        let is_once = |(index, id): (usize, &i32)| !ids[..index].contains(id);
        let is_member = ids.iter().all(|id| self.has(*id));
        !ids.is_empty() && is_member && ids.iter().enumerate().all(is_once)
    }

    /// Describes the possible replicas of a partition, for errors.
    pub(super) fn possible_replicas(&self) -> String {
        match *self.ids() {
            [only] => format!("broker {only} as its only replica"),
            ref ids => format!("replicas among the brokers {ids:?}"),
        }
    }

    /// Returns the replicas of the catalogue, which are those of every partition in the end.
    pub(super) fn replicas(&self) -> Vec<i32> {
        let role = self.topics.catalogue_role();
        encoded_all(&role.replicas)
    }

    /// Returns how many replicas have a record that is acknowledged with `acks=all`.
    pub(super) fn quorum(&self) -> usize {
        self.replicas().len() / 2 + 1
    }

    /// Returns the number of replicas that acknowledge a record, as a topic's configuration; `None`
    /// on a node alone, where the configuration has no effect.
    pub(super) fn min_insync(&self) -> Option<String> {
        self.is_clustered().then(|| self.quorum().to_string())
    }

    /// Checks the values of a topic's configuration that depend on the number of brokers.
    pub(super) fn check_config(&self, key: &str, value: Option<&str>) -> Result<(), Failed> {
        if !self.is_clustered() || key != topics::Key::MinInsyncReplicas.name() {
            return Ok(());
        }
        let quorum = self.quorum();
        // What is not a number is refused where the topic is changed.
        match value.and_then(|it| it.parse::<usize>().ok()) {
            Some(count) if count > quorum => {
                let replicas = self.replicas().len();
                let message = format!(
                    "min.insync.replicas {count} is more than the {quorum} of {replicas} \
                     replicas that acknowledge a record"
                );
                Err(Failed::new(ErrorCode::InvalidConfig, message))
            }
            _ => Ok(()),
        }
    }

    fn leader(&self, role: &ShardRole) -> Option<Broker> {
        let id = role.leader?;
        let mut members = self.members.iter();
        let member = members.find(|it| it.id == id)?;
        self.broker(member)
    }

    /// Returns a member as a broker, if it has a Kafka listener. This node has one.
    fn broker(&self, member: &Member) -> Option<Broker> {
        broker(member, self.membership, self.own)
    }
}

/// Returns the members that have a Kafka listener, at the time of the call. This node has one, at `own`
/// unless the members know another address.
pub(super) fn list(membership: &dyn Membership, own: &BrokerAddress) -> Vec<Broker> {
    let members = membership.members();
    let brokers = members.iter().filter_map(|it| broker(it, membership, own));
    brokers.collect()
}

fn broker(member: &Member, membership: &dyn Membership, own: &BrokerAddress) -> Option<Broker> {
    let address = match &member.kafka {
        Some((host, port)) => BrokerAddress {
            host: host.clone(),
            port: *port,
        },
        None if member.id == membership.own_id() => own.clone(),
        None => return None,
    };
    Some(Broker {
        id: encoded(member.id),
        address,
    })
}

/// Returns the error for an API of transactions, which a cluster does not have.
pub(super) fn no_transactions() -> Failed {
    Failed::new(
        ErrorCode::UnsupportedVersion,
        "a cluster has no transactions: leave out transactional.id",
    )
}

/// Returns ids of nodes as Kafka encodes them.
pub(super) fn encoded_all(ids: &[u64]) -> Vec<i32> {
    ids.iter().map(|it| encoded(*it)).collect()
}

fn encoded(id: u64) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}
