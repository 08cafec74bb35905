//! The clocks of the members, as this node measures them.
//!
//! A leader's clock decides when records expire and becomes the time of its shards, so a node whose
//! clock is wrong must not lead. A node cannot know the right time, but how far it is off the others:
//! the *median* of the clocks of the voters that answer, its own among them. A node that is more than
//! ten seconds off begins no reign and hands its leaderships over.
//!
//! The median is the clock of a node, and of two middle ones it is the lower one. So however far the
//! clocks are apart, at least one of the nodes that answer may lead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Distance from the median from which on a node does not lead.
const OFF_MS: u64 = 10_000;

/// Age from which on a measurement does not count.
const AGE_MAX: Duration = Duration::from_secs(10);

/// A clock beside this node's own.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Milliseconds by which it is ahead.
    ahead_ms: i64,
    /// Largest error of the measurement.
    error_ms: u64,
    at: Instant,
}

/// Whether a node may lead, by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The clocks of a quorum are not known.
    Unknown,
    /// The node may lead.
    Right,
    /// The node must not lead: the median is so many milliseconds ahead of its clock.
    Off { ahead_ms: i64 },
}

/// The clocks of the members, beside that of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockStatus {
    /// Milliseconds by which the median of the voters is ahead of this node, if this node is so far
    /// off that it does not lead.
    pub off_ms: Option<i64>,
    /// Milliseconds by which each member that answers is ahead of this node, and the largest error
    /// of the measurement.
    pub members: Vec<(u64, i64, u64)>,
}

/// The clocks of all members.
pub(crate) struct Clocks {
    /// Returns this node's time, in milliseconds since 1970.
    own_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    samples: Mutex<BTreeMap<u64, Sample>>,
    verdict: Mutex<Verdict>,
    /// Notified when the verdict changes.
    bells: Mutex<Vec<Arc<Notify>>>,
}

impl Clocks {
    /// Creates the clocks of a node that has measured none.
    pub(crate) fn new(own_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Arc<Clocks> {
        Arc::new(Clocks {
            own_ms: Box::new(own_ms),
            samples: Mutex::default(),
            verdict: Mutex::new(Verdict::Unknown),
            bells: Mutex::default(),
        })
    }

    /// Returns this node's time, whether it is right or not.
    pub(crate) fn own_ms(&self) -> u64 {
        (self.own_ms)()
    }

    /// Returns the time for entries of this node: the median while its own clock is off.
    pub(crate) fn entry_ms(&self) -> u64 {
        match *self.verdict.lock() {
            Verdict::Off { ahead_ms } => self.own_ms().saturating_add_signed(ahead_ms),
            Verdict::Unknown | Verdict::Right => self.own_ms(),
        }
    }

    /// Records the time of a member, which answered a request that was sent at `sent_ms`, by this
    /// node's clock, and took so long.
    pub(crate) fn note(&self, member: u64, theirs_ms: u64, sent_ms: u64, took: Duration) {
        let half_ms = took.as_millis() as u64 / 2;
        let ahead_ms = theirs_ms.wrapping_sub(sent_ms + half_ms) as i64;
        let sample = Sample {
            ahead_ms,
            error_ms: half_ms + 1,
            at: Instant::now(),
        };
        self.samples.lock().insert(member, sample);
    }

    /// Decides again whether this node may lead a cluster with these voters. Returns whether the
    /// clocks of a quorum are known.
    pub(crate) fn judge(&self, own: u64, voters: &BTreeSet<u64>) -> bool {
        let mut samples = self.samples.lock();
        samples.retain(|_, sample| sample.at.elapsed() < AGE_MAX);
        let verdict = match median(own, voters, &samples) {
            None => Verdict::Unknown,
            Some(median) if is_apart(&median, 0) => Verdict::Off {
                ahead_ms: median.ahead_ms,
            },
            Some(_) => Verdict::Right,
        };
        drop(samples);
        let previous = std::mem::replace(&mut *self.verdict.lock(), verdict);
        if previous != verdict {
            self.bells.lock().iter().for_each(|bell| bell.notify_one());
        }
        verdict != Verdict::Unknown
    }

    /// Returns whether this node may begin a reign.
    pub(crate) fn may_lead(&self) -> bool {
        *self.verdict.lock() == Verdict::Right
    }

    /// Returns whether this node must hand its leaderships over.
    pub(crate) fn is_off(&self) -> bool {
        matches!(*self.verdict.lock(), Verdict::Off { .. })
    }

    /// Returns whether a member may lead, as far as this node knows.
    pub(crate) fn can_take_over(&self, member: u64, own: u64, voters: &BTreeSet<u64>) -> bool {
        let samples = self.samples.lock();
        let median = median(own, voters, &samples);
        let sample = samples.get(&member);
        median
            .zip(sample)
            .is_none_or(|(median, sample)| !is_apart(&median, sample.ahead_ms))
    }

    /// Returns a bell that is notified when the decision changes.
    pub(crate) fn changes(&self) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        self.bells.lock().push(bell.clone());
        bell
    }

