//! Validation of the records in an uncompressed batch, and their timestamps. Every produced batch
//! gets it.
//!
//! Keys, values and headers are skipped by their length, so the cost per record does not depend on
//! its size.

use crate::batch::Batch;
use crate::header::{Header, NO_TIMESTAMP};
use crate::record::BadRecord;
use crate::validate::Rejected;
use crate::varint;

/// The timestamps of the records of a batch, in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The highest, at least [`NO_TIMESTAMP`].
    pub timestamp_max: i64,
    /// The lowest of those that are not [`NO_TIMESTAMP`]; `None` if no record has a timestamp.
    pub timestamp_min: Option<i64>,
}

/// The largest differences between a producer's timestamps and the broker's clock, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampLimits {
    /// Ahead of the clock: `message.timestamp.after.max.ms`.
    pub ahead_ms_max: i64,
    /// Behind the clock: `message.timestamp.before.max.ms`.
    pub behind_ms_max: i64,
}

impl Survey {
    /// Returns the timestamps in the header of a batch, without looking at its records.
    pub fn of_header(header: &Header) -> Self {
        let timestamps = [header.base_timestamp, header.max_timestamp];
        let given = timestamps.into_iter().filter(|it| *it != NO_TIMESTAMP);
        Self {
            timestamp_max: header.max_timestamp,
            timestamp_min: given.min(),
        }
    }

    /// Checks that all timestamps are near enough to `now_ms`, as Kafka's `LogValidator` does.
    /// Records without a timestamp pass.
    pub fn check(&self, limits: TimestampLimits, now_ms: i64) -> Result<(), Rejected> {
        let Some(timestamp) = self.timestamp_min else {
            return Ok(());
        };
        let behind_ms = now_ms.saturating_sub(timestamp);
        if behind_ms > limits.behind_ms_max {
            return Err(Rejected::Behind {
                timestamp,
                behind_ms,
                max: limits.behind_ms_max,
            });
        }
        let timestamp = self.timestamp_max.max(timestamp);
        let ahead_ms = timestamp.saturating_sub(now_ms);
        if ahead_ms > limits.ahead_ms_max {
            return Err(Rejected::Ahead {
                timestamp,
                ahead_ms,
                max: limits.ahead_ms_max,
            });
        }
        Ok(())
    }
}

/// Checks the records of an uncompressed batch; returns `None` if the batch is compressed.
///
/// There must be as many records as the header says, each with the offset of its position, and no
/// bytes after them. The key of a header need not be UTF-8: Kafka's broker does not check it
/// either.
pub fn survey(batch: &Batch<'_>) -> Option<Result<Survey, BadRecord>> {
    batch.records()?;
    Some(survey_payload(batch.header(), batch.payload()))
}

/// Checks records as [`survey`] does; `payload` was decompressed before.
pub fn survey_payload(header: &Header, mut payload: &[u8]) -> Result<Survey, BadRecord> {
    let mut survey = Survey {
        timestamp_max: NO_TIMESTAMP,
        timestamp_min: None,
    };
    for index in 0..header.count {
        let (timestamp, offset) = step(&mut payload).ok_or(BadRecord { index })?;
        if offset != index {
            return Err(BadRecord { index });
        }
        let timestamp = header.timestamp(timestamp);
        survey.timestamp_max = survey.timestamp_max.max(timestamp);
        if timestamp != NO_TIMESTAMP {
            let lowest = survey.timestamp_min.unwrap_or(timestamp);
            survey.timestamp_min = Some(lowest.min(timestamp));
        }
    }
    match payload {
        [] => Ok(survey),
        _ => Err(BadRecord {
            index: header.count,
        }),
    }
}

/// Skips a record. Returns its timestamp and its offset, relative to those of the batch.
fn step(payload: &mut &[u8]) -> Option<(i64, i32)> {
    let length = usize::try_from(varint::int(payload)?).ok()?;
    let (record, behind) = payload.split_at_checked(length)?;
    *payload = behind;
    let (_attributes, mut rest) = record.split_first()?;
    let timestamp = varint::long(&mut rest)?;
    let offset = varint::int(&mut rest)?;
    skip_nullable(&mut rest)?;
    skip_nullable(&mut rest)?;
    for _ in 0..u32::try_from(varint::int(&mut rest)?).ok()? {
        let length = usize::try_from(varint::int(&mut rest)?).ok()?;
        rest = rest.get(length..)?;
        skip_nullable(&mut rest)?;
    }
    rest.is_empty().then_some((timestamp, offset))
}

/// Skips bytes that follow their length, which is -1 for none.
fn skip_nullable(rest: &mut &[u8]) -> Option<()> {
    let length = varint::int(rest)?;
    if length != -1 {
        *rest = rest.get(usize::try_from(length).ok()?..)?;
    }
    Some(())
}
