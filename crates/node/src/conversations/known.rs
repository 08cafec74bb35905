//! What the engine has to know of older messages before it decides.
//!
//! Most of the time that is nothing, or in memory. If it is on the disk, it is read with nothing locked
//! and the engine is asked again: whoever else uses the conversation does not wait for it, and a thread
//! that serves connections leaves the whole of it to another one.

use std::ops::Range;

use bytes::Bytes;
use conversations::record::MessageView;
use conversations::{Conversation, Decision, Lookup, Plan, id_hash};
use journal::{Read, ReadError, ReadLimit};
use model::ErrorCode;

use super::append::Failure;
use super::slot::Room;
use super::unsynced::Unsynced;
use super::{Conversations, Refusal};
use crate::store::{Kind, Location, Reach, Store};

/// What is read of older messages at a time.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// How often something may change while it is read before that is given up.
const ATTEMPTS_MAX: usize = 32;

/// Records of messages that were read for a decision, by number.
pub(super) type Records = Vec<(u64, Bytes)>;

/// What has to be read from the disk before something is decided.
#[derive(Debug)]
pub(super) enum Missing {
    /// The conversation itself.
    Room,
    /// These messages.
    Messages(Vec<u64>),
    /// The ids of these.
    Ids(Range<u64>),
}

impl Conversations<'_> {
    /// Does something of which it says what has to be read before; it may wait for the disk, and has
    /// nothing locked meanwhile.
    pub(super) fn with_known<R>(
        &self,
        name: &str,
        mut attempt: impl FnMut(&mut Records) -> Result<Result<R, Missing>, Refusal>,
    ) -> Result<R, Refusal> {
        let mut records = Records::new();
        for _ in 0..ATTEMPTS_MAX {
            match attempt(&mut records)? {
                Ok(done) => return Ok(done),
                Err(missing) => self.fetch(name, missing, &mut records)?,
            }
        }
        let message = "what is there changes faster than it can be read";
        Err(Refusal::new(ErrorCode::Busy, message))
    }

    fn fetch(&self, name: &str, missing: Missing, records: &mut Records) -> Result<(), Refusal> {
        match missing {
            Missing::Room => self.with_room(name, |_, _| ()),
            Missing::Messages(seqs) => {
                let (location, base) = self.whereabouts(name)?;
                let messages = self.store.records(Reach::Disk, location, base, &seqs);
                records.extend(unless_trimmed(messages)?.unwrap_or_default());
                Ok(())
            }
            Missing::Ids(range) => {
                let (location, base) = self.whereabouts(name)?;
                let hashes = self.store.hashes(Reach::Disk, location, base, &range);
                let hashes = unless_trimmed(hashes)?;
                // If others have learnt them meanwhile, so much the better.
                self.with_room(name, |_, room| {
                    room.engine.learn(range.start, &hashes.unwrap_or_default());
                })
            }
        }
    }

    /// Where the messages of a conversation are, and the offset of its first.
    fn whereabouts(&self, name: &str) -> Result<(Location, u64), Refusal> {
        let location = self.store.find(Kind::Conversation, name);
        let location = location.ok_or_else(|| Refusal::not_found(name))?;
        let base = self.with_room(name, |_, room| room.engine.offset(1))?;
        Ok((location, base))
    }
}

impl Store {
    /// Asks the engine, and reads for it what it has to know, as far as that is within reach.
    pub(super) fn plan(
        &self,
        reach: Reach,
        room: &mut Room,
        records: &mut Records,
        decide: impl Fn(&Conversation, &dyn Fn(u64) -> Option<Bytes>) -> Decided,
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

    /// The message of an id, if there is one.
    pub(super) fn message_of(
        &self,
        reach: Reach,
        room: &mut Room,
        records: &mut Records,
        decide: impl Fn(&Conversation, &dyn Fn(u64) -> Option<Bytes>) -> LookedUp,
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

    fn look_at(
        &self,
        reach: Reach,
        room: &Room,
        seqs: Vec<u64>,
        records: &mut Records,
    ) -> Result<(), Failure> {
        let location = room.location.ok_or_else(nowhere)?;
        match self.records(reach, location, room.engine.offset(1), &seqs)? {
            Some(more) => records.extend(more),
            None => return Err(Failure::Missing(Missing::Messages(seqs))),
        }
        Ok(())
    }

    /// Tells the engine the ids of older messages.
    fn learn(&self, reach: Reach, room: &mut Room, range: Range<u64>) -> Result<(), Failure> {
        let location = room.location.ok_or_else(nowhere)?;
        let Some(hashes) = self.hashes(reach, location, room.engine.offset(1), &range)? else {
            return Err(Failure::Missing(Missing::Ids(range)));
        };
        match room.engine.learn(range.start, &hashes) {
            true => Ok(()),
            false => {
                let message = "the ids of older messages cannot be read";
                Err(Refusal::new(ErrorCode::Internal, message).into())
            }
        }
    }

    /// The records of messages, of which the first is at `base`; `None` if they are not within reach.
    fn records(
        &self,
        reach: Reach,
        location: Location,
        base: u64,
        seqs: &[u64],
    ) -> Result<Option<Records>, Refusal> {
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
                Refusal::new(ErrorCode::Internal, format!("message {seq} is not there"))
            })?;
            records.push((*seq, record.payload));
        }
        Ok(Some(records))
    }

    /// The hashes of the ids of messages; `None` if they are not within reach.
    fn hashes(
        &self,
        reach: Reach,
        location: Location,
        base: u64,
        range: &Range<u64>,
    ) -> Result<Option<Vec<u64>>, Refusal> {
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
    ) -> Result<Option<Read>, Refusal> {
        match self.read_within(reach, location, from, limit) {
            Err(ReadError::Trimmed { start }) => Err(Refusal::trimmed(start + 1)),
            read => Ok(read?),
        }
    }
}

/// Nothing, of messages that were let go of while they were read: the engine is asked again and knows.
fn unless_trimmed<T>(read: Result<Option<T>, Refusal>) -> Result<Option<T>, Refusal> {
    match read {
        Err(refusal) if refusal.code == ErrorCode::Trimmed => Ok(None),
        read => read,
    }
}

type Decided = Result<Decision, conversations::Refusal>;

type LookedUp = Result<Lookup, conversations::Refusal>;

/// The record of a message, if it is at hand.
fn read_for(unsynced: &Unsynced, records: &Records, seq: u64) -> Option<Bytes> {
    let unsynced = unsynced.get(seq).map(Bytes::copy_from_slice);
    unsynced.or_else(|| Some(records.iter().find(|(it, _)| *it == seq)?.1.clone()))
}

fn nowhere() -> Refusal {
    let message = "a conversation that is nowhere has messages";
    Refusal::new(ErrorCode::Internal, message)
}
