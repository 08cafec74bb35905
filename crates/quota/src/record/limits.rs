//! The record of limits: all limits of a version at once.

use std::sync::Arc;

use super::Malformed;
use super::bytes::{FieldReader, Write};
use crate::limit::{Durability, Limit, LimitId, Mode, Unreachable};
use crate::pattern::Pattern;
use crate::policies::Policies;
use crate::unit::Unit;

/// The record of the limits of one version.
#[derive(Clone, Debug)]
pub struct PoliciesRecord {
    /// The limits.
    pub policies: Policies,
    /// The time since which they are in force, in nanoseconds since 1970-01-01 UTC.
    pub since_ns: u64,
    /// A digest of the configuration, to detect that it has changed since.
    pub digest: u64,
}

impl PoliciesRecord {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.policies.version().to_le_bytes());
        out.extend_from_slice(&self.since_ns.to_le_bytes());
        out.extend_from_slice(&self.policies.next_id().to_le_bytes());
        out.extend_from_slice(&self.digest.to_le_bytes());
        let limits = self.policies.limits();
        out.extend_from_slice(&(limits.len() as u16).to_le_bytes());
        for (id, limit) in limits {
            encode_limit(*id, limit, out);
        }
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "limits");
        let version = rest.u64()?;
        let since_ns = rest.u64()?;
        let next_id = rest.u32()?;
        let digest = rest.u64()?;
        let count = rest.u16()?;
        let mut limits = Vec::new();
        for _ in 0..count {
            limits.push(decode_limit(&mut rest)?);
        }
        rest.end()?;
        Ok(Self {
            policies: Policies::restored(version, limits, next_id),
            since_ns,
            digest,
        })
    }
}

fn encode_limit(id: LimitId, limit: &Limit, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.0.to_le_bytes());
    out.text16(&limit.name);
    out.text16(&limit.pattern.to_string());
    out.text8(limit.unit.as_str());
    out.kind(&limit.kind);
    out.push(match limit.mode {
        Mode::Enforce => 1,
        Mode::Shadow => 2,
        Mode::Off => 3,
    });
    out.push(match limit.durability {
        Durability::Async => 1,
        Durability::Sync => 2,
    });
    out.push(match limit.on_unreachable {
        Unreachable::Degrade => 1,
        Unreachable::Deny => 2,
        Unreachable::Allow => 3,
    });
    out.extend_from_slice(&limit.weight.to_le_bytes());
    out.factor(limit.factor);
    // A limit has at most 16 thresholds.
    out.push(limit.warn.len() as u8);
    for share in &limit.warn {
        out.extend_from_slice(&share.to_le_bytes());
    }
}

fn decode_limit(rest: &mut FieldReader<'_>) -> Result<(LimitId, Arc<Limit>), Malformed> {
    let malformed = rest.malformed();
    let id = LimitId(rest.u32()?);
    let limit = Limit {
        name: rest.text16()?.into(),
        pattern: Pattern::parse(rest.text16()?).map_err(|_| malformed)?,
        unit: Unit::parse(rest.text8()?).map_err(|_| malformed)?,
        kind: rest.kind()?,
        mode: match rest.u8()? {
            1 => Mode::Enforce,
            2 => Mode::Shadow,
            3 => Mode::Off,
            _ => return Err(malformed),
        },
        durability: match rest.u8()? {
            1 => Durability::Async,
            2 => Durability::Sync,
            _ => return Err(malformed),
        },
        on_unreachable: match rest.u8()? {
            1 => Unreachable::Degrade,
            2 => Unreachable::Deny,
            3 => Unreachable::Allow,
            _ => return Err(malformed),
        },
        weight: rest.u32()?,
        factor: rest.factor()?,
        warn: {
            let count = rest.u8()?;
            (0..count).map(|_| rest.u16()).collect::<Result<_, _>>()?
        },
    };
    Ok((id, Arc::new(limit)))
}
