//! Compaction of one batch.

use crate::attributes::TimestampType;
use crate::header::Header;
use crate::record::{self, BadRecord, Record, Records};

/// The result of compacting a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained {
    /// The header of the remaining batch, except its length and checksum, which [`crate::seal`]
    /// writes. The offsets are those of the original batch.
    pub header: Header,
    /// The number of removed records.
    pub dropped: i32,
}

/// Appends the surviving records to `records`, each with its offset and its timestamp.
///
/// If deletions or a marker survive, the remaining batch gets `delete_horizon` as the time until
/// which they stay (KIP-534), unless it has one already. `payload` is not compressed.
pub fn retain(
    header: &Header,
    payload: &[u8],
    delete_horizon: i64,
    keep: impl Fn(&Record<'_>) -> bool,
    records: &mut Vec<u8>,
) -> Result<Retained, BadRecord> {
    let mut left = *header;
    left.count = 0;
    let attributes = header.attributes;
    let passes = |it: &Record<'_>| (attributes.is_control() || it.value.is_none()) && keep(it);
    let mut all = Records::new(header, payload);
    if !attributes.has_delete_horizon() && all.any(|it| it.is_ok_and(|it| passes(&it))) {
        left.attributes = attributes.with_delete_horizon();
        left.base_timestamp = delete_horizon;
    }
    let mut max_timestamp = None;
    let mut dropped = 0;
    for record in Records::new(header, payload) {
        let record = record?;
        if !keep(&record) {
            dropped += 1;
            continue;
        }
        let offset_delta = i32::try_from(record.offset - header.base_offset);
        let offset_delta = offset_delta.expect("a record lies within its batch");
        let timestamp_delta = record.timestamp.saturating_sub(left.base_timestamp);
        record::put(
            records,
            (offset_delta, timestamp_delta),
            (record.key, record.value),
            record.headers(),
        );
        max_timestamp = max_timestamp.max(Some(record.timestamp));
        left.count += 1;
    }
    if attributes.timestamp_type() == TimestampType::Create {
        left.max_timestamp = max_timestamp.unwrap_or(left.max_timestamp);
    }
    Ok(Retained {
        header: left,
        dropped,
    })
}
