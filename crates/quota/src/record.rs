//! The journal records of quotas, byte by byte.
//!
//! The tag that a stream stores with each record identifies its layout. All numbers are
//! little-endian; a text is UTF-8 after its length, `text8` or `text16`. A layout is never changed:
//! a new one gets a new tag. The last record of a cell, hold, id, factor, halt, override or row of
//! usage is the valid one.
//!
//! ```text
//! the state    1 CELLS     any number of: limit u32 | flags u8 (bit 0: an override stood) | warned u8
//!                          | amount i128 | at u64 | kind | key text16
//!              5 HOLD      id u128 | deadline_ns u64 | subject text16 | principal text16
//!                          | charges u16 × (limit u32 | flags u8 (bit 0: shared) | count u64 | period u64)
//!              6 ENDED     any number of: hold u128
//!              7 TAKEN     until_ns u64 | hold u128, 0 for none | deadline_ns u64 | cost digest u64
//!                          | id text16
//!  (read only) 2, 3, 4     HOLD, ENDED and TAKEN of older versions: ids of holds are u64; no
//!                          principal, no deadline_ns and no digest
//! the changes  1 POLICIES  version u64 | since_ns u64 | next u32 | digest u64 | limits u16 × limit
//!              2 FACTOR    limit u32 | dial
//!              3 HALT      prefix text16 | there u8 | if 1: since_ns u64 | by text16 | reason text16
//!              4 OVERRIDE  limit u32 | prefix text16 | there u8
//!                          | if 1: flags u8 (bit 0: capacity, bit 1: refill) | capacity u64
//!                          | amount u64 | period_ns u64 | grant u64 | until_ns u64 | by text16
//!                          | reason text16
//! the audit    1 AUDIT     at_ns u64 | version u64 | by text16 | reason text16 | what text16
//! the usage    1 USAGE     day u32 (since 1970-01-01 UTC) | limit text16 | unit text8
//!                          | any number of: subject text16, empty for the subjects without a row
//!                          | amount u64 | takes u64
//!
//! kind         what u8 (1 bucket, 2 budget, 3 slots) | capacity u64 | amount u64 | period_ns u64
//!              of a budget: capacity is the amount, amount the number of its period (from 1), period_ns
//!              the offset in seconds as i64; 4 for a budget in a named time zone: period_ns is 0, and
//!              the name text8 follows
//! limit        id u32 | name text16 | pattern text16 | unit text8 | kind | mode u8 | durability u8
//!              | unreachable u8 | weight u32 | factor | warn u8 × u16
//! factor       numerator u32 | denominator u32
//! dial         anchor_ns u64 | own_ns u64 | factor | until_ns u64, 0 for none | factor
//! ```

mod bytes;
mod cells;
mod changes;
mod holds;
mod limits;
mod usage;

pub use cells::{CellRecord, decode_cells, encode_cell};
pub use changes::{Audit, Change};
pub use holds::{HoldRecord, TakeRecord, decode_ended, decode_hold, encode_ended, encode_hold};
pub use holds::{decode_short_ended, decode_short_hold};
pub use limits::PoliciesRecord;
pub use usage::{UsageRecord, UsageRow};

/// The tag of cells, in the stream of state.
pub const CELLS: u8 = 1;
/// The tag of a hold with a 64-bit id, in a stream of state from an older version.
pub const SHORT_HOLD: u8 = 2;
/// The tag of ended holds with 64-bit ids, in a stream of state from an older version.
pub const SHORT_ENDED: u8 = 3;
/// The tag of the id of a take, in a stream of state from an older version.
pub const SHORT_TAKEN: u8 = 4;
/// The tag of a hold, in the stream of state.
pub const HOLD: u8 = 5;
/// The tag of ended holds, in the stream of state.
pub const ENDED: u8 = 6;
/// The tag of the id of a take, in the stream of state.
pub const TAKEN: u8 = 7;
/// The tag of [`PoliciesRecord`], in the stream of changes.
pub const POLICIES: u8 = 1;
/// The tag of a factor, in the stream of changes.
pub const FACTOR: u8 = 2;
/// The tag of a halt, in the stream of changes.
pub const HALT: u8 = 3;
/// The tag of an override, in the stream of changes.
pub const OVERRIDE: u8 = 4;
/// The tag of an [`Audit`], in the stream of audits.
pub const AUDIT: u8 = 1;
/// The tag of a [`UsageRecord`], in the stream of usage.
pub const USAGE: u8 = 1;

/// Bytes that are no valid record of their tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} of quotas")]
pub struct Malformed {
    /// The kind of record.
    pub what: &'static str,
}

#[cfg(test)]
mod tests;
