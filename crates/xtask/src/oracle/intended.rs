//! Intended differences from Apache Kafka: the request, and the reason.

/// Requests by their title. An entry whose request is not sent, or whose responses are equal, is an
/// error, so the list stays true.
pub(super) const INTENDED: &[(&str, &str)] = &[
    ("CreateTopics v4, colliding names", COLLIDE),
    (
        "IncrementalAlterConfigs v1, unknown operation",
        SERVER_ERROR,
    ),
    (
        "DescribeConfigs v4, min.insync.replicas of a topic",
        IN_SYNC,
    ),
    (
        "DescribeConfigs v4, min.insync.replicas of a topic that was changed",
        IN_SYNC,
    ),
    (
        "DescribeConfigs v4, min.insync.replicas of a topic whose settings were replaced",
        IN_SYNC,
    ),
    ("Produce v9, unknown compression", SERVER_ERROR),
    ("Produce v9, timestamp type of a broker", STAMPED),
    (
        "Produce v9, transactional without a transaction",
        AUTHORIZED,
    ),
    ("Fetch v12, unknown topic", ABORTED),
    ("Fetch v12, unknown partition", ABORTED),
    ("Fetch v13, unknown topic id", ABORTED),
    ("Fetch v12, at most 100 bytes", WHOLE),
    ("Produce v9, the first batch again", DUPLICATE),
    ("Produce v9, the first batch after the second", DUPLICATE),
    ("Produce v9, the fifth batch from the end", DUPLICATE),
    ("Produce v9, invalid epoch", EPOCH),
    (
        "AlterUserScramCredentials v0, too many iterations",
        ITERATIONS,
    ),
    (
        "AlterUserScramCredentials v0, delete after too many iterations",
        ACCEPTED,
    ),
];

/// Requests to a cluster, by their title.
pub(super) const INTENDED_OF_CLUSTER: &[(&str, &str)] = &[
    ("CreateTopics v4, min.insync.replicas=3", QUORUM),
    ("CreateTopics v4, min.insync.replicas=4", QUORUM),
    ("IncrementalAlterConfigs v1, min.insync.replicas=3", QUORUM),
    ("IncrementalAlterConfigs v1, min.insync.replicas=4", QUORUM),
    (
        "DescribeConfigs v4, min.insync.replicas of factor3",
        EFFECTIVE,
    ),
    (
        "DescribeConfigs v4, min.insync.replicas of insync1",
        EFFECTIVE,
    ),
    ("Metadata v12, topic with one replica", ALL_REPLICAS),
    (
        "Metadata v12, topic with the default replicas",
        ALL_REPLICAS,
    ),
    ("Metadata v12, topic with an assigned replica", ALL_REPLICAS),
    ("FindCoordinator v4, of a transaction", NO_TRANSACTIONS),
    ("Heartbeat v4, at another coordinator", PASSED_ON),
    ("Fetch v4, at a broker that does not lead", PASSED_ON),
    ("ListOffsets v7, at a broker that does not lead", PASSED_ON),
    (
        "OffsetForLeaderEpoch v4, at a broker that does not lead",
        PASSED_ON,
    ),
    (
        "DeleteRecords v2, at a broker that does not lead",
        PASSED_ON,
    ),
    (
        "Produce v9, acks=1, at a broker that does not lead",
        PASSED_ON,
    ),
    (
        "Produce v9, acks=-1, at a broker that does not lead",
        PASSED_ON,
    ),
    ("Metadata v12, one broker was killed", LISTED),
    ("DescribeTopicPartitions v0, one broker was killed", LISTED),
    ("DescribeCluster v1, one broker was killed", LISTED),
    ("Fetch v12, behind the end of the older epoch", DIVERGING),
];

const QUORUM: &str =
    "a quorum acknowledges a record: more replicas cannot be promised, and are refused";
const EFFECTIVE: &str = "the effective value is shown, which is the quorum";
const ALL_REPLICAS: &str = "each partition is on all members";
const NO_TRANSACTIONS: &str = "a cluster has no transactions";
const PASSED_ON: &str = "a member passes its clients on to the leader, which answers";
const LISTED: &str =
    "members are listed while they do not run: they are out of sync, and not known to be offline";
const DIVERGING: &str =
    "only brokers name the epoch of their last record; consumers ask OffsetForLeaderEpoch";

const COLLIDE: &str = "names that collide in metrics are rejected within one request too";
const SERVER_ERROR: &str = "the request is wrong, not the server";
const IN_SYNC: &str = "the source is the default, as nobody has set it: Apache Kafka sets it itself, as a dynamic default of \
     the cluster (KIP-966)";
const STAMPED: &str =
    "only a broker may set its own timestamp type: Apache Kafka accepts the batch and rewrites it";
const AUTHORIZED: &str =
    "there are no ACLs: the batch is wrong, not the authorization of its sender";
const ABORTED: &str =
    "for an unreadable partition, aborted transactions are null rather than empty";
const WHOLE: &str = "batches are returned whole, while Apache Kafka cuts off the last one";
const DUPLICATE: &str =
    "a batch with the producer's timestamps has no append time, also when it is a duplicate";
const EPOCH: &str =
    "a producer id requires an epoch: Apache Kafka accepts the batch without duplicate detection";
const ITERATIONS: &str =
    "more iterations are safer: the limit is a million, in Apache Kafka 16,384";
const ACCEPTED: &str =
    "the credential with these iterations was accepted before, so it can be deleted";
