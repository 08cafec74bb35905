//! Records of operator changes at run time, and of their audit.

use super::bytes::{FieldReader, Write};
use super::{FACTOR, HALT, Malformed, OVERRIDE};
use crate::admin::{Halt, Override};
use crate::dial::Dial;
use crate::limit::LimitId;
use crate::rules::Rules;

const HAS_CAPACITY: u8 = 1;
const HAS_REFILL: u8 = 2;

/// A change of the rules other than of the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A limit's factor changed.
    Factor {
        /// The limit.
        limit: LimitId,
        /// The limit's new dial.
        dial: Dial,
    },
    /// A halt began or ended.
    Halt {
        /// The prefix, as users write it.
        prefix: Box<str>,
        /// The halt; `None` if it ended.
        halt: Option<Halt>,
    },
    /// An override of a cell began or ended.
    Override {
        /// The limit.
        limit: LimitId,
        /// The prefix, as cells store it.
        prefix: Box<str>,
        /// The override; `None` if it ended.
        change: Option<Override>,
    },
}

impl Change {
    /// Returns the tag of the record.
    pub fn tag(&self) -> u8 {
        match self {
            Self::Factor { .. } => FACTOR,
            Self::Halt { .. } => HALT,
            Self::Override { .. } => OVERRIDE,
        }
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Factor { limit, dial } => {
                out.extend_from_slice(&limit.0.to_le_bytes());
                out.dial(dial);
            }
            Self::Halt { prefix, halt } => {
                out.text16(prefix);
                out.push(u8::from(halt.is_some()));
                if let Some(halt) = halt {
                    out.extend_from_slice(&halt.since_ns.to_le_bytes());
                    out.text16(&halt.by);
                    out.text16(&halt.reason);
                }
            }
            Self::Override {
                limit,
                prefix,
                change,
            } => {
                out.extend_from_slice(&limit.0.to_le_bytes());
                out.text16(prefix);
                out.push(u8::from(change.is_some()));
                if let Some(change) = change {
                    encode_override(change, out);
                }
            }
        }
    }

    /// Decodes a record.
    pub fn decode(tag: u8, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "change");
        let change = match tag {
            FACTOR => Self::Factor {
                limit: LimitId(rest.u32()?),
                dial: rest.dial()?,
            },
            HALT => Self::Halt {
                prefix: rest.text16()?.into(),
                halt: match rest.u8()? {
                    0 => None,
                    1 => Some(Halt {
                        since_ns: rest.u64()?,
                        by: rest.text16()?.into(),
                        reason: rest.text16()?.into(),
                    }),
                    _ => return Err(rest.malformed()),
                },
            },
            OVERRIDE => Self::Override {
                limit: LimitId(rest.u32()?),
                prefix: rest.text16()?.into(),
                change: match rest.u8()? {
                    0 => None,
                    1 => Some(decode_override(&mut rest)?),
                    _ => return Err(rest.malformed()),
                },
            },
            _ => return Err(rest.malformed()),
        };
        rest.end()?;
        Ok(change)
    }
}

fn encode_override(change: &Override, out: &mut Vec<u8>) {
    let capacity = change.capacity.map_or(0, |_| HAS_CAPACITY);
    out.push(capacity | change.refill.map_or(0, |_| HAS_REFILL));
    let (amount, period_ns) = change.refill.unwrap_or((0, 0));
    let capacity = change.capacity.unwrap_or(0);
    for number in [capacity, amount, period_ns, change.grant, change.until_ns] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.text16(&change.by);
    out.text16(&change.reason);
}

fn decode_override(rest: &mut FieldReader<'_>) -> Result<Override, Malformed> {
    let flags = rest.u8()?;
    let (capacity, amount, period_ns) = (rest.u64()?, rest.u64()?, rest.u64()?);
    let has_refill = flags & HAS_REFILL != 0;
    if has_refill && period_ns == 0 {
        return Err(rest.malformed());
    }
    Ok(Override {
        capacity: (flags & HAS_CAPACITY != 0).then_some(capacity),
        refill: has_refill.then_some((amount, period_ns)),
        grant: rest.u64()?,
        until_ns: rest.u64()?,
        by: rest.text16()?.into(),
        reason: rest.text16()?.into(),
    })
}

impl Rules {
    /// Restores the limits from their record, before [changes](Rules::apply) are applied.
    pub fn restore_policies(&mut self, policies: crate::policies::Policies) {
        let dials = policies.limits().iter().map(|(id, limit)| {
            let known = self.policies.index(*id).map(|index| self.dials[index]);
            known.unwrap_or_else(|| Dial::new(limit.factor, 0))
        });
        let dials = dials.collect();
        self.overrides
            .retain(|(id, _), _| policies.index(*id).is_some());
        self.put_policies(policies, dials);
    }

    /// Applies a change from its record.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Factor { limit, dial } => {
                if let Some(index) = self.policies.index(limit) {
                    self.dials[index] = dial;
                }
            }
            Change::Halt {
                prefix,
                halt: Some(halt),
            } => {
                self.halts.insert(prefix, halt);
            }
            Change::Halt { prefix, halt: None } => {
                self.halts.remove(&prefix);
            }
            Change::Override {
                limit,
                prefix,
                change: Some(change),
            } => {
                self.overrides.insert((limit, prefix), change);
            }
            Change::Override {
                limit,
                prefix,
                change: None,
            } => {
                self.overrides.remove(&(limit, prefix));
            }
        }
    }

    /// Returns every change in force, to be written again.
    pub fn changes(&self) -> Vec<Change> {
        let limits = self.policies.limits().iter().zip(&self.dials);
        let factors = limits.map(|((limit, _), dial)| Change::Factor {
            limit: *limit,
            dial: *dial,
        });
        let halts = self.halts.iter().map(|(prefix, halt)| Change::Halt {
            prefix: prefix.clone(),
            halt: Some(halt.clone()),
        });
        let overrides = self
            .overrides
            .iter()
            .map(|((limit, prefix), change)| Change::Override {
                limit: *limit,
                prefix: prefix.clone(),
                change: Some(change.clone()),
            });
        factors.chain(halts).chain(overrides).collect()
    }
}

/// An audit entry: the author and the reason of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// The time of the change, in nanoseconds since 1970-01-01 UTC.
    pub at_ns: u64,
    /// The version of the limits at that time.
    pub version: u64,
    /// The principal that made the change.
    pub by: Box<str>,
    /// The reason given.
    pub reason: Box<str>,
    /// The change, for people and programs: a word, then its object.
    pub what: Box<str>,
}

impl Audit {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at_ns.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.text16(&self.by);
        out.text16(&self.reason);
        out.text16(&self.what);
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "audit");
        let audit = Self {
            at_ns: rest.u64()?,
            version: rest.u64()?,
            by: rest.text16()?.into(),
            reason: rest.text16()?.into(),
            what: rest.text16()?.into(),
        };
        rest.end()?;
        Ok(audit)
    }
}
