//! Reads the older messages that the engine needs for a decision.
//!
//! Usually it needs none, or they are in memory. Messages on the disk are read without any lock,
//! and then the engine is asked again: other users of the conversation do not wait, and a thread
//! that serves connections passes the whole request to another thread.

use std::ops::Range;

use bytes::Bytes;
use conversations::record::MessageView;
use conversations::{Conversation, Decision, Lookup, Plan, id_hash};
use journal::{Read, ReadError, ReadLimit};
use store::{Kind, Location, Reach};

use super::append::Failure;
use super::slot::Room;
use super::unsynced::UnsyncedRecords;
use super::{ConversationError, Conversations};

/// Limit of one read of older messages.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// Attempts before giving up when the conversation changes during each read.
const ATTEMPTS_MAX: usize = 32;

/// Records of messages read for a decision, by message number.
pub(super) type Records = Vec<(u64, Bytes)>;

/// Data that must be read from the disk before a decision.
#[derive(Debug)]
pub(super) enum MissingHistory {
    /// The conversation itself.
    Room,
    /// The messages with these numbers.
    Messages(Vec<u64>),
    /// The ids of these messages.
    Ids(Range<u64>),
}

/// The result of an operation that may need data from the disk first.
pub(super) enum Attempt<T> {
    Done(T),
    /// Nothing was changed.
    Needs(MissingHistory),
}

impl<T> Attempt<T> {
    /// Returns the result, unless data is missing.
    pub(super) fn done(self) -> Option<T> {
        match self {
            Self::Done(done) => Some(done),
            Self::Needs(_) => None,
        }
    }
}

impl Conversations {
    /// Runs an operation that reports which data it is missing, reads that data without any lock,
    /// and repeats. It may read from the disk.
    pub(super) fn with_known<R>(
        &self,
        name: &str,
        mut attempt: impl FnMut(&mut Records) -> Result<Attempt<R>, ConversationError>,
    ) -> Result<R, ConversationError> {
        let mut records = Records::new();
        for _ in 0..ATTEMPTS_MAX {
            match attempt(&mut records)? {
                Attempt::Done(done) => return Ok(done),
                Attempt::Needs(missing) => self.fetch(name, missing, &mut records)?,
            }
        }
        Err(ConversationError::Contended)
    }

    fn fetch(
        &self,
        name: &str,
        missing: MissingHistory,
        records: &mut Records,
    ) -> Result<(), ConversationError> {
        match missing {
            MissingHistory::Room => self.with_room(name, |_, _| ()),
            MissingHistory::Messages(seqs) => {
                let (location, base) = self.whereabouts(name)?;
                let messages = self.records(Reach::Disk, location, base, &seqs);
                records.extend(unless_trimmed(messages)?.unwrap_or_default());
                Ok(())
            }
            MissingHistory::Ids(range) => {
                let (location, base) = self.whereabouts(name)?;
                let hashes = self.hashes(Reach::Disk, location, base, &range);
                let hashes = unless_trimmed(hashes)?;
                // Another thread may have loaded them meanwhile, which does no harm.
                self.with_room(name, |_, room| {
                    room.engine.learn(range.start, &hashes.unwrap_or_default());
                })
            }
        }
    }

    /// Returns the location of a conversation's messages, and the offset of the first one.
    fn whereabouts(&self, name: &str) -> Result<(Location, u64), ConversationError> {
        let location = self.store.find(Kind::Conversation, name);
        let location = location.ok_or_else(|| ConversationError::not_found(name))?;
        let base = self.with_room(name, |_, room| room.engine.offset(1))?;
        Ok((location, base))
    }
}

impl Conversations {
    /// Asks the engine for a plan, and reads the messages that it needs as far as they are within
    /// reach.
    pub(super) fn plan(
        &self,
        reach: Reach,
        room: &mut Room,
        records: &mut Records,
        decide: impl Fn(&Conversation, &dyn Fn(u64) -> Option<Bytes>) -> DecisionOutcome,
    ) -> Result<Plan, Failure> {
        loop {
            let stored = |seq| read_for(&room.unsynced, records, seq);
            let decided = decide(&room.engine, &stored);
            match decided.map_err(|refused| Failure::Resting(refused.into()))? {
                Decision::Append(plan) => return Ok(plan),
                Decision::Read(seqs) => self.look_at(reach, room, seqs, records)?,
                Decision::Learn(range) => self.learn(reach, room, range)?,
            }
        }
    }

