//! Records of what a member has reported to be on its disk, and the check that it comes back with it.
//!
//! A member that has granted a vote or acknowledged an entry must not come back without it: from an
//! old copy of its data, or from a disk that has lost its end, it would vote again in one term, or
//! elect a leader that lacks what a quorum has acknowledged. So each node records the highest vote
//! and the highest entry that each member has reported to be on its disk, for each shard.
//!
//! ```text
//! record     life u64 | shards u16 | each: option of a vote | option of: term u64, log id
//! statement  shards u16 | each: option of a vote | option of a log id
//! file       TLPR | format u16 | cluster u64 | own id u64 | members u32
//!            | each: id u64, record | crc32c u32
//! option     0 u8, or 1 u8 and the value
//! ```
//!
//! All is little-endian; votes and log ids are as in [messages](super::message).

use std::collections::BTreeMap;
use std::io;

use bytes::{Buf, Bytes};

use super::message::{
    end, get_bool, get_log_id, get_u64, get_vote, malformed, put_log_id, put_vote,
};
use crate::raft::{LogId, Vote};

/// Shards of a record at most, as of a journal.
const SHARDS_MAX: u16 = journal::segment::SHARD_COUNT_MAX;

/// Bytes of a record and of a statement at most.
pub(super) const SIZE_MAX: usize = 10 + SHARDS_MAX as usize * 44;

/// Members of a file at most.
const MEMBERS_MAX: u32 = 1 << 10;

const MAGIC: [u8; 4] = *b"TLPR";
const FORMAT: u16 = 1;

/// The vote and the last entry of a shard on a member's disk, as it states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskState {
    pub(crate) vote: Option<Vote>,
    pub(crate) last: Option<LogId>,
}

/// An entry that a member had on disk. Its log does not end before it as long as its vote is of the
/// term: only a leader of a higher one can have voided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
struct Flushed {
    term: u64,
    entry: LogId,
}

/// The highest vote and the highest entry of a shard that a member has reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ShardRecord {
    vote: Option<Vote>,
    flushed: Option<Flushed>,
}

/// The reports of one member: the highest of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The highest life of its journal.
    life: u64,
    /// By number.
    shards: Vec<ShardRecord>,
}

/// A member that comes back with less than it has reported: from an old copy of its data, or from a
/// disk that has lost some. Blocks are named by index and term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutdatedError {
    /// The journal has had a later life.
    #[error("its journal has had the life {reported}, and now has the life {found}")]
    Life {
        /// The life that was reported.
        reported: u64,
        /// The life of the journal.
        found: u64,
    },
    /// A vote is missing.
    #[error(
        "it has voted in term {reported} of shard {shard}, and its disk has {}",
        vote_text(*found)
    )]
    Vote {
        /// Number of the shard.
        shard: u16,
        /// Term of the vote that was reported.
        reported: u64,
        /// Term of the vote on disk.
        found: Option<u64>,
    },
    /// A block is missing.
    #[error(
        "it had {} of shard {shard}, and its disk ends with {}",
        block_text(Some(*reported)),
        block_text(*found)
    )]
    Log {
        /// Number of the shard.
        shard: u16,
        /// The block that was reported.
        reported: (u64, u64),
        /// The last block on disk.
        found: Option<(u64, u64)>,
    },
}

fn vote_text(term: Option<u64>) -> String {
    term.map_or("none".to_owned(), |term| format!("one of term {term}"))
}

fn block_text(block: Option<(u64, u64)>) -> String {
    match block {
        Some((index, term)) => format!("block {index} of term {term}"),
        None => "none".to_owned(),
    }
}

fn block_of(entry: LogId) -> (u64, u64) {
    (entry.index + 1, entry.leader_id.term)
}

impl DiskState {
    /// Returns whether this state contains a vote. A vote may have been replaced in its term by that
    /// for the leader that was elected.
    fn has_vote(&self, reported: &Vote) -> bool {
        self.vote.is_some_and(|own| {
            let (own_term, term) = (own.leader_id.term, reported.leader_id.term);
            let is_same = own.leader_id.voted_for == reported.leader_id.voted_for;
            own_term > term || own_term == term && (is_same || own.committed)
        })
    }

    /// Returns whether this state contains an entry, or has voted in a higher term, whose leader may
    /// have voided it.
    fn has_entry(&self, reported: &Flushed) -> bool {
        let term = self.vote.map_or(0, |vote| vote.leader_id.term);
        term > reported.term || self.last >= Some(reported.entry)
    }
}

