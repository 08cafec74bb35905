//! Views of conversations: lists, inboxes, what is over, what is due to whom.
//!
//! A view is derived: it is made from the events of conversations and can be made anew from the
//! directory and the conversations themselves at any time. So it lies in an embedded store beside
//! the journal, need not be durable at once, and is thrown away when it is missing, damaged, or of
//! another layout or journal. Nobody who appends waits for it; whoever asks has it catch up first,
//! and finds what he wrote.
//!
//! Invariant: *what a view shows follows from what is durable, however it came to know it.*
//!
//! It does not know JSON: what metadata says comes through [`Labels`].

mod advance;
mod catch_up;
mod damage;
mod entry;
mod expiry;
mod file;
mod inbox;
mod journal;
mod list;
mod scope;
mod source;
mod tables;
#[cfg(test)]
mod tests;
mod walk;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use model::ErrorCode;
use parking_lot::Mutex;

use catch_up::{CatchUp, Failure, Making, Taken, Watched};
use damage::Damage;
pub use expiry::Due;
pub use file::Place;
pub use inbox::{Inbox, InboxQuery, Last, Line};
use journal::{Found, Journaled};
pub use list::{Archived, Cursor, ListQuery, Listed, Listing, NoCursor};
use tables::{Sync, Tables};
use watch::Watchers;
pub use watch::{Changed, InboxWatch};

use crate::conversations::Refusal;
use crate::counters::Counter;
use crate::handle::{Handle, Inner};
use crate::store::Store;

/// Tells what metadata has under which key: the outside knows what metadata looks like.
pub type Labels = fn(&[u8], &mut dyn FnMut(&str, &str));

/// How the views are kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where.
    pub place: Place,
    /// Bytes of them in memory.
    pub cache_size: usize,
    /// How long a crash may throw them back: what happened since is taken again.
    pub sync_interval: Duration,
    /// Inboxes that are watched.
    pub watchers_max: usize,
    /// What metadata has under which key.
    pub labels: Labels,
}

/// How long whoever asks waits for the views to catch up, at most.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Conversations that are not durable as they are now, about: the pages that they take the place of
/// stay in the file until they are.
const UNSYNCED_MAX: u64 = 20_000;

/// The views of a node, and what is known of how they stand.
pub(crate) struct Kept {
    options: Options,
    opened: Mutex<Option<Opened>>,
    found: Mutex<Found>,
    watchers: Watchers,
    /// Whether they were made and could be used the last time.
    is_ready: AtomicBool,
    /// Events that were taken.
    taken: AtomicU64,
}

/// How the views stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether they were made and could be used the last time.
    pub is_ready: bool,
    /// Events that are durable and not in them.
    pub lag_events: u64,
}

struct Opened {
    tables: Arc<Tables>,
    catch_up: CatchUp,
    /// When they were last made durable, and whether anything was taken since.
    synced_ns: u64,
    is_dirty: bool,
}

/// The views of a node. What they answer may read from disk: not for a thread that serves others.
#[derive(Clone, Copy)]
pub struct Views<'a> {
    inner: &'a Arc<Inner>,
    store: &'a Store,
    kept: &'a Kept,
}

impl Handle {
    /// Keeps views from now on. Only the first call counts.
    pub fn keep_views(&self, options: Options) {
        // A node has one shell.
        let _ = self.inner.views.set(Kept {
            options,
            opened: Mutex::default(),
            found: Mutex::default(),
            watchers: Watchers::default(),
            is_ready: AtomicBool::new(false),
            taken: AtomicU64::new(0),
        });
    }

    /// The views; `None` for a node that keeps none.
    pub fn views(&self) -> Option<Views<'_>> {
        Some(Views {
            inner: &self.inner,
            store: self.inner.store.as_ref()?,
            kept: self.inner.views.get()?,
        })
    }
}