    pub(crate) fn status(&self) -> ClockStatus {
        let samples = self.samples.lock();
        let member = |(id, sample): (&u64, &Sample)| (*id, sample.ahead_ms, sample.error_ms);
        ClockStatus {
            off_ms: match *self.verdict.lock() {
                Verdict::Off { ahead_ms } => Some(ahead_ms),
                Verdict::Unknown | Verdict::Right => None,
            },
            members: samples.iter().map(member).collect(),
        }
    }
}

/// Returns the median of the clocks of the voters and of this node, the lower one of two; `None` if
/// those of a quorum are not known.
fn median(own: u64, voters: &BTreeSet<u64>, samples: &BTreeMap<u64, Sample>) -> Option<Sample> {
    let itself = Sample {
        ahead_ms: 0,
        error_ms: 0,
        at: Instant::now(),
    };
    let others = voters.iter().filter(|id| **id != own);
    let others = others.filter_map(|id| samples.get(id).copied());
    let mut known: Vec<_> = others.chain([itself]).collect();
    if known.len() * 2 <= voters.len() {
        return None;
    }
    known.sort_by_key(|sample| sample.ahead_ms);
    known.get((known.len() - 1) / 2).copied()
}

/// Returns whether a clock is certainly too far off the median.
fn is_apart(median: &Sample, ahead_ms: i64) -> bool {
    median.ahead_ms.abs_diff(ahead_ms) > OFF_MS + median.error_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which of the nodes may lead, if each measures all others that are up.
    fn leaders(ahead_ms: &[(u64, i64)], voters: u64) -> Vec<u64> {
        let voters: BTreeSet<u64> = (1..=voters).collect();
        let may_lead = |own: u64, own_ahead: i64| {
            let clocks = Clocks::new(|| 0);
            for (id, ahead) in ahead_ms.iter().filter(|(id, _)| *id != own) {
                let theirs = 1_000_000_i64 + ahead - own_ahead;
                clocks.note(*id, theirs as u64, 1_000_000, Duration::ZERO);
            }
            clocks.judge(own, &voters);
            clocks.may_lead()
        };
        let may_lead = |(id, ahead): &(u64, i64)| may_lead(*id, *ahead).then_some(*id);
        ahead_ms.iter().filter_map(may_lead).collect()
    }

    #[tokio::test]
    async fn clock_off_the_median_does_not_lead_and_one_always_does() {
        assert_eq!(leaders(&[(1, 0), (2, 9_000), (3, -9_000)], 3), [1, 2, 3]);
        assert_eq!(leaders(&[(1, 0), (2, 400), (3, 15_000)], 3), [1, 2]);
        assert_eq!(leaders(&[(1, 0), (2, 400), (3, -15_000)], 3), [1, 2]);
        assert_eq!(leaders(&[(1, 0), (2, 15_000), (3, 40_000)], 3), [2]);
        assert_eq!(leaders(&[(1, 0), (3, 15_000)], 3), [1], "the lower of two");
        assert_eq!(leaders(&[(1, 0)], 1), [1]);
        assert_eq!(leaders(&[(1, 0)], 3), [0; 0], "no quorum is known");
    }

    #[tokio::test]
    async fn error_of_a_measurement_is_in_favour_of_the_node() {
        let clocks = Clocks::new(|| 0);
        let voters = [1, 2, 3].into();
        clocks.note(2, 11_000, 0, Duration::from_secs(3));
        clocks.note(3, 11_000, 0, Duration::from_secs(3));
        assert!(clocks.judge(1, &voters));
        assert!(clocks.may_lead(), "11 s less half of the time it took");
        let status = clocks.status();
        assert_eq!(status.members[0], (2, 9_500, 1_501));
    }

    #[tokio::test(start_paused = true)]
    async fn old_measurement_does_not_count() {
        let clocks = Clocks::new(|| 7);
        let voters = [1, 2, 3].into();
        clocks.note(2, 60_007, 7, Duration::ZERO);
        clocks.note(3, 60_007, 7, Duration::ZERO);
        assert!(clocks.judge(1, &voters));
        assert_eq!(clocks.status().off_ms, Some(60_000));
        assert_eq!(clocks.entry_ms(), 60_007, "entries have the median");
        tokio::time::sleep(AGE_MAX).await;
        assert!(!clocks.judge(1, &voters));
        assert!(!clocks.may_lead());
        assert_eq!(clocks.entry_ms(), 7);
    }
}
