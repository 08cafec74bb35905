//! The reach of a read: memory only, or also the disk.

use journal::{Access, Journal, LocatedRecord, Read, ReadError, ReadLimit};

use crate::directory::Location;

/// The reach of a read: memory only, or also the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Memory only: never waits.
    Memory,
    /// Also the disk: may wait.
    Disk,
}

impl Reach {
    /// Reads records of a stream; `None` if they are not within reach.
    pub fn read(
        self,
        journal: &Journal,
        Location { shard, stream }: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ReadError> {
        match self {
            Self::Memory => journal.read_in_memory(shard, stream, from, limit),
            Self::Disk => journal.read(shard, stream, from, limit).map(Some),
        }
    }
    /// Reads records like [`Reach::read`], but leaves long ones that are filed in their files.
    pub fn locate(
        self,
        journal: &Journal,
        Location { shard, stream }: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read<LocatedRecord>>, ReadError> {
        let access = match self {
            Self::Memory => Access::Memory,
            Self::Disk => Access::Disk,
        };
        journal.locate(shard, stream, from, limit, access)
    }
}
