//! Quotas: takes and their outcomes, settlements of holds, and peeks.
//!
//! A TAKE carries several takes. They are decided in order and answered in one REPLY, which begins
//! with the limits that it refers to, so that each is named once.

use model::ErrorCode;

use crate::cursor::{Cursor, Malformed, cut, put_text8, put_text16};
use crate::failure::MESSAGE_LENGTH_MAX;
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Takes per frame at most.
pub const TAKES_MAX: usize = 1_024;

const HOLD: u8 = 1;
const WAIT: u8 = 2;
const ID: u8 = 4;

/// A take of a TAKE frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take<'a> {
    /// `org/namespace/agent`, optionally with `?run=…` after it. At most 65,535 bytes.
    pub subject: &'a str,
    /// Makes the take a hold, for at most this many milliseconds until it is settled.
    pub hold_ms: Option<u32>,
    /// Makes the take wait for credit.
    pub wait: Option<Wait>,
    /// Id given by the caller; a second take with the same id takes nothing. At most 255 bytes.
    pub id: Option<&'a str>,
    /// Units and amounts to take.
    pub costs: Costs<'a>,
}

/// Wait options of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Longest wait in milliseconds.
    pub wait_ms: u32,
    /// Takes with a higher priority go first.
    pub priority: u8,
}

impl<'a> Take<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let flags = cursor.u8()?;
        if flags & !(HOLD | WAIT | ID) != 0 {
            return Err(cursor.malformed());
        }
        let subject = cursor.text16()?;
        let hold_ms = match flags & HOLD {
            0 => None,
            _ => Some(cursor.u32()?),
        };
        let wait = match flags & WAIT {
            0 => None,
            _ => Some(Wait {
                wait_ms: cursor.u32()?,
                priority: cursor.u8()?,
            }),
        };
        let id = match flags & ID {
            0 => None,
            _ => Some(cursor.text8()?),
        };
        let size = cursor.u16()?;
        let costs = Costs::decode(cursor.take(usize::from(size))?)?;
        Ok(Self {
            subject,
            hold_ms,
            wait,
            id,
            costs,
        })
    }

    /// Appends the take to the payload of a TAKE.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.push(
            flag(self.hold_ms.is_some(), HOLD)
                | flag(self.wait.is_some(), WAIT)
                | flag(self.id.is_some(), ID),
        );
        put_text16(out, self.subject);
        if let Some(hold_ms) = self.hold_ms {
            out.extend_from_slice(&hold_ms.to_le_bytes());
        }
        if let Some(Wait { wait_ms, priority }) = self.wait {
            out.extend_from_slice(&wait_ms.to_le_bytes());
            out.push(priority);
        }
        if let Some(id) = self.id {
            put_text8(out, id);
        }
        out.extend_from_slice(&(self.costs.0.len() as u16).to_le_bytes());
        out.extend_from_slice(self.costs.0);
    }
}

/// Encoded units and amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs<'a>(&'a [u8]);

impl<'a> Costs<'a> {
    /// Size limit in bytes.
    pub const SIZE_MAX: usize = u16::MAX as usize;

    /// Appends one cost: 10 to 264 bytes.
    pub fn encode(unit: &str, count: u64, out: &mut Vec<u8>) {
        put_text8(out, unit);
        out.extend_from_slice(&count.to_le_bytes());
    }

    /// Decodes costs. There may be none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes, "costs");
        while !cursor.is_empty() {
            read_cost(&mut cursor)?;
        }
        match bytes.len() <= Self::SIZE_MAX {
            true => Ok(Self(bytes)),
            false => Err(cursor.malformed()),
        }
    }

    /// Iterates over the units with their amounts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
        let mut cursor = Cursor::new(self.0, "costs");
        std::iter::from_fn(move || read_cost(&mut cursor).ok())
    }
}

fn read_cost<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, u64), Malformed> {
    Ok((cursor.text8()?, cursor.u64()?))
}

/// The payload of a TAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes<'a> {
    /// Number of takes.
    pub count: usize,
    bytes: &'a [u8],
}

