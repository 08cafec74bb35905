//! Keys of cells: a limit and a prefix.

use crate::limit::LimitId;
use crate::subject::Prefix;

/// The key of a cell. The empty prefix is the key of the limit's overflow cell, which is shared by
/// subjects for whose own cells there was no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a> {
    /// The limit.
    pub limit: LimitId,
    /// The prefix.
    pub prefix: Prefix<'a>,
}

/// The seed of the hash, so that clients cannot predict hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

/// Odd numbers without a pattern: digits of π after the point.
const PI: [u64; 3] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
];

impl<'a> Key<'a> {
    /// Returns the key of the limit's shared overflow cell.
    pub(crate) fn overflow(limit: LimitId) -> Self {
        let prefix = Prefix { name: "", run: "" };
        Self { limit, prefix }
    }

    /// Returns the prefix as cells store it: the name, then `?` and the run if there is one.
    pub(crate) fn to_bytes(self) -> Box<[u8]> {
        let Prefix { name, run } = self.prefix;
        match run {
            "" => name.as_bytes().into(),
            run => [name.as_bytes(), b"?", run.as_bytes()].concat().into(),
        }
    }

    /// Parses bytes made by [`Key::to_bytes`].
    pub(crate) fn from_bytes(limit: LimitId, bytes: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (name, run) = text.split_once('?').unwrap_or((text, ""));
        let prefix = Prefix { name, run };
        Some(Self { limit, prefix })
    }

    /// Returns whether `bytes` are this key's bytes.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        let Prefix { name, run } = self.prefix;
        let Some(rest) = bytes.strip_prefix(name.as_bytes()) else {
            return false;
        };
        match rest.split_first() {
            None => run.is_empty(),
            Some((b'?', rest)) => !run.is_empty() && rest == run.as_bytes(),
            Some(_) => false,
        }
    }
}

impl Seed {
    /// Returns the hash of a prefix. Its upper half selects the table of its cells.
    pub(crate) fn hash(self, prefix: Prefix<'_>) -> u64 {
        let name = self.fold(self.0 ^ PI[0], prefix.name.as_bytes());
        match prefix.run {
            "" => name,
            run => self.fold(name ^ PI[2], run.as_bytes()),
        }
    }

    /// Returns the hash of a limit's cell from the hash of its prefix.
    pub(crate) fn of_limit(hash: u64, limit: LimitId) -> u64 {
        mix(hash ^ u64::from(limit.0), PI[1])
    }

    fn fold(self, start: u64, bytes: &[u8]) -> u64 {
        let mut hash = start ^ bytes.len() as u64;
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            hash = mix(hash ^ word, PI[1] ^ self.0);
        }
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        mix(mix(hash ^ u64::from_le_bytes(last), PI[1] ^ self.0), PI[2])
    }
}

/// Returns the exclusive or of both halves of the product, so that every bit of either factor
/// affects the result.
fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right | 1);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_key_is_found_by_its_bytes_alone() {
        let prefix = |name, run| Prefix { name, run };
        let key = |prefix| Key {
            limit: LimitId(7),
            prefix,
        };
        let keys = [("a", ""), ("a", "b"), ("a/b", ""), ("a/b", "c"), ("", "")];
        for (index, (name, run)) in keys.into_iter().enumerate() {
            let bytes = key(prefix(name, run)).to_bytes();
            for (other, (name, run)) in keys.into_iter().enumerate() {
                assert_eq!(key(prefix(name, run)).is(&bytes), index == other);
            }
            assert_eq!(
                Key::from_bytes(LimitId(7), &bytes),
                Some(key(prefix(name, run)))
            );
        }
    }

    #[test]
    fn prefix_hashes_are_distinct_and_evenly_distributed() {
        let seed = Seed(42);
        let names: Vec<_> = (0..10_000)
            .map(|n| format!("default/default/agent-{n}"))
            .collect();
        let hash = |name: &String| seed.hash(Prefix { name, run: "" });
        let hashes: BTreeSet<_> = names.iter().map(hash).collect();
        assert_eq!(hashes.len(), names.len());
        let mut counts = [0_u32; 64];
        names
            .iter()
            .for_each(|name| counts[(hash(name) >> 58) as usize] += 1);
        assert!(
            counts.iter().all(|count| (90..230).contains(count)),
            "{counts:?}"
        );
    }
}
