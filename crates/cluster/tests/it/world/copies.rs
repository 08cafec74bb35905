//! Members that come back with another disk.

use std::io;
use std::sync::Arc;

use cluster::ReportFile;
use futures_util::future::BoxFuture;
use journal::disk::SimulatedDisk;
use journal::{Index, ShardId};
use parking_lot::Mutex;

use super::{SHARDS, World};

/// The file with the reports of the members, which is on disk at once.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<Mutex<Option<Vec<u8>>>>);

impl ReportFile for Reports {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().clone())
    }

    fn write(&self, bytes: Vec<u8>) -> BoxFuture<'static, io::Result<()>> {
        *self.0.lock() = Some(bytes);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A copy of a member's disk.
pub(crate) struct DiskCopy {
    disk: SimulatedDisk,
    reports: Option<Vec<u8>>,
}

impl World {
    /// Copies the disk of a stopped member.
    pub(crate) fn copy_disk(&self, id: u64) -> DiskCopy {
        let member = self.member(id);
        assert!(member.running.is_none(), "a copy of a running member");
        let reports = member.reports.0.lock().clone();
        DiskCopy {
            disk: member.disk.fork(),
            reports,
        }
    }

    /// Gives a stopped member another disk.
    pub(crate) fn replace_disk(&mut self, id: u64, copy: DiskCopy) {
        let member = self.member_mut(id);
        assert!(member.running.is_none(), "a disk of a running member");
        member.disk = copy.disk;
        *member.reports.0.lock() = copy.reports;
    }

    /// Returns an empty disk.
    pub(crate) fn empty_disk(&mut self) -> DiskCopy {
        DiskCopy {
            disk: SimulatedDisk::new(self.rng.u64(..)),
            reports: None,
        }
    }

    /// Returns the last block of each shard of a running member.
    pub(crate) fn last_blocks(&self, id: u64) -> Vec<Index> {
        let journal = &self.running(id).journal;
        let shards = (0..SHARDS).map(ShardId);
        shards.map(|it| journal.last_taken(it).index).collect()
    }
}
