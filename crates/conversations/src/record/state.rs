//! Records of a conversation's state.
//!
//! ```text
//! SNAPSHOT  lifecycle u8 | flags u8 (1 has an origin, 2 has a summary, 4 was cleared,
//!           8 has retracted messages) | base u64 | version u64
//!           | created_ms u64 | metadata u32 + bytes
//!           | ttl_ms u64 | keep_last u64 | keep_bytes u64 | agent text16
//!           | participants u16 × text16 | policy, see `policy`
//!           | origin: conversation text16 | seq u64
//!           | summary: through u64 | tokens u32 | flags u8 (bit 0: estimated) | message u32 + bytes
//!           | cleared: through u64 | at_ms u64
//!           | retracted: ranges u16 × (first u64 | last u64)
//!           | cursors u32 × (who text16 | seq u64)
//! ```

use super::Malformed;
use super::bytes::{FieldReader, Put};
use super::policy;
use crate::retracted::{RANGES_MAX, Retracted, SeqRange};
use crate::state::{Cleared, Cursors, Lifecycle, Origin, Settings, State, Summary};

const HAS_ORIGIN: u8 = 1;
const HAS_SUMMARY: u8 = 2;
const WAS_CLEARED: u8 = 4;
const HAS_RETRACTED: u8 = 8;
const ESTIMATED: u8 = 1;
const CURSOR: u8 = 1;

/// A small change of the state, which needs no snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A participant has read up to a message.
    Cursor {
        /// The participant.
        who: &'a str,
        /// The last message read.
        seq: u64,
    },
}

impl<'a> StateChange<'a> {
    /// Appends the record.
    ///
    /// # Panics
    /// If the participant's name is longer than 65,535 bytes; the limits are far below that.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Self::Cursor { who, seq } = self;
        out.push(CURSOR);
        out.text16(who);
        out.extend_from_slice(&seq.to_le_bytes());
    }

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "change of the state");
        if rest.u8()? != CURSOR {
            return Err(rest.malformed());
        }
        let (who, seq) = (rest.text16()?, rest.u64()?);
        rest.end()?;
        Ok(Self::Cursor { who, seq })
    }
}

impl State {
    /// Appends the record of a snapshot.
    ///
    /// # Panics
    /// If a field is longer than [`crate::Conversation::decide_change`] accepts.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let has = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
        out.push(self.lifecycle as u8);
        out.push(
            has(self.origin.is_some(), HAS_ORIGIN)
                | has(self.summary.is_some(), HAS_SUMMARY)
                | has(self.cleared.is_some(), WAS_CLEARED)
                | has(!self.retracted.is_empty(), HAS_RETRACTED),
        );
        for number in [self.base, self.version, self.created_ms] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.bytes32(&self.metadata);
        let settings = &self.settings;
        for number in [settings.ttl_ms, settings.keep_last, settings.keep_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.text16(&settings.agent);
        let count = u16::try_from(settings.participants.len());
        let count = count.expect("few participants were let in");
        out.extend_from_slice(&count.to_le_bytes());
        for who in &settings.participants {
            out.text16(who);
        }
        policy::encode(&self.settings.context, out);
        if let Some(Origin { conversation, seq }) = &self.origin {
            out.text16(conversation);
            out.extend_from_slice(&seq.to_le_bytes());
        }
        if let Some(summary) = &self.summary {
            out.extend_from_slice(&summary.through_seq.to_le_bytes());
            out.extend_from_slice(&summary.tokens.to_le_bytes());
            out.push(has(summary.is_estimated, ESTIMATED));
            out.bytes32(&summary.message);
        }
        if let Some(Cleared { through_seq, at_ms }) = self.cleared {
            out.extend_from_slice(&through_seq.to_le_bytes());
            out.extend_from_slice(&at_ms.to_le_bytes());
        }
        put_retracted(&self.retracted, out);
        let count = u32::try_from(self.cursors.0.len()).expect("few cursors were let in");
        out.extend_from_slice(&count.to_le_bytes());
        for (who, seq) in self.cursors.iter() {
            out.text16(who);
            out.extend_from_slice(&seq.to_le_bytes());
        }
    }

    /// Decodes a snapshot.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "state");
        let lifecycle = rest.u8()?;
        let lifecycle = Lifecycle::from_u8(lifecycle).ok_or(rest.malformed())?;
        let flags = rest.u8()?;
        if flags & !(HAS_ORIGIN | HAS_SUMMARY | WAS_CLEARED | HAS_RETRACTED) != 0 {
            return Err(rest.malformed());
        }
        let state = Self {
            lifecycle,
            base: rest.u64()?,
            version: rest.u64()?,
            created_ms: rest.u64()?,
            metadata: rest.bytes32()?.to_vec(),
            settings: Settings {
                ttl_ms: rest.u64()?,
                keep_last: rest.u64()?,
                keep_bytes: rest.u64()?,
                agent: rest.text16()?.to_owned(),
                participants: participants(&mut rest)?,
                context: policy::decode(&mut rest)?,
            },
            origin: match flags & HAS_ORIGIN {
                0 => None,
                _ => Some(Origin {
                    conversation: rest.text16()?.to_owned(),
                    seq: rest.u64()?,
                }),
            },
            summary: match flags & HAS_SUMMARY {
                0 => None,
                _ => Some(summary(&mut rest)?),
            },
            cleared: match flags & WAS_CLEARED {
                0 => None,
                _ => Some(Cleared {
                    through_seq: rest.u64()?,
                    at_ms: rest.u64()?,
                }),
            },
            retracted: match flags & HAS_RETRACTED {
                0 => Retracted::default(),
                _ => retracted(&mut rest)?,
            },
            cursors: cursors(&mut rest)?,
        };
        rest.end()?;
        Ok(state)
    }
}

fn participants(rest: &mut FieldReader<'_>) -> Result<Vec<String>, Malformed> {
    let mut participants = Vec::new();
    for _ in 0..rest.u16()? {
        participants.push(rest.text16()?.to_owned());
    }
    Ok(participants)
}

fn summary(rest: &mut FieldReader<'_>) -> Result<Summary, Malformed> {
    Ok(Summary {
        through_seq: rest.u64()?,
        tokens: rest.u32()?,
        is_estimated: match rest.u8()? {
            0 => false,
            ESTIMATED => true,
            _ => return Err(rest.malformed()),
        },
        message: rest.bytes32()?.to_vec(),
    })
}

fn put_retracted(retracted: &Retracted, out: &mut Vec<u8>) {
    if retracted.is_empty() {
        return;
    }
    let count = u16::try_from(retracted.ranges().len()).expect("few ranges were let in");
    out.extend_from_slice(&count.to_le_bytes());
    for SeqRange { first, last } in retracted.ranges() {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&last.to_le_bytes());
    }
}

fn retracted(rest: &mut FieldReader<'_>) -> Result<Retracted, Malformed> {
    let count = usize::from(rest.u16()?);
    if !(1..=RANGES_MAX).contains(&count) {
        return Err(rest.malformed());
    }
    let mut ranges = Vec::with_capacity(count);
    for _ in 0..count {
        ranges.push(SeqRange {
            first: rest.u64()?,
            last: rest.u64()?,
        });
    }
    Retracted::from_ranges(ranges).ok_or(rest.malformed())
}

fn cursors(rest: &mut FieldReader<'_>) -> Result<Cursors, Malformed> {
    let mut cursors = Cursors::default();
    for _ in 0..rest.u32()? {
        let who = rest.text16()?;
        cursors.set(who, rest.u64()?);
    }
    Ok(cursors)
}
