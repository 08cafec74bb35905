//! Idle mailboxes: expired messages are removed from unused mailboxes, too.
//!
//! All mailboxes are visited in the order of their numbers, within an hour, a few at a time. A
//! mailbox is loaded only if it has records that may have expired. For every mailbox that was
//! loaded since the start, the earliest expiry is remembered, in four bytes per stream.
//!
//! The first round after a start is not spread over an hour: it loads each mailbox with records
//! once, so that the backlog is known soon.

use std::sync::Arc;

use journal::StreamId;
use store::{Kind, Location};

use super::Mailboxes;

/// Duration of a round over all mailboxes, in nanoseconds.
const ROUND_NS: u64 = 3_600_000_000_000;

/// Maximum number of mailboxes visited per sweep.
const LOOKED_AT_MAX: u64 = 4_096;

/// Maximum number of mailboxes loaded per sweep.
const LOADED_MAX: usize = 16;

/// Number of loaded mailboxes above which none is loaded for a visit.
const IN_MEMORY_MAX: usize = 1_024;

/// The progress of the round over idle mailboxes.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// The stream visited last.
    last: u64,
    /// The time up to which visits were due and done.
    at_ns: Option<u64>,
    /// By stream, a time before which nothing expires, in seconds since 1970-01-01 UTC; 0 if
    /// unknown.
    rests_until_s: Vec<u32>,
    /// True once the first round since the start is complete.
    has_gone_round: bool,
}

impl Idle {
    /// Records that nothing in the stream's mailbox expires before `until_ms`.
    pub(super) fn rests(&mut self, stream: StreamId, until_ms: u64) {
        // The numbers of streams are nearly dense.
        let index = stream.0 as usize;
        if self.rests_until_s.len() <= index {
            self.rests_until_s.resize(index + 1, 0);
        }
        self.rests_until_s[index] = u32::try_from(until_ms / 1_000).unwrap_or(u32::MAX);
    }

    fn is_resting(&self, stream: StreamId, now_ms: u64) -> bool {
        let until_s = self.rests_until_s.get(stream.0 as usize);
        until_s.is_some_and(|until_s| u64::from(*until_s) > now_ms / 1_000)
    }

    /// Returns the number of mailboxes, out of `count`, to visit now.
    fn due(&mut self, now_ns: u64, count: u64) -> u64 {
        if !self.has_gone_round {
            self.at_ns = Some(now_ns);
            return LOOKED_AT_MAX.min(count.saturating_sub(self.last));
        }
        let at_ns = *self.at_ns.get_or_insert(now_ns);
        let each_ns = (ROUND_NS / count.max(1)).max(1);
        let due = now_ns.saturating_sub(at_ns) / each_ns;
        match due.min(count) {
            due if due > LOOKED_AT_MAX => {
                // The clock jumped: missed visits are made in the next round.
                self.at_ns = Some(now_ns);
                LOOKED_AT_MAX
            }
            due => {
                self.at_ns = Some(at_ns + due * each_ns);
                due
            }
        }
    }
}

impl Mailboxes {
    /// Continues the round: loads mailboxes that may have expired messages. These are processed and
    /// unloaded like any other. Returns true during the first round since the start.
    pub(super) fn look_at_idle(self: &Arc<Self>) -> bool {
        let (now_ns, now_ms) = (self.platform.now_ns(), self.platform.expiry_ms());
        let count = self.store.numbers_end() - 1;
        let room = IN_MEMORY_MAX.saturating_sub(self.loaded_count());
        let room = room.min(LOADED_MAX);
        let mut idle = self.idle.lock();
        let (due, first) = (idle.due(now_ns, count), idle.last + 1);
        let (mut found, mut looked_at) = (Vec::new(), 0);
        while looked_at < due && found.len() < room {
            let stream = StreamId((first + looked_at - 1) % count + 1);
            looked_at += 1;
            idle.last = stream.0;
            if !idle.is_resting(stream, now_ms) {
                found.extend(self.mailbox_with_records(stream));
            }
        }
        idle.has_gone_round |= idle.last >= count;
        let is_first_round = !idle.has_gone_round;
        drop(idle);
        for name in found {
            self.begin_loading(&name);
        }
        is_first_round
    }

    fn mailbox_with_records(&self, stream: StreamId) -> Option<String> {
        let (kind, name, Location { shard, stream }) = self.store.named(stream)?;
        let state = self.store.journal.stream(shard, stream)?;
        (kind == Kind::Mailbox && state.start < state.next).then_some(name)
    }
}
