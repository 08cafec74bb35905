//! Reusable memory for takes, so that a take does not allocate.

use std::sync::Arc;

use quota::{LimitState, Plan, Rules, StoreAnswer, Warned};

use super::counts::CounterCache;

/// Memory for one take after another; holds the state of the last take's limits.
#[derive(Default)]
pub struct Desk {
    pub(crate) plan: Plan,
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) now_ns: u64,
    pub(crate) bytes: Vec<u8>,
    /// Replies about cells in the shared store, by step of the plan.
    pub(crate) store_answers: Vec<(usize, StoreAnswer)>,
    pub(super) counters: CounterCache,
}

impl Desk {
    /// Creates an empty desk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the state of every limit of the last take or look, in the order in which the
    /// limits were written; limits of one organisation follow the general ones.
    pub fn limit_states(&self) -> impl Iterator<Item = LimitState<'_>> {
        let rules = self.rules.iter();
        rules.flat_map(|rules| self.plan.limit_states(rules, self.now_ns))
    }

    /// Returns the time of the last take or look, in nanoseconds since 1970-01-01 UTC.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub(crate) fn begin(&mut self, rules: &Arc<Rules>, now_ns: u64) {
        let is_known = self
            .rules
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, rules));
        if !is_known {
            self.rules = Some(rules.clone());
        }
        self.now_ns = now_ns;
    }

    pub(crate) fn warned(&self) -> impl Iterator<Item = Warned> + '_ {
        self.plan.warned()
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.limit_states()).finish()
    }
}
