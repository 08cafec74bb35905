//! Records of the directory.
//!
//! ```text
//! format 2   tag u8: 128 + kind   number u64 │ name     in stream 0 of the stream's shard
//! format 1   tag u8: kind         shard u16 │ name      in stream 0 of shard 0; number: offset + 1
//! ```
//!
//! Little endian. The tags differ, so a reader knows the format of each record.

use journal::{ShardId, StreamId};

use super::Kind;

/// Added to the kind in the tag of an entry of format 2.
const TAG_BASE: u8 = 128;

/// The name of the unused number that follows a shard's entries of format 1. The number is the
/// highest of all shards' entries of format 1.
pub(crate) const CARRIED_OVER: &str = "format 1";

/// The shard that contains the directory of format 1.
pub(crate) const SHARD_1: ShardId = ShardId(0);

/// Invalid bytes of a record of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed entry at offset {offset} of the directory of shard {}", shard.0)]
pub struct Malformed {
    /// The shard of the directory.
    pub shard: ShardId,
    /// The offset of the record.
    pub offset: u64,
}

/// An entry of the directory of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: Kind,
    pub(crate) number: StreamId,
    pub(crate) name: &'a str,
}

impl<'a> Entry<'a> {
    /// Returns the size of an entry's bytes.
    pub(crate) fn size(name: &str) -> usize {
        size_of::<u64>() + name.len()
    }

    pub(crate) fn tag(&self) -> u8 {
        TAG_BASE + self.kind as u8
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.number.0.to_le_bytes()[..], self.name.as_bytes()].concat()
    }

    /// Decodes an entry of format 2.
    pub(crate) fn decode(tag: u8, bytes: &'a [u8]) -> Option<Self> {
        let (number, name) = bytes.split_first_chunk()?;
        Some(Self {
            kind: Kind::from_u8(tag.checked_sub(TAG_BASE)?)?,
            number: StreamId(u64::from_le_bytes(*number)),
            name: std::str::from_utf8(name).ok()?,
        })
    }
}

/// Returns whether a record of the directory of shard 0 has format 1.
pub(crate) fn is_format_1(tag: u8) -> bool {
    tag < TAG_BASE
}

/// Decodes a record of format 1: the shard of its stream, and its entry in that shard.
pub(crate) fn decode_format_1(offset: u64, tag: u8, bytes: &[u8]) -> Option<(ShardId, Entry<'_>)> {
    let (shard, name) = bytes.split_first_chunk()?;
    let entry = Entry {
        kind: Kind::from_u8(tag)?,
        number: StreamId(offset.checked_add(1)?),
        name: std::str::from_utf8(name).ok()?,
    };
    Some((ShardId(u16::from_le_bytes(*shard)), entry))
}

/// A stream and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStream {
    /// The shard.
    pub shard: ShardId,
    /// The number.
    pub stream: StreamId,
    /// The kind: `mailbox`, `stream`, `conversation`, `events`, `agent`, `quotas`, `partition`,
    /// `topics`, or `unused`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
}

impl NamedStream {
    /// Decodes the record at `offset` of the directory of a shard, in any format; `None` if it is
    /// invalid. An upgraded directory has entries of both formats for the same streams, with the
    /// same content, until the old records have left the disk.
    pub fn decode(directory: ShardId, offset: u64, tag: u8, bytes: &[u8]) -> Option<Self> {
        let (shard, entry) = match is_format_1(tag) {
            true if directory != SHARD_1 => return None,
            true => decode_format_1(offset, tag, bytes)?,
            false => (directory, Entry::decode(tag, bytes)?),
        };
        (entry.name != CARRIED_OVER).then(|| Self {
            shard,
            stream: entry.number,
            kind: entry.kind.as_str(),
            name: entry.name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry<'_> = Entry {
        kind: Kind::Mailbox,
        number: StreamId(0x0102),
        name: "a/b/c",
    };

    /// Published: these bytes are on disks.
    #[test]
    fn directory_record_decodes_back_and_damaged_ones_are_refused() {
        let bytes = ENTRY.encode();
        assert_eq!(bytes, b"\x02\x01\0\0\0\0\0\0a/b/c");
        assert_eq!((ENTRY.tag(), Entry::size("a/b/c")), (129, bytes.len()));
        assert_eq!(Entry::decode(129, &bytes), Some(ENTRY));
        assert_eq!(Entry::decode(1, &bytes), None);
        assert_eq!(Entry::decode(137, &bytes), None);
        assert_eq!(Entry::decode(129, &bytes[..7]), None);
        assert_eq!(Entry::decode(129, b"\x02\x01\0\0\0\0\0\0\xff"), None);
    }

    /// Published: these bytes are on disks of format 1.
    #[test]
    fn directory_record_of_format_1_has_its_number_from_its_offset() {
        let decoded = decode_format_1(0x0101, 1, b"\x02\0a/b/c");
        assert_eq!(decoded, Some((ShardId(2), ENTRY)));
        assert_eq!(decode_format_1(7, 9, b"\x02\0a/b/c"), None);
        assert_eq!(decode_format_1(7, 1, b"\x02"), None);
        assert_eq!(decode_format_1(7, 1, b"\x02\0\xff"), None);
    }

    #[test]
    fn named_stream_is_the_same_in_both_formats() {
        let old = NamedStream::decode(SHARD_1, 0x0101, 1, b"\x02\0a/b/c").unwrap();
        let new = NamedStream::decode(ShardId(2), 5, ENTRY.tag(), &ENTRY.encode());
        assert_eq!(new, Some(old));
        assert_eq!(NamedStream::decode(ShardId(1), 0, 1, b"\x02\0a/b/c"), None);
        let end = [&[5, 0, 0, 0, 0, 0, 0, 0][..], CARRIED_OVER.as_bytes()].concat();
        assert_eq!(NamedStream::decode(ShardId(2), 6, 128, &end), None);
    }
}
