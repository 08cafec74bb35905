//! `Subscription`: receives the messages sent to a name.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use model::{ErrorCode, Name};
use wire::SUBSCRIBE_WITH_SOURCE;

use crate::agents::description::{Description, encode_subscribe};
use crate::agents::envelope_queue::{EnvelopeQueue, QueuedEnvelope};
use crate::state::clock::Timeout;
use crate::state::exchange::{Exchange, Progress, WaitLimits, wait_timeout_error};
use crate::state::holder::Holder;
use crate::state::link::not_a_node;
use crate::state::registry::{PendingSubscription, Purpose, Receiver, Registration};
use crate::{CallError, Client, Envelope};

/// Options of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeOptions {
    bits: u8,
    description: Option<Arc<Description>>,
}

impl SubscribeOptions {
    /// Creates the default options.
    pub const fn new() -> Self {
        Self {
            bits: 0,
            description: None,
        }
    }

    /// Adds the sender's name to every envelope.
    #[must_use]
    pub fn with_source(mut self) -> Self {
        self.bits |= SUBSCRIBE_WITH_SOURCE;
        self
    }

    /// Describes the agent. A node of an earlier version ignores the description.
    #[must_use]
    pub fn describe(mut self, description: Description) -> Self {
        self.description = Some(Arc::new(description));
        self
    }
}

/// Messages sent to one name, in order, as a stream of envelopes. From [`Client::subscribe`].
///
/// The subscription survives reconnects. It ends when another connection subscribes with the same
/// instance (`replaced`), when the node refuses to renew it after a reconnect, and when the client
/// is closed; [`Subscription::ended`] returns the reason. When the messages that were not taken
/// fill the client's window, senders wait or their messages are dropped. Dropping the subscription
/// unsubscribes.
#[derive(Debug)]
pub struct Subscription {
    active: ActiveSubscription,
    /// Envelopes received and not yet yielded.
    taken: VecDeque<QueuedEnvelope>,
}

impl Subscription {
    /// Returns the full name, with its instance.
    pub fn name(&self) -> &str {
        &self.active.name
    }

    /// Returns the next envelope; `None` at the end.
    pub async fn next(&mut self) -> Option<Envelope> {
        poll_fn(|cx| self.poll_envelope(cx)).await
    }

    /// Returns the reason for the end of the subscription; `None` while it is active.
    pub fn ended(&self) -> Option<ErrorCode> {
        self.active.queue.ended()
    }

    fn poll_envelope(&mut self, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        loop {
            if let Some(queued) = self.taken.pop_front() {
                return Poll::Ready(Some(queued.consume()));
            }
            if !ready!(self.active.queue.poll_arrived(cx, &mut self.taken)) {
                return Poll::Ready(None);
            }
        }
    }
}

impl Stream for Subscription {
    type Item = Envelope;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        self.get_mut().poll_envelope(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Returns the credit of envelopes that were not yielded. Dropping `active` does the rest.
        for queued in self.taken.drain(..) {
            queued.consume();
        }
    }
}

/// An active subscription; dropping it unsubscribes.
pub(crate) struct ActiveSubscription {
    pub(crate) client: Client,
    pub(crate) name: Box<str>,
    pub(crate) queue: Arc<EnvelopeQueue>,
}

impl std::fmt::Debug for ActiveSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for ActiveSubscription {
    fn drop(&mut self) {
        self.queue.close();
        // The registration may hold handlers with user code, which must not be dropped under the
        // lock.
        let removed;
        {
            let mut guard = self.client.core().state.lock();
            let state = &mut *guard;
            // If this client has subscribed again with the same instance, the name belongs to the
            // newer subscription.
            let is_own = state
                .registry
                .get(&self.name)
                .is_some_and(|found| Arc::ptr_eq(&found.receiver.queue, &self.queue));
            if !is_own {
                return;
            }
            removed = state.registry.remove(&self.name);
            if let Some(link) = state.link.as_ref().map(|link| link.id) {
                state.unsubscribe(link, &self.name);
            }
        }
        drop(removed);
    }
}

/// Subscribes to a name and returns the stream of its messages.
pub(crate) async fn subscribe(
    client: &Client,
    name: &Name,
    options: SubscribeOptions,
) -> Result<Subscription, CallError> {
    let receiver = Receiver {
        queue: Arc::new(EnvelopeQueue::default()),
        handlers: None,
    };
    let active = subscribe_receiver(client, name, options, receiver).await?;
    Ok(Subscription {
        active,
        taken: VecDeque::new(),
    })
}

/// Subscribes to a name and waits until the node has confirmed it.
pub(crate) async fn subscribe_receiver(
    client: &Client,
    name: &Name,
    options: SubscribeOptions,
    receiver: Receiver,
) -> Result<ActiveSubscription, CallError> {
    let queue = receiver.queue.clone();
    let registration = Registration {
        options: options.bits,
        description: options.description,
        receiver,
    };
    let subscribing = send_subscribe(client, name, registration);
    let default_deadline = client.default_deadline();
    let name = match default_deadline.as_duration() {
        None => subscribing.await?,
        Some(time) => match tokio::time::timeout(time, subscribing).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(wait_timeout_error(&client.core().state.lock())),
        },
    };
    Ok(ActiveSubscription {
        client: client.clone(),
        name,
        queue,
    })
}

/// Sends SUBSCRIBE and waits for the full name in the confirmation.
async fn send_subscribe(
    client: &Client,
    name: &Name,
    registration: Registration,
) -> Result<Box<str>, CallError> {
    let mut exchange = Exchange::new(client.core());
    let result = poll_fn(|cx| {
        let progress = exchange.poll_begin(WaitLimits::new(Timeout::NONE), cx, |link, _, waker| {
            if link.peer.role != wire::Role::Node {
                return Err(not_a_node(&link.peer.address));
            }
            let subscribing = PendingSubscription {
                registration: registration.clone(),
                waker: Some(waker.clone()),
                purpose: Purpose::New,
            };
            let holder = Holder::Subscribing(Box::new(subscribing));
            Ok(
                link.queue_request(Timeout::NONE, holder, |correlation, out| {
                    let Registration {
                        options,
                        description,
                        ..
                    } = &registration;
                    let description = description.as_ref();
                    encode_subscribe(*options, name.as_str(), description, correlation, out);
                }),
            )
        });
        match ready!(progress) {
            Ok(Progress::Sent(_)) => Poll::Pending,
            Ok(Progress::InFlight(call)) => exchange.poll_outcome(call, cx),
            Err(result) => Poll::Ready(result),
        }
    })
    .await;
    let payload = result.outcome?;
    let name = wire::decode_name(&payload).map_err(|error| CallError::malformed(&error))?;
    Ok(name.into())
}
