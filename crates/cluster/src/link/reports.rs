//! Records of all members: in memory at once, and in a file of this node from time to time.
//!
//! The file is this node's own, and no record of a replicated log: a follower hears things that no
//! leader does, such as the votes for a candidate that lost, and nothing has to be written by a
//! cluster that is idle or without a quorum. Each node hears of each other one at least once a
//! second, so all of them know nearly the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use journal::ShardId;
use parking_lot::Mutex;

use super::records::{Record, decode_file, encode_file};
use crate::raft::{LogId, Vote};

/// Interval of writes.
const WRITE: Duration = Duration::from_secs(5);

/// The file in which a node keeps what members have reported.
pub trait ReportFile: Send + Sync {
    /// Reads the file; `None` if there is none.
    fn read(&self) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the file, and waits until that is on disk. After a crash it has the old bytes or the
    /// new ones.
    fn write(&self, bytes: Vec<u8>) -> BoxFuture<'static, io::Result<()>>;
}

/// The records of all members.
pub(crate) struct Reports {
    cluster: u64,
    id: u64,
    file: Box<dyn ReportFile>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    records: BTreeMap<u64, Record>,
    is_written: bool,
}

impl Reports {
    /// Reads the file of a node.
    pub(crate) fn open(
        cluster: u64,
        id: u64,
        file: Box<dyn ReportFile>,
    ) -> io::Result<Arc<Reports>> {
        let records = match file.read()? {
            Some(bytes) => decode_file(cluster, id, &bytes.into())?,
            None => BTreeMap::new(),
        };
        Ok(Arc::new(Reports {
            cluster,
            id,
            file,
            table: Mutex::new(Table {
                records,
                is_written: true,
            }),
        }))
    }

    /// Returns the record of a member.
    pub(super) fn record(&self, member: u64) -> Record {
        let table = self.table.lock();
        table.records.get(&member).cloned().unwrap_or_default()
    }

    /// Changes the record of a member. `change` returns whether it has.
    pub(super) fn note(&self, member: u64, change: impl FnOnce(&mut Record) -> bool) {
        let mut table = self.table.lock();
        if change(table.records.entry(member).or_default()) {
            table.is_written = false;
        }
    }

    /// Records a vote that is on the disk of a member.
    pub(super) fn note_vote(&self, member: u64, shard: ShardId, vote: &Vote) {
        self.note(member, |record| record.note_vote(shard.0, vote));
    }

    /// Records an entry that a member with this vote has on disk.
    pub(super) fn note_flushed(&self, member: u64, shard: ShardId, vote: &Vote, entry: LogId) {
        self.note(member, |record| record.note_flushed(shard.0, vote, entry));
    }

    /// Writes the file from time to time. Records of nodes that are no members any more are dropped:
    /// their ids never come back. `members` returns the members; none if they are not known.
    pub(crate) async fn write_for_ever(self: Arc<Self>, members: impl Fn() -> BTreeSet<u64>) {
        loop {
            tokio::time::sleep(WRITE).await;
            self.write(&members()).await;
        }
    }

    async fn write(&self, members: &BTreeSet<u64>) {
        let bytes = {
            let mut table = self.table.lock();
            if table.is_written {
                return;
            }
            if !members.is_empty() {
                table.records.retain(|id, _| members.contains(id));
            }
            table.is_written = true;
            encode_file(self.cluster, self.id, &table.records)
        };
        if self.file.write(bytes).await.is_err() {
            self.table.lock().is_written = false;
        }
    }
}
