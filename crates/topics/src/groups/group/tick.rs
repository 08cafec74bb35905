//! Timers of a group: sessions, rebalances and syncs.

use super::super::member::after;
use super::{Group, Patience, Phase, Step};

impl Group {
    /// Returns when the next timer is due, if no event comes earlier. After [`Group::tick`] it is
    /// never now.
    pub(in super::super) fn next_ms(&self) -> Option<u64> {
        let due_ms = match self.phase {
            Phase::Empty => None,
            Phase::Preparing { due_ms, .. } | Phase::Completing { due_ms, .. } => Some(due_ms),
            Phase::Stable { due_ms } => due_ms,
        };
        let members = self.members.values().filter_map(|it| it.expires_ms());
        let expected = self.expected.values().copied();
        members.chain(expected).chain(due_ms).min()
    }

    /// Handles all timers that are due.
    pub(in super::super) fn tick(&mut self, step: &mut Step<'_>) {
        let now_ms = step.now_ms;
        let expected = self.expected.len();
        self.expected.retain(|_, until_ms| *until_ms > now_ms);
        let silent = self.members.iter();
        let silent = silent.filter(|(_, it)| it.expires_ms().is_some_and(|at_ms| at_ms <= now_ms));
        let silent: Vec<_> = silent.map(|(id, _)| id.clone()).collect();
        for id in &silent {
            self.remove(id, step);
        }
        if self.expected.len() < expected || !silent.is_empty() {
            self.gone(!silent.is_empty(), step);
        }
        self.end_phase(step);
    }

    fn end_phase(&mut self, step: &mut Step<'_>) {
        let now_ms = step.now_ms;
        match &mut self.phase {
            Phase::Preparing {
                due_ms, patience, ..
            } if *due_ms <= now_ms => match patience {
                Some(it) if it.has_new && it.left_ms > 0 => {
                    let delay_ms = step.options.initial_rebalance_delay_ms.min(it.left_ms);
                    *it = Patience {
                        left_ms: it.left_ms - delay_ms,
                        has_new: false,
                    };
                    *due_ms = after(now_ms, delay_ms);
                }
                _ => self.complete(step),
            },
            Phase::Completing { due_ms, .. }
            | Phase::Stable {
                due_ms: Some(due_ms),
            } if *due_ms <= now_ms => self.remove_those_that_did_not_sync(step),
            _ => {}
        }
    }

    /// Removes members that have joined and not synced.
    fn remove_those_that_did_not_sync(&mut self, step: &mut Step<'_>) {
        let members = self.members.iter();
        let missing = members.filter(|(_, it)| !it.has_synced);
        let missing: Vec<_> = missing.map(|(id, _)| id.clone()).collect();
        for id in missing {
            self.remove(&id, step);
        }
        self.prepare(step);
    }
}