impl Record {
    /// Checks a member that comes with this life and this statement.
    pub(crate) fn check(&self, life: u64, statement: &[DiskState]) -> Result<(), OutdatedError> {
        if life < self.life {
            return Err(OutdatedError::Life {
                reported: self.life,
                found: life,
            });
        }
        for (shard, record) in (0..).zip(&self.shards) {
            let state = statement.get(usize::from(shard));
            let state = state.copied().unwrap_or_default();
            if let Some(vote) = &record.vote
                && !state.has_vote(vote)
            {
                return Err(OutdatedError::Vote {
                    shard,
                    reported: vote.leader_id.term,
                    found: state.vote.map(|it| it.leader_id.term),
                });
            }
            if let Some(flushed) = &record.flushed
                && !state.has_entry(flushed)
            {
                return Err(OutdatedError::Log {
                    shard,
                    reported: block_of(flushed.entry),
                    found: state.last.map(block_of),
                });
            }
        }
        Ok(())
    }

    /// Records a life. Returns whether that changes the record, as do all methods.
    pub(super) fn note_life(&mut self, life: u64) -> bool {
        let is_new = life > self.life;
        self.life = self.life.max(life);
        is_new
    }

    /// Records a vote that is on the member's disk.
    pub(super) fn note_vote(&mut self, shard: u16, vote: &Vote) -> bool {
        let Some(record) = self.shard(shard) else {
            return false;
        };
        let has_it = |known: &Vote| {
            let (known_term, term) = (known.leader_id.term, vote.leader_id.term);
            known_term > term || known_term == term && (known.committed || !vote.committed)
        };
        let is_new = !record.vote.as_ref().is_some_and(has_it);
        if is_new {
            record.vote = Some(*vote);
        }
        is_new
    }

    /// Records an entry that was on the member's disk when it had this vote.
    pub(super) fn note_flushed(&mut self, shard: u16, vote: &Vote, entry: LogId) -> bool {
        let has_new_vote = self.note_vote(shard, vote);
        let term = vote.leader_id.term;
        let flushed = Some(Flushed { term, entry });
        let Some(record) = self.shard(shard) else {
            return false;
        };
        let is_new = flushed > record.flushed;
        if is_new {
            record.flushed = flushed;
        }
        is_new || has_new_vote
    }

    /// Records a statement. An entry in it counts for its own term: a leader of a higher one that
    /// the member has voted for may be about to void it.
    pub(super) fn note_statement(&mut self, statement: &[DiskState]) -> bool {
        let mut is_new = false;
        for (shard, state) in (0..).zip(statement) {
            if let Some(vote) = &state.vote {
                is_new |= self.note_vote(shard, vote);
            }
            if let Some(entry) = state.last
                && let Some(record) = self.shard(shard)
            {
                let term = entry.leader_id.term;
                let flushed = Some(Flushed { term, entry });
                if flushed > record.flushed {
                    record.flushed = flushed;
                    is_new = true;
                }
            }
        }
        is_new
    }

    fn shard(&mut self, shard: u16) -> Option<&mut ShardRecord> {
        if shard >= SHARDS_MAX {
            return None;
        }
        let count = usize::from(shard) + 1;
        if self.shards.len() < count {
            self.shards.resize(count, ShardRecord::default());
        }
        self.shards.get_mut(usize::from(shard))
    }
}

/// Appends a record.
pub(crate) fn put_record(out: &mut Vec<u8>, record: &Record) {
    out.extend_from_slice(&record.life.to_le_bytes());
    out.extend_from_slice(&(record.shards.len() as u16).to_le_bytes());
    for shard in &record.shards {
        put_option(out, shard.vote.as_ref(), put_vote);
        put_option(out, shard.flushed.as_ref(), |out, flushed| {
            out.extend_from_slice(&flushed.term.to_le_bytes());
            put_log_id(out, Some(flushed.entry));
        });
    }
}

fn get_record_from(bytes: &mut Bytes) -> io::Result<Record> {
    let life = get_u64(bytes)?;
    let mut shards = Vec::new();
    for _ in 0..get_count(bytes)? {
        shards.push(ShardRecord {
            vote: get_option(bytes, get_vote)?,
            flushed: get_option(bytes, |bytes| {
                let term = get_u64(bytes)?;
                let entry = get_log_id(bytes)?.ok_or_else(malformed)?;
                Ok(Flushed { term, entry })
            })?,
        });
    }
    Ok(Record { life, shards })
}

