//! `Unacked`: send window of a reliable session, with messages to retransmit until they are
//! acknowledged.

use std::collections::BTreeMap;

use crate::session::Reliability;

/// Maximum number of messages.
const COUNT_MAX: usize = 256;
/// Maximum bytes of messages; a single message may be larger.
const SIZE_MAX: usize = 8 << 20;

/// Content and metadata of an outgoing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutgoingContent {
    pub(super) content: Vec<u8>,
    pub(super) metadata: Vec<(String, String)>,
}

impl OutgoingContent {
    /// Creates a control message, without metadata.
    pub(super) fn control(content: Vec<u8>) -> Self {
        Self {
            content,
            metadata: Vec::new(),
        }
    }
}

struct Waiting {
    outgoing: OutgoingContent,
    again_ns: u64,
    left: u32,
}

/// Send window of a reliable session. The map is ordered by numbers that wrap at 2^31; the order
/// has no effect.
#[derive(Default)]
pub(super) struct Unacked {
    waiting: BTreeMap<u32, Waiting>,
    size: usize,
}

/// Error: a message has used up its retries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RetriesExhausted;

impl Unacked {
    pub(super) fn has_room(&self, size: usize) -> bool {
        let has_bytes = self.size == 0 || self.size + size <= SIZE_MAX;
        has_bytes && self.waiting.len() < COUNT_MAX
    }

    pub(super) fn push(
        &mut self,
        number: u32,
        outgoing: OutgoingContent,
        timing: Reliability,
        now_ns: u64,
    ) {
        self.size += outgoing.content.len();
        let waiting = Waiting {
            outgoing,
            again_ns: now_ns + timing.interval_ns,
            left: timing.retries,
        };
        self.waiting.insert(number, waiting);
    }

    /// Removes an acknowledged message.
    pub(super) fn settle(&mut self, number: u32) {
        if let Some(waiting) = self.waiting.remove(&number) {
            self.size -= waiting.outgoing.content.len();
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&OutgoingContent> {
        self.waiting.get(&number).map(|waiting| &waiting.outgoing)
    }

    /// Returns the messages to send again now.
    pub(super) fn repeat(
        &mut self,
        timing: Reliability,
        now_ns: u64,
    ) -> Result<Vec<(u32, OutgoingContent)>, RetriesExhausted> {
        let mut repeated = Vec::new();
        for (number, waiting) in &mut self.waiting {
            if now_ns < waiting.again_ns {
                continue;
            }
            waiting.left = waiting.left.checked_sub(1).ok_or(RetriesExhausted)?;
            waiting.again_ns = now_ns + timing.interval_ns;
            repeated.push((*number, waiting.outgoing.clone()));
        }
        Ok(repeated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Reliability = Reliability {
        interval_ns: 10,
        retries: 2,
    };

    fn outgoing(size: usize) -> OutgoingContent {
        OutgoingContent {
            content: vec![0; size],
            metadata: Vec::new(),
        }
    }

    #[test]
    fn unacknowledged_messages_are_retransmitted_up_to_the_limit() {
        let mut unacked = Unacked::default();
        unacked.push(1, outgoing(1), TIMING, 0);
        unacked.push(2, outgoing(2), TIMING, 5);
        assert_eq!(unacked.repeat(TIMING, 9), Ok(Vec::new()));
        assert_eq!(unacked.repeat(TIMING, 10), Ok(vec![(1, outgoing(1))]));
        unacked.settle(1);
        assert_eq!(unacked.repeat(TIMING, 20), Ok(vec![(2, outgoing(2))]));
        assert_eq!(unacked.repeat(TIMING, 30), Ok(vec![(2, outgoing(2))]));
        assert_eq!(unacked.repeat(TIMING, 40), Err(RetriesExhausted));
    }

    #[test]
    fn unacknowledged_messages_are_bounded_in_number_and_size() {
        let mut unacked = Unacked::default();
        assert!(unacked.has_room(2 * SIZE_MAX));
        unacked.push(0, outgoing(SIZE_MAX), TIMING, 0);
        assert!(!unacked.has_room(1));
        unacked.settle(0);
        for number in 1..=COUNT_MAX as u32 {
            assert!(unacked.has_room(1));
            unacked.push(number, outgoing(1), TIMING, 0);
        }
        assert!(!unacked.has_room(0));
        unacked.settle(7);
        unacked.settle(7);
        assert!(unacked.has_room(1));
        assert_eq!(unacked.get(7), None);
        assert_eq!(unacked.get(8), Some(&outgoing(1)));
    }
}
