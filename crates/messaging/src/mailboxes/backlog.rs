//! Backlogs of mailboxes for monitoring: the number of waiting messages, and the age of the oldest.
//!
//! The backlog of a loaded mailbox is read from it. For an unloaded mailbox that was not empty, its
//! last numbers are remembered. After a start, every mailbox with records is loaded once in the
//! background, a few at a time; until then its messages are not counted.
//!
//! The sums and the order by size are updated with every change, so that the largest of a million
//! mailboxes are found without reading the others.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mailbox::State as Waits;
use parking_lot::Mutex;
use store::Kind;

use super::Mailboxes;
use super::slot::State;

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

/// Numbers of the mailboxes that have messages.
#[derive(Debug, Default)]
pub(super) struct Backlogs(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    by_name: HashMap<Arc<str>, Numbers>,
    /// Mailboxes of `by_name`, those with the most messages first.
    by_size: BTreeSet<(Reverse<Size>, Arc<str>)>,
    /// Sums of all.
    total: Size,
}

/// Messages and dead letters.
type Size = (usize, usize);

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

    fn size(&self) -> Size {
        (self.messages, self.dead)
    }
}

impl Backlogs {
    /// Stores the numbers of a mailbox.
    pub(super) fn note(&self, name: &Arc<str>, state: &State) {
        let mut numbers = Numbers::of(state);
        let mut index = self.0.lock();
        let before = index.by_name.get(name);
        numbers.written_ms = before
            .filter(|before| before.oldest == numbers.oldest)
            .and_then(|before| before.written_ms);
        index.put(name, numbers);
    }

    /// Sums of all mailboxes, how many have messages or dead letters, and the numbers of the `limit`
    /// with the most messages, largest first.
    fn largest(&self, limit: usize) -> (Size, usize, Vec<(Arc<str>, Numbers)>) {
        let index = self.0.lock();
        let largest = index.by_size.iter().take(limit);
        let largest = largest
            .filter_map(|(_, name)| Some((name.clone(), *index.by_name.get(name)?)))
            .collect();
        (index.total, index.by_name.len(), largest)
    }

    /// Stores the write time of the oldest message of a mailbox, if it still is the oldest.
    fn note_written(&self, name: &str, oldest: u64, written_ms: u64) {
        if let Some(numbers) = self.0.lock().by_name.get_mut(name)
            && numbers.oldest == Some(oldest)
        {
            numbers.written_ms = Some(written_ms);
        }
    }
}

impl Index {
    fn put(&mut self, name: &Arc<str>, numbers: Numbers) {
        let size = numbers.size();
        let before = match size {
            (0, 0) => self.by_name.remove(name),
            _ => self.by_name.insert(name.clone(), numbers),
        };
        let before = before.map_or((0, 0), |before| before.size());
        self.total.0 = self.total.0 - before.0 + size.0;
        self.total.1 = self.total.1 - before.1 + size.1;
        if before != size {
            self.by_size.remove(&(Reverse(before), name.clone()));
            if size != (0, 0) {
                self.by_size.insert((Reverse(size), name.clone()));
            }
        }
    }
}

impl Mailboxes {
    /// Returns the backlog of all mailboxes, and lists at most `limit` of them by name. May read
    /// from disk: call it only on threads that may block.
    pub fn backlog(&self, limit: usize) -> Backlog {
        self.note_loaded();
        let now_ms = self.platform.unix_ms();
        let ((messages, dead), count, largest) = self.backlogs.largest(limit);
        Backlog {
            messages,
            dead,
            omitted: count.saturating_sub(limit),
            mailboxes: largest
                .iter()
                .map(|(name, it)| self.mailbox_backlog(name, it, now_ms))
                .collect(),
        }
    }

    fn note_loaded(&self) {
        for slot in self.loaded.all() {
            if let Some(state) = slot.lock_loaded() {
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
        let location = self.store.find(Kind::Mailbox, name)?;
        let found = self.look_up(location, record, &mut Vec::new())?;
        self.backlogs.note_written(name, record, found.written_ms);
        Some(found.written_ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn backlog_totals_and_ranking_use_the_newest_counts(
            notes in proptest::collection::vec((0..6_u8, 0..4_usize, 0..2_usize), 0..40),
            limit in 0..8_usize,
        ) {
            let backlogs = Backlogs::default();
            let mut newest = std::collections::BTreeMap::new();
            for (name, messages, dead) in notes {
                let name: Arc<str> = format!("o/n/{name}").into();
                let numbers = Numbers { messages, dead, ..Numbers::default() };
                backlogs.0.lock().put(&name, numbers);
                newest.insert(name, (messages, dead));
            }
            newest.retain(|_, size| *size != (0, 0));
            let (total, count, largest) = backlogs.largest(limit);
            let sum = |of: fn(&Size) -> usize| newest.values().map(of).sum::<usize>();
            prop_assert_eq!(total, (sum(|it| it.0), sum(|it| it.1)));
            prop_assert_eq!(count, newest.len());
            let mut expected: Vec<_> = newest.into_iter().collect();
            expected.sort_by_key(|(name, size)| (Reverse(*size), name.clone()));
            expected.truncate(limit);
            let largest = largest.iter().map(|(name, it)| (name.clone(), it.size()));
            prop_assert_eq!(largest.collect::<Vec<_>>(), expected);
        }
    }
}
