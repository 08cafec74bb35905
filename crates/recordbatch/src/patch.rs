//! The fields that a broker writes into a producer's batch.

use crate::attributes::{Attributes, TimestampType};
use crate::batch::{self, Malformed};
use crate::header::{CRC_AT, CRC_FROM};

/// A whole batch with writable bytes.
#[derive(Debug)]
pub struct BatchMut<'a> {
    bytes: &'a mut [u8],
}

const EPOCH_AT: usize = 12;
const MAX_TIMESTAMP_AT: usize = 35;

impl<'a> BatchMut<'a> {
    /// Splits `bytes` into their first batch and the rest.
    pub fn split(bytes: &'a mut [u8]) -> Result<(Self, &'a mut [u8]), Malformed> {
        let size = batch::size(bytes)?;
        let (bytes, rest) = bytes.split_at_mut(size);
        Ok((Self { bytes }, rest))
    }

    /// Writes the offset and the leader's epoch. The checksum covers neither.
    pub fn place(&mut self, base_offset: i64, leader_epoch: i32) {
        self.put(0, base_offset.to_be_bytes());
        self.put(EPOCH_AT, leader_epoch.to_be_bytes());
    }

    /// Sets `now_ms` as the timestamp of all records, and updates the checksum.
    pub fn append_time(&mut self, now_ms: i64) {
        let attributes = [self.bytes[CRC_FROM], self.bytes[CRC_FROM + 1]];
        let attributes = Attributes(i16::from_be_bytes(attributes));
        let attributes = attributes.with_timestamp_type(TimestampType::Append);
        self.put(CRC_FROM, attributes.0.to_be_bytes());
        self.put(MAX_TIMESTAMP_AT, now_ms.to_be_bytes());
        self.seal();
    }

    /// Sets the maximum timestamp, and updates the checksum.
    pub fn set_max_timestamp(&mut self, max_timestamp: i64) {
        self.put(MAX_TIMESTAMP_AT, max_timestamp.to_be_bytes());
        self.seal();
    }

    fn seal(&mut self) {
        let crc = crc32c::crc32c(&self.bytes[CRC_FROM..]);
        self.put(CRC_AT, crc.to_be_bytes());
    }

    fn put<const N: usize>(&mut self, at: usize, field: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&field);
    }
}
