//! What things are called.

use std::fmt;

/// A producer, from 0. It never changes while the producer lives, and no other ever gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerId(pub i64);

/// A topic, for as long as it lives: one that is made anew under the same name has another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// What stands for "no topic"; no topic has it.
    pub const NONE: Self = Self([0; 16]);
}

impl fmt::Debug for TopicId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Of a record without a sequence.
pub const NO_SEQUENCE: i32 = -1;
/// Of a producer without an epoch.
pub const NO_EPOCH: i16 = -1;

/// The sequence that is `count` behind `sequence`: after [`i32::MAX`] comes 0.
pub fn sequence_after(sequence: i32, count: u32) -> i32 {
    let sum = i64::from(sequence) + i64::from(count);
    (sum & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_round() {
        assert_eq!(sequence_after(0, 5), 5);
        assert_eq!(sequence_after(i32::MAX, 0), i32::MAX);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 2, 5), 2);
    }
}
