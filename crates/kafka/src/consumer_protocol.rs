//! What consumers put into the opaque bytes of their groups: the protocol type `consumer`.
//!
//! A version of two bytes, then a message that is never flexible. Brokers look inside only to know
//! which topics a group is subscribed to. Source: `ConsumerProtocolSubscription.json` and
//! `ConsumerProtocolAssignment.json` in Apache Kafka 4.1.

use bytes::Bytes;

use crate::field::Field;
use crate::message::message;
use crate::reader::{DecodeError, Fault, Reader};
use crate::writer::{EncodeError, Writer};

/// The highest version that is known. Later ones begin with the same fields.
pub const VERSION_MAX: i16 = 3;

message! {
    /// What a member tells the leader.
    struct Subscription {
        topics: Vec<String>,
        user_data: Option<Bytes>,
        owned_partitions: Vec<TopicPartitions> [1..],
        generation_id: i32 [2..] = -1,
        rack_id: Option<String> [3..],
    }

    /// What the leader gives to a member.
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
    /// Reads what a member said when it joined.
    pub fn decode(metadata: &Bytes) -> Result<Self, DecodeError> {
        decode(metadata)
    }

    /// Appends what a member says when it joins.
    pub fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode(self, version, out)
    }
}

impl Assignment {
    /// Reads what a member got. No bytes at all are an assignment of nothing.
    pub fn decode(assignment: &Bytes) -> Result<Self, DecodeError> {
        match assignment.len() {
            0 => Ok(Self::default()),
            _ => decode(assignment),
        }
    }

    /// Appends what a member gets.
    pub fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode(self, version, out)
    }
}

/// Bytes behind the known fields belong to a later version and are left alone.
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
