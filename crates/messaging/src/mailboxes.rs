//! Mailboxes: durable queues of writes to agents.
//!
//! A mailbox in use is *loaded*: its engine is built from its stream, and unloaded after a period
//! without use. Clients get no answer before the journal reports it as durable.
//!
//! Lock order: a part of the loaded mailboxes, a mailbox, the idle mailboxes, the directory, then the
//! journal or the routing table, then a client's lane.

mod admin;
mod backlog;
mod error;
mod hand_out;
mod idle;
mod load;
mod lookup;
mod pull;
mod restore;
mod resume;
mod slot;
mod sweep;
mod taking;
mod tidy;
mod write;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use platform::{NameMap, Platform};
use store::Store;

pub use admin::{MailboxView, MessageView, Part};
use backlog::Backlogs;
pub use backlog::{Backlog, MailboxBacklog};
pub use error::{LeaseError, MailboxError, WriteError};
pub(crate) use hand_out::Outcome;
use idle::Idle;
pub use pull::{LeaseAnswer, LeaseId, LeaseOutcome, TakeOptions, TakenMessage};
pub use slot::AcceptedWrite;
pub(crate) use slot::Slot;
pub use taking::Taking;

use crate::router::Router;

/// The options of mailboxes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum number of unacknowledged messages per mailbox.
    pub messages_max: usize,
    /// Maximum size of the unacknowledged messages per mailbox, in bytes.
    pub size_max: u64,
    /// Maximum age of a message.
    pub ttl: Duration,
    /// Time in which a subscriber must acknowledge a message.
    pub ack_timeout: Duration,
    /// Maximum number of messages of one mailbox in delivery at the same time.
    pub in_flight_max: usize,
    /// Number of deliveries after which an unacknowledged message becomes a dead letter; 0 for no
    /// limit.
    pub deliveries_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            messages_max: 100_000,
            size_max: 64 << 20,
            ttl: Duration::from_secs(7 * 24 * 3600),
            ack_timeout: Duration::from_secs(30),
            in_flight_max: 256,
            deliveries_max: 0,
        }
    }
}

/// The mailboxes of a node. See the module docs.
pub struct Mailboxes {
    platform: Arc<Platform>,
    store: Arc<Store>,
    router: Arc<Router>,
    options: Options,
    /// The loaded mailboxes by name.
    loaded: NameMap<Slot>,
    idle: Mutex<Idle>,
    backlogs: Backlogs,
}

impl Mailboxes {
    /// Returns the mailboxes of a store; none is loaded yet.
    pub(crate) fn new(
        platform: Arc<Platform>,
        store: Arc<Store>,
        router: Arc<Router>,
        options: Options,
    ) -> Self {
        Self {
            platform,
            store,
            router,
            options,
            loaded: NameMap::default(),
            idle: Mutex::default(),
            backlogs: Backlogs::default(),
        }
    }

    /// Returns the time in which a message must be acknowledged, unless a lease sets another.
    pub fn ack_timeout(&self) -> Duration {
        self.options.ack_timeout
    }

    /// Returns the number of loaded mailboxes.
    pub fn loaded_count(&self) -> usize {
        self.loaded.len()
    }
}
