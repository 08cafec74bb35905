//! Watches of inboxes: reports conversations that changed.
//!
//! A watcher is notified of conversation numbers and reads their current state later, so repeated
//! changes are reported once. A watcher that does not read holds a bounded set of numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use ::journal::StreamId;
use model::ErrorCode;
use parking_lot::Mutex;

use super::inbox::Line;
use super::scope::Scope;
use super::{Views, ViewsState};
use crate::conversations::Refusal;
use crate::node::{Inner, Node};

/// Maximum number of changed conversations that a watcher holds; beyond it, the whole inbox counts
/// as changed.
const CHANGED_MAX: usize = 10_000;

/// Maximum number of changes returned at a time.
const LINES_MAX: usize = 256;

/// The watchers, by scope.
#[derive(Default)]
pub(super) struct Watchers(Mutex<BTreeMap<Scope, Vec<Weak<WatcherState>>>>);

#[derive(Default)]
struct WatcherState(Mutex<PendingChanges>);

#[derive(Default)]
struct PendingChanges {
    numbers: BTreeSet<u64>,
    /// True if more conversations changed than are held.
    is_overrun: bool,
    waker: Option<Waker>,
}

/// A watch of one inbox, which reports changes after its creation.
pub struct InboxWatch {
    inner: Arc<Inner>,
    scope: Scope,
    watcher: Arc<WatcherState>,
}

/// A change of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// A conversation changed.
    Line(Line),
    /// A conversation left the inbox: `org/namespace/x`.
    Gone(String),
    /// Too many conversations changed to list them: read the inbox again.
    All,
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

    fn count(&self) -> usize {
        self.0.lock().values().map(Vec::len).sum()
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

impl Views<'_> {
    /// Watches an inbox in `org/namespace`. A caller that reads the inbox afterwards misses no
    /// change.
    pub fn watch_inbox(&self, namespace: &str, who: &str) -> Result<InboxWatch, Refusal> {
        let ViewsState {
            watchers, options, ..
        } = self.state;
        let max = options.watchers_max;
        if watchers.count() >= max {
            let message = format!("too many watched inboxes (limit {max}, views.watchers_max)");
            return Err(Refusal::new(ErrorCode::Busy, message));
        }
        let scope = Scope::namespace(namespace).participant(who);
        let watcher = Arc::new(WatcherState::default());
        let mut watchers = watchers.0.lock();
        watchers
            .entry(scope)
            .or_default()
            .push(Arc::downgrade(&watcher));
        Ok(InboxWatch {
            inner: self.inner.clone(),
            scope,
            watcher,
        })
    }
}

impl InboxWatch {
    /// Becomes ready once there are changes to take.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut changes = self.watcher.0.lock();
        if changes.is_overrun || !changes.numbers.is_empty() {
            return Poll::Ready(());
        }
        changes.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns some of the changes, with the current state of the conversations. If changes remain,
    /// the watch stays ready. Reads from disk.
    pub fn take(&self) -> Result<Vec<Changed>, Refusal> {
        let numbers: Vec<u64> = {
            let mut changes = self.watcher.0.lock();
            if std::mem::take(&mut changes.is_overrun) {
                changes.numbers.clear();
                return Ok(vec![Changed::All]);
            }
            let keep_from = changes.numbers.iter().nth(LINES_MAX).copied();
            let kept = keep_from.map_or_else(BTreeSet::new, |it| changes.numbers.split_off(&it));
            std::mem::replace(&mut changes.numbers, kept)
                .into_iter()
                .collect()
        };
        let handle = Node {
            inner: self.inner.clone(),
        };
        let Some(views) = handle.views() else {
            return Ok(Vec::new());
        };
        let (tables, _) = views.opened()?;
        let changed = numbers.into_iter().filter_map(|number| {
            let row = match tables.row(number) {
                Ok(row) => row,
                Err(damage) => return Some(Err(damage.into())),
            };
            let line = row.map(|row| views.line(&tables, self.scope, number, &row));
            match line.transpose().map(Option::flatten) {
                Ok(Some(line)) => Some(Ok(Changed::Line(line))),
                Ok(None) => {
                    let (_, name, _) = views.store.named(StreamId(number))?;
                    Some(Ok(Changed::Gone(name)))
                }
                Err(error) => Some(Err(error)),
            }
        });
        views.walked(changed.collect())
    }
}
