//! Times requests of one connection: at most one at once, until its answer is queued.
//!
//! A client that waits for each answer has all its requests timed. Of a client with many requests in
//! flight, about one per round trip is timed, so that most requests cost one load and most answers
//! another. Answers may be queued by the threads of other connections.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use platform::{Verb, VerbDurations};
use wire::{Correlation, Kind};

/// Value of [`Timing::tag`] while no request is timed. No client uses this tag: slots are dense.
const NONE: u64 = u64::MAX;

/// Position of the correlation in a frame.
const CORRELATION: std::ops::Range<usize> = 8..16;

/// Position of the kind in a frame.
const KIND: usize = 4;

/// Position of the flags in a frame.
const FLAGS: usize = 5;

/// The request of a connection that is being timed; see the module's documentation.
#[derive(Debug)]
pub(super) struct Timing {
    /// Slot and generation of the request, as in its frame.
    tag: AtomicU64,
    verb: AtomicU8,
    begin_ns: AtomicU64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            tag: AtomicU64::new(NONE),
            verb: AtomicU8::new(0),
            begin_ns: AtomicU64::new(0),
        }
    }
}

impl Timing {
    /// Begins to time a request, unless another one is timed. Only the connection's own task calls
    /// this.
    #[inline]
    pub(super) fn begin(&self, kind: Kind, at: Correlation, now_ns: u64) {
        let timed = self.tag.load(Ordering::Acquire);
        // The answer to a timed request can be lost, if it is refused in a way that has no answer.
        // The client's next request in the same slot shows that it is over.
        if timed != NONE && timed as u32 != at.slot {
            return;
        }
        let Some(verb) = verb_of(kind) else {
            return;
        };
        if at == Correlation::NONE {
            return;
        }
        self.tag.store(NONE, Ordering::Release);
        self.verb.store(verb as u8, Ordering::Relaxed);
        self.begin_ns.store(now_ns, Ordering::Relaxed);
        self.tag.store(at.as_u64(), Ordering::Release);
    }

    /// Ends the timing if a queued frame is the answer.
    #[inline]
    pub(super) fn end(
        &self,
        frame: &[u8],
        durations: &VerbDurations,
        now_ns: impl FnOnce() -> u64,
    ) {
        let timed = self.tag.load(Ordering::Acquire);
        if timed == NONE {
            return;
        }
        if answered(frame).is_some_and(|(tag, ..)| tag == timed) {
            self.record(timed, durations, now_ns());
        }
    }

    fn record(&self, timed: u64, durations: &VerbDurations, now_ns: u64) {
        let verb = self.verb.load(Ordering::Relaxed);
        let begin_ns = self.begin_ns.load(Ordering::Relaxed);
        let (old, new, order) = (timed, NONE, Ordering::AcqRel);
        let ended = self
            .tag
            .compare_exchange(old, new, order, Ordering::Relaxed);
        if ended.is_ok()
            && let Some((verb, _)) = Verb::ALL.get(usize::from(verb))
        {
            durations.of(*verb).record(now_ns.saturating_sub(begin_ns));
        }
    }
}

/// Returns the operation of a request that has one answer.
fn verb_of(kind: Kind) -> Option<Verb> {
    Some(match kind {
        Kind::REQUEST => Verb::Request,
        Kind::SEND => Verb::Send,
        Kind::WRITE => Verb::Write,
        Kind::APPEND => Verb::Append,
        Kind::READ => Verb::Read,
        Kind::TAKE => Verb::Take,
        Kind::SETTLE => Verb::Settle,
        Kind::PEEK => Verb::Peek,
        Kind::SUBSCRIBE => Verb::Subscribe,
        _ => return None,
    })
}

/// Returns the request that a frame to the client answers, with the kind and flags of the frame;
/// `None` if it answers none. CANCEL and CREDIT have the numbers of requests to the client.
pub(super) fn answered(frame: &[u8]) -> Option<(u64, Kind, u8)> {
    let (kind, flags) = (Kind(*frame.get(KIND)?), *frame.get(FLAGS)?);
    let tag = u64::from_le_bytes(frame.get(CORRELATION)?.try_into().ok()?);
    let is_other = [Kind::CANCEL, Kind::CREDIT, Kind::PING, Kind::PONG].contains(&kind);
    (!is_other).then_some((tag, kind, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Correlation = Correlation {
        slot: 0,
        generation: 1,
    };
    const SECOND: Correlation = Correlation {
        slot: 1,
        generation: 1,
    };

    fn reply(at: Correlation) -> Vec<u8> {
        let mut frame = Vec::new();
        wire::encode_copies(1, at, &mut frame);
        frame
    }

    fn count(durations: &VerbDurations, verb: Verb) -> u64 {
        durations.of(verb).view().count()
    }

    #[test]
    fn one_request_at_once_is_timed_until_its_answer() {
        let (timing, durations) = (Timing::default(), VerbDurations::default());
        timing.begin(Kind::WRITE, FIRST, 1_000);
        timing.begin(Kind::READ, SECOND, 2_000);
        timing.end(&reply(SECOND), &durations, || 3_000);
        assert_eq!(count(&durations, Verb::Read), 0);
        let mut cancel = Vec::new();
        wire::encode_cancel(FIRST, &mut cancel);
        timing.end(&cancel, &durations, || 3_000);
        assert_eq!(count(&durations, Verb::Write), 0);
        timing.end(&reply(FIRST), &durations, || 81_000);
        timing.end(&reply(FIRST), &durations, || 90_000);
        let view = durations.of(Verb::Write).view();
        assert_eq!((view.count(), view.counts[1].1), (1, 1));
        assert!((view.sum - 80e-6).abs() < 1e-9, "{}", view.sum);
        timing.begin(Kind::READ, SECOND, 0);
        timing.end(&reply(SECOND), &durations, || 1);
        assert_eq!(count(&durations, Verb::Read), 1);
    }

    #[test]
    fn next_request_in_the_slot_of_a_lost_answer_is_timed() {
        let (timing, durations) = (Timing::default(), VerbDurations::default());
        timing.begin(Kind::WRITE, FIRST, 0);
        let next = Correlation {
            slot: 0,
            generation: 2,
        };
        timing.begin(Kind::APPEND, next, 0);
        timing.end(&reply(FIRST), &durations, || 1);
        timing.end(&reply(next), &durations, || 1);
        assert_eq!(count(&durations, Verb::Write), 0);
        assert_eq!(count(&durations, Verb::Append), 1);
    }

    #[test]
    fn requests_without_an_answer_are_not_timed() {
        let (timing, durations) = (Timing::default(), VerbDurations::default());
        timing.begin(Kind::SEND, Correlation::NONE, 0);
        timing.begin(Kind::PING, FIRST, 0);
        timing.begin(Kind::FOLLOW, FIRST, 0);
        timing.end(&reply(FIRST), &durations, || 1);
        for (verb, name) in Verb::ALL {
            assert_eq!(count(&durations, verb), 0, "{name}");
        }
    }
}
