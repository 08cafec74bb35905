//! Authorized operations: bit sets of the operations that a client may do on a resource. They are
//! all operations that Kafka has for the type of the resource, except changes of a topic that the
//! client may not make.

use crate::client::Client;

/// Operations in Kafka's numbers (`AclOperation`).
const READ: u32 = 3;
const WRITE: u32 = 4;
const CREATE: u32 = 5;
const DELETE: u32 = 6;
const ALTER: u32 = 7;
const DESCRIBE: u32 = 8;
const CLUSTER_ACTION: u32 = 9;
const DESCRIBE_CONFIGS: u32 = 10;
const ALTER_CONFIGS: u32 = 11;
const IDEMPOTENT_WRITE: u32 = 12;

/// Operations on a topic.
const TOPIC: i32 = bits(&[
    READ,
    WRITE,
    CREATE,
    DELETE,
    ALTER,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
]);

/// Operations on a topic that change it.
const TOPIC_CHANGES: i32 = bits(&[DELETE, ALTER, ALTER_CONFIGS]);

/// Operations on the cluster.
const CLUSTER: i32 = bits(&[
    CREATE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    IDEMPOTENT_WRITE,
]);

/// Operations on a consumer group.
const GROUP: i32 = bits(&[READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]);

/// The request did not ask for the operations.
const NOT_ASKED: i32 = i32::MIN;

const fn bits(operations: &[u32]) -> i32 {
    let (mut bits, mut at) = (0, 0);
    while at < operations.len() {
        bits |= 1 << operations[at];
        at += 1;
    }
    bits
}

/// Returns the operations on a topic, if the request asks for them.
pub(super) fn on_topic(client: &Client, topic: &str, is_asked: bool) -> i32 {
    match (is_asked, client.check_topic(topic)) {
        (false, _) => NOT_ASKED,
        (true, Ok(())) => TOPIC,
        (true, Err(_)) => TOPIC & !TOPIC_CHANGES,
    }
}

/// Returns the operations on the cluster, if the request asks for them.
pub(super) fn on_cluster(is_asked: bool) -> i32 {
    if is_asked { CLUSTER } else { NOT_ASKED }
}

/// Returns the operations on a consumer group, if the request asks for them.
pub(super) fn on_group(is_asked: bool) -> i32 {
    if is_asked { GROUP } else { NOT_ASKED }
}