impl<'a> Takes<'a> {
    /// Decodes the payload. Checks that all takes are complete and nothing follows them.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes, "TAKE");
        let mut count = 0;
        while !cursor.is_empty() {
            Take::read(&mut cursor)?;
            count += 1;
        }
        Ok(Self { count, bytes })
    }

    /// Iterates over the takes, in order.
    pub fn iter(&self) -> impl Iterator<Item = Take<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, "TAKE");
        std::iter::from_fn(move || Take::read(&mut cursor).ok())
    }
}

/// Flag: the upper half of the hold's id follows.
const LONG: u8 = 2;

/// The payload of a SETTLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settle<'a> {
    /// Id of the hold.
    pub hold: u128,
    /// Actual cost; `None` cancels the hold.
    pub costs: Option<Costs<'a>>,
}

impl<'a> Settle<'a> {
    /// Decodes the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "SETTLE");
        let low = cursor.u64()?;
        let flags = cursor.u8()?;
        let high = match flags & LONG {
            0 => 0,
            _ => cursor.u64()?,
        };
        let hold = u128::from(high) << 64 | u128::from(low);
        let costs = match flags & !LONG {
            0 => None,
            1 => {
                return Costs::decode(cursor.rest()).map(|costs| Self {
                    hold,
                    costs: Some(costs),
                });
            }
            _ => return Err(cursor.malformed()),
        };
        match cursor.is_empty() {
            true => Ok(Self { hold, costs }),
            false => Err(cursor.malformed()),
        }
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::SETTLE, Flags::NONE, 0, correlation, |out| {
            let (high, low) = ((self.hold >> 64) as u64, self.hold as u64);
            out.extend_from_slice(&low.to_le_bytes());
            out.push(u8::from(self.costs.is_some()) | if high > 0 { LONG } else { 0 });
            if high > 0 {
                out.extend_from_slice(&high.to_le_bytes());
            }
            out.extend_from_slice(self.costs.map_or(&[], |costs| costs.0));
        });
    }
}

/// Appends the answer to a SETTLE: true if the hold had not ended before.
pub fn encode_settled(was_held: bool, correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
        out.push(u8::from(was_held));
    });
}

/// Decodes the answer to a SETTLE.
pub fn decode_settled(payload: &[u8]) -> Result<bool, Malformed> {
    match payload {
        [was_held @ (0 | 1)] => Ok(*was_held == 1),
        _ => Err(Malformed {
            what: "SETTLE reply",
        }),
    }
}

/// Appends a PEEK frame, which asks for the state of a subject's limits.
pub fn encode_peek(subject: &str, correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::PEEK, Flags::NONE, 0, correlation, |out| {
        put_text16(out, subject);
    });
}

/// State of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitState {
    /// Index of the limit in the answer, from 0.
    pub limit: u16,
    /// The bucket is shared by subjects for which there was no room.
    pub is_shared: bool,
    /// The limit would have denied the take but only reports it (shadow mode).
    pub is_shadowed: bool,
    /// Credit left; negative for debt.
    pub have: i64,
    /// Capacity of the bucket.
    pub capacity: u64,
    /// Nanoseconds until the bucket is full again, if known.
    pub reset_after_ns: Option<u64>,
}

const SHARED: u8 = 1;
const SHADOWED: u8 = 2;
const UNKNOWN: u64 = u64::MAX;

impl LimitState {
    /// Encoded size in bytes.
    const SIZE: usize = 27;

    fn decode(bytes: &[u8; Self::SIZE]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes, "limit state");
        let limit = cursor.u16()?;
        let flags = cursor.u8()?;
        Ok(Self {
            limit,
            is_shared: flags & SHARED != 0,
            is_shadowed: flags & SHADOWED != 0,
            have: i64::from_le_bytes(cursor.array()?),
            capacity: cursor.u64()?,
            reset_after_ns: known(cursor.u64()?),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = if self.is_shared { SHARED } else { 0 };
        flags |= if self.is_shadowed { SHADOWED } else { 0 };
        out.extend_from_slice(&self.limit.to_le_bytes());
        out.push(flags);
        out.extend_from_slice(&self.have.to_le_bytes());
        out.extend_from_slice(&self.capacity.to_le_bytes());
        out.extend_from_slice(&self.reset_after_ns.unwrap_or(UNKNOWN).to_le_bytes());
    }
}

fn known(number: u64) -> Option<u64> {
    Some(number).filter(|number| *number != UNKNOWN)
}

/// An admitted take. Also the answer to a PEEK, which takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted<'a> {
    /// An earlier take with the same id took it.
    pub is_repeat: bool,
    /// The take was decided without the store that has the buckets.
    pub is_degraded: bool,
    /// The hold, if the take is one.
    pub hold: Option<Hold>,
    limit_states: &'a [u8],
}

