//! Elections: votes on both nodes, and a follower whose log differs is cut.

use journal::segment::ShardEnd;
use journal::{DecidedBlock, DecidedError, Index, ShardId, Status, Vote};

use super::pair::{ATTEMPTS, Pair, Replica};

impl Pair {
    pub(super) fn elect_all(&mut self) {
        (0..self.shards.len()).for_each(|number| self.elect(number));
    }

    /// Makes the node with the newer log the leader of a shard, if both answer a vote.
    pub(super) fn elect(&mut self, number: usize) {
        if !self.are_healthy() {
            return;
        }
        let id = ShardId(number as u16);
        let committed = Index(self.shards[number].committed.len() as u64);
        let log = |replica: &Replica| {
            replica.journal().commit(id, committed);
            let ShardEnd { index, term } = replica.journal().last_taken(id);
            (term, index)
        };
        let [one, other] = self.replicas.each_ref().map(log);
        let leader = match one.cmp(&other) {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Equal => self.rng.usize(..2),
        };
        let shard = &mut self.shards[number];
        shard.term += 1;
        shard.leader = None;
        shard.offered.clear();
        let (term, vote) = (shard.term, Vote::new(shard.term, &[leader as u8]));
        if !(self.vote(0, number, vote.unwrap()) && self.vote(1, number, vote.unwrap())) {
            return;
        }
        if !self.cut_follower(number, leader) {
            return;
        }
        let journal = self.replicas[leader].journal();
        journal.begin_proposed_reign(id, term);
        let index = Index(journal.last_taken(id).index.0 + 1);
        let blank = DecidedBlock::blank(term, index, self.now_ms);
        let appended = journal.append_decided(id, &blank);
        assert!(
            matches!(appended, Ok(()) | Err(DecidedError::Failed)),
            "{appended:?}"
        );
        self.shards[number].leader = Some(leader);
    }

    /// Saves a vote. Returns true if it is answered, so it is on disk.
    pub(super) fn vote(&mut self, replica: usize, number: usize, vote: Vote) -> bool {
        let id = ShardId(number as u16);
        self.shards[number].asked[replica].push(vote);
        let Ok(ticket) = self.replicas[replica].journal().save_vote(id, vote) else {
            return false;
        };
        for _ in 0..ATTEMPTS {
            match self.replicas[replica].journal().vote_status(ticket) {
                Status::Durable => {
                    self.shards[number].voted[replica] = Some(vote);
                    return true;
                }
                Status::Pending => {
                    self.step_line(replica);
                    self.step_filer(replica);
                    self.now_ms += 100;
                }
                status => {
                    assert_eq!(status, Status::Failed);
                    return false;
                }
            }
            if self.replicas[replica].is_disturbed {
                // A line without segments may starve while the disk is broken.
                self.step_filer(replica);
            }
        }
        assert!(
            self.replicas[replica].is_disturbed,
            "the vote was never written"
        );
        false
    }

    /// Cuts the follower after the last block that both logs have. Returns false if it has failed.
    pub(super) fn cut_follower(&mut self, number: usize, leader: usize) -> bool {
        let id = ShardId(number as u16);
        let (source, target) = (&self.replicas[leader], &self.replicas[1 - leader]);
        let last = |replica: &Replica| replica.journal().last_taken(id).index.0;
        let term = |replica: &Replica, index| replica.journal().term_of(id, Index(index));
        let differs = |index: u64| match (term(source, index), term(target, index)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        };
        let mut common = last(source).min(last(target));
        while common > 0 && differs(common) {
            common -= 1;
        }
        if common == last(target) {
            return true;
        }
        let shard = &mut self.shards[number];
        assert!(
            common >= shard.committed.len() as u64,
            "committed blocks differ"
        );
        shard.acked[1 - leader] = shard.acked[1 - leader].min(common);
        target.journal().cut(id, Index(common + 1)).is_ok()
    }
}
