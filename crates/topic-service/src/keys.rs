//! Checks batches of compacted topics: each record needs a key.

use recordbatch::codecs::unpack;
use recordbatch::{BadRecord, Batch, Header, Records, Survey, survey_payload};

use super::error::ProduceError;

/// Maximum size of a batch's records after unpacking, in bytes.
pub(super) const UNPACKED_SIZE_MAX: usize = 64 << 20;

/// Checks that every record is well-formed, in order and has a key; returns the timestamps. Unpacks
/// a compressed batch, so it must not run on a thread that serves connections: see
/// [`super::Topics::prepare`].
pub(super) fn check(batch: &Batch<'_>) -> Result<Survey, ProduceError> {
    match batch.records() {
        Some(_) => check_payload(batch.header(), batch.payload()),
        None => {
            let payload = unpack(batch, UNPACKED_SIZE_MAX).map_err(|_| BadRecord { index: 0 })?;
            check_payload(batch.header(), &payload)
        }
    }
}

/// Like [`check`], for records that are already unpacked.
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