/// Decodes a record.
pub(crate) fn get_record(mut bytes: Bytes) -> io::Result<Record> {
    let record = get_record_from(&mut bytes)?;
    end(&bytes)?;
    Ok(record)
}

/// Appends a statement.
pub(crate) fn put_statement(out: &mut Vec<u8>, statement: &[DiskState]) {
    out.extend_from_slice(&(statement.len() as u16).to_le_bytes());
    for state in statement {
        put_option(out, state.vote.as_ref(), put_vote);
        put_log_id(out, state.last);
    }
}

/// Decodes a statement.
pub(crate) fn get_statement(mut bytes: Bytes) -> io::Result<Vec<DiskState>> {
    let mut statement = Vec::new();
    for _ in 0..get_count(&mut bytes)? {
        statement.push(DiskState {
            vote: get_option(&mut bytes, get_vote)?,
            last: get_log_id(&mut bytes)?,
        });
    }
    end(&bytes)?;
    Ok(statement)
}

/// Encodes the file of a node of a cluster.
pub(crate) fn encode_file(cluster: u64, id: u64, records: &BTreeMap<u64, Record>) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&cluster.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&(records.len() as u32).to_le_bytes());
    for (member, record) in records {
        out.extend_from_slice(&member.to_le_bytes());
        put_record(&mut out, record);
    }
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out
}

