//! Watching events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use super::{EVENTS_MAX, Event, EventKind, WATCHERS_MAX, WatchItem};
use crate::service::{QuotaService, Quotas};

/// A watcher, registered until it is dropped.
pub struct Watch {
    service: Arc<QuotaService>,
    next: u64,
}

impl Quotas<'_> {
    /// Watches events from now on; `None` if there are too many watchers.
    pub fn watch(self) -> Option<Watch> {
        let events = &self.state().events;
        let ring = events.ring.lock();
        if events.watchers.load(Ordering::Relaxed) >= WATCHERS_MAX {
            return None;
        }
        events.watchers.fetch_add(1, Ordering::Relaxed);
        let next = ring.next;
        drop(ring);
        let service = self.service.clone();
        Some(Watch { service, next })
    }

    /// Like [`Quotas::watch`], from an event number of this start of the node on; events that are
    /// no longer stored count as missed.
    pub fn watch_from(self, number: u64) -> Option<Watch> {
        let mut watch = self.watch()?;
        watch.next = watch.next.min(number);
        Some(watch)
    }

    /// Publishes an event, if anyone watches.
    pub(crate) fn tell(self, about: &str, kind: impl FnOnce() -> EventKind) {
        let events = &self.state().events;
        if events.watchers.load(Ordering::Relaxed) == 0 {
            return;
        }
        let at_ns = self.now_ns();
        let mut ring = events.ring.lock();
        let event = Event {
            number: ring.next,
            at_ns,
            about: about.into(),
            kind: kind(),
        };
        ring.next += 1;
        if ring.events.len() == EVENTS_MAX {
            ring.events.pop_front();
        }
        ring.events.push_back(event);
        let wakers = std::mem::take(&mut ring.wakers);
        drop(ring);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Watch {
    /// Returns the next event; if there is none, registers the waker.
    pub fn next(&mut self, waker: &Waker) -> Option<WatchItem> {
        let mut ring = self.service.events.ring.lock();
        let first = ring.next - ring.events.len() as u64;
        if self.next < first {
            let missed = first - self.next;
            self.next = first;
            return Some(WatchItem::Missed(missed));
        }
        let event = ring.events.get((self.next - first) as usize).cloned();
        match event {
            Some(event) => {
                self.next += 1;
                Some(WatchItem::Event(event))
            }
            None => {
                if !ring.wakers.iter().any(|known| known.will_wake(waker)) {
                    ring.wakers.push(waker.clone());
                }
                None
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let events = &self.service.events;
        let mut ring = events.ring.lock();
        if events.watchers.fetch_sub(1, Ordering::Relaxed) == 1 {
            ring.events.clear();
            ring.wakers.clear();
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watch({})", self.next)
    }
}
