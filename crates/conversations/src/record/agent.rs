//! Records of an agent's stream.
//!
//! ```text
//! SNAPSHOT  debounce_ms u64 | max_wait_ms u64 | pause_ms u64 | pause_ms_max u64 | on_busy u8
//!           | attempts u32 | calls u32 | pending u32 | dead u32 (the limits)
//!           | settings u32 + bytes
//!           | cursors u32 × (partition u16 | next event u64)
//!           | pending u32 × (conversation u64 | from u64 | to u64 | attempts u32 | interrupts u32)
//!           | dead u32 × (conversation u64 | letter)
//! CHANGE    what u8 | conversation u64 | and for
//!           1 answered: through u64   2 again: attempts u32 | interrupts u32   3 dead: letter
//!           4 revived, 5 discarded, 6 forgotten: nothing
//! letter    from u64 | to u64 | attempts u32 | status u16 | at_ms u64
//! ```

use std::collections::BTreeMap;

use super::Malformed;
use super::bytes::{FieldReader, Put};
use crate::delivery::{Change, DeadLetter, OnBusy, Options};

const ANSWERED: u8 = 1;
const AGAIN: u8 = 2;
const DEAD: u8 = 3;
const REVIVED: u8 = 4;
const DISCARDED: u8 = 5;
const FORGOTTEN: u8 = 6;

/// The snapshot of an agent: its options, pending messages and dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentState {
    /// The options of its deliveries.
    pub options: Options,
    /// The shell's settings, as opaque bytes: among others the agent's address.
    pub settings: Vec<u8>,
    /// The next event to feed, by partition.
    pub cursors: BTreeMap<u16, u64>,
    /// The unanswered messages, by conversation.
    pub pending: BTreeMap<u64, PendingState>,
    /// The dead letters, by conversation.
    pub dead: BTreeMap<u64, DeadLetter>,
}

/// The unanswered messages of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingState {
    /// The first message.
    pub from_seq: u64,
    /// The last message.
    pub to_seq: u64,
    /// The number of failed calls.
    pub attempts: u32,
    /// The number of interrupted calls.
    pub interrupts: u32,
}

impl AgentState {
    /// Appends the record.
    ///
    /// # Panics
    /// If a field has 4 GiB or more; limits are far below that.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let options = &self.options;
        let times = [
            options.debounce_ms,
            options.max_wait_ms,
            options.pause_ms,
            options.pause_ms_max,
        ];
        times.iter().for_each(|it| out.u64(*it));
        out.push(options.on_busy as u8);
        let limits = [
            options.attempts_max,
            options.calls_max,
            options.pending_max,
            options.dead_max,
        ];
        limits.iter().for_each(|it| out.u32(*it));
        out.bytes32(&self.settings);
        out.count(self.cursors.len());
        for (partition, next) in &self.cursors {
            out.extend_from_slice(&partition.to_le_bytes());
            out.u64(*next);
        }
        out.count(self.pending.len());
        for (conversation, pending) in &self.pending {
            [*conversation, pending.from_seq, pending.to_seq]
                .iter()
                .for_each(|it| out.u64(*it));
            out.u32(pending.attempts);
            out.u32(pending.interrupts);
        }
        out.count(self.dead.len());
        for (conversation, letter) in &self.dead {
            out.u64(*conversation);
            put_letter(letter, out);
        }
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "agent");
        let (debounce_ms, max_wait_ms) = (rest.u64()?, rest.u64()?);
        let (pause_ms, pause_ms_max) = (rest.u64()?, rest.u64()?);
        let on_busy = rest.u8()?;
        let mut state = Self {
            options: Options {
                debounce_ms,
                max_wait_ms,
                on_busy: OnBusy::from_u8(on_busy).ok_or(rest.malformed())?,
                attempts_max: rest.u32()?,
                pause_ms,
                pause_ms_max,
                calls_max: rest.u32()?,
                pending_max: rest.u32()?,
                dead_max: rest.u32()?,
            },
            settings: rest.bytes32()?.to_vec(),
            ..Self::default()
        };
        for _ in 0..rest.u32()? {
            let partition = rest.u16()?;
            state.cursors.insert(partition, rest.u64()?);
        }
        for _ in 0..rest.u32()? {
            let conversation = rest.u64()?;
            let pending = PendingState {
                from_seq: rest.u64()?,
                to_seq: rest.u64()?,
                attempts: rest.u32()?,
                interrupts: rest.u32()?,
            };
            state.pending.insert(conversation, pending);
        }
        for _ in 0..rest.u32()? {
            let conversation = rest.u64()?;
            state.dead.insert(conversation, letter(&mut rest)?);
        }
        rest.end()?;
        Ok(state)
    }
}

impl Change {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut begin = |what: u8, conversation: u64| {
            out.push(what);
            out.u64(conversation);
        };
        match *self {
            Self::Answered {
                conversation,
                through_seq,
            } => {
                begin(ANSWERED, conversation);
                out.u64(through_seq);
            }
            Self::Again {
                conversation,
                attempts,
                interrupts,
            } => {
                begin(AGAIN, conversation);
                out.u32(attempts);
                out.u32(interrupts);
            }
            Self::Dead {
                conversation,
                letter,
            } => {
                begin(DEAD, conversation);
                put_letter(&letter, out);
            }
            Self::Revived { conversation } => begin(REVIVED, conversation),
            Self::Discarded { conversation } => begin(DISCARDED, conversation),
            Self::Forgotten { conversation } => begin(FORGOTTEN, conversation),
        }
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "change of an agent");
        let (what, conversation) = (rest.u8()?, rest.u64()?);
        let change = match what {
            ANSWERED => Self::Answered {
                conversation,
                through_seq: rest.u64()?,
            },
            AGAIN => Self::Again {
                conversation,
                attempts: rest.u32()?,
                interrupts: rest.u32()?,
            },
            DEAD => Self::Dead {
                conversation,
                letter: letter(&mut rest)?,
            },
            REVIVED => Self::Revived { conversation },
            DISCARDED => Self::Discarded { conversation },
            FORGOTTEN => Self::Forgotten { conversation },
            _ => return Err(rest.malformed()),
        };
        rest.end()?;
        Ok(change)
    }
}

fn put_letter(letter: &DeadLetter, out: &mut Vec<u8>) {
    out.u64(letter.from_seq);
    out.u64(letter.to_seq);
    out.u32(letter.attempts);
    out.extend_from_slice(&letter.status.to_le_bytes());
    out.u64(letter.at_ms);
}

fn letter(rest: &mut FieldReader<'_>) -> Result<DeadLetter, Malformed> {
    Ok(DeadLetter {
        from_seq: rest.u64()?,
        to_seq: rest.u64()?,
        attempts: rest.u32()?,
        status: rest.u16()?,
        at_ms: rest.u64()?,
    })
}
