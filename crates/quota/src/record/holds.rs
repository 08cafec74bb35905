//! Records of holds and of take ids.

use super::Malformed;
use super::bytes::{FieldReader, Write};
use crate::hold::{Charge, Hold, HoldId};
use crate::limit::LimitId;

const SHARED: u8 = 1;

/// A decoded record of a hold.
pub type HoldRecord = (HoldId, Hold);

/// Appends a hold, as one record.
pub fn encode_hold(id: HoldId, hold: &Hold, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.0.to_le_bytes());
    out.extend_from_slice(&hold.deadline_ns.to_le_bytes());
    out.text16(&hold.subject);
    out.text16(&hold.principal);
    // A hold has at most one charge per limit, so the count fits.
    out.extend_from_slice(&(hold.charges.len() as u16).to_le_bytes());
    for charge in &hold.charges {
        out.extend_from_slice(&charge.limit.0.to_le_bytes());
        out.push(if charge.is_overflow { SHARED } else { 0 });
        out.extend_from_slice(&charge.count.to_le_bytes());
        out.extend_from_slice(&charge.period.to_le_bytes());
    }
}

/// Decodes a hold.
pub fn decode_hold(bytes: &[u8]) -> Result<HoldRecord, Malformed> {
    let mut rest = FieldReader::new(bytes, "hold");
    let id = HoldId(rest.u128()?);
    let deadline_ns = rest.u64()?;
    let subject = rest.text16()?.into();
    let principal = rest.text16()?.into();
    decode_charges(rest, id, deadline_ns, subject, principal)
}

/// Decodes a hold of the older layout, which has a 64-bit id and no principal.
pub fn decode_short_hold(bytes: &[u8]) -> Result<HoldRecord, Malformed> {
    let mut rest = FieldReader::new(bytes, "hold");
    let id = HoldId(rest.u64()?.into());
    let deadline_ns = rest.u64()?;
    let subject = rest.text16()?.into();
    decode_charges(rest, id, deadline_ns, subject, Box::default())
}

fn decode_charges(
    mut rest: FieldReader<'_>,
    id: HoldId,
    deadline_ns: u64,
    subject: Box<str>,
    principal: Box<str>,
) -> Result<HoldRecord, Malformed> {
    let count = rest.u16()?;
    let mut charges = Vec::new();
    for _ in 0..count {
        let limit = LimitId(rest.u32()?);
        let flags = rest.u8()?;
        charges.push(Charge {
            limit,
            count: rest.u64()?,
            period: rest.u64()?,
            is_overflow: flags & SHARED != 0,
        });
    }
    rest.end()?;
    let hold = Hold {
        subject,
        principal,
        charges: charges.into(),
        deadline_ns,
    };
    Ok((id, hold))
}

/// Appends the id of an ended hold to a record of these.
pub fn encode_ended(id: HoldId, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.0.to_le_bytes());
}

/// Decodes a record of ended holds.
pub fn decode_ended(bytes: &[u8]) -> impl Iterator<Item = Result<HoldId, Malformed>> + '_ {
    bytes
        .chunks(16)
        .map(|chunk| Ok(HoldId(FieldReader::new(chunk, "end of a hold").u128()?)))
}

/// Decodes a record of ended holds of the older layout.
pub fn decode_short_ended(bytes: &[u8]) -> impl Iterator<Item = Result<HoldId, Malformed>> + '_ {
    bytes.chunks(8).map(|chunk| {
        Ok(HoldId(
            FieldReader::new(chunk, "end of a hold").u64()?.into(),
        ))
    })
}

/// The record of the id of an admitted take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeRecord<'a> {
    /// The time until which the id is remembered.
    pub until_ns: u64,
    /// The hold of the take and its deadline.
    pub hold: Option<(HoldId, u64)>,
    /// A digest of the costs, to recognize a later take with the same id and other costs; 0 if
    /// unknown.
    pub cost_digest: u64,
    /// The subject and the id of the take, as joined by the shell.
    pub id: &'a str,
}

impl<'a> TakeRecord<'a> {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.until_ns.to_le_bytes());
        let (hold, deadline_ns) = self.hold.map_or((0, 0), |(hold, at_ns)| (hold.0, at_ns));
        out.extend_from_slice(&hold.to_le_bytes());
        out.extend_from_slice(&deadline_ns.to_le_bytes());
        out.extend_from_slice(&self.cost_digest.to_le_bytes());
        out.text16(self.id);
    }

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "id of a take");
        let until_ns = rest.u64()?;
        let hold = (HoldId(rest.u128()?), rest.u64()?);
        let taken = Self {
            until_ns,
            hold: Some(hold).filter(|(hold, _)| hold.0 != 0),
            cost_digest: rest.u64()?,
            id: rest.text16()?,
        };
        rest.end()?;
        Ok(taken)
    }

    /// Decodes a record of the older layout: a hold with a 64-bit id that ends when the id is
    /// forgotten, and no digest.
    pub fn decode_short(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "id of a take");
        let until_ns = rest.u64()?;
        let hold = HoldId(rest.u64()?.into());
        let taken = Self {
            until_ns,
            hold: Some((hold, until_ns)).filter(|(hold, _)| hold.0 != 0),
            cost_digest: 0,
            id: rest.text16()?,
        };
        rest.end()?;
        Ok(taken)
    }
}
