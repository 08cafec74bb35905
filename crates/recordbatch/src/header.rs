//! The header of a batch: the fixed part before its records.

use crate::attributes::{Attributes, TimestampType};

/// The size of the header, in bytes.
pub const HEADER_SIZE: usize = 61;
/// The only supported format.
pub const MAGIC: i8 = 2;
/// The value for "no timestamp".
pub const NO_TIMESTAMP: i64 = -1;

/// The bytes that `length` does not count: the base offset and the length itself.
pub(crate) const UNCOUNTED_SIZE: usize = 12;
/// The position of the checksum, and the start of the bytes that it covers.
pub(crate) const CRC_AT: usize = 17;
pub(crate) const CRC_FROM: usize = 21;
pub(crate) const MAGIC_AT: usize = 16;
pub(crate) const LENGTH_AT: usize = 8;

const NO_PRODUCER_ID: i64 = -1;

/// The producer of a batch, and the sequence of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// The producer id, from 0.
    pub id: i64,
    /// The producer epoch, from 0.
    pub epoch: i16,
    /// The sequence of the first record, from 0; after [`i32::MAX`] comes 0 again. -1 in a marker.
    pub sequence: i32,
}

/// All fields of a batch before its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The offset of the first record that the batch had when it was made.
    pub base_offset: i64,
    /// The number of bytes after this field.
    pub length: i32,
    /// The epoch of the leader that appended the batch; -1 for none.
    pub leader_epoch: i32,
    /// The CRC-32C from the attributes to the end.
    pub crc: u32,
    /// The attributes.
    pub attributes: Attributes,
    /// The difference between the offsets of the first and the last record.
    pub last_offset_delta: i32,
    /// The base of the records' timestamps, in milliseconds since 1970-01-01 UTC.
    pub base_timestamp: i64,
    /// The highest timestamp in the batch, in milliseconds since 1970-01-01 UTC.
    pub max_timestamp: i64,
    /// The raw value; see [`Header::producer`].
    pub producer_id: i64,
    /// The raw value; see [`Header::producer`].
    pub producer_epoch: i16,
    /// The raw value; see [`Header::producer`].
    pub base_sequence: i32,
    /// The number of records in the batch.
    pub count: i32,
}

impl Header {
    /// Returns the producer. Without an id, the values of epoch and sequence have no meaning:
    /// clients send different ones.
    pub fn producer(&self) -> Option<Producer> {
        (self.producer_id != NO_PRODUCER_ID).then_some(Producer {
            id: self.producer_id,
            epoch: self.producer_epoch,
            sequence: self.base_sequence,
        })
    }

    /// Returns the offset of the last record that the batch had when it was made.
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(i64::from(self.last_offset_delta))
    }

    /// Returns the timestamp of a record with this delta.
    pub fn timestamp(&self, delta: i64) -> i64 {
        match self.attributes.timestamp_type() {
            TimestampType::Create => self.base_timestamp.saturating_add(delta),
            TimestampType::Append => self.max_timestamp,
        }
    }

    pub(crate) fn set_producer(&mut self, producer: Option<Producer>) {
        let producer = producer.unwrap_or(Producer {
            id: NO_PRODUCER_ID,
            epoch: -1,
            sequence: -1,
        });
        self.producer_id = producer.id;
        self.producer_epoch = producer.epoch;
        self.base_sequence = producer.sequence;
    }

    pub(crate) fn read(bytes: &[u8; HEADER_SIZE]) -> Self {
        let mut rest = Fields(bytes);
        let base_offset = i64::from_be_bytes(rest.take());
        let length = i32::from_be_bytes(rest.take());
        let leader_epoch = i32::from_be_bytes(rest.take());
        let [_magic] = rest.take();
        Self {
            base_offset,
            length,
            leader_epoch,
            crc: u32::from_be_bytes(rest.take()),
            attributes: Attributes(i16::from_be_bytes(rest.take())),
            last_offset_delta: i32::from_be_bytes(rest.take()),
            base_timestamp: i64::from_be_bytes(rest.take()),
            max_timestamp: i64::from_be_bytes(rest.take()),
            producer_id: i64::from_be_bytes(rest.take()),
            producer_epoch: i16::from_be_bytes(rest.take()),
            base_sequence: i32::from_be_bytes(rest.take()),
            count: i32::from_be_bytes(rest.take()),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.base_offset.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
        out.extend_from_slice(&self.leader_epoch.to_be_bytes());
        out.extend_from_slice(&MAGIC.to_be_bytes());
        out.extend_from_slice(&self.crc.to_be_bytes());
        out.extend_from_slice(&self.attributes.0.to_be_bytes());
        out.extend_from_slice(&self.last_offset_delta.to_be_bytes());
        out.extend_from_slice(&self.base_timestamp.to_be_bytes());
        out.extend_from_slice(&self.max_timestamp.to_be_bytes());
        out.extend_from_slice(&self.producer_id.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.to_be_bytes());
        out.extend_from_slice(&self.base_sequence.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
    }
}

/// The bytes of a header that were not read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("fields fill the header");
        self.0 = rest;
        *field
    }
}