    /// Returns the message with an id, if any.
    pub(super) fn message_of(
        &self,
        reach: Reach,
        room: &mut Room,
        records: &mut Records,
        decide: impl Fn(&Conversation, &dyn Fn(u64) -> Option<Bytes>) -> LookupOutcome,
    ) -> Result<Option<u64>, Failure> {
        loop {
            let stored = |seq| read_for(&room.unsynced, records, seq);
            let found = decide(&room.engine, &stored);
            match found.map_err(|refused| Failure::Resting(refused.into()))? {
                Lookup::Nowhere => return Ok(None),
                Lookup::At(seq) => return Ok(Some(seq)),
                Lookup::Read(seqs) => self.look_at(reach, room, seqs, records)?,
                Lookup::Learn(range) => self.learn(reach, room, range)?,
            }
        }
    }

    pub(super) fn look_at(
        &self,
        reach: Reach,
        room: &Room,
        seqs: Vec<u64>,
        records: &mut Records,
    ) -> Result<(), Failure> {
        let location = room.location.ok_or_else(nowhere)?;
        match self.records(reach, location, room.engine.offset(1), &seqs)? {
            Some(more) => records.extend(more),
            None => return Err(Failure::Missing(MissingHistory::Messages(seqs))),
        }
        Ok(())
    }

    /// Gives the engine the ids of older messages.
    pub(super) fn learn(
        &self,
        reach: Reach,
        room: &mut Room,
        range: Range<u64>,
    ) -> Result<(), Failure> {
        let location = room.location.ok_or_else(nowhere)?;
        let Some(hashes) = self.hashes(reach, location, room.engine.offset(1), &range)? else {
            return Err(Failure::Missing(MissingHistory::Ids(range)));
        };
        match room.engine.learn(range.start, &hashes) {
            true => Ok(()),
            false => {
                let message = "the ids of older messages cannot be read";
                Err(ConversationError::inconsistent(message).into())
            }
        }
    }

    /// Reads the records of messages, where message 1 is at offset `base`; `None` if they are out
    /// of reach.
    fn records(
        &self,
        reach: Reach,
        location: Location,
        base: u64,
        seqs: &[u64],
    ) -> Result<Option<Records>, ConversationError> {
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let mut records = Records::with_capacity(seqs.len());
        for seq in seqs {
            let Some(read) = self.read_records(reach, location, base + seq - 1, one)? else {
                return Ok(None);
            };
            let record = read.records.into_iter().next().ok_or_else(|| {
                ConversationError::inconsistent(format!("message {seq} is not there"))
            })?;
            records.push((*seq, record.payload));
        }
        Ok(Some(records))
    }

    /// Returns the id hashes of messages; `None` if they are out of reach.
    fn hashes(
        &self,
        reach: Reach,
        location: Location,
        base: u64,
        range: &Range<u64>,
    ) -> Result<Option<Vec<u64>>, ConversationError> {
        let mut hashes = Vec::with_capacity((range.end - range.start) as usize);
        while range.start + (hashes.len() as u64) < range.end {
            let offset = base + range.start + hashes.len() as u64 - 1;
            let Some(read) = self.read_records(reach, location, offset, CHUNK)? else {
                return Ok(None);
            };
            if read.records.is_empty() {
                break;
            }
            for record in &read.records {
                hashes.push(id_hash(MessageView::decode(&record.payload)?.id));
            }
        }
        Ok(Some(hashes))
    }

    fn read_records(
        &self,
        reach: Reach,
        location: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ConversationError> {
        match self.store.read_within(reach, location, from, limit) {
            Err(ReadError::Trimmed { start }) => Err(ConversationError::Trimmed {
                start_seq: start + 1,
            }),
            read => Ok(read?),
        }
    }
}

/// Treats messages that were trimmed during the read as empty: the engine is asked again and knows
/// about the trim.
fn unless_trimmed<T>(
    read: Result<Option<T>, ConversationError>,
) -> Result<Option<T>, ConversationError> {
    match read {
        Err(ConversationError::Trimmed { .. }) => Ok(None),
        read => read,
    }
}

type DecisionOutcome = Result<Decision, conversations::Refusal>;

type LookupOutcome = Result<Lookup, conversations::Refusal>;

/// Returns the record of a message, if it is in memory or was read.
pub(super) fn read_for(unsynced: &UnsyncedRecords, records: &Records, seq: u64) -> Option<Bytes> {
    let unsynced = unsynced.get(seq).map(Bytes::copy_from_slice);
    unsynced.or_else(|| Some(records.iter().find(|(it, _)| *it == seq)?.1.clone()))
}

fn nowhere() -> ConversationError {
    let message = "a conversation that is nowhere has messages";
    ConversationError::inconsistent(message)
}
