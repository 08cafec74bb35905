//! Conversions between the types of options and the numbers that components use.

use std::time::Duration;

use model::ByteSize;

/// Returns a number of items as an option has it.
pub(super) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns a number of bytes as an option has it.
pub(super) fn size(bytes: usize) -> ByteSize {
    ByteSize::bytes(bytes as u64)
}

/// Returns milliseconds as an option has them; a negative number counts as 0.
pub(super) fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// Returns a duration in milliseconds, at most the largest value.
pub(super) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
