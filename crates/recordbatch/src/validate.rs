//! Validation of a producer's batch.
//!
//! The checks are those of Apache Kafka's `LogValidator` and `UnifiedLog`, except those of each
//! record: [`crate::survey()`] does them for uncompressed records, [`crate::Records::check`] for
//! any.

use crate::attributes::{Compression, TimestampType};
use crate::batch::Batch;
use crate::header::{Header, NO_TIMESTAMP};
use crate::record::RECORD_SIZE_MIN;

/// The limits that a topic sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The largest size of a whole batch, in bytes: `max.message.bytes`.
    pub batch_size_max: usize,
}

/// The reason why a batch is refused, with Kafka's error for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// MESSAGE_TOO_LARGE.
    #[error("the record batch has {size} bytes (limit {max}, max.message.bytes)")]
    Size {
        /// Its size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// MESSAGE_TOO_LARGE.
    #[error("the decompressed records exceed {max} bytes, the limit for one request")]
    Unpacked {
        /// The limit, or the rest of it.
        max: usize,
    },
    /// CORRUPT_MESSAGE.
    #[error("the checksum of the record batch is wrong")]
    Checksum,
    /// UNSUPPORTED_COMPRESSION_TYPE.
    #[error("unknown compression {number} of a record batch")]
    Compression {
        /// The number in the attributes.
        number: i16,
    },
    /// INVALID_RECORD: unknown bits, or attributes that only a broker writes.
    #[error("a producer may not set the attributes {attributes:#x} of a record batch")]
    Attributes {
        /// The attributes.
        attributes: i16,
    },
    /// INVALID_RECORD.
    #[error("the base offset of a produced record batch is {base_offset}, not 0")]
    BaseOffset {
        /// The base offset.
        base_offset: i64,
    },
    /// INVALID_RECORD: no records, or a number of records that does not match the offsets or the
    /// size.
    #[error("{count} records in a batch of {offsets} offsets and {size} bytes of records")]
    Count {
        /// The stated number of records.
        count: i32,
        /// The stated number of offsets.
        offsets: i64,
        /// The size of all records in bytes.
        size: usize,
    },
    /// INVALID_TIMESTAMP.
    #[error("invalid timestamps of a record batch: base {base_timestamp}, maximum {max_timestamp}")]
    Timestamp {
        /// The timestamp of the first record.
        base_timestamp: i64,
        /// The highest timestamp.
        max_timestamp: i64,
    },
    /// INVALID_TIMESTAMP.
    #[error(
        "a record is dated {timestamp}, {ahead_ms} ms ahead of the node's clock (limit {max} ms, message.timestamp.after.max.ms)"
    )]
    Ahead {
        /// Its timestamp.
        timestamp: i64,
        /// The number of milliseconds that it is ahead.
        ahead_ms: i64,
        /// The limit.
        max: i64,
    },
    /// INVALID_TIMESTAMP.
    #[error(
        "a record is dated {timestamp}, {behind_ms} ms behind the node's clock (limit {max} ms, message.timestamp.before.max.ms)"
    )]
    Behind {
        /// Its timestamp.
        timestamp: i64,
        /// The number of milliseconds that it is behind.
        behind_ms: i64,
        /// The limit.
        max: i64,
    },
    /// INVALID_TIMESTAMP.
    #[error("a producer may not set the timestamp type LogAppendTime")]
    AppendTime,
    /// INVALID_RECORD.
    #[error("invalid producer id {id}, epoch {epoch} or sequence {sequence}")]
    Producer {
        /// The producer id.
        id: i64,
        /// The producer epoch.
        epoch: i16,
        /// The sequence of the first record.
        sequence: i32,
    },
}

/// Checks that a producer's batch may be appended.
pub fn validate(batch: &Batch<'_>, rules: Rules) -> Result<(), Rejected> {
    let size = batch.bytes().len();
    if size > rules.batch_size_max {
        let max = rules.batch_size_max;
        return Err(Rejected::Size { size, max });
    }
    if !batch.is_intact() {
        return Err(Rejected::Checksum);
    }
    let header = batch.header();
    attributes(header)?;
    if header.base_offset != 0 {
        let base_offset = header.base_offset;
        return Err(Rejected::BaseOffset { base_offset });
    }
    count(header, batch.payload().len())?;
    timestamps(header)?;
    producer(header)
}

fn attributes(header: &Header) -> Result<(), Rejected> {
    let attributes = header.attributes;
    if attributes.compression().is_none() {
        let number = attributes.0 & 7;
        return Err(Rejected::Compression { number });
    }
    if attributes.timestamp_type() == TimestampType::Append {
        return Err(Rejected::AppendTime);
    }
    // A transaction needs a producer id.
    let is_orphan = attributes.is_transactional() && header.producer().is_none();
    let is_a_brokers = attributes.is_control() || attributes.has_delete_horizon();
    if is_orphan || is_a_brokers || attributes.has_reserved() {
        return Err(Rejected::Attributes {
            attributes: attributes.0,
        });
    }
    Ok(())
}

/// Checks the number of records. That of a compressed batch is known only after decompression.
fn count(header: &Header, size: usize) -> Result<(), Rejected> {
    let offsets = i64::from(header.last_offset_delta) + 1;
    let count = usize::try_from(header.count).unwrap_or(0);
    let fits = match header.attributes.compression() {
        Some(Compression::None) => count <= size / RECORD_SIZE_MIN,
        _ => size > 0,
    };
    if count > 0 && offsets == i64::from(header.count) && fits {
        return Ok(());
    }
    Err(Rejected::Count {
        count: header.count,
        offsets,
        size,
    })
}

/// Checks the timestamps. The maximum may be lower than the base: a broker corrects the maximum,
/// and clients rely on it ([`crate::PatchedBatch::set_max_timestamp`]).
fn timestamps(header: &Header) -> Result<(), Rejected> {
    let (base_timestamp, max_timestamp) = (header.base_timestamp, header.max_timestamp);
    if base_timestamp.min(max_timestamp) < NO_TIMESTAMP {
        return Err(Rejected::Timestamp {
            base_timestamp,
            max_timestamp,
        });
    }
    Ok(())
}

fn producer(header: &Header) -> Result<(), Rejected> {
    let Some(producer) = header.producer() else {
        return Ok(());
    };
    if producer.id < 0 || producer.epoch < 0 || producer.sequence < 0 {
        return Err(Rejected::Producer {
            id: producer.id,
            epoch: producer.epoch,
            sequence: producer.sequence,
        });
    }
    Ok(())
}
