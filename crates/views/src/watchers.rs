//! The changes that wait for the watchers of inboxes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::scope::Scope;

/// Maximum number of changed conversations that a watcher holds; beyond it, the whole inbox counts
/// as changed.
const CHANGED_MAX: usize = 10_000;

/// Maximum number of changes returned at a time.
const TAKEN_MAX: usize = 256;

/// The watchers, by scope.
#[derive(Default)]
pub(super) struct Watchers(Mutex<BTreeMap<Scope, Vec<Weak<WatcherState>>>>);

/// The changes for one watcher.
#[derive(Default)]
pub(super) struct WatcherState(Mutex<PendingChanges>);

#[derive(Default)]
struct PendingChanges {
    numbers: BTreeSet<u64>,
    /// True if more conversations changed than are held.
    is_overrun: bool,
    waker: Option<Waker>,
}

impl Watchers {
    /// Returns the watched scopes.
    pub(super) fn scopes(&self) -> BTreeSet<Scope> {
        let mut watchers = self.0.lock();
        for watcher in watchers.values_mut() {
            watcher.retain(|it| it.strong_count() > 0);
        }
        watchers.retain(|_, watcher| !watcher.is_empty());
        watchers.keys().copied().collect()
    }

    pub(super) fn notify(&self, changed: &[(Scope, u64)]) {
        let mut wakers = Vec::new();
        let watchers = self.0.lock();
        for (scope, number) in changed {
            let watcher = watchers.get(scope).into_iter().flatten();
            for watcher in watcher.filter_map(Weak::upgrade) {
                wakers.extend(watcher.0.lock().note(*number));
            }
        }
        drop(watchers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Adds a watcher of a scope.
    pub(super) fn add(&self, scope: Scope) -> Arc<WatcherState> {
        let watcher = Arc::new(WatcherState::default());
        let mut watchers = self.0.lock();
        let of_scope = watchers.entry(scope).or_default();
        of_scope.push(Arc::downgrade(&watcher));
        watcher
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().values().map(Vec::len).sum()
    }
}

impl WatcherState {
    /// Ready once there are changes to take.
    pub(super) fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut changes = self.0.lock();
        if changes.is_overrun || !changes.numbers.is_empty() {
            return Poll::Ready(());
        }
        changes.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes at most [`TAKEN_MAX`] changed conversations; `None` if too many changed to list them.
    pub(super) fn take(&self) -> Option<Vec<u64>> {
        let mut changes = self.0.lock();
        if std::mem::take(&mut changes.is_overrun) {
            changes.numbers.clear();
            return None;
        }
        let keep_from = changes.numbers.iter().nth(TAKEN_MAX).copied();
        let kept = keep_from.map_or_else(BTreeSet::new, |it| changes.numbers.split_off(&it));
        let taken = std::mem::replace(&mut changes.numbers, kept);
        Some(taken.into_iter().collect())
    }
}

impl PendingChanges {
    /// Adds a conversation. Returns the waker to call.
    fn note(&mut self, number: u64) -> Option<Waker> {
        match self.numbers.len() < CHANGED_MAX {
            true => _ = self.numbers.insert(number),
            false => self.is_overrun = true,
        }
        self.waker.take()
    }
}