impl Views<'_> {
    /// Takes a part of what has happened, or erases conversations that are over. True if there may
    /// be more. The shell calls it now and then, and again at once as long as it returns true.
    pub fn tend(&self) -> Result<bool, Refusal> {
        match self.step(None)? {
            Taken::Some => Ok(true),
            Taken::Nothing => self.expire(),
        }
    }

    /// How they stand. Nothing is read for it.
    pub fn standing(&self) -> Standing {
        let ends: u64 = self.source().ends().iter().sum();
        Standing {
            is_ready: self.kept.is_ready.load(Ordering::Relaxed),
            lag_events: ends.saturating_sub(self.kept.taken.load(Ordering::Relaxed)),
        }
    }

    fn handle(&self) -> Handle {
        Handle {
            inner: self.inner.clone(),
        }
    }

    /// Waits until the views know all that is durable now.
    fn catch_up(&self) -> Result<Arc<Tables>, Refusal> {
        let clock = &self.inner.ports.clock;
        let deadline = clock.now_ns().saturating_add(PATIENCE_NS);
        // What happens while it catches up is for whoever asks next.
        let ends = self.source().ends();
        while self.step(Some(&ends))? == Taken::Some {
            if clock.now_ns() > deadline {
                return Err(self.late());
            }
        }
        let tables = self.opened()?;
        match tables.1 {
            None => Ok(tables.0),
            Some(_) => Err(self.late()),
        }
    }

    /// One batch, unless the events are taken up to these ends already.
    fn step(&self, ends: Option<&[u64]>) -> Result<Taken, Refusal> {
        let mut opened = self.kept.opened.lock();
        let scopes = self.kept.watchers.scopes();
        let mut watched = Watched {
            scopes: &scopes,
            changed: Vec::new(),
        };
        let taken = self.step_opened(&mut opened, ends, &mut watched);
        let taken = taken.map_err(|failure| self.fail(&mut opened, &failure));
        self.note(opened.as_ref());
        drop(opened);
        self.kept.watchers.tell(&watched.changed);
        taken
    }

    /// Takes note of how they stand.
    fn note(&self, opened: Option<&Opened>) {
        let (is_built, taken) = opened.map_or((false, 0), |it| it.catch_up.progress());
        self.kept.is_ready.store(is_built, Ordering::Relaxed);
        self.kept.taken.store(taken, Ordering::Relaxed);
    }

    fn step_opened(
        &self,
        opened: &mut Option<Opened>,
        ends: Option<&[u64]>,
        watched: &mut Watched<'_>,
    ) -> Result<Taken, Failure> {
        let now_ns = self.inner.ports.clock.now_ns();
        let opened = match opened {
            Some(opened) => opened,
            None => {
                let Options {
                    place, cache_size, ..
                } = &self.kept.options;
                let tables = file::open(place, self.store.journal.id(), *cache_size)?;
                opened.insert(Opened {
                    tables: Arc::new(tables),
                    catch_up: CatchUp::default(),
                    synced_ns: now_ns,
                    is_dirty: false,
                })
            }
        };
        let Opened {
            tables, catch_up, ..
        } = opened;
        if ends.is_some_and(|ends| catch_up.has_reached(ends)) {
            return Ok(Taken::Nothing);
        }
        let interval_ns = self.kept.options.sync_interval.as_nanos() as u64;
        let is_due = now_ns.saturating_sub(opened.synced_ns) >= interval_ns;
        let is_much = catch_up.looked_at >= UNSYNCED_MAX;
        let sync = match opened.is_dirty && (is_due || is_much) {
            true => Sync::Now,
            false => Sync::Later,
        };
        let before = catch_up.looked_at;
        let taken = catch_up.step(tables, &self.source(), sync, watched)?;
        let updated = catch_up.looked_at - before;
        self.inner.counters.add_to(Counter::ViewUpdates, updated);
        match (taken, sync) {
            (Taken::Nothing, Sync::Later) => {}
            (Taken::Some, Sync::Later) => opened.is_dirty = true,
            (taken, Sync::Now) => {
                if taken == Taken::Nothing {
                    tables.write(Sync::Now, |_| Ok::<_, Damage>(()))?;
                }
                (opened.is_dirty, opened.synced_ns) = (false, now_ns);
                catch_up.looked_at = 0;
            }
        }
        Ok(taken)
    }

    /// The tables as they are, and how far they are made while they are not complete.
    fn opened(&self) -> Result<(Arc<Tables>, Option<Making>), Refusal> {
        let mut opened = self.kept.opened.lock();
        let Some(Opened {
            tables, catch_up, ..
        }) = &*opened
        else {
            return Err(unavailable("the views are being opened"));
        };
        match catch_up.making(tables) {
            Ok(making) => Ok((tables.clone(), making)),
            Err(damage) => Err(self.fail(&mut opened, &damage.into())),
        }
    }

    /// What is told when the views are not ready in time.
    fn late(&self) -> Refusal {
        match self.opened() {
            Ok((_, Some(Making { next, end }))) => unavailable(format!(
                "the views of conversations are being made: {next} of {end} streams looked at"
            )),
            _ => unavailable("the views of conversations have not caught up yet"),
        }
    }

    /// Lets go of what cannot be used: the next who asks opens it again, or makes it anew.
    fn fail(&self, opened: &mut Option<Opened>, failure: &Failure) -> Refusal {
        self.inner.counters.count(Counter::ViewFailures);
        let is_lost = match failure {
            Failure::Lost => true,
            Failure::Damage(damage) => {
                *opened = None;
                damage.is_lasting()
            }
            Failure::Events(_) => false,
        };
        if is_lost {
            *opened = None;
            // What cannot be removed is found damaged again.
            let _ = file::remove(&self.kept.options.place);
        }
        unavailable(failure.to_string())
    }

    /// What was read of the tables; if it could not be, they are let go of.
    fn checked<R>(&self, read: Result<R, Damage>) -> Result<R, Refusal> {
        read.map_err(|damage| self.fail(&mut self.kept.opened.lock(), &damage.into()))
    }

    fn source(&self) -> Journaled<'_> {
        Journaled {
            store: self.store,
            labels: self.kept.options.labels,
            found: &self.kept.found,
        }
    }
}

fn unavailable(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::Unavailable, message)
}
