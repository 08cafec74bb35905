//! Mailboxes that nobody uses: what has expired in them leaves the disk all the same.
//!
//! They are gone through in the order of their numbers, all of them within an hour, a few at a time.
//! One is loaded only if it has records of which it is not known that none has expired yet; that is
//! known, in four bytes for each stream, of every mailbox that was loaded since the node started.
//!
//! The first round after a start is not paced by the hour: it loads each mailbox that has records
//! once, so that the backlog is known soon after a start.

use std::sync::Arc;

use journal::StreamId;

use super::Store;
use super::directory::{Kind, Location};
use crate::handle::Inner;

/// All of them are looked at within this time.
const ROUND_NS: u64 = 3_600_000_000_000;

/// How many are looked at in one sweep, at most.
const LOOKED_AT_MAX: u64 = 4_096;

/// How many are loaded in one sweep, at most.
const LOADED_MAX: usize = 16;

/// Above this many mailboxes in memory none is loaded only to be looked at.
const IN_MEMORY_MAX: usize = 1_024;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// The stream that was looked at last.
    last: u64,
    /// Until when mailboxes were looked at, or when they would have been.
    at_ns: Option<u64>,
    /// By stream: nothing expires before this second since 1970; 0 when that is not known.
    rests_until_s: Vec<u32>,
    /// The first round since the start is over.
    has_gone_round: bool,
}

impl Idle {
    /// Nothing in the mailbox of that stream expires before then.
    pub(super) fn rests(&mut self, stream: StreamId, until_ms: u64) {
        // The number of a stream is an index into the directory, which is in memory too.
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

    /// How many of `count` are to be looked at now.
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
                // The clock has jumped: what was missed is looked at in the next round.
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

impl Store {
    /// Goes on with the round: has mailboxes loaded in which something may have expired. They are
    /// looked after and let go like any other. True while the first round since the start goes on.
    pub(super) fn look_at_idle(&self, inner: &Arc<Inner>) -> bool {
        let (now_ns, now_ms) = (inner.ports.clock.now_ns(), inner.expiry_ms());
        let count = self.stream_count() as u64;
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
            self.begin_loading(inner, &name);
        }
        is_first_round
    }

    fn mailbox_with_records(&self, stream: StreamId) -> Option<String> {
        let (kind, name, Location { shard, stream }) = self.named(stream)?;
        let state = self.journal.stream(shard, stream)?;
        (kind == Kind::Mailbox && state.start < state.next).then_some(name)
    }
}
