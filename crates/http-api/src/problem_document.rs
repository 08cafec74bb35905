//! Problem documents, and bodies of bytes, in the description of the API.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// A body of bytes, as they are.
#[derive(Serialize, ToSchema)]
#[schema(as = Bytes, value_type = String, format = Binary)]
pub struct BinaryDocument(Vec<u8>);

/// An error (RFC 9457) with a `code` of Telpher.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    #[schema(example = 412)]
    status: u16,
    /// Code for programs; `telpher explain CODE` and the documentation describe each.
    #[schema(example = "conflict")]
    code: String,
    /// Description for people.
    #[schema(example = "the newest message is 43, not 41")]
    detail: String,
    /// Sequence number of the newest message, if the request expected another.
    head_seq: Option<u64>,
    /// Current version, if the request expected another.
    version: Option<u64>,
    /// Token count of the window or turn.
    tokens: Option<u64>,
    /// Milliseconds to wait before a retry.
    retry_ms: Option<u64>,
    /// Sequence number of the message that caused the error.
    seq: Option<u64>,
    /// Sequence number of the oldest stored message.
    start_seq: Option<u64>,
    /// Index of the message in the batch that caused the error, from 0.
    index: Option<u64>,
    /// Path of the invalid value in the body.
    path: Option<String>,
    /// Number of the line in an import that caused the error, from 1.
    line: Option<u64>,
    /// Number of chunks of a streamed answer that were read, with the faulty one.
    chunk: Option<u64>,
    /// Outcome of each record of an append, of which at least one failed.
    records: Option<Vec<RecordOutcomeDocument>>,
    /// First offset that can be read, for a read of one that is not stored.
    start: Option<u64>,
    /// Offset of the next record of the partition, for a read of one that is not stored.
    end: Option<u64>,
    /// Offset at which reading can continue behind records that cannot be read.
    next: Option<u64>,
    /// True if an agent received the request, which may have been executed.
    sent: Option<bool>,
    /// Details that an agent gave its error; in base64 as `details_base64` if they are not UTF-8.
    details: Option<String>,
    /// Details that an agent gave its error, in base64.
    details_base64: Option<String>,
    /// Number of members of a consumer group that must have none.
    members: Option<u64>,
    /// Leases that ran out or were answered before.
    ended: Option<Vec<String>>,
    /// Largest accepted body, in bytes.
    size_max: Option<u64>,
    /// All mistakes in a body that is checked as a whole.
    mistakes: Option<Vec<String>>,
    /// Host of the request, if the node does not serve it.
    host: Option<String>,
    /// Origin of the web page, if the node does not accept it.
    origin: Option<String>,
    /// Halted name that covers the subject.
    halted: Option<String>,
    /// `false` for a take that was not allowed.
    allowed: Option<bool>,
    /// Name of the limit that denied a take.
    limit: Option<String>,
    /// Names of the limits that denied a take (draft-ietf-httpapi-ratelimit-headers).
    #[serde(rename = "violated-policies")]
    violated_policies: Option<Vec<String>>,
    /// Unit of the limit that denied a take.
    #[schema(example = "requests")]
    unit: Option<String>,
    /// Amount left in the limit that denied a take.
    have: Option<i64>,
    /// Amount that the denied take needs.
    need: Option<u64>,
    /// Capacity of a limit that can never allow the take.
    capacity: Option<u64>,
    /// Amount by unit that a take could have now.
    would_pass: Option<BTreeMap<String, u64>>,
}

/// The outcome of one record of an append.
#[derive(Serialize, ToSchema)]
#[schema(as = RecordOutcome)]
struct RecordOutcomeDocument {
    #[schema(example = 2)]
    partition: u32,
    /// Offset of an appended record.
    offset: Option<u64>,
    /// Error code of a record that was not appended.
    code: Option<String>,
    /// Description for people of that error.
    detail: Option<String>,
}
