//! Intended differences from Apache Kafka: the request, and the reason.

/// Requests by their title. An entry whose request is not sent, or whose responses are equal, is an
/// error, so the list stays true.
pub(super) const OTHERWISE: &[(&str, &str)] = &[
    ("CreateTopics v4, two that collide", COLLIDE),
    (
        "IncrementalAlterConfigs v1, an operation that is none",
        SERVER_ERROR,
    ),
    ("Produce v9, of a compression that is none", SERVER_ERROR),
    ("Produce v9, of a broker's time", STAMPED),
    ("Produce v9, of a transaction of nobody", AUTHORIZED),
    ("Fetch v12, of no topic", ABORTED),
    ("Fetch v12, of no partition", ABORTED),
    ("Fetch v13, by an id that is none", ABORTED),
    ("Fetch v12, of 100 bytes at most", WHOLE),
    ("Produce v9, the first batch again", DUPLICATE),
    ("Produce v9, the first once more", DUPLICATE),
    ("Produce v9, the fifth last", DUPLICATE),
    ("Produce v9, of an epoch that is none", EPOCH),
    ("AlterUserScramCredentials v0, of too many rounds", ROUNDS),
    (
        "AlterUserScramCredentials v0, to be gone, of whom there may be none",
        KEPT,
    ),
];

const COLLIDE: &str = "names that become one in metrics are refused in one request as in two";
const SERVER_ERROR: &str = "what is wrong is the request, not the server";
const STAMPED: &str =
    "only a broker says that a time is its own: Apache Kafka takes the batch and rewrites it";
const AUTHORIZED: &str = "there are no access rules: the batch is wrong, not who sends it";
const ABORTED: &str = "of what cannot be read, aborted transactions are null rather than none";
const WHOLE: &str = "batches are served whole, where Apache Kafka cuts off the last one";
const DUPLICATE: &str =
    "a batch that its producer has stamped has no time of its append, the second time neither";
const EPOCH: &str =
    "whoever has an id has an epoch: Apache Kafka takes the batch, and knows no duplicate of it";
const ROUNDS: &str = "more rounds are better: a million are taken, where Apache Kafka takes 16,384";
const KEPT: &str = "whose password was taken, with those rounds, is there to be gone";
