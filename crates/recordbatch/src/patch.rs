//! The fields that a broker writes into a producer's batch.

use crate::attributes::{Attributes, TimestampType};
use crate::batch::Batch;
use crate::header::{CRC_AT, CRC_FROM, HEADER_SIZE};

const EPOCH_AT: usize = 12;
const MAX_TIMESTAMP_AT: usize = 35;

/// A batch with a header of its own and the records of a producer's batch, which are not copied.
#[derive(Clone, Copy, Debug)]
pub struct PatchedBatch<'a> {
    header: [u8; HEADER_SIZE],
    payload: &'a [u8],
}

impl<'a> PatchedBatch<'a> {
    /// Begins with the producer's fields.
    pub fn new(batch: &Batch<'a>) -> Self {
        let (header, payload) = batch.parts();
        Self {
            header: *header,
            payload,
        }
    }

    /// Sets the offset and the leader's epoch. The checksum covers neither.
    pub fn place(&mut self, base_offset: i64, leader_epoch: i32) {
        self.put(0, base_offset.to_be_bytes());
        self.put(EPOCH_AT, leader_epoch.to_be_bytes());
    }

    /// Sets `now_ms` as the timestamp of all records, and updates the checksum.
    pub fn append_time(&mut self, now_ms: i64) {
        let attributes = [self.header[CRC_FROM], self.header[CRC_FROM + 1]];
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

    /// Returns the size of the whole batch in bytes.
    pub fn size(&self) -> usize {
        HEADER_SIZE + self.payload.len()
    }

    /// Returns the bytes of the batch: the header, and the records.
    pub fn parts(&self) -> [&[u8]; 2] {
        [&self.header, self.payload]
    }

    /// Returns a copy of the whole batch.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().concat()
    }

    fn seal(&mut self) {
        let crc = crc32c::crc32c(&self.header[CRC_FROM..]);
        let crc = crc32c::crc32c_append(crc, self.payload);
        self.put(CRC_AT, crc.to_be_bytes());
    }

    fn put<const N: usize>(&mut self, at: usize, field: [u8; N]) {
        self.header[at..at + N].copy_from_slice(&field);
    }
}
