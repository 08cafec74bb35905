//! The look into a batch of a compacted topic: each of its records needs a key.

use recordbatch::codecs::unpack;
use recordbatch::{BadRecord, Batch, Header, Records, Survey, survey_payload};

use super::error::ProduceError;

/// Bytes that the records of a batch may have when they are unpacked.
pub(super) const UNPACKED_SIZE_MAX: usize = 64 << 20;

/// Whether every record is one, in its place, and has a key; and the timestamps. Unpacks a compressed
/// batch: not for threads that serve connections, see [`super::Topics::prepare`].
pub(super) fn check(batch: &Batch<'_>) -> Result<Survey, ProduceError> {
    match batch.records() {
        Some(_) => check_payload(batch.header(), batch.payload()),
        None => {
            let payload = unpack(batch, UNPACKED_SIZE_MAX).map_err(|_| BadRecord { index: 0 })?;
            check_payload(batch.header(), &payload)
        }
    }
}

/// As [`check`], of records that were unpacked before.
pub(super) fn check_payload(header: &Header, payload: &[u8]) -> Result<Survey, ProduceError> {
    let records = || Records::new(header, payload);
    records().check()?;
    let mut indexes = Vec::new();
    for (index, record) in (0..).zip(records()) {
        if record?.key.is_none() {
            indexes.push(index);
        }
    }
    match indexes.is_empty() {
        true => Ok(survey_payload(header, payload)?),
        false => Err(ProduceError::NoKey { indexes }),
    }
}
