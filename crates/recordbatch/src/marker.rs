//! Transaction markers: control batches with one record, which consumers do not see.
//!
//! ```text
//! key    version i16 = 0 | type i16 (0 abort, 1 commit)
//! value  version i16 = 0 | coordinator epoch i32
//! ```

use crate::attributes::Attributes;
use crate::batch::Batch;
use crate::builder::{Builder, Template};
use crate::header::Producer;

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum MarkerKind {
    /// The transaction was aborted.
    Abort = 0,
    /// The transaction was committed.
    Commit = 1,
}

/// The end of a producer's transaction in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The producer id.
    pub producer_id: i64,
    /// The producer epoch.
    pub producer_epoch: i16,
    /// The end of the transaction: commit or abort.
    pub kind: MarkerKind,
    /// The epoch of the coordinator that ended it.
    pub coordinator_epoch: i32,
}

/// The batch does not end a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the control batch is not a transaction marker")]
pub struct NotAMarker;

const VERSION: [u8; 2] = [0, 0];
const NO_SEQUENCE: i32 = -1;

impl Marker {
    /// Appends the batch.
    pub fn encode(&self, base_offset: i64, leader_epoch: i32, timestamp: i64, out: &mut Vec<u8>) {
        let mut key = VERSION.to_vec();
        key.extend_from_slice(&(self.kind as i16).to_be_bytes());
        let mut value = VERSION.to_vec();
        value.extend_from_slice(&self.coordinator_epoch.to_be_bytes());
        let mut builder = Builder::new();
        builder.push(timestamp, Some(&key), Some(&value), &[]);
        let template = Template {
            base_offset,
            leader_epoch,
            attributes: Attributes::default().transactional().control(),
            producer: Some(Producer {
                id: self.producer_id,
                epoch: self.producer_epoch,
                sequence: NO_SEQUENCE,
            }),
        };
        builder.finish(&template, out);
    }

    /// Decodes a control batch.
    pub fn decode(batch: &Batch<'_>) -> Result<Self, NotAMarker> {
        let header = batch.header();
        let producer = header.producer().ok_or(NotAMarker)?;
        if !header.attributes.is_control() {
            return Err(NotAMarker);
        }
        let mut records = batch.records().ok_or(NotAMarker)?;
        let record = records.next().ok_or(NotAMarker)?;
        let record = record.map_err(|_| NotAMarker)?;
        // Later versions may append fields, as Kafka's own do.
        let kind = behind_version(record.key)?;
        let epoch = behind_version(record.value)?;
        Ok(Self {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            kind: match i16::from_be_bytes(kind) {
                0 => MarkerKind::Abort,
                1 => MarkerKind::Commit,
                _ => return Err(NotAMarker),
            },
            coordinator_epoch: i32::from_be_bytes(epoch),
        })
    }
}

fn behind_version<const N: usize>(bytes: Option<&[u8]>) -> Result<[u8; N], NotAMarker> {
    let field = bytes.and_then(|it| it.get(VERSION.len()..)?.first_chunk());
    field.copied().ok_or(NotAMarker)
}
