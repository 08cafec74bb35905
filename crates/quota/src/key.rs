//! Where a cell is looked for: by its limit and the prefix it is for.

use crate::limit::LimitId;
use crate::subject::Prefix;

/// A cell's name: whose, and for which prefix. The empty prefix is that of the cell which subjects
/// share that there is no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a> {
    /// The limit.
    pub limit: LimitId,
    /// The prefix.
    pub prefix: Prefix<'a>,
}

/// Makes hashes that nobody outside can foresee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

/// Odd numbers without a pattern: digits of π behind the point.
const PI: [u64; 3] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
];

impl<'a> Key<'a> {
    /// The cell that subjects share that there is no room for.
    pub(crate) fn overflow(limit: LimitId) -> Self {
        let prefix = Prefix { name: "", run: "" };
        Self { limit, prefix }
    }

    /// As a cell keeps it: a run stands behind a `?`.
    pub(crate) fn to_bytes(self) -> Box<[u8]> {
        let Prefix { name, run } = self.prefix;
        match run {
            "" => name.as_bytes().into(),
            run => [name.as_bytes(), b"?", run.as_bytes()].concat().into(),
        }
    }

    /// As [`Key::to_bytes`] made it.
    pub(crate) fn from_bytes(limit: LimitId, bytes: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (name, run) = text.split_once('?').unwrap_or((text, ""));
        let prefix = Prefix { name, run };
        Some(Self { limit, prefix })
    }

    /// Whether those are its bytes.
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
    /// The hash of a prefix; its upper half says in which table its cells lie.
    pub(crate) fn hash(self, prefix: Prefix<'_>) -> u64 {
        let name = self.fold(self.0 ^ PI[0], prefix.name.as_bytes());
        match prefix.run {
            "" => name,
            run => self.fold(name ^ PI[2], run.as_bytes()),
        }
    }

    /// The hash of a limit's cell for a prefix of that hash.
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

/// Both halves of the product: every bit of either factor reaches the result.
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
    fn hashes_are_spread() {
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
