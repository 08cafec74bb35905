//! Consumer group metadata of the protocol type `consumer`: subscriptions and assignments.
//!
//! A version of two bytes precedes a message that is never flexible. A broker decodes it only to
//! learn the subscribed topics of a group. Source: `ConsumerProtocolSubscription.json` and
//! `ConsumerProtocolAssignment.json` in Apache Kafka 4.1.

use bytes::Bytes;

use crate::field::Field;
use crate::message::message;
use crate::reader::{DecodeError, Fault, Reader};
use crate::writer::{EncodeError, Writer};

/// Highest known version. Later versions begin with the same fields.
pub const VERSION_MAX: i16 = 3;

message! {
    /// Subscription that a member sends to the group leader.
    struct Subscription {
        topics: Vec<String>,
        user_data: Option<Bytes>,
        owned_partitions: Vec<TopicPartitions> [1..],
        generation_id: i32 [2..] = -1,
        rack_id: Option<String> [3..],
    }

    /// Assignment that the group leader sends to a member.
    struct Assignment {
        assigned_partitions: Vec<TopicPartitions>,
        user_data: Option<Bytes>,
    }

    /// Partitions of a topic.
    struct TopicPartitions {
        topic: String,
        partitions: Vec<i32>,
    }
}

impl Subscription {
    /// Decodes the subscription in a member's JoinGroup request.
    pub fn decode(metadata: &Bytes) -> Result<Self, DecodeError> {
        decode(metadata)
    }

    /// Encodes a subscription and appends it to `out`.
    pub fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode(self, version, out)
    }
}

impl Assignment {
    /// Decodes an assignment. No bytes mean an empty assignment.
    pub fn decode(assignment: &Bytes) -> Result<Self, DecodeError> {
        match assignment.len() {
            0 => Ok(Self::default()),
            _ => decode(assignment),
        }
    }

    /// Encodes an assignment and appends it to `out`.
    pub fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode(self, version, out)
    }
}

/// Decodes a message; ignores bytes after the known fields, which belong to later versions.
fn decode<T: Field>(bytes: &Bytes) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes, 0, false);
    reader.at("version");
    let version = i16::read(&mut reader)?;
    if version < 0 {
        return Err(reader.error(Fault::Size(version.into())));
    }
    reader.set_version(version.min(VERSION_MAX), false);
    T::read(&mut reader)
}

fn encode<T: Field>(value: &T, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut writer = Writer::new(out, version, false);
    version.write(&mut writer);
    value.write(&mut writer);
    writer.finish().map(drop)
}
