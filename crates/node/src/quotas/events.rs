//! Events of quotas, for watchers.
//!
//! The newest events are stored once for all watchers; each watcher has its own position, and
//! learns how many events it missed if it was too slow. Without a watcher no events are stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

use super::Quotas;
use crate::node::Inner;

/// Number of events kept for slow watchers.
const EVENTS_MAX: usize = 4_096;
/// Maximum number of watchers.
const WATCHERS_MAX: usize = 1_024;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Sequence number since the node was started.
    pub number: u64,
    /// Time of the event, in nanoseconds since 1970-01-01 UTC.
    pub at_ns: u64,
    /// The subject, prefix or limit concerned; may be empty.
    pub about: Box<str>,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A take was denied.
    Denied {
        /// The limit that denied it.
        limit: Arc<str>,
    },
    /// Usage crossed a warning threshold of a limit; reported once until usage falls below it
    /// again.
    Threshold {
        /// The limit.
        limit: Arc<str>,
        /// The threshold, in thousandths of the capacity.
        share: u16,
    },
    /// The limits were replaced.
    Policies,
    /// A limit's factor was changed.
    Factor,
    /// A prefix was halted.
    Halted,
    /// A halt was ended.
    Resumed,
    /// A bucket's override was set.
    Override,
    /// A bucket's override ended.
    OverrideEnded,
    /// Usage was reset.
    Reset,
}

/// The newest events.
#[derive(Default)]
pub(super) struct Events {
    watchers: AtomicUsize,
    kept: Mutex<EventRing>,
}

#[derive(Default)]
struct EventRing {
    events: VecDeque<Event>,
    next: u64,
    wakers: Vec<Waker>,
}

/// A watcher, registered until it is dropped.
pub struct Watch {
    inner: Arc<Inner>,
    next: u64,
}

/// An item for a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// An event.
    Event(Event),
    /// The watcher was too slow and missed this many events.
    Missed(u64),
}

impl Quotas<'_> {
    /// Watches events from now on; `None` if there are too many watchers.
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

    /// Like [`Quotas::watch`], from an event number of this start of the node on; events that are
    /// no longer stored count as missed.
    pub fn watch_from(self, number: u64) -> Option<Watch> {
        let mut watch = self.watch()?;
        watch.next = watch.next.min(number);
        Some(watch)
    }

    /// Publishes an event, if anyone watches.
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
    /// Returns the next event; if there is none, registers the waker.
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
