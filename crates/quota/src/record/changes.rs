//! What people changed while the node ran, and who it was.

use super::bytes::{Rest, Write};
use super::{FACTOR, HALT, Malformed, OVERRIDE};
use crate::admin::{Halt, Override};
use crate::dial::Dial;
use crate::limit::LimitId;
use crate::rules::Rules;

const HAS_CAPACITY: u8 = 1;
const HAS_REFILL: u8 = 2;

/// A change of the rules beside that of the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A limit's own time passes in another way.
    Factor {
        /// The limit.
        limit: LimitId,
        /// How it passes.
        dial: Dial,
    },
    /// Nothing is admitted for a prefix, or something is again.
    Halt {
        /// The prefix, as people write it.
        prefix: Box<str>,
        /// Why; `None` if it is over.
        halt: Option<Halt>,
    },
    /// Something else stands for a cell, or the limit does again.
    Override {
        /// The limit.
        limit: LimitId,
        /// The prefix, as cells keep it.
        prefix: Box<str>,
        /// What stands; `None` if it is over.
        change: Option<Override>,
    },
}

impl Change {
    /// The tag of its record.
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

    /// Reads a record back.
    pub fn decode(tag: u8, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "change");
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

fn decode_override(rest: &mut Rest<'_>) -> Result<Override, Malformed> {
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
    /// The limits as they were kept, to which [changes](Rules::apply) are applied.
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

    /// Applies a change as it was kept.
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

    /// Every change that stands, to be kept anew.
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

/// Who changed what, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// When, in nanoseconds since 1970-01-01 UTC.
    pub at_ns: u64,
    /// The version of the limits then.
    pub version: u64,
    /// Who.
    pub by: Box<str>,
    /// Why.
    pub reason: Box<str>,
    /// What, for people and programs: a word, then what it is about.
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

    /// Reads a record back.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "audit");
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
