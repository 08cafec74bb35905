//! Loads partitions at startup. The partitions of a shard are read together, because their recent
//! records share blocks of the write-ahead log.
//!
//! For each partition, its newest snapshot is read, and then the records appended since.

use std::collections::BTreeMap;
use std::sync::Arc;

use journal::{Journal, ShardId, StreamId, Wanted};

use super::error::OpenError;
use super::partition::{Leading, Slot};
use crate::options::Options;
use store::Store;

/// Partitions by stream.
type Streams<'s> = BTreeMap<StreamId, &'s Slot>;

/// Loads all partitions and makes the node their leader.
pub(super) fn read_back(
    journal: &Journal,
    slots: &[Arc<Slot>],
    options: &Options,
    leading: &Leading,
) -> Result<(), OpenError> {
    let mut shards: BTreeMap<ShardId, Vec<&Slot>> = BTreeMap::new();
    for slot in slots {
        shards.entry(slot.at.shard).or_default().push(slot);
    }
    for (shard, slots) in shards {
        let states: Streams<'_> = streams(&slots, |slot| Store::companion(slot.at.stream));
        let mut wanted: Wanted = states.keys().map(|stream| (*stream, 0)).collect();
        journal.read_many(shard, &mut wanted, |stream, record| {
            match states.get(&stream) {
                Some(slot) => slot.restore(&record, options),
                None => Ok(()),
            }
        })?;
        let own: Streams<'_> = streams(&slots, |slot| slot.at.stream);
        let next = own
            .iter()
            .map(|(stream, slot)| (*stream, slot.next_record()));
        let mut wanted: Wanted = next.collect();
        journal.read_many(shard, &mut wanted, |stream, record| {
            match own.get(&stream) {
                Some(slot) => slot.replay(&record),
                None => Ok(()),
            }
        })?;
        slots.iter().for_each(|slot| slot.begin(leading));
    }
    Ok(())
}

fn streams<'s>(slots: &[&'s Slot], of: impl Fn(&Slot) -> StreamId) -> Streams<'s> {
    slots.iter().map(|slot| (of(slot), *slot)).collect()
}
