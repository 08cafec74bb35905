//! Building of batches.

use crate::attributes::Attributes;
use crate::header::{CRC_AT, CRC_FROM, HEADER_SIZE, Header, Producer, UNCOUNTED_SIZE};
use crate::record;

/// The header fields of a batch that do not depend on its records. The default is what a producer
/// sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// The offset of the first record; 0 in produced batches.
    pub base_offset: i64,
    /// The leader's epoch; -1 in produced batches.
    pub leader_epoch: i32,
    /// The attributes; [`Builder`] sets the compression itself.
    pub attributes: Attributes,
    /// The producer, if it is idempotent.
    pub producer: Option<Producer>,
}

impl Default for Template {
    fn default() -> Self {
        Self {
            base_offset: 0,
            leader_epoch: -1,
            attributes: Attributes::default(),
            producer: None,
        }
    }
}

/// Collects records into a batch. After [`Builder::finish`] it is empty and keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    records: Vec<u8>,
    count: i32,
    /// The number of offsets without a record.
    skipped: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl Builder {
    /// Returns an empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of records so far.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the size of the batch so far, uncompressed, in bytes.
    pub fn size(&self) -> usize {
        HEADER_SIZE + self.records.len()
    }

    /// Skips offsets, which no record has, as in a compacted batch.
    ///
    /// # Panics
    /// If the batch gets more offsets than its header can count (2³¹).
    pub fn skip(&mut self, offsets: i32) {
        let skipped = self.skipped.checked_add(offsets.max(0));
        self.skipped = skipped.expect("a batch has fewer than 2^31 offsets");
    }

    /// Adds a record; its timestamp is in milliseconds since 1970-01-01 UTC.
    ///
    /// # Panics
    /// If the batch gets more records or bytes than its header can count (2³¹).
    pub fn push(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) {
        if self.count == 0 {
            (self.base_timestamp, self.max_timestamp) = (timestamp, timestamp);
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let offset = self.count.checked_add(self.skipped);
        let offset = offset.expect("a batch has fewer than 2^31 offsets");
        let place = (offset, timestamp.saturating_sub(self.base_timestamp));
        record::put(
            &mut self.records,
            place,
            (key, value),
            headers.iter().copied(),
        );
        let next = self.count.checked_add(1);
        self.count = next.expect("a batch has fewer than 2^31 records");
    }

    /// Appends the batch to `out`.
    pub fn finish(&mut self, template: &Template, out: &mut Vec<u8>) {
        let header = self.header(template);
        seal(&header, &self.records, out);
        self.clear();
    }

    /// Appends the batch to `out`, with compressed records.
    #[cfg(feature = "codecs")]
    pub fn finish_compressed(
        &mut self,
        template: &Template,
        compression: crate::Compression,
        out: &mut Vec<u8>,
    ) {
        let mut header = self.header(template);
        header.attributes = header.attributes.with_compression(compression);
        seal(
            &header,
            &crate::codecs::compress(compression, &self.records),
            out,
        );
        self.clear();
    }

    fn header(&self, template: &Template) -> Header {
        let mut header = Header {
            base_offset: template.base_offset,
            length: 0,
            leader_epoch: template.leader_epoch,
            crc: 0,
            attributes: template.attributes,
            last_offset_delta: self.count + self.skipped - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: 0,
            producer_epoch: 0,
            base_sequence: 0,
            count: self.count,
        };
        header.set_producer(template.producer);
        header
    }

    fn clear(&mut self) {
        self.records.clear();
        (self.count, self.skipped) = (0, 0);
    }
}

/// Appends a batch of this header and these records, which are compressed as the header says. Its
/// length and checksum are computed here.
///
/// # Panics
/// If it has more bytes than its header can count (2³¹).
pub fn seal(header: &Header, records: &[u8], out: &mut Vec<u8>) {
    let length = i32::try_from(HEADER_SIZE - UNCOUNTED_SIZE + records.len());
    let header = Header {
        length: length.expect("a batch has fewer than 2^31 bytes"),
        ..*header
    };
    let start = out.len();
    header.write(out);
    out.extend_from_slice(records);
    let crc = crc32c::crc32c(&out[start + CRC_FROM..]);
    out[start + CRC_AT..start + CRC_FROM].copy_from_slice(&crc.to_be_bytes());
}
