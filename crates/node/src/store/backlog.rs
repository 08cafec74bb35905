//! Backlogs of mailboxes for monitoring: the number of waiting messages, and the age of the oldest.
//!
//! The backlog of a loaded mailbox is read from it. For an unloaded mailbox that was not empty, its
//! last numbers are remembered. After a start, every mailbox with records is loaded once in the
//! background, a few at a time; until then its messages are not counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::mailbox::State as Waits;
use parking_lot::Mutex;

use super::Store;
use super::directory::Kind;
use super::load::loaded;
use super::mailbox::State;
use crate::handle::Handle;

/// The backlog of one mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxBacklog {
    /// `org/namespace/agent`.
    pub name: String,
    /// Number of unacknowledged messages, without dead letters.
    pub messages: usize,
    /// Number of dead letters.
    pub dead: usize,
    /// Age of the oldest unacknowledged message; `None` if there is none or it cannot be read.
    pub oldest_age: Option<Duration>,
}

/// The backlog of all mailboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of unacknowledged messages in all mailboxes, without dead letters.
    pub messages: usize,
    /// Number of dead letters in all mailboxes.
    pub dead: usize,
    /// The mailboxes with the most messages, largest first.
    pub mailboxes: Vec<MailboxBacklog>,
    /// Number of mailboxes with messages that are not in the list.
    pub omitted: usize,
}

/// The numbers of the mailboxes with messages, by name.
#[derive(Debug, Default)]
pub(super) struct Backlogs(Mutex<HashMap<Arc<str>, Numbers>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    messages: usize,
    dead: usize,
    /// Offset of the record of the oldest unacknowledged message.
    oldest: Option<u64>,
    /// The time at which that record was written, once it was read.
    written_ms: Option<u64>,
}

impl Numbers {
    fn of(state: &State) -> Self {
        let mailbox = &state.mailbox;
        let mut pending = mailbox.pending(0);
        let oldest = pending.find(|it| !matches!(it.state, Waits::Dead(_)));
        Self {
            messages: mailbox.live(),
            dead: mailbox.dead(),
            oldest: oldest.map(|it| it.record),
            written_ms: None,
        }
    }
}

impl Backlogs {
    /// Stores the numbers of a mailbox.
    pub(super) fn note(&self, name: &Arc<str>, state: &State) {
        let mut numbers = Numbers::of(state);
        let mut backlogs = self.0.lock();
        if numbers.messages + numbers.dead == 0 {
            backlogs.remove(name);
            return;
        }
        let before = backlogs.get(name);
        numbers.written_ms = before
            .filter(|before| before.oldest == numbers.oldest)
            .and_then(|before| before.written_ms);
        backlogs.insert(name.clone(), numbers);
    }

    fn all(&self) -> Vec<(Arc<str>, Numbers)> {
        let backlogs = self.0.lock();
        backlogs
            .iter()
            .map(|(name, it)| (name.clone(), *it))
            .collect()
    }

    /// Stores the write time of the oldest message of a mailbox, if it still is the oldest.
    fn note_written(&self, name: &str, oldest: u64, written_ms: u64) {
        if let Some(numbers) = self.0.lock().get_mut(name)
            && numbers.oldest == Some(oldest)
        {
            numbers.written_ms = Some(written_ms);
        }
    }
}

impl Handle {
    /// Returns the backlog of all mailboxes, and lists at most `limit` of them by name. May read
    /// from disk: call it only on threads that may block.
    pub fn backlog(&self, limit: usize) -> Backlog {
        let Some(store) = &self.inner.store else {
            return Backlog::default();
        };
        store.note_loaded();
        let now_ms = self.inner.ports.clock.unix_ms();
        let mut all = store.backlogs.all();
        all.sort_unstable_by(|(name, one), (other_name, other)| {
            let by_count = (other.messages, other.dead).cmp(&(one.messages, one.dead));
            by_count.then_with(|| name.cmp(other_name))
        });
        let sum = |number: fn(&Numbers) -> usize| all.iter().map(|(_, it)| number(it)).sum();
        Backlog {
            messages: sum(|it| it.messages),
            dead: sum(|it| it.dead),
            omitted: all.len().saturating_sub(limit),
            mailboxes: all
                .iter()
                .take(limit)
                .map(|(name, it)| store.mailbox_backlog(name, it, now_ms))
                .collect(),
        }
    }
}

impl Store {
    fn note_loaded(&self) {
        let slots: Vec<_> = self.loaded.lock().values().cloned().collect();
        for slot in slots {
            if let Some(state) = loaded(slot.stage.lock()) {
                self.backlogs.note(&slot.name, &state);
            }
        }
    }

    fn mailbox_backlog(&self, name: &str, numbers: &Numbers, now_ms: u64) -> MailboxBacklog {
        let look_up = || self.look_up_written(name, numbers.oldest?);
        let written_ms = numbers.written_ms.or_else(look_up);
        MailboxBacklog {
            name: name.to_owned(),
            messages: numbers.messages,
            dead: numbers.dead,
            oldest_age: written_ms.map(|it| Duration::from_millis(now_ms.saturating_sub(it))),
        }
    }

    fn look_up_written(&self, name: &str, record: u64) -> Option<u64> {
        let location = self.find(Kind::Mailbox, name)?;
        let found = self.look_up(location, record, &mut Vec::new())?;
        self.backlogs.note_written(name, record, found.written_ms);
        Some(found.written_ms)
    }
}
