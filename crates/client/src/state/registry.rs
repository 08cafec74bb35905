//! `Registry`: subscriptions of a client, kept across connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use crate::agents::description::Description;
use crate::agents::envelope_queue::EnvelopeQueue;
use crate::server::Handlers;

/// Receiver of the messages to a name.
#[derive(Clone)]
pub(crate) struct Receiver {
    /// Queue of messages; for an attached server it only gets the end of the subscription.
    pub(crate) queue: Arc<EnvelopeQueue>,
    /// Handlers of the attached server, if there is one.
    pub(crate) handlers: Option<Arc<Handlers>>,
}

/// One subscription.
#[derive(Clone)]
pub(crate) struct Registration {
    /// Option bits, as in SUBSCRIBE.
    pub(crate) options: u8,
    /// The description of the agent, if it describes itself.
    pub(crate) description: Option<Arc<Description>>,
    pub(crate) receiver: Receiver,
}

/// A subscription that is not confirmed yet.
pub(crate) struct PendingSubscription {
    pub(crate) registration: Registration,
    pub(crate) waker: Option<Waker>,
    pub(crate) purpose: Purpose,
}

/// Reason for a subscription request.
pub(crate) enum Purpose {
    /// A caller waits for the new subscription.
    New,
    /// The caller is gone: unsubscribe after the confirmation.
    Abandoned,
    /// Repeats a subscription of an earlier connection with this full name.
    Renew(Box<str>),
}

/// Subscriptions by full name, with the instance.
#[derive(Default)]
pub(crate) struct Registry {
    by_name: HashMap<Box<str>, Registration>,
}

impl Registry {
    /// Adds a subscription and returns the previous one with this name.
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

    /// Iterates over all subscriptions.
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
