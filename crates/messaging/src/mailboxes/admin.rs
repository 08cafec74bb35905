//! Administration of mailboxes.

use std::sync::Arc;
use std::time::Duration;

use mailbox::record::Write;
use mailbox::{Cause, State as Waits};
use model::Name;
use store::{Kind, Location, StorageError};

use super::Mailboxes;
use super::error::MailboxError;
use super::slot::State;

/// A mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxView {
    /// `org/namespace/agent`.
    pub name: String,
    /// Number of unacknowledged messages, without dead letters.
    pub messages: usize,
    /// Number of dead letters.
    pub dead: usize,
    /// Size of messages and dead letters, including their overhead, in bytes.
    pub bytes: u64,
    /// Number of messages in delivery.
    pub unanswered: usize,
    /// The offset of the oldest message, if there is one.
    pub oldest: Option<u64>,
}

/// A selection of the messages of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Messages to be delivered.
    Live,
    /// Dead letters.
    Dead,
    /// Both.
    All,
}

impl Part {
    fn contains(self, state: Waits) -> bool {
        match self {
            Self::Live => !matches!(state, Waits::Dead(_)),
            Self::Dead => matches!(state, Waits::Dead(_)),
            Self::All => true,
        }
    }
}

/// A message in a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    /// The offset.
    pub offset: u64,
    /// The sender.
    pub sender: String,
    /// The method; empty for none.
    pub method: String,
    /// The time of the write, in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
    /// The time of expiry, in milliseconds since 1970-01-01 UTC.
    pub expires_ms: u64,
    /// Number of deliveries.
    pub deliveries: u32,
    /// The state of the delivery.
    pub state: &'static str,
    /// The time until the next delivery, for a message in a pause.
    pub pause: Option<Duration>,
    /// The cause of death of a dead letter: the end of its last delivery.
    pub cause: Option<&'static str>,
    /// The body.
    pub body: Vec<u8>,
}