/// A hold, for a peer with the feature [`LONG_HOLDS`](crate::LONG_HOLDS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Id with which it is settled. Never 0.
    pub id: u128,
    /// Milliseconds until it expires.
    pub ends_after_ms: u64,
}

const REPEAT: u8 = 1;
const DEGRADED: u8 = 2;
const LONG_HOLD: u8 = 4;

impl<'a> Admitted<'a> {
    /// Creates an outcome without the states of its limits.
    pub fn new(hold: Option<Hold>, is_repeat: bool, is_degraded: bool) -> Self {
        Self {
            is_repeat,
            is_degraded,
            hold,
            limit_states: &[],
        }
    }

    /// Iterates over the states of the limits after the take, in order.
    pub fn limit_states(&self) -> impl Iterator<Item = LimitState> + use<'a> {
        let (limit_states, _) = self.limit_states.as_chunks();
        limit_states
            .iter()
            .filter_map(|bytes| LimitState::decode(bytes).ok())
    }

    /// Appends the outcome with the states of its limits, of which at most 65,535 are encoded.
    pub fn encode(&self, limit_states: impl Iterator<Item = LimitState>, out: &mut Vec<u8>) {
        let mut flags = if self.is_repeat { REPEAT } else { 0 };
        flags |= if self.is_degraded { DEGRADED } else { 0 };
        flags |= if self.hold.is_some() { LONG_HOLD } else { 0 };
        out.extend_from_slice(&[ADMITTED, flags]);
        match self.hold {
            None => out.extend_from_slice(&0_u64.to_le_bytes()),
            Some(hold) => {
                out.extend_from_slice(&hold.id.to_le_bytes());
                out.extend_from_slice(&hold.ends_after_ms.to_le_bytes());
            }
        }
        let at = out.len();
        out.extend_from_slice(&[0; 2]);
        for state in limit_states.take(usize::from(u16::MAX)) {
            state.encode(out);
        }
        let count = ((out.len() - at - 2) / LimitState::SIZE) as u16;
        out[at..at + 2].copy_from_slice(&count.to_le_bytes());
    }
}

/// A denied take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Index of the limit that will admit it last.
    pub limit: u16,
    /// Waiting is pointless: a budget is spent, or the credit does not come back.
    pub is_exhausted: bool,
    /// Credit left; negative for debt.
    pub have: i64,
    /// Requested amount.
    pub need: u64,
    /// Nanoseconds after which it would pass without other takes, if known.
    pub retry_after_ns: Option<u64>,
}

impl Denied {
    /// Appends the outcome.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(DENIED);
        out.extend_from_slice(&self.limit.to_le_bytes());
        out.push(u8::from(self.is_exhausted));
        out.extend_from_slice(&self.have.to_le_bytes());
        out.extend_from_slice(&self.need.to_le_bytes());
        out.extend_from_slice(&self.retry_after_ns.unwrap_or(UNKNOWN).to_le_bytes());
    }
}

/// Outcome of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Taken from all limits.
    Admitted(Admitted<'a>),
    /// Taken from no limit.
    Denied(Denied),
    /// Not decided, or invalid.
    Refused {
        /// The error code.
        code: ErrorCode,
        /// A message for people.
        message: &'a str,
    },
}

const ADMITTED: u8 = 0;
const DENIED: u8 = 1;
const REFUSED: u8 = 2;

