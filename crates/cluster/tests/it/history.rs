//! Observations over all nodes, and what must hold of them.

use std::collections::{BTreeMap, BTreeSet};

use cluster::Node;
use journal::block::BlockKind;
use journal::record::{self, RecordKind};
use journal::{DecidedBlock, Index, Journal, ReadLimit, ShardId, Stage, StreamId};

/// Streams that clients write to directly, in each shard.
pub(crate) const STREAMS: u64 = 3;

/// Streams of services, in each shard: each record has the number of records before it, as the service
/// has counted them.
pub(crate) const COUNTED: [StreamId; 2] = [StreamId(100), StreamId(101)];

/// Bytes of a payload at least: its number, and its count in a counted stream.
pub(crate) const PAYLOAD_SIZE: usize = 16;

/// Records per read at most.
const READ_RECORDS: usize = 20;

/// The position of a record: shard, stream and offset.
type RecordPosition = (u16, u64, u64);

/// Observations over all nodes.
#[derive(Default)]
pub(crate) struct History {
    /// Blocks by shard, index and term.
    pub(crate) blocks: BTreeMap<(u16, u64, u64), DecidedBlock>,
    pub(crate) committed: BTreeMap<(u16, u64), DecidedBlock>,
    /// Leaders by shard and term: the node, and the number of its start.
    pub(crate) leaders: BTreeMap<(u16, u64), (u64, u64)>,
    /// Numbers of the payloads that were written, with their shards and streams.
    pub(crate) written: BTreeMap<u64, (u16, u64)>,
    /// Numbers of the payloads of acknowledged appends.
    pub(crate) acked: BTreeMap<RecordPosition, u64>,
    /// Numbers of the payloads of appends that never took place.
    pub(crate) moved: BTreeSet<u64>,
    /// Numbers of the payloads that were read, at any node.
    pub(crate) reads: BTreeMap<RecordPosition, u64>,
}

/// Returns the number and the count of a payload.
pub(crate) fn numbers(payload: &[u8]) -> (u64, u64) {
    let number = |place: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&payload[place..place + 8]);
        u64::from_le_bytes(number)
    };
    (number(0), number(8))
}

fn is_counted(stream: u64) -> bool {
    COUNTED.contains(&StreamId(stream))
}

impl History {
    /// Checks a node's blocks after `checked` against those of all nodes.
    pub(crate) fn check_blocks(&mut self, journal: &Journal, shard: ShardId, checked: &mut Index) {
        let committed = journal.last(shard, Stage::Committed);
        assert!(committed >= *checked, "a commit is forgotten");
        let first = journal.last_filed(shard).index.max(*checked);
        *checked = committed;
        let first = Index(first.0 + 1);
        let blocks = journal.read_blocks(shard, first..Index(u64::MAX), usize::MAX);
        // A disk that fails between two checks fails reads too: the node ends at the next.
        let Ok(blocks) = blocks else {
            return;
        };
        for block in blocks {
            let place = (shard.0, block.index.0, block.term);
            let seen = self.blocks.entry(place).or_insert_with(|| block.clone());
            assert_eq!(*seen, block, "two blocks at {place:?}");
            let place = (shard.0, block.index.0);
            if block.index <= committed {
                let seen = self.committed.entry(place).or_insert_with(|| block.clone());
                assert_eq!(*seen, block, "a committed block has changed");
            }
        }
    }

    /// Checks that a term has one leader, in one process: a leader that starts again has lost what it
    /// knew of its term.
    pub(crate) fn check_leader(&mut self, node: &Node, leader: (u64, u64), shard: ShardId) {
        let status = node.status(shard);
        if status.is_leader {
            let place = (shard.0, status.term);
            let first = *self.leaders.entry(place).or_insert(leader);
            assert_eq!(first, leader, "two leaders in term {place:?}");
        }
    }

    /// Reads some records at a node, from `from` on. Checks that each was written to this stream, and
    /// that no other record was ever read at its offset.
    pub(crate) fn check_read(
        &mut self,
        journal: &Journal,
        shard: ShardId,
        stream: StreamId,
        from: u64,
    ) {
        let limit = ReadLimit {
            records: READ_RECORDS,
            bytes: usize::MAX,
        };
        // A disk that fails between two checks fails reads too.
        let Ok(read) = journal.read(shard, stream, from, limit) else {
            return;
        };
        for (offset, record) in (from..).zip(read.records) {
            assert_eq!(record.offset, offset, "a read leaves out records");
            let (payload, _) = numbers(&record.payload);
            let place = (shard.0, stream.0, offset);
            let written = self.written.get(&payload);
            assert_eq!(
                written,
                Some(&(shard.0, stream.0)),
                "{place:?} was never written"
            );
            assert!(!self.moved.contains(&payload), "{place:?} never took place");
            let earlier = *self.reads.entry(place).or_insert(payload);
            assert_eq!(earlier, payload, "{place:?} was read with two values");
        }
    }

    /// Checks that the committed blocks have each acknowledged record once, offsets and counts without
    /// a gap, nothing that never took place, all that was read, and times that do not go back.
    pub(crate) fn check_records(&self) {
        let mut nexts = BTreeMap::new();
        let mut times = BTreeMap::new();
        let mut payloads = BTreeSet::new();
        let mut found = BTreeMap::new();
        for ((shard, _), block) in &self.committed {
            if block.kind == BlockKind::Records {
                let time: &mut u64 = times.entry(*shard).or_default();
                assert!(block.time_ms >= *time, "the time of a shard goes back");
                *time = block.time_ms;
            }
            for (_, record) in record::records(&block.body).map(Result::unwrap) {
                let stream = record.stream.0;
                if record.kind != RecordKind::Data || !(stream < STREAMS || is_counted(stream)) {
                    continue;
                }
                let next: &mut u64 = nexts.entry((*shard, stream)).or_default();
                assert_eq!(record.offset, *next, "a gap");
                let (payload, count) = numbers(record.bytes);
                if is_counted(stream) {
                    assert_eq!(
                        count, *next,
                        "a service has not seen all records before its own"
                    );
                }
                *next += 1;
                assert!(payloads.insert(payload), "{payload} is there twice");
                assert!(!self.moved.contains(&payload), "{payload} never took place");
                found.insert((*shard, stream, record.offset), payload);
            }
        }
        for (place, payload) in &self.acked {
            assert_eq!(found.get(place), Some(payload), "{place:?} was acked");
        }
        for (place, payload) in &self.reads {
            assert_eq!(found.get(place), Some(payload), "{place:?} was read");
        }
    }
}

/// Returns the number of memberships in the unfiled log of a shard.
pub(crate) fn memberships(journal: &Journal, shard: ShardId) -> usize {
    let first = Index(journal.last_filed(shard).index.0 + 1);
    let blocks = journal.read_blocks(shard, first..Index(u64::MAX), usize::MAX);
    let blocks = blocks.unwrap_or_default().into_iter();
    blocks.filter(|it| it.kind == BlockKind::Members).count()
}
