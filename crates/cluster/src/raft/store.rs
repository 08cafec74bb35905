//! Writing a shard's log for openraft.
//!
//! An error here ends the shard's consensus on this node, so it is never used for flow control.

use std::io;
use std::sync::Arc;

use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};

use super::reader::Reader;
use super::types::{LogId, Types, Vote};
use super::votes::save_vote;
use super::{Entry, ShardLog};

/// The log of one shard, as openraft writes it.
pub(crate) struct Store(Arc<ShardLog>);

impl Store {
    /// Creates the store of a log.
    pub(crate) fn new(log: Arc<ShardLog>) -> Store {
        Store(log)
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Reader;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let (last_purged_log_id, last_log_id) = self.0.ends();
        Ok(LogState {
            last_purged_log_id,
            last_log_id,
        })
    }

    async fn get_log_reader(&mut self) -> Reader {
        Reader::new(self.0.clone())
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        save_vote(&self.0.journal, self.0.shard, vote).await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        match self.0.append(entries)? {
            Some(last) => {
                self.0.appended.notify_one();
                self.0.flushes.add(last, callback);
            }
            None => callback.io_completed(Ok(())),
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.0.truncate_after(last)?;
        self.0.appended.notify_one();
        Ok(())
    }

    async fn purge(&mut self, last: LogId) -> Result<(), io::Error> {
        self.0.purge(last)
    }
}
