//! Records of usage: what the subjects of a limit have spent on a day.

use super::Malformed;
use super::bytes::{FieldReader, Write};
use crate::unit::Unit;

/// The limit and the day of a record of usage, and the rows behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRecord<'a> {
    /// Days since 1970-01-01 UTC.
    pub day: u32,
    /// The name of the limit.
    pub limit: &'a str,
    /// The unit that the limit counted on that day.
    pub unit: Unit,
}

/// The usage of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRow<'a> {
    /// `org/namespace/agent`; empty for the subjects that have no row of their own.
    pub subject: &'a str,
    /// The amount, in the unit of the limit.
    pub amount: u64,
    /// The number of takes.
    pub takes: u64,
}

impl<'a> UsageRecord<'a> {
    /// Starts a record, to which rows are appended.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.day.to_le_bytes());
        out.text16(self.limit);
        out.text8(self.unit.as_str());
    }

    /// Decodes a record and its rows.
    pub fn decode(bytes: &'a [u8]) -> Result<(Self, Vec<UsageRow<'a>>), Malformed> {
        let mut rest = FieldReader::new(bytes, "usage");
        let day = rest.u32()?;
        let limit = rest.text16()?;
        let unit = Unit::parse(rest.text8()?).map_err(|_| rest.malformed())?;
        let mut rows = Vec::new();
        while !rest.is_empty() {
            rows.push(UsageRow {
                subject: rest.text16()?,
                amount: rest.u64()?,
                takes: rest.u64()?,
            });
        }
        Ok((Self { day, limit, unit }, rows))
    }
}

impl UsageRow<'_> {
    /// Appends the row to a record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.text16(self.subject);
        out.extend_from_slice(&self.amount.to_le_bytes());
        out.extend_from_slice(&self.takes.to_le_bytes());
    }
}