/// Decodes the file of a node of a cluster.
pub(crate) fn decode_file(
    cluster: u64,
    id: u64,
    bytes: &Bytes,
) -> io::Result<BTreeMap<u64, Record>> {
    let (checked, crc) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
    if crc32c::crc32c(checked) != u32::from_le_bytes(*crc) {
        return Err(malformed());
    }
    let mut bytes = bytes.slice(..checked.len());
    let mut head = [0; 6];
    bytes
        .try_copy_to_slice(&mut head)
        .map_err(|_| malformed())?;
    if head[..4] != MAGIC || head[4..] != FORMAT.to_le_bytes() {
        return Err(malformed());
    }
    if (get_u64(&mut bytes)?, get_u64(&mut bytes)?) != (cluster, id) {
        let message = "it belongs to another node";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let count = bytes.try_get_u32_le().map_err(|_| malformed())?;
    if count > MEMBERS_MAX {
        return Err(malformed());
    }
    let mut records = BTreeMap::new();
    for _ in 0..count {
        let member = get_u64(&mut bytes)?;
        records.insert(member, get_record_from(&mut bytes)?);
    }
    end(&bytes)?;
    match records.len() == count as usize {
        true => Ok(records),
        false => Err(malformed()),
    }
}

fn get_count(bytes: &mut Bytes) -> io::Result<u16> {
    match bytes.try_get_u16_le() {
        Ok(count) if count <= SHARDS_MAX => Ok(count),
        _ => Err(malformed()),
    }
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    out.push(value.is_some().into());
    if let Some(value) = value {
        put(out, value);
    }
}

fn get_option<T>(
    bytes: &mut Bytes,
    get: impl FnOnce(&mut Bytes) -> io::Result<T>,
) -> io::Result<Option<T>> {
    match get_bool(bytes)? {
        true => get(bytes).map(Some),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::log_id;

    fn state(vote: Vote, term: u64, index: u64) -> [DiskState; 1] {
        [DiskState {
            vote: Some(vote),
            last: Some(log_id(term, index)),
        }]
    }

    fn example() -> Record {
        let mut record = Record::default();
        record.note_life(7);
        record.note_flushed(0, &Vote::new_committed(5, 1), log_id(4, 100));
        record.note_vote(2, &Vote::new(6, 3));
        record
    }

    #[test]
    fn member_with_all_that_it_reported_is_admitted() {
        let mut record = Record::default();
        record.note_life(7);
        record.note_flushed(0, &Vote::new_committed(5, 1), log_id(4, 100));
        for (life, statement) in [
            (7, state(Vote::new_committed(5, 1), 4, 100)),
            (8, state(Vote::new_committed(5, 1), 5, 101)),
            (8, state(Vote::new(6, 2), 4, 100)),
        ] {
            assert_eq!(record.check(life, &statement), Ok(()), "{statement:?}");
        }
        assert_eq!(Record::default().check(0, &[]), Ok(()));
    }

    #[test]
    fn member_with_less_than_it_reported_is_refused_by_name() {
        let record = example();
        let whole = DiskState {
            vote: Some(Vote::new(6, 3)),
            last: Some(log_id(5, 200)),
        };
        let mut states = [whole; 3];
        assert_eq!(record.check(7, &states), Ok(()));
        let life = OutdatedError::Life {
            reported: 7,
            found: 6,
        };
        assert_eq!(record.check(6, &states), Err(life));

        states[0].vote = Some(Vote::new_committed(4, 1));
        let refused = record.check(7, &states).unwrap_err().to_string();
        let expected = "it has voted in term 5 of shard 0, and its disk has one of term 4";
        assert_eq!(refused, expected);

        states[0] = state(Vote::new_committed(5, 1), 4, 99)[0];
        let refused = record.check(7, &states).unwrap_err().to_string();
        let expected =
            "it had block 101 of term 4 of shard 0, and its disk ends with block 100 of term 4";
        assert_eq!(refused, expected);

        states[0] = whole;
        for vote in [None, Some(Vote::new(6, 1)), Some(Vote::new_committed(5, 3))] {
            states[2].vote = vote;
            let refused = record.check(7, &states);
            let is_vote = matches!(refused, Err(OutdatedError::Vote { shard: 2, .. }));
            assert!(is_vote, "{refused:?}");
        }
        assert!(record.check(7, &states[..2]).is_err(), "a shard is missing");
    }

    #[test]
    fn tail_that_a_new_leader_voided_is_no_loss() {
        let mut record = Record::default();
        record.note_flushed(0, &Vote::new_committed(5, 1), log_id(5, 100));
        // The cut is on disk, and the new leader's entries are not.
        let cut = state(Vote::new_committed(6, 2), 4, 89);
        assert_eq!(record.check(0, &cut), Ok(()));
        record.note_flushed(0, &Vote::new_committed(6, 2), log_id(6, 90));
        let appended = state(Vote::new_committed(6, 2), 6, 90);
        assert_eq!(record.check(0, &appended), Ok(()));
        assert!(record.check(0, &cut).is_err(), "the same term cuts nothing");
    }

    #[test]
    fn stated_tail_counts_for_its_own_term_only() {
        let mut record = Record::default();
        record.note_statement(&state(Vote::new(6, 2), 5, 100));
        let cut = state(Vote::new_committed(6, 2), 4, 89);
        assert_eq!(record.check(0, &cut), Ok(()), "the leader of term 6 cut it");
    }

    #[test]
    fn vote_is_replaced_in_its_term_by_the_elected_leader() {
        let mut record = Record::default();
        record.note_vote(0, &Vote::new(5, 1));
        let elected = state(Vote::new_committed(5, 2), 4, 1);
        assert_eq!(record.check(0, &elected), Ok(()));
        assert!(record.note_vote(0, &Vote::new_committed(5, 2)));
        assert!(!record.note_vote(0, &Vote::new(5, 1)));
    }

    #[test]
    fn record_statement_and_file_are_decoded_unchanged() {
        let record = example();
        let mut bytes = Vec::new();
        put_record(&mut bytes, &record);
        assert_eq!(get_record(bytes.clone().into()).unwrap(), record);
        for size in 0..bytes.len() {
            let cut = Bytes::copy_from_slice(&bytes[..size]);
            assert!(get_record(cut).is_err(), "{size}");
        }
        let statement = [state(Vote::new(6, 3), 5, 9)[0], DiskState::default()];
        let mut bytes = Vec::new();
        put_statement(&mut bytes, &statement);
        assert_eq!(get_statement(bytes.into()).unwrap(), statement);
        let records: BTreeMap<_, _> = [(2, record), (9, Record::default())].into();
        let file: Bytes = encode_file(1, 3, &records).into();
        assert_eq!(decode_file(1, 3, &file).unwrap(), records);
        assert!(decode_file(1, 4, &file).is_err(), "another node's");
        for bit in 0..file.len() * 8 {
            let mut changed = file.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_file(1, 3, &changed.into()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn largest_record_fits_its_limit() {
        let mut record = Record::default();
        let vote = Vote::new_committed(u64::MAX, 1);
        record.note_flushed(SHARDS_MAX - 1, &vote, log_id(1, 1));
        for shard in 0..SHARDS_MAX {
            record.note_flushed(shard, &vote, log_id(1, 1));
        }
        let mut bytes = Vec::new();
        put_record(&mut bytes, &record);
        assert_eq!(bytes.len(), SIZE_MAX);
        assert!(!record.note_vote(SHARDS_MAX, &vote), "no such shard");
    }
}
