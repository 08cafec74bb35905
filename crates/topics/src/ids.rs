//! Ids and sequence numbers.

use std::fmt;

/// A producer id, from 0. It never changes while the producer lives and is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerId(pub i64);

/// A topic id. A topic that is deleted and created again gets another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// The value for "no topic"; no topic has it.
    pub const NONE: Self = Self([0; 16]);
}

impl fmt::Debug for TopicId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The sequence of a record that has none.
pub const NO_SEQUENCE: i32 = -1;
/// The epoch of a producer that has none.
pub const NO_EPOCH: i16 = -1;

/// Returns the sequence that is `count` after `sequence`: after [`i32::MAX`] comes 0.
pub fn sequence_after(sequence: i32, count: u32) -> i32 {
    let sum = i64::from(sequence) + i64::from(count);
    (sum & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_around_after_the_maximum() {
        assert_eq!(sequence_after(0, 5), 5);
        assert_eq!(sequence_after(i32::MAX, 0), i32::MAX);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 2, 5), 2);
    }
}
