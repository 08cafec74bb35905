//! Writing on the leader, and copying its blocks to the follower.

use journal::{AppendError, DecidedError, Index, ReadBlocksError, ShardId, Stage, StreamId};

use super::pair::{Pair, Replica, Waiting};
use crate::model::Payload;

const STREAMS: u64 = 3;

/// Blocks of a shard that are not committed at most: a line without committed segments starves.
const UNCOMMITTED_MAX: u64 = 4;

impl Pair {
    /// Appends and trims on the leader.
    pub(super) fn write(&mut self, number: usize) {
        let Some(leader) = self.shards[number].leader else {
            return;
        };
        let journal = self.replicas[leader].journal();
        let last = journal.shard_end(ShardId(number as u16)).index.0;
        if last > self.shards[number].committed.len() as u64 + UNCOMMITTED_MAX {
            return;
        }
        let mut guard = journal.lock(ShardId(number as u16), self.now_ms);
        for _ in 0..self.rng.usize(1..4) {
            let stream = StreamId(self.rng.u64(..STREAMS));
            if self.rng.u8(..10) == 0 {
                let start = self.rng.u64(..=guard.next(stream));
                let _ = guard.trim(stream, start);
                continue;
            }
            self.payloads += 1;
            let payload = Payload {
                id: self.payloads,
                size: self.rng.usize(8..600),
            };
            match guard.append(stream, None, 7, &payload.bytes()) {
                Ok(appended) => self.shards[number].waiting.push(Waiting {
                    replica: leader,
                    ticket: appended.ticket,
                    stream,
                    offset: appended.offset,
                    payload,
                }),
                Err(AppendError::Failed | AppendError::DiskFull | AppendError::TooLarge { .. }) => {
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Takes a closed block, and lets consensus append one sooner or later.
    pub(super) fn propose(&mut self, number: usize) {
        let Some(leader) = self.shards[number].leader else {
            return;
        };
        let id = ShardId(number as u16);
        let journal = self.replicas[leader].journal();
        let offered = &mut self.shards[number].offered;
        offered.extend(journal.take_closed(id));
        if self.rng.u8(..4) == 0 {
            return;
        }
        if let Some(block) = offered.pop_front() {
            let appended = journal.append_decided(id, &block);
            assert!(
                matches!(appended, Ok(()) | Err(DecidedError::Failed)),
                "{appended:?}"
            );
        }
    }

    /// Copies blocks that the follower lacks.
    pub(super) fn replicate(&mut self, number: usize) {
        let Some(leader) = self.shards[number].leader else {
            return;
        };
        if !self.are_healthy() {
            return;
        }
        let id = ShardId(number as u16);
        let (source, target) = (&self.replicas[leader], &self.replicas[1 - leader]);
        let first = Index(target.journal().last_taken(id).index.0 + 1);
        let size = self.rng.usize(..5000);
        let range = first..Index(u64::MAX);
        let blocks = match source.journal().read_blocks(id, range, size) {
            Ok(blocks) => blocks,
            Err(ReadBlocksError::Io(_)) if source.is_disturbed => return,
            Err(error) => panic!("{error}"),
        };
        for block in blocks {
            let appended = target.journal().append_decided(id, &block);
            assert!(
                matches!(appended, Ok(()) | Err(DecidedError::Failed)),
                "{appended:?}"
            );
        }
    }

    /// Commits blocks that both nodes acknowledge.
    pub(super) fn commit(&mut self, number: usize) {
        let Some(leader) = self.shards[number].leader else {
            return;
        };
        let id = ShardId(number as u16);
        let journal = self.replicas[leader].journal();
        let written = |it: &Replica| it.journal().last(id, Stage::Written).0;
        let acked = self.replicas.iter().map(written).min().unwrap_or(0);
        let shard = &mut self.shards[number];
        let first = shard.committed.len() as u64 + 1;
        let known = Index(self.rng.u64(0..first));
        self.replicas[1 - leader].journal().commit(id, known);
        if acked < first {
            return;
        }
        let blocks = journal.read_blocks(id, Index(first)..Index(acked + 1), usize::MAX);
        let Ok(blocks) = blocks else {
            assert!(self.replicas[leader].is_disturbed, "{blocks:?}");
            return;
        };
        assert_eq!(blocks.len() as u64, acked + 1 - first);
        shard.committed.extend(blocks);
        shard.acked = [acked; 2];
        journal.commit(id, Index(acked));
        self.check_waiting(number);
    }
}
