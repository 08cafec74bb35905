//! Administration of mailboxes and raw streams.

use std::time::Duration;

use ::mailbox::record::Write;
use ::mailbox::{Cause, State as Waits};
use journal::Health;
use model::{ErrorCode, Name};

use super::Store;
use super::directory::{Kind, Location};
use super::mailbox::State;
use crate::node::{Inner, Node};

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

/// A raw stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// `org/namespace/x`.
    pub name: String,
    /// The oldest retained offset.
    pub start: u64,
    /// The offset after the newest durable record.
    pub next: u64,
}

/// The amount of stored data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Number of streams of all kinds ever created.
    pub streams: usize,
    /// Number of loaded mailboxes.
    pub mailboxes_loaded: usize,
    /// The statistics of the journal.
    pub journal: journal::Stats,
}

/// An error of an administrative request: a code and a text.
pub type AdminError = (ErrorCode, String);

impl Node {
    /// Returns the mailboxes with that name prefix after the name `after`, in order.
    pub fn mailboxes(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<MailboxView>, AdminError> {
        let store = self.store()?;
        let names = store.names(Kind::Mailbox, prefix, after, limit);
        let view = |name: String| {
            store.wait_for_mailbox(&self.inner, &name, |_, state| MailboxView {
                name: name.clone(),
                messages: state.mailbox.live(),
                dead: state.mailbox.dead(),
                bytes: state.mailbox.bytes(),
                unanswered: state.mailbox.in_flight(),
                oldest: state.mailbox.pending(0).next().map(|it| it.offset),
            })
        };
        names.into_iter().map(view).collect()
    }

    /// Returns the messages of a mailbox from an offset on, oldest first, without delivering them.
    pub fn messages(
        &self,
        name: &str,
        part: Part,
        from: u64,
        limit: usize,
    ) -> Result<Vec<MessageView>, AdminError> {
        let (location, listed) = self.with_mailbox(name, |_, inner, state| {
            let now_ms = inner.platform.ports.clock.unix_ms();
            (state.location, state.list(part, from, limit, now_ms))
        })?;
        // The mailbox is not locked during the reads.
        Ok(self.store()?.read_listed(location, listed))
    }

    /// Acknowledges a message. Returns false if it is not in the mailbox.
    pub fn acknowledge(&self, name: &str, offset: u64) -> Result<bool, AdminError> {
        self.with_mailbox(name, |store, inner, state| {
            let is_there = state.mailbox.acknowledge(offset);
            state.note(store, inner.platform.ports.clock.unix_ms());
            is_there
        })
    }

    /// Removes messages of a mailbox and returns their number.
    pub fn purge(&self, name: &str, part: Part) -> Result<usize, AdminError> {
        self.with_mailbox(name, |store, inner, state| {
            let count = state.mailbox.purge(|waits| part.contains(waits));
            state.note(store, inner.platform.ports.clock.unix_ms());
            count
        })
    }

    /// Makes the dead letter at an offset, or all of them, deliverable again, and returns their
    /// number. They are delivered with the next sweep.
    pub fn retry(&self, name: &str, offset: Option<u64>) -> Result<usize, AdminError> {
        self.with_mailbox(name, |store, inner, state| {
            let count = match offset {
                Some(offset) => usize::from(state.mailbox.revive(offset)),
                None => state.mailbox.revive_all(),
            };
            state.note(store, inner.platform.ports.clock.unix_ms());
            count
        })
    }

    /// Returns the raw streams with that name prefix after the name `after`, in order.
    pub fn streams(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<StreamView>, AdminError> {
        let store = self.store()?;
        let names = store.names(Kind::Raw, prefix, after, limit);
        let view = |name: String| {
            let location = store.find(Kind::Raw, &name)?;
            let state = store.journal.stream(location.shard, location.stream);
            Some(StreamView {
                name,
                start: state.map_or(0, |state| state.start),
                next: state.map_or(0, |state| state.next_durable),
            })
        };
        Ok(names.into_iter().filter_map(view).collect())
    }

    /// Returns the amount of stored data; `None` for a node without storage.
    pub fn stored(&self) -> Option<Stored> {
        let store = self.inner.store.as_ref()?;
        Some(Stored {
            streams: store.stream_count(),
            mailboxes_loaded: store.loaded_count(),
            journal: store.journal.stats(),
        })
    }

    /// Returns the reason why nothing can be stored, if there is one.
    pub fn unhealthy(&self) -> Option<String> {
        let store = self.inner.store.as_ref()?;
        match store.journal.health() {
            Health::Serving | Health::FilingRetrying { .. } => None,
            Health::DiskFull => Some("the disk is full".to_owned()),
            Health::FilingFailed { reason } => Some(format!("compaction has failed: {reason}")),
            Health::Failed { reason } => Some(format!("the journal has failed: {reason}")),
        }
    }

    fn store(&self) -> Result<&Store, AdminError> {
        let missing = (
            ErrorCode::Unsupported,
            "this node has no storage".to_owned(),
        );
        self.inner.store.as_ref().ok_or(missing)
    }

    /// Runs `then` with an existing mailbox.
    fn with_mailbox<R>(
        &self,
        name: &str,
        then: impl FnOnce(&Store, &Inner, &mut State) -> R,
    ) -> Result<R, AdminError> {
        let store = self.store()?;
        let invalid = |error: model::NameError| (ErrorCode::InvalidArgument, error.to_string());
        let name = Name::parse(name).map_err(invalid)?;
        if store.find(Kind::Mailbox, name.base()).is_none() {
            let message = format!(
                "no mailbox `{}`: no message was ever written to that name",
                name.base()
            );
            return Err((ErrorCode::NotFound, message));
        }
        store.wait_for_mailbox(&self.inner, name.base(), |_, state| {
            then(store, &self.inner, state)
        })
    }
}

impl Store {
    fn names(&self, kind: Kind, prefix: &str, after: &str, limit: usize) -> Vec<String> {
        let directory = self.directory.read();
        let mut names: Vec<_> = directory
            .iter(kind)
            .map(|(name, _)| name)
            .filter(|name| name.starts_with(prefix) && *name > after)
            .collect();
        names.sort_unstable();
        names.truncate(limit);
        names.into_iter().map(str::to_owned).collect()
    }

    fn read_listed(
        &self,
        location: Option<Location>,
        listed: Vec<(u64, MessageView)>,
    ) -> Vec<MessageView> {
        let mut ahead = Vec::new();
        let read = |(record, view): (u64, MessageView)| {
            let stored = self.look_up(location?, record, &mut ahead)?;
            let write = Write::decode(stored.write()).ok()?;
            Some(MessageView {
                method: write.method.to_owned(),
                written_ms: stored.written_ms,
                body: write.body.to_vec(),
                ..view
            })
        };
        listed.into_iter().filter_map(read).collect()
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
fn view(pending: &::mailbox::Pending<'_>, now_ms: u64) -> MessageView {
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
