//! DescribeTopicPartitions: topics with their partitions, in pages.

use crate::error_code::ErrorCode;
use crate::field::{Field, Nullable};
use crate::message::message;
use crate::reader::{DecodeError, Reader};
use crate::values::Uuid;
use crate::writer::Writer;

message! {
    /// Topics and start of the page.
    struct Request {
        topics: Vec<TopicRequest>,
        response_partition_limit: i32 = 2000,
        cursor: Option<Cursor>,
    }

    /// A topic, by name.
    struct TopicRequest {
        name: String,
    }

    /// Start of a page.
    struct Cursor {
        topic_name: String,
        partition_index: i32,
    }

    /// A page of partitions.
    struct Response {
        throttle_time_ms: i32,
        topics: Vec<Topic>,
        next_cursor: Option<Cursor>,
    }

    /// A topic, or its error.
    struct Topic {
        error_code: ErrorCode,
        name: Option<String>,
        topic_id: Uuid,
        is_internal: bool,
        partitions: Vec<Partition>,
        topic_authorized_operations: i32 = i32::MIN,
    }

    /// Leader and replicas of a partition.
    struct Partition {
        error_code: ErrorCode,
        partition_index: i32,
        leader_id: i32,
        leader_epoch: i32 = -1,
        replica_nodes: Vec<i32>,
        isr_nodes: Vec<i32>,
        eligible_leader_replicas: Option<Vec<i32>>,
        last_known_elr: Option<Vec<i32>>,
        offline_replicas: Vec<i32>,
    }
}

impl Nullable for Cursor {
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
            Some(cursor) => {
                1i8.write(writer);
                cursor.write(writer);
            }
        }
    }
}