impl Mailboxes {
    /// Returns the mailboxes with that name prefix after the name `after`, in order.
    pub fn list(
        self: &Arc<Self>,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<MailboxView>, MailboxError> {
        let names = self.store.names(Kind::Mailbox, prefix, after, limit);
        let view = |name: String| {
            self.wait_for_mailbox(&name, |_, state| MailboxView {
                name: name.clone(),
                messages: state.mailbox.live(),
                dead: state.mailbox.dead(),
                bytes: state.mailbox.bytes(),
                unanswered: state.mailbox.in_flight(),
                oldest: state.mailbox.pending(0).next().map(|it| it.offset),
            })
        };
        let views = names.into_iter().map(view);
        Ok(views.collect::<Result<_, StorageError>>()?)
    }

    /// Returns the messages of a mailbox from an offset on, oldest first, without delivering them.
    pub fn messages(
        self: &Arc<Self>,
        name: &str,
        part: Part,
        from: u64,
        limit: usize,
    ) -> Result<Vec<MessageView>, MailboxError> {
        let page = self.messages_page(name, part, from, limit, usize::MAX)?;
        Ok(page.0)
    }

    /// Like [`Mailboxes::messages`], without further messages once the bodies have `bytes_max` bytes.
    /// Also returns the offset of the next message, if there may be one.
    pub fn messages_page(
        self: &Arc<Self>,
        name: &str,
        part: Part,
        from: u64,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<MessageView>, Option<u64>), MailboxError> {
        let (location, listed) = self.with_mailbox_of(name, |state| {
            let now_ms = self.platform.unix_ms();
            (state.location, state.list(part, from, limit, now_ms))
        })?;
        let is_full = listed.len() == limit;
        let last = listed.last().map(|(_, view)| view.offset);
        // The mailbox is not locked during the reads.
        let (views, next) = self.read_listed(location, listed, bytes_max);
        let behind = last.filter(|_| is_full).map(|offset| offset + 1);
        Ok((views, next.or(behind)))
    }

    /// Acknowledges a message. Returns false if it is not in the mailbox.
    pub fn acknowledge(self: &Arc<Self>, name: &str, offset: u64) -> Result<bool, MailboxError> {
        self.with_mailbox_of(name, |state| {
            let is_there = state.mailbox.acknowledge(offset);
            // Writers get the error of a failed append.
            let _ = state.note(&self.store, self.platform.unix_ms());
            is_there
        })
    }

    /// Removes messages of a mailbox and returns their number.
    pub fn purge(self: &Arc<Self>, name: &str, part: Part) -> Result<usize, MailboxError> {
        self.with_mailbox_of(name, |state| {
            let count = state.mailbox.purge(|waits| part.contains(waits));
            // Writers get the error of a failed append.
            let _ = state.note(&self.store, self.platform.unix_ms());
            count
        })
    }

    /// Makes the dead letter at an offset, or all of them, deliverable again, and returns their
    /// number. They are delivered with the next sweep.
    pub fn retry(self: &Arc<Self>, name: &str, offset: Option<u64>) -> Result<usize, MailboxError> {
        self.with_mailbox_of(name, |state| {
            let count = match offset {
                Some(offset) => usize::from(state.mailbox.revive(offset)),
                None => state.mailbox.revive_all(),
            };
            // Writers get the error of a failed append.
            let _ = state.note(&self.store, self.platform.unix_ms());
            count
        })
    }

    /// Runs `then` with an existing mailbox.
    fn with_mailbox_of<R>(
        self: &Arc<Self>,
        name: &str,
        then: impl FnOnce(&mut State) -> R,
    ) -> Result<R, MailboxError> {
        let name = Name::parse(name)?;
        if self.store.find(Kind::Mailbox, name.base()).is_none() {
            return Err(MailboxError::Missing {
                name: name.base().to_owned(),
            });
        }
        Ok(self.wait_for_mailbox(name.base(), |_, state| then(state))?)
    }

    fn read_listed(
        &self,
        location: Option<Location>,
        listed: Vec<(u64, MessageView)>,
        bytes_max: usize,
    ) -> (Vec<MessageView>, Option<u64>) {
        let mut ahead = Vec::new();
        let mut read = |(record, view): (u64, MessageView)| {
            let stored = self.look_up(location?, record, &mut ahead)?;
            let write = Write::decode(stored.write()).ok()?;
            Some(MessageView {
                method: write.method.to_owned(),
                written_ms: stored.written_ms,
                body: write.body.to_vec(),
                ..view
            })
        };
        let (mut views, mut bytes) = (Vec::new(), 0);
        for message in listed {
            if bytes >= bytes_max {
                return (views, Some(message.1.offset));
            }
            if let Some(view) = read(message) {
                bytes += view.body.len();
                views.push(view);
            }
        }
        (views, None)
    }
}

impl State {
    /// Returns messages, each with the offset of the record that contains the rest of it.
    fn list(&self, part: Part, from: u64, limit: usize, now_ms: u64) -> Vec<(u64, MessageView)> {
        let pending = self.mailbox.pending(from);
        let pending = pending.filter(|it| part.contains(it.state)).take(limit);
        pending.map(|it| (it.record, view(&it, now_ms))).collect()
    }
}

/// Returns the fields of a message that the engine knows.
fn view(pending: &mailbox::Pending<'_>, now_ms: u64) -> MessageView {
    let (state, pause) = match pending.state {
        Waits::Unsynced => ("unsynced", None),
        Waits::Waiting => ("waiting", None),
        Waits::Unanswered => ("unanswered", None),
        Waits::Paused { until_ms } => {
            let pause = Duration::from_millis(until_ms.saturating_sub(now_ms));
            ("paused", Some(pause))
        }
        Waits::Dead(_) => ("dead", None),
    };
    let cause = match pending.state {
        Waits::Dead(Cause::Refused) => Some("refused"),
        Waits::Dead(Cause::Unanswered) => Some("unanswered"),
        _ => None,
    };
    MessageView {
        offset: pending.offset,
        sender: pending.sender.to_owned(),
        method: String::new(),
        written_ms: 0,
        expires_ms: pending.expires_ms,
        deliveries: pending.deliveries,
        state,
        pause,
        cause,
        body: Vec::new(),
    }
}
