//! Reads the directory of a journal at the start.

use journal::{Journal, ReadError, ReadLimit, Record, ShardId};

use super::DIRECTORY;
use super::entry::{Entry, Malformed};
use super::shard::ShardEntries;
use crate::error::OpenError;

/// Size of one read of the directory.
const CHUNK: ReadLimit = ReadLimit {
    records: 10_000,
    bytes: 1 << 20,
};

/// Returns the shards of a journal.
pub(crate) fn shards(journal: &Journal) -> impl Iterator<Item = ShardId> {
    (0..journal.shard_count()).map(ShardId)
}

/// Reads the committed directory of a shard, in format 2.
pub(crate) fn load(journal: &Journal, shard: ShardId) -> Result<ShardEntries, OpenError> {
    let start = journal.stream(shard, DIRECTORY).map_or(0, |it| it.start);
    let mut entries = ShardEntries::starting_at(start);
    each_record(journal, shard, |record| {
        let offset = record.offset;
        let malformed = Malformed { shard, offset };
        // Lost records, if their loss was accepted.
        entries.skip_to(offset);
        let entry = Entry::decode(record.tag, &record.payload).ok_or(malformed)?;
        if !entries.fits(entry) {
            return Err(malformed.into());
        }
        entries.push(entry);
        Ok(())
    })?;
    // The next entry has the next offset, although records at the end may be lost.
    let end = journal.stream(shard, DIRECTORY);
    entries.skip_to(end.map_or(0, |it| it.next_durable));
    Ok(entries)
}

/// Passes the records of the directory of a shard to `take`, in order.
pub(crate) fn each_record(
    journal: &Journal,
    shard: ShardId,
    mut take: impl FnMut(&Record) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let mut from = journal.stream(shard, DIRECTORY).map_or(0, |it| it.start);
    loop {
        let read = match journal.read(shard, DIRECTORY, from, CHUNK) {
            Err(ReadError::Trimmed { start }) => {
                from = start;
                continue;
            }
            read => read?,
        };
        let Some(last) = read.records.last() else {
            return Ok(());
        };
        from = last.offset + 1;
        read.records.iter().try_for_each(&mut take)?;
    }
}
