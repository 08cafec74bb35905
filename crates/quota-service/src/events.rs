//! Events of quotas, for watchers.
//!
//! The newest events are stored once for all watchers; each watcher has its own position, and
//! learns how many events it missed if it was too slow. Without a watcher no events are stored.

mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Waker;

use parking_lot::Mutex;

pub use watch::Watch;

/// Number of events stored for slow watchers.
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
    ring: Mutex<EventRing>,
}

#[derive(Default)]
struct EventRing {
    events: VecDeque<Event>,
    next: u64,
    wakers: Vec<Waker>,
}

/// An item for a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// An event.
    Event(Event),
    /// The watcher was too slow and missed this many events.
    Missed(u64),
}
