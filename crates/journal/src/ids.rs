//! Ids of shards and streams, and positions in the line. Newtypes, so that they cannot be confused.

/// A shard: the streams of one Raft group. A journal has shards from its creation, also on a node
/// without a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// A stream within its shard. The caller chooses the number; 0 is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// The index of a block in its shard: dense, from 1. 0 means "before the first block".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u64);

/// An uninterrupted leadership of one node over one shard: a number from 1 that the process never
/// uses again for that shard. 0 means "no reign".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reign(pub u32);

/// A position in the line, in bytes. Positions increase over all segments and are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);
