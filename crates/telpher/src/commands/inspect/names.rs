//! Names of streams, from the node's directories of names.

use std::collections::HashMap;

use inspect::Inspection;
use journal::{ShardId, StreamId};
use store::NamedStream;

/// The names of streams that could be read.
pub(super) struct Names(HashMap<(ShardId, StreamId), Name>);

/// The kind of a stream and its name.
pub(super) struct Name {
    pub(super) kind: &'static str,
    pub(super) name: String,
}

impl Names {
    pub(super) fn of(found: &Inspection) -> Self {
        let name = |((directory, offset), (tag, bytes)): (&(ShardId, u64), &(u8, Vec<u8>))| {
            let NamedStream {
                shard,
                stream,
                kind,
                name,
            } = NamedStream::decode(*directory, *offset, *tag, bytes)?;
            Some(((shard, stream), Name { kind, name }))
        };
        let mut names: HashMap<_, _> = found.records.iter().filter_map(name).collect();
        for shard in (0..found.shard_count).map(ShardId) {
            let name = match found.format_version {
                1 => "names of all streams",
                _ => "names of the shard's streams",
            };
            let directory = Name {
                kind: "directory",
                name: name.to_owned(),
            };
            names.insert((shard, store::DIRECTORY), directory);
            let members = Name {
                kind: "members",
                name: "replication group of the shard".to_owned(),
            };
            names.insert((shard, journal::MEMBERS_STREAM), members);
        }
        Self(names)
    }

    pub(super) fn get(&self, shard: ShardId, stream: StreamId) -> Option<&Name> {
        self.0.get(&(shard, stream))
    }

    /// Describes a stream.
    pub(super) fn words(&self, shard: ShardId, stream: StreamId) -> String {
        let number = format!("stream {} of shard {}", stream.0, shard.0);
        match self.get(shard, stream) {
            Some(Name { kind, name }) => {
                format!("{kind} {} ({number})", console::output::one_line(name))
            }
            None => number,
        }
    }
}
