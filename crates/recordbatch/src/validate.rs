//! What is asked of a producer's batch before it is let in.
//!
//! The questions are those of Apache Kafka's `LogValidator` and `UnifiedLog`, but for those about each
//! record: [`crate::survey()`] asks them of uncompressed records, [`crate::Records::check`] of any.

use crate::attributes::{Compression, TimestampType};
use crate::batch::Batch;
use crate::header::{Header, NO_TIMESTAMP};
use crate::record::RECORD_SIZE_MIN;

/// What differs from topic to topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Bytes of a whole batch, at most: `max.message.bytes`.
    pub batch_size_max: usize,
}

/// Why a batch is not let in, with the error that Kafka has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// MESSAGE_TOO_LARGE.
    #[error("a record batch of {size} bytes, at most {max} are taken")]
    Size {
        /// Its size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// MESSAGE_TOO_LARGE.
    #[error("compressed records hold more than the {max} bytes that are unpacked for one request")]
    Unpacked {
        /// The limit, or what was left of it.
        max: usize,
    },
    /// CORRUPT_MESSAGE.
    #[error("the checksum of the record batch is not that of its bytes")]
    Checksum,
    /// UNSUPPORTED_COMPRESSION_TYPE.
    #[error("compression {number} of a record batch is not known")]
    Compression {
        /// What stands there.
        number: i16,
    },
    /// INVALID_RECORD: bits that mean nothing, or something that only a broker writes.
    #[error("attributes {attributes:#x} of a record batch are not for a producer to set")]
    Attributes {
        /// What stands there.
        attributes: i16,
    },
    /// INVALID_RECORD.
    #[error("the base offset of a produced record batch is {base_offset}, not 0")]
    BaseOffset {
        /// What stands there.
        base_offset: i64,
    },
    /// INVALID_RECORD: none, or more or fewer than offsets or bytes.
    #[error("{count} records in a batch of {offsets} offsets and {size} bytes of records")]
    Count {
        /// Records, as it is said.
        count: i32,
        /// Offsets, as it is said.
        offsets: i64,
        /// Bytes of all records.
        size: usize,
    },
    /// INVALID_TIMESTAMP.
    #[error("a record batch begins at time {base_timestamp} and ends at {max_timestamp}")]
    Timestamp {
        /// The first record's.
        base_timestamp: i64,
        /// The highest.
        max_timestamp: i64,
    },
    /// INVALID_TIMESTAMP.
    #[error(
        "a record is dated {timestamp}, {ahead_ms} ms ahead of the node's clock, at most {max} ms are taken (message.timestamp.after.max.ms)"
    )]
    Ahead {
        /// Its timestamp.
        timestamp: i64,
        /// How far it is ahead, in milliseconds.
        ahead_ms: i64,
        /// The limit.
        max: i64,
    },
    /// INVALID_TIMESTAMP.
    #[error(
        "a record is dated {timestamp}, {behind_ms} ms behind the node's clock, at most {max} ms are taken (message.timestamp.before.max.ms)"
    )]
    Behind {
        /// Its timestamp.
        timestamp: i64,
        /// How far it is behind, in milliseconds.
        behind_ms: i64,
        /// The limit.
        max: i64,
    },
    /// INVALID_TIMESTAMP.
    #[error("a producer says that its timestamps are a broker's")]
    AppendTime,
    /// INVALID_RECORD.
    #[error("producer {id} with epoch {epoch} and sequence {sequence}")]
    Producer {
        /// What stands there.
        id: i64,
        /// What stands there.
        epoch: i16,
        /// What stands there.
        sequence: i32,
    },
}

/// Whether a producer's batch may be let in.
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
    // A transaction is somebody's.
    let is_orphan = attributes.is_transactional() && header.producer().is_none();
    let is_a_brokers = attributes.is_control() || attributes.has_delete_horizon();
    if is_orphan || is_a_brokers || attributes.has_reserved() {
        return Err(Rejected::Attributes {
            attributes: attributes.0,
        });
    }
    Ok(())
}

/// How many records a compressed batch really holds only unpacking it would tell.
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

/// The maximum may be below the base: a broker sets the maximum right where a client did not, and
/// clients rely on it ([`crate::BatchMut::set_max_timestamp`]).
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
