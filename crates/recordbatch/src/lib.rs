//! Kafka's record batch, format 2: the bytes in which a topic is stored and served.
//!
//! A producer's batch is validated once (length, checksum, header: [`validate()`]). The broker then
//! writes the offset and the leader's epoch into it, in fields that the checksum does not cover
//! ([`PatchedBatch`]), and stores and serves it byte for byte. [`survey()`] reads the timestamps of
//! uncompressed records once, so that the maximum timestamp can be corrected. Compaction, tools and
//! benchmarks iterate over [`Records`]; compressed ones are decompressed first, which needs the
//! feature `codecs`. [`Builder`] builds batches, [`Marker`] builds those that end a transaction.
//!
//! ```text
//!  0 base offset i64         the only two fields, with the epoch, that a broker writes
//!  8 length i32              of all that follows
//! 12 leader epoch i32
//! 16 magic i8 = 2
//! 17 crc u32                 CRC-32C of all that follows
//! 21 attributes i16          bits 0-2 compression, 3 append time, 4 transactional, 5 control,
//!                            6 the base timestamp is a delete horizon
//! 23 last offset delta i32
//! 27 base timestamp i64
//! 35 max timestamp i64
//! 43 producer id i64, 51 epoch i16, 53 base sequence i32
//! 57 count of records i32
//! 61 records, compressed or not
//! ```
//!
//! All numbers are big-endian. The layout is Apache Kafka's, as its documentation gives it under
//! "Record Batch" (KIP-98, KIP-534).
//!
//! Invariants: *any bytes are a batch or an error, and no length in them allocates anything;
//! [`validate()`] accepts what [`Builder`] writes.* It does not know topics, clients or storage.

mod attributes;
mod batch;
mod builder;
#[cfg(feature = "codecs")]
pub mod codecs;
mod header;
mod marker;
mod patch;
#[cfg(feature = "codecs")]
mod recompress;
mod record;
mod retain;
mod survey;
mod validate;
mod varint;

pub use attributes::{Attributes, Compression, TimestampType};
pub use batch::{Batch, Batches, Malformed};
pub use builder::{Builder, Template, seal};
pub use header::{HEADER_SIZE, Header, MAGIC, NO_TIMESTAMP, Producer};
pub use marker::{Marker, MarkerKind, NotAMarker};
pub use patch::PatchedBatch;
#[cfg(feature = "codecs")]
pub use recompress::recompress;
pub use record::{BadRecord, Headers, RECORD_SIZE_MIN, Record, RecordPosition, Records};
pub use retain::{Retained, retain};
pub use survey::{Survey, TimestampLimits, survey, survey_payload};
pub use validate::{Rejected, Rules, validate};
