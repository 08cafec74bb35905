//! The directory: the names of the journal's streams.
//!
//! Stream 0 of each shard is the directory of that shard, so a stream and its first record are
//! created by one block. An entry has the stream's number, kind and name. [`table`] is the directory
//! of all shards in memory; [`upgrade`] carries over the directory of format 1, in which stream 0 of
//! shard 0 named the streams of all shards.
//!
//! # Numbers
//!
//! A shard's next number is the lowest one above its last number, and above all numbers of format 1,
//! that leaves the shard's number as the remainder of the division by the shard count. No two shards
//! create streams with the same number, because their remainders differ. No new stream has the number
//! of a stream of format 1, because the upgrade enters the highest of those numbers, as unused, into
//! every shard; a number counts even if only its records have survived a crash, and not its name. So
//! a number identifies a stream in the whole journal, and numbers that clients or derived data have
//! stay valid. The shard count never changes. Within a shard, numbers rise in the order of creation;
//! across shards they do not.

pub(crate) mod entry;
pub(crate) mod load;
mod shard;
pub(crate) mod table;
pub(crate) mod upgrade;

use journal::{ShardId, StreamId};

pub use entry::{Malformed, NamedStream};

/// The stream that contains the directory, in every shard.
pub const DIRECTORY: StreamId = StreamId(0);

/// The kind of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Unused stream number.
    Void = 0,
    /// The mailbox of an agent.
    Mailbox = 1,
    /// A raw stream of clients' records.
    Raw = 2,
    /// The messages of a conversation.
    Conversation = 3,
    /// The events of a namespace's conversations in one shard.
    Events = 4,
    /// The settings and dead letters of a webhook agent.
    Agent = 5,
    /// The records of quotas.
    Quotas = 6,
    /// The batches of a topic partition.
    Partition = 7,
    /// Other records of topics: the catalogue, groups, transactions.
    Topics = 8,
}

impl Kind {
    fn from_u8(number: u8) -> Option<Self> {
        const ALL: [Kind; 9] = [
            Kind::Void,
            Kind::Mailbox,
            Kind::Raw,
            Kind::Conversation,
            Kind::Events,
            Kind::Agent,
            Kind::Quotas,
            Kind::Partition,
            Kind::Topics,
        ];
        ALL.get(usize::from(number)).copied()
    }

    /// Returns the kind's name in outputs for users.
    fn as_str(self) -> &'static str {
        match self {
            Kind::Void => "unused",
            Kind::Mailbox => "mailbox",
            Kind::Raw => "stream",
            Kind::Conversation => "conversation",
            Kind::Events => "events",
            Kind::Agent => "agent",
            Kind::Quotas => "quotas",
            Kind::Partition => "partition",
            Kind::Topics => "topics",
        }
    }
}

/// The location of a stream in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The shard.
    pub shard: ShardId,
    /// The number.
    pub stream: StreamId,
}

/// The shard of a new stream of that name: the same on every machine and for ever.
pub(crate) fn shard_of(name: &str, shard_count: u16) -> ShardId {
    let hash = model::fnv1a_64(name.bytes());
    ShardId((hash % u64::from(shard_count.max(1))) as u16)
}

/// Returns `org/namespace` of `org/namespace/x`.
pub fn namespace_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published: a name's shard is where its records are.
    #[test]
    fn the_shard_of_a_name_never_changes() {
        let shards = ["a/b/c", "acme/demo/worker", "default/default/x"];
        assert_eq!(shards.map(|name| shard_of(name, 8).0), [3, 6, 3]);
    }
}
