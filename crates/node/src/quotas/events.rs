//! What happens to quotas, for whoever watches.
//!
//! The newest events are kept once, for all: a watcher remembers how far it has come, and is told how
//! many it has missed if it was too slow. Without a watcher nothing is kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

use super::Quotas;
use crate::handle::Inner;

/// Events that a slow watcher finds again.
const EVENTS_MAX: usize = 4_096;
/// Those who watch, at most.
const WATCHERS_MAX: usize = 1_024;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Counts events since the node was started.
    pub number: u64,
    /// When, in nanoseconds since 1970-01-01 UTC.
    pub at_ns: u64,
    /// To whom: a subject, a prefix, a limit, or nothing.
    pub about: Box<str>,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A take was denied.
    Denied {
        /// By which limit.
        limit: Arc<str>,
    },
    /// More than a share of what there is has been taken: told once, until it is there again.
    Threshold {
        /// Of which limit.
        limit: Arc<str>,
        /// In thousandths.
        share: u16,
    },
    /// The limits are others.
    Policies,
    /// A limit's factor is another.
    Factor,
    /// Nothing is admitted for a prefix.
    Halted,
    /// It is again.
    Resumed,
    /// Something else stands for a bucket.
    Override,
    /// The limit stands again.
    OverrideEnded,
    /// What was used counts no more.
    Reset,
}

/// The newest events.
#[derive(Default)]
pub(super) struct Events {
    watchers: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    events: VecDeque<Event>,
    next: u64,
    wakers: Vec<Waker>,
}

/// Somebody watches, until this is dropped.
pub struct Watch {
    inner: Arc<Inner>,
    next: u64,
}

/// What a watcher is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// What happened.
    Event(Event),
    /// So many events were too many.
    Missed(u64),
}

impl Quotas<'_> {
    /// Watches what happens from now on; `None` if as many watch as may.
    pub fn watch(self) -> Option<Watch> {
        let events = &self.state().events;
        let kept = events.kept.lock();
        if events.watchers.load(Ordering::Relaxed) >= WATCHERS_MAX {
            return None;
        }
        events.watchers.fetch_add(1, Ordering::Relaxed);
        let next = kept.next;
        drop(kept);
        let inner = self.inner.clone();
        Some(Watch { inner, next })
    }

    /// The same from the event of that number on, of this start of the node; whatever is not kept any
    /// more was missed.
    pub fn watch_from(self, number: u64) -> Option<Watch> {
        let mut watch = self.watch()?;
        watch.next = watch.next.min(number);
        Some(watch)
    }

    /// Tells whoever watches.
    pub(super) fn tell(self, about: &str, kind: impl FnOnce() -> EventKind) {
        let events = &self.state().events;
        if events.watchers.load(Ordering::Relaxed) == 0 {
            return;
        }
        let at_ns = self.now_ns();
        let mut kept = events.kept.lock();
        let event = Event {
            number: kept.next,
            at_ns,
            about: about.into(),
            kind: kind(),
        };
        kept.next += 1;
        if kept.events.len() == EVENTS_MAX {
            kept.events.pop_front();
        }
        kept.events.push_back(event);
        let wakers = std::mem::take(&mut kept.wakers);
        drop(kept);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Watch {
    /// The next event; if there is none, the waker is woken once there is.
    pub fn next(&mut self, waker: &Waker) -> Option<Watched> {
        let mut kept = self.inner.quotas.events.kept.lock();
        let first = kept.next - kept.events.len() as u64;
        if self.next < first {
            let missed = first - self.next;
            self.next = first;
            return Some(Watched::Missed(missed));
        }
        let event = kept.events.get((self.next - first) as usize).cloned();
        match event {
            Some(event) => {
                self.next += 1;
                Some(Watched::Event(event))
            }
            None => {
                if !kept.wakers.iter().any(|known| known.will_wake(waker)) {
                    kept.wakers.push(waker.clone());
                }
                None
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let events = &self.inner.quotas.events;
        let mut kept = events.kept.lock();
        if events.watchers.fetch_sub(1, Ordering::Relaxed) == 1 {
            kept.events.clear();
            kept.wakers.clear();
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watch({})", self.next)
    }
}
