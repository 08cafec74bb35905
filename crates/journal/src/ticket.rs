//! Tickets: which block an append is in, and the outcomes of that block.

use crate::{Index, Reign, ShardId};

/// Identifies the block that contains an append. A ticket with the index 0 is for nothing, and always
/// durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The block's shard.
    pub shard: ShardId,
    /// The reign in which the block was decided.
    pub reign: Reign,
    /// The block's index in the shard.
    pub index: Index,
}

/// The two stages of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Synced on this node's disk.
    Written,
    /// Decided for good, and visible to readers.
    Committed,
}

/// State of a ticket's block, in view of a [`Stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The block has not reached the stage yet.
    Pending,
    /// The block has reached the stage.
    Durable,
    /// The reign ended before the block was taken: it will never exist, and repeating the request is
    /// safe.
    Moved,
    /// The block was cut after its reign ended. Another leader may have decided on the same request
    /// meanwhile. The caller reports *unconfirmed*.
    Cut,
    /// The line has failed. It is unknown whether the block is on disk until the journal is opened
    /// again. The caller reports *unconfirmed*.
    Failed,
}
