//! Upgrade of the directory of format 1, in which stream 0 of shard 0 named the streams of all
//! shards.
//!
//! Each shard's entries are copied to its own stream 0, with their numbers, followed by an unused
//! number: the highest of all shards (see [`super`], *Numbers*), whether it has a name or only
//! records, whose name a crash has lost. In shard 0 they follow the old records in the same stream.
//! When all of them are durable, the old records are trimmed. The trim is the marker: as long as
//! stream 0 of shard 0 begins with a record of format 1, the old directory counts, and a start
//! continues the copy where the last one ended. No stream is created before the upgrade is complete,
//! so a shard's copy is always a beginning of its entries.

use journal::{AppendError, Guard, Journal, ShardId, StreamId, Ticket};
use platform::NotDurable;

use super::entry::{CARRIED_OVER, Entry, Malformed, SHARD_1, decode_format_1, is_format_1};
use super::load::{each_record, shards};
use super::{DIRECTORY, Kind};
use crate::error::OpenError;
use crate::store::number_of;

/// Maximum number of entries that are appended under one guard.
const BATCH: usize = 1_000;

/// An entry of the old directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OldEntry {
    kind: Kind,
    number: StreamId,
    name: Box<str>,
}

/// The directory of format 1.
struct OldDirectory {
    /// By shard, in the order of their numbers.
    shards: Vec<Vec<OldEntry>>,
    /// The offset after its last record.
    end: u64,
}

/// Carries over a directory of format 1, if the journal has one, and returns the number of its
/// records. `wait` waits until a ticket is durable.
pub(crate) fn upgrade(
    journal: &Journal,
    now_ms: u64,
    wait: &dyn Fn(Ticket) -> Result<(), NotDurable>,
) -> Result<Option<u64>, OpenError> {
    let Some(old) = read_old(journal)? else {
        return Ok(None);
    };
    for (shard, entries) in shards(journal).zip(&old.shards) {
        let copied = check_copied(journal, shard, old.end, entries)?;
        copy(journal, shard, &entries[copied..], now_ms, wait)?;
    }
    let trimmed = journal.lock(SHARD_1, now_ms).trim(DIRECTORY, old.end);
    wait(trimmed?)?;
    Ok(Some(old.end))
}

/// Reads the directory of format 1; `None` if stream 0 of shard 0 does not begin with it.
fn read_old(journal: &Journal) -> Result<Option<OldDirectory>, OpenError> {
    let mut old = OldDirectory {
        shards: vec![Vec::new(); usize::from(journal.shard_count())],
        end: 0,
    };
    each_record(journal, SHARD_1, |record| {
        let offset = record.offset;
        if !is_format_1(record.tag) {
            return Ok(());
        }
        let malformed = Malformed {
            shard: SHARD_1,
            offset,
        };
        let decoded = decode_format_1(offset, record.tag, &record.payload);
        let (shard, entry) = decoded.ok_or(malformed)?;
        let shard = old.shards.get_mut(usize::from(shard.0));
        shard.ok_or(malformed)?.push(OldEntry {
            kind: entry.kind,
            number: entry.number,
            name: entry.name.into(),
        });
        old.end = offset + 1;
        Ok(())
    })?;
    if old.end == 0 {
        return Ok(None);
    }
    // The number of the last record.
    let named = StreamId(old.end);
    let used = shards(journal).filter_map(|shard| number_max(journal, shard));
    let number = used.fold(named, StreamId::max);
    for entries in &mut old.shards {
        entries.push(OldEntry {
            kind: Kind::Void,
            number,
            name: CARRIED_OVER.into(),
        });
    }
    Ok(Some(old))
}

/// Returns the highest number of a shard's streams, whether they have a name or not.
fn number_max(journal: &Journal, shard: ShardId) -> Option<StreamId> {
    let mut max = None;
    let mut after = None;
    loop {
        let streams = journal.streams(shard, after, BATCH);
        let Some((last, _)) = streams.last() else {
            return max;
        };
        after = Some(*last);
        let numbers = streams.iter().map(|(stream, _)| number_of(*stream));
        // Other streams do not belong to a number.
        max = max.max(numbers.filter(|it| it.0 <= u64::from(u32::MAX)).max());
    }
}

/// Returns the number of entries of a shard that an interrupted upgrade has copied.
fn check_copied(
    journal: &Journal,
    shard: ShardId,
    old_end: u64,
    entries: &[OldEntry],
) -> Result<usize, OpenError> {
    let mut copied = 0;
    each_record(journal, shard, |record| {
        let offset = record.offset;
        if shard == SHARD_1 && offset < old_end {
            return Ok(());
        }
        let entry = Entry::decode(record.tag, &record.payload);
        let expected = entries.get(copied).map(OldEntry::entry);
        if entry.is_none() || entry != expected {
            return Err(Malformed { shard, offset }.into());
        }
        copied += 1;
        Ok(())
    })?;
    Ok(copied)
}

/// Appends entries to the directory of a shard, and waits until they are durable.
fn copy(
    journal: &Journal,
    shard: ShardId,
    mut entries: &[OldEntry],
    now_ms: u64,
    wait: &dyn Fn(Ticket) -> Result<(), NotDurable>,
) -> Result<(), OpenError> {
    while !entries.is_empty() {
        let batch = &entries[..entries.len().min(BATCH)];
        let mut guard = journal.lock(shard, now_ms);
        let (appended, outcome) = append(&mut guard, batch);
        let ticket = guard.last_ticket(DIRECTORY);
        drop(guard);
        match outcome {
            // The queue or the block is full, and has room once these entries are durable.
            Err(AppendError::Full | AppendError::TooLarge { .. }) if appended > 0 => {}
            outcome => outcome?,
        }
        wait(ticket)?;
        entries = &entries[appended..];
    }
    Ok(())
}

/// Appends entries until one is refused. Returns the number of appended ones.
fn append(guard: &mut Guard<'_>, entries: &[OldEntry]) -> (usize, Result<(), AppendError>) {
    for (index, entry) in entries.iter().enumerate() {
        let entry = entry.entry();
        if let Err(error) = guard.append(DIRECTORY, None, entry.tag(), &entry.encode()) {
            return (index, Err(error));
        }
    }
    (entries.len(), Ok(()))
}

impl OldEntry {
    fn entry(&self) -> Entry<'_> {
        Entry {
            kind: self.kind,
            number: self.number,
            name: &self.name,
        }
    }
}

#[cfg(test)]
mod tests;
