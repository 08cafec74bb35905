//! Checks of what the nodes have.

use journal::record::{self, RecordKind};
use journal::{Index, LastVote, ShardId, Status};

use super::pair::{Pair, Replica};
use crate::model::Payload;
use crate::world::read_all;

impl Pair {
    /// Checks that a node has what it acknowledged.
    pub(super) fn check_opened(&mut self, replica: usize, number: usize) {
        let (id, shard) = (ShardId(number as u16), &self.shards[number]);
        let journal = self.replicas[replica].journal();
        let last = journal.last_taken(id);
        let acked = shard.acked[replica];
        assert!(
            last.index.0 >= acked,
            "{last:?}, but {acked} blocks were acked"
        );
        match (journal.last_vote(id), shard.voted[replica]) {
            (LastVote::Known(vote), acked) => {
                let asked = &shard.asked[replica];
                assert!(asked.contains(&vote), "{vote:?} was never asked for");
                assert!(
                    acked.is_none_or(|acked| acked.term() <= vote.term()),
                    "{vote:?}"
                );
            }
            (LastVote::Never, None) => {}
            (vote, acked) => panic!("the vote is {vote:?}, but {acked:?} was answered"),
        }
        let from = Index(journal.last_filed(id).index.0 + 1);
        let blocks = journal.read_blocks(id, from..Index(u64::MAX), usize::MAX);
        for block in blocks.unwrap() {
            let committed = shard.committed.get(block.index.0 as usize - 1);
            assert!(committed.is_none_or(|it| *it == block), "{:?}", block.index);
        }
        let known = shard.committed.len().min(last.index.0 as usize);
        let known = Index(self.rng.u64(0..=known as u64));
        self.replicas[replica].journal().commit(id, known);
    }

    /// Checks that each acknowledged record is in a committed block.
    pub(super) fn check_waiting(&mut self, number: usize) {
        let shard = &mut self.shards[number];
        let replicas = &self.replicas;
        let committed = &shard.committed;
        shard.waiting.retain(|waiting| {
            let journal = replicas[waiting.replica].journal();
            match journal.status(waiting.ticket) {
                Status::Durable => {
                    let block = committed.get(waiting.ticket.index.0 as usize - 1);
                    let records = block.iter().flat_map(|it| record::records(&it.body));
                    let mut records = records.map_while(Result::ok);
                    let is_it = records.any(|(_, record)| {
                        record.kind == RecordKind::Data
                            && (record.stream, record.offset) == (waiting.stream, waiting.offset)
                            && record.bytes == waiting.payload.bytes()
                    });
                    assert!(is_it, "{:?} was acked", waiting.ticket);
                    false
                }
                Status::Moved | Status::Cut => false,
                Status::Pending | Status::Failed => true,
            }
        });
    }

    pub(super) fn is_settled(&self, number: usize) -> bool {
        let (id, shard) = (ShardId(number as u16), &self.shards[number]);
        let committed = shard.committed.len() as u64;
        let is_it = |it: &Replica| it.journal().shard_end(id).index.0 == committed;
        shard.offered.is_empty() && self.replicas.iter().all(is_it)
    }

    pub(super) fn check(&mut self) {
        for (number, shard) in self.shards.iter().enumerate() {
            let id = ShardId(number as u16);
            let committed = Index(shard.committed.len() as u64);
            let [one, other] = self.replicas.each_ref().map(|replica| {
                replica.journal().commit(id, committed);
                read_all(replica.journal(), id).unwrap()
            });
            assert!(one == other, "shard {number} differs");
            let records = shard.committed.iter();
            let records = records.flat_map(|block| record::records(&block.body));
            for (_, record) in records.map(Result::unwrap) {
                let stream = &one[&record.stream];
                if record.kind == RecordKind::Data && record.offset >= stream.start {
                    let payload = Payload::of(record.bytes);
                    assert_eq!(stream.records.get(&record.offset), Some(&payload));
                }
            }
            assert!(shard.waiting.iter().all(|it| it.ticket.index > committed));
        }
    }
}