impl<'a> Outcome<'a> {
    /// Appends the outcome of a refused take.
    pub fn encode_refused(code: ErrorCode, message: &str, out: &mut Vec<u8>) {
        out.push(REFUSED);
        out.extend_from_slice(&code.as_u16().to_le_bytes());
        put_text16(out, cut(message, MESSAGE_LENGTH_MAX));
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        Ok(match cursor.u8()? {
            ADMITTED => {
                let flags = cursor.u8()?;
                let hold = match flags & LONG_HOLD {
                    // Nodes without the feature do not state when the hold ends.
                    0 => Hold {
                        id: cursor.u64()?.into(),
                        ends_after_ms: UNKNOWN,
                    },
                    _ => Hold {
                        id: u128::from_le_bytes(cursor.array()?),
                        ends_after_ms: cursor.u64()?,
                    },
                };
                let hold = Some(hold).filter(|hold| hold.id != 0);
                let size = usize::from(cursor.u16()?) * LimitState::SIZE;
                Self::Admitted(Admitted {
                    is_repeat: flags & REPEAT != 0,
                    is_degraded: flags & DEGRADED != 0,
                    hold,
                    limit_states: cursor.take(size)?,
                })
            }
            DENIED => Self::Denied(Denied {
                limit: cursor.u16()?,
                is_exhausted: cursor.u8()? & 1 != 0,
                have: i64::from_le_bytes(cursor.array()?),
                need: cursor.u64()?,
                retry_after_ns: known(cursor.u64()?),
            }),
            REFUSED => Self::Refused {
                code: ErrorCode::from_u16(cursor.u16()?).unwrap_or(ErrorCode::Internal),
                message: cursor.text16()?,
            },
            _ => return Err(cursor.malformed()),
        })
    }

    /// Returns true if all its limits have an index below `limits`.
    fn is_within(&self, limits: u16) -> bool {
        match self {
            Self::Admitted(admitted) => admitted.limit_states().all(|one| one.limit < limits),
            Self::Denied(denied) => denied.limit < limits,
            Self::Refused { .. } => true,
        }
    }
}

/// The payload of the REPLY to a TAKE or a PEEK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcomes<'a> {
    /// Number of outcomes.
    pub count: usize,
    limits: &'a [u8],
    outcomes: &'a [u8],
}

impl<'a> Outcomes<'a> {
    /// Decodes the payload. Checks that all outcomes are complete and refer to existing limits.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "TAKE reply");
        let limit_count = cursor.u16()?;
        let limits = cursor.rest();
        for _ in 0..limit_count {
            read_limit(&mut cursor)?;
        }
        let outcomes = cursor.rest();
        let mut count = 0;
        while !cursor.is_empty() {
            let outcome = Outcome::read(&mut cursor)?;
            if !outcome.is_within(limit_count) {
                return Err(cursor.malformed());
            }
            count += 1;
        }
        Ok(Self {
            count,
            limits: &limits[..limits.len() - outcomes.len()],
            outcomes,
        })
    }

    /// Appends the frame: each limit's name and unit, then the encoded outcomes.
    pub fn encode<'l>(
        limits: impl ExactSizeIterator<Item = (&'l str, &'l str)>,
        outcomes: &[u8],
        correlation: Correlation,
        out: &mut Vec<u8>,
    ) {
        encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
            out.extend_from_slice(&(limits.len() as u16).to_le_bytes());
            for (name, unit) in limits {
                put_text8(out, name);
                put_text8(out, unit);
            }
            out.extend_from_slice(outcomes);
        });
    }

    /// Iterates over the limits' names and units, in order.
    pub fn limits(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut cursor = Cursor::new(self.limits, "TAKE reply");
        std::iter::from_fn(move || read_limit(&mut cursor).ok())
    }

    /// Iterates over the outcomes, in the order of the takes.
    pub fn iter(&self) -> impl Iterator<Item = Outcome<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.outcomes, "TAKE reply");
        std::iter::from_fn(move || Outcome::read(&mut cursor).ok())
    }
}

fn read_limit<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, &'a str), Malformed> {
    Ok((cursor.text8()?, cursor.text8()?))
}
