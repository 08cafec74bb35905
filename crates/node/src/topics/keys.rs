//! The look into a batch that is to be compacted some day: each of its records needs a key.

use recordbatch::codecs::unpack;
use recordbatch::{BadRecord, Batch, Records};

use super::error::ProduceError;

/// Bytes that the records of a batch may have when they are unpacked.
pub(super) const UNPACKED_SIZE_MAX: usize = 64 << 20;

/// Whether every record is one, in its place, and has a key.
pub(super) fn check(batch: &Batch<'_>) -> Result<(), ProduceError> {
    let payload = unpack(batch, UNPACKED_SIZE_MAX).map_err(|_| BadRecord { index: 0 })?;
    let records = || Records::new(batch.header(), &payload);
    records().check()?;
    let mut indexes = Vec::new();
    for (index, record) in (0..).zip(records()) {
        if record?.key.is_none() {
            indexes.push(index);
        }
    }
    match indexes.is_empty() {
        true => Ok(()),
        false => Err(ProduceError::NoKey { indexes }),
    }
}
