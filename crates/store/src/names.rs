//! New names: readers and followers of the directories.

use std::task::Waker;

use journal::{Following, ShardId};

use crate::directory::{DIRECTORY, Kind, Location, load};
use crate::error::FollowError;
use crate::store::Store;

/// A position in the directories of all shards. The default is their beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameCursor {
    /// The next offset in the directory of each shard; a missing one is 0.
    next: Vec<u64>,
}

impl NameCursor {
    /// Returns the offset of the next entry in the directory of a shard.
    fn next(&self, shard: ShardId) -> u64 {
        let next = self.next.get(usize::from(shard.0));
        next.copied().unwrap_or_default()
    }

    fn set_next(&mut self, shard: ShardId, next: u64) {
        let index = usize::from(shard.0);
        if self.next.len() <= index {
            self.next.resize(index + 1, 0);
        }
        self.next[index] = next;
    }
}

impl Store {
    /// Passes the named streams after a cursor to `take`, and moves the cursor behind them. Only
    /// streams whose directory entry is durable are passed: by shard, and in the order of their
    /// creation within a shard. `take` must not use the store.
    pub fn read_names(&self, cursor: &mut NameCursor, mut take: impl FnMut(Kind, &str, Location)) {
        for shard in load::shards(&self.journal) {
            let from = cursor.next(shard);
            let state = self.journal.stream(shard, DIRECTORY);
            let directory = self.directory.read();
            // Entries of other leaders are known from the next reign on.
            let end = state.map_or(0, |it| it.next_durable.min(directory.end(shard)));
            if end > from {
                directory.each(shard, from..end, &mut take);
                cursor.set_next(shard, end);
            }
        }
    }

    /// Returns the offset after the last entry in the directory of a shard, durable or not.
    pub fn names_end(&self, shard: ShardId) -> u64 {
        self.directory.read().end(shard)
    }

    /// Registers the waker for a durable directory entry of a shard at or after `from`; `None` if
    /// there is one already.
    pub fn follow_names(
        &self,
        shard: ShardId,
        from: u64,
        waker: &Waker,
    ) -> Result<Option<Following>, FollowError> {
        let stream = DIRECTORY;
        self.follow(Location { shard, stream }, from, waker)
    }

    /// Registers the waker for a durable directory entry after a cursor, in each shard; `None` if
    /// there is one already. Registrations that are refused are left out: poll again after a while.
    pub fn follow_all_names(&self, cursor: &NameCursor, waker: &Waker) -> Option<Vec<Following>> {
        let mut followings = Vec::new();
        for shard in load::shards(&self.journal) {
            match self.follow_names(shard, cursor.next(shard), waker) {
                Ok(Some(following)) => followings.push(following),
                Ok(None) => {
                    followings.iter().for_each(|it| self.unfollow(it));
                    return None;
                }
                Err(_) => {}
            }
        }
        Some(followings)
    }
}
