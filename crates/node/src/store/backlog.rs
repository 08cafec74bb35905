//! Backlog of mailboxes for monitoring: how many messages wait in each, and since when.
//!
//! A loaded mailbox is asked. A mailbox that was let go is remembered with the numbers it had then,
//! if it was not empty. After a start every mailbox with records is loaded once in the background,
//! a few at a time; until then its messages are not counted.

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

/// Backlog of one mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxBacklog {
    /// `org/namespace/agent`.
    pub name: String,
    /// Unacknowledged messages without dead letters.
    pub messages: usize,
    /// Dead letters.
    pub dead: usize,
    /// Age of the oldest unacknowledged message; absent for none, and when it cannot be read.
    pub oldest_age: Option<Duration>,
}

/// Backlog of all mailboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Unacknowledged messages without dead letters, of all mailboxes.
    pub messages: usize,
    /// Dead letters of all mailboxes.
    pub dead: usize,
    /// The mailboxes with the most messages, largest first.
    pub mailboxes: Vec<MailboxBacklog>,
    /// Mailboxes with messages that are not in the list.
    pub omitted: usize,
}

/// Numbers of the mailboxes that have messages, by name.
#[derive(Debug, Default)]
pub(super) struct Backlogs(Mutex<HashMap<Arc<str>, Numbers>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    messages: usize,
    dead: usize,
    /// Offset of the record of the oldest unacknowledged message.
    oldest: Option<u64>,
    /// When that record was written, once it was looked up.
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
    /// Remembers the numbers of a mailbox.
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

    /// Remembers when the oldest message of a mailbox was written, if it still is the oldest.
    fn note_written(&self, name: &str, oldest: u64, written_ms: u64) {
        if let Some(numbers) = self.0.lock().get_mut(name)
            && numbers.oldest == Some(oldest)
        {
            numbers.written_ms = Some(written_ms);
        }
    }
}

impl Handle {
    /// The backlog of all mailboxes, with at most `limit` of them by name. The time of a mailbox's
    /// oldest message may be read from the disk: not for a thread that serves connections.
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
