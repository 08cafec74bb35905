//! The names a client has subscribed to, kept across connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use crate::mailbox::Mailbox;
use crate::server::Handlers;

/// Who gets what is sent to a name.
#[derive(Clone)]
pub(crate) struct Receiver {
    /// Where it waits to be taken; for an attached server, only the news of the end.
    pub(crate) mailbox: Arc<Mailbox>,
    /// The server that answers, if one was attached.
    pub(crate) handlers: Option<Arc<Handlers>>,
}

/// One subscription.
#[derive(Clone)]
pub(crate) struct Registration {
    /// Option bits, as in SUBSCRIBE.
    pub(crate) options: u8,
    pub(crate) receiver: Receiver,
}

/// A subscription that was asked for and not yet confirmed.
pub(crate) struct Joining {
    pub(crate) registration: Registration,
    pub(crate) waker: Option<Waker>,
    pub(crate) purpose: Purpose,
}

/// Why a subscription is asked for.
pub(crate) enum Purpose {
    /// Somebody waits for it.
    New,
    /// Nobody waits for it any more: to be ended as soon as it is confirmed.
    Unwanted,
    /// It existed on an earlier connection, under this full name.
    Again(Box<str>),
}

/// Subscriptions by full name, instance included.
#[derive(Default)]
pub(crate) struct Registry {
    by_name: HashMap<Box<str>, Registration>,
}

impl Registry {
    /// Returns what had the name before.
    pub(crate) fn insert(
        &mut self,
        name: &str,
        registration: Registration,
    ) -> Option<Registration> {
        self.by_name.insert(name.into(), registration)
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Registration> {
        self.by_name.remove(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Registration> {
        self.by_name.get(name)
    }

    /// Every subscription.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Registration)> {
        self.by_name
            .iter()
            .map(|(name, registration)| (&**name, registration))
    }

    /// Removes every subscription.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Registration> {
        self.by_name.drain().map(|(_, registration)| registration)
    }
}
