//! ConsumerGroupHeartbeat: a member of a group of the consumer protocol (KIP-848) joins, continues
//! or leaves.

use crate::error_code::ErrorCode;
use crate::field::{Field, Nullable};
use crate::message::message;
use crate::reader::{DecodeError, Reader};
use crate::values::Uuid;
use crate::writer::Writer;

message! {
    /// Member and its subscription.
    struct Request {
        group_id: String,
        member_id: String,
        member_epoch: i32,
        instance_id: Option<String>,
        rack_id: Option<String>,
        rebalance_timeout_ms: i32 = -1,
        subscribed_topic_names: Option<Vec<String>>,
        subscribed_topic_regex: Option<String> [1..],
        server_assignor: Option<String>,
        topic_partitions: Option<Vec<TopicPartitions>>,
    }

    /// Partitions of a topic.
    struct TopicPartitions {
        topic_id: Uuid,
        partitions: Vec<i32>,
    }

    /// Epoch of the member, and its partitions if they have changed.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        member_id: Option<String>,
        member_epoch: i32,
        heartbeat_interval_ms: i32,
        assignment: Option<Assignment>,
    }

    /// Partitions of a member.
    struct Assignment {
        topic_partitions: Vec<TopicPartitions>,
    }
}

impl Nullable for Assignment {
    /// A nullable structure is preceded by a byte: -1 for null, 1 otherwise.
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        match i8::read(reader)? {
            ..0 => Ok(None),
            0.. => Self::read(reader).map(Some),
        }
    }

    fn write_nullable(value: Option<&Self>, writer: &mut Writer<'_>) {
        match value {
            None => (-1i8).write(writer),
            Some(assignment) => {
                1i8.write(writer);
                assignment.write(writer);
            }
        }
    }
}
