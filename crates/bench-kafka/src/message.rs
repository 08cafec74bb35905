//! Content of messages: a key and a payload by a pattern. The first bytes of the payload identify
//! the message, so that it is recognized when it is read back.
//!
//! ```text
//!  0 tag u32        of the run
//!  4 lane u32       which connection's messages to which partition
//!  8 number u64     from 0 in its lane
//! 16 the rest, by the pattern
//! ```

use std::io::Write;

use serde::{Deserialize, Serialize};

/// Bytes of a payload that identify the message; no payload is shorter.
pub const ID_SIZE: usize = 16;

/// Pattern of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyPattern {
    /// `key-` and a random number.
    Random,
    /// `key-` and the numbers from 0.
    Sequential,
    /// Always `key`: all messages go to one partition.
    Fixed,
}

/// Pattern of payloads, after the identifying bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadPattern {
    /// Random bytes.
    Random,
    /// Zeros.
    Zeros,
    /// English words.
    Text,
}

/// Identity of a message within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) lane: u32,
    pub(super) number: u64,
}

const POOL_SIZE: usize = 1 << 20;
const WORDS: &[u8] = b"the quick brown fox jumps over the lazy dog ";

/// Generator of messages. Random payloads are slices of a pool made in advance: generating new
/// bytes for each message would be most of the generator's work.
#[derive(Debug)]
pub(super) struct MessageGenerator {
    tag: u32,
    key_pattern: KeyPattern,
    keys: u64,
    key: Vec<u8>,
    pool: Vec<u8>,
    at: usize,
    value: Vec<u8>,
    random: Random,
}

impl MessageGenerator {
    /// Makes a generator of payloads with `size` bytes, at least [`ID_SIZE`].
    pub(super) fn new(tag: u32, size: usize, key: KeyPattern, payload: PayloadPattern) -> Self {
        let mut random = Random(u64::from(tag) << 1 | 1);
        let pool_size = POOL_SIZE.max(2 * size);
        let pool = match payload {
            PayloadPattern::Zeros => vec![0; pool_size],
            PayloadPattern::Text => WORDS.iter().copied().cycle().take(pool_size).collect(),
            PayloadPattern::Random => {
                let words = std::iter::repeat_with(|| random.next().to_le_bytes());
                words.take(pool_size.div_ceil(8)).flatten().collect()
            }
        };
        Self {
            tag,
            key_pattern: key,
            keys: 0,
            key: Vec::new(),
            pool,
            at: 0,
            value: vec![0; size.max(ID_SIZE)],
            random,
        }
    }

    /// Makes the next key.
    pub(super) fn key(&mut self) -> &[u8] {
        self.key.clear();
        let number = match self.key_pattern {
            KeyPattern::Random => Some(self.random.next()),
            KeyPattern::Sequential => Some(self.keys),
            KeyPattern::Fixed => None,
        };
        self.keys += 1;
        // Writing to memory cannot fail.
        let _ = match number {
            Some(number) => write!(self.key, "key-{number}"),
            None => write!(self.key, "key"),
        };
        &self.key
    }

    /// Returns the last key, and the payload of message `id`.
    pub(super) fn message(&mut self, id: Id) -> (&[u8], &[u8]) {
        let body = self.value.len() - ID_SIZE;
        if self.at + body > self.pool.len() {
            self.at %= self.pool.len() - body;
        }
        let (head, tail) = self.value.split_at_mut(ID_SIZE);
        head[..4].copy_from_slice(&self.tag.to_be_bytes());
        head[4..8].copy_from_slice(&id.lane.to_be_bytes());
        head[8..].copy_from_slice(&id.number.to_be_bytes());
        tail.copy_from_slice(&self.pool[self.at..self.at + body]);
        self.at += body;
        (&self.key, &self.value)
    }
}

/// Returns the identity of a payload; `None` if the message is not from this run.
pub(super) fn id_of(tag: u32, value: &[u8]) -> Option<Id> {
    let (head, _) = value.split_first_chunk::<ID_SIZE>()?;
    let (of, rest) = head.split_first_chunk()?;
    let (lane, number) = rest.split_first_chunk()?;
    (u32::from_be_bytes(*of) == tag).then_some(Id {
        lane: u32::from_be_bytes(*lane),
        number: u64::from_be_bytes(*number.first_chunk()?),
    })
}

/// Returns the partition of a key by FNV-1a, which spreads keys like the hashes of real clients but
/// equals none of them.
pub(super) fn partition_of(key: &[u8], partitions: usize) -> usize {
    let hash = ::model::fnv1a_64(key.iter().copied());
    // The low bits alone are weak in short keys.
    ((hash ^ hash >> 32) % partitions.max(1) as u64) as usize
}

/// Pseudorandom numbers for payloads (xorshift64, Marsaglia 2003).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_identified_by_its_first_bytes_in_every_pattern() {
        for payload in [
            PayloadPattern::Random,
            PayloadPattern::Zeros,
            PayloadPattern::Text,
        ] {
            for size in [ID_SIZE, 100, POOL_SIZE] {
                let mut maker = MessageGenerator::new(7, size, KeyPattern::Random, payload);
                for number in 0..3 {
                    let id = Id { lane: 5, number };
                    maker.key();
                    let (key, value) = maker.message(id);
                    assert!(key.starts_with(b"key-"));
                    assert_eq!((value.len(), id_of(7, value)), (size, Some(id)));
                    assert_eq!(id_of(8, value), None);
                }
            }
        }
        assert_eq!(id_of(7, b"short"), None);
    }

    #[test]
    fn keys_are_random_or_numbered_or_one() {
        let keys = |pattern| {
            let mut maker = MessageGenerator::new(1, ID_SIZE, pattern, PayloadPattern::Zeros);
            [maker.key().to_vec(), maker.key().to_vec()]
        };
        assert_eq!(keys(KeyPattern::Fixed), [b"key", b"key"]);
        assert_eq!(keys(KeyPattern::Sequential), [b"key-0", b"key-1"]);
        let [first, second] = keys(KeyPattern::Random);
        assert_ne!(first, second);
    }

    #[test]
    fn random_keys_spread_over_all_partitions() {
        let mut maker =
            MessageGenerator::new(3, ID_SIZE, KeyPattern::Random, PayloadPattern::Zeros);
        let mut counts = [0; 3];
        for _ in 0..3_000 {
            counts[partition_of(maker.key(), 3)] += 1;
        }
        assert!(
            counts.iter().all(|count| (900..1_100).contains(count)),
            "{counts:?}"
        );
    }
}
