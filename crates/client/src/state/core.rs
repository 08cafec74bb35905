//! `Core`: state shared by a client's handles, the tasks of its connections and its driver, under
//! one lock.
//!
//! At most one connection accepts new calls. Older connections remain while calls on them are in
//! flight (after GOAWAY) or while outcomes are not fetched yet (after a loss).

use std::sync::Arc;
use std::task::Waker;

use model::ErrorCode;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::{Correlation, Role};

use crate::agents::description::encode_subscribe;

use crate::CallError;
use crate::events::ConnectionState;
use crate::options::Options;
use crate::state::clock::Timeout;
use crate::state::completions::Completions;
use crate::state::holder::Holder;
use crate::state::link::{Link, Peer};
use crate::state::queue::{Queue, earlier};
use crate::state::registry::{PendingSubscription, Purpose, Receiver, Registry};

/// Shared state of a client.
pub(crate) struct Core {
    pub(crate) state: Mutex<State>,
    pub(crate) options: Options,
    pub(crate) events: watch::Sender<ConnectionState>,
}

/// The part of [`Core`] under the lock.
pub(crate) struct State {
    /// Connection for new calls.
    pub(crate) link: Option<Link>,
    /// Connections that accept no new calls.
    pub(crate) old: Vec<Link>,
    /// Calls that wait for room or for a connection.
    pub(crate) calls: Queue,
    /// One-way messages that wait for credit or for a connection.
    pub(crate) sends: Queue,
    /// One-way messages to a target whose subscribers are all full.
    pub(crate) flows: Queue,
    pub(crate) registry: Registry,
    /// Reason for the missing connection.
    pub(crate) down: String,
    pub(crate) life: Life,
    /// Waker of the driver.
    pub(crate) driver: Option<Waker>,
    links_opened: u64,
}

/// Life cycle of the client: `Open => Closing => Closed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The client accepts calls.
    Open,
    /// Calls in flight complete; new calls fail.
    Closing,
    /// All connections are closed.
    Closed,
}

/// Decision whether a call may be queued now.
pub(crate) enum Admission {
    Open,
    /// Not now: the window of the peer or of this client is full.
    Full,
    /// Not now: there is no connection.
    Down,
    /// Never: the client is closed.
    Closed,
}

impl Core {
    pub(crate) fn new(options: Options) -> Arc<Self> {
        let state = State {
            link: None,
            old: Vec::new(),
            calls: Queue::default(),
            sends: Queue::default(),
            flows: Queue::default(),
            registry: Registry::default(),
            down: "not connected yet".to_owned(),
            life: Life::Open,
            driver: None,
            links_opened: 0,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            events: watch::Sender::new(ConnectionState::Connecting),
            options,
        })
    }

    /// Makes a new connection the current one and repeats all subscriptions on it.
    pub(crate) fn open_link(&self, peer: Peer) -> u64 {
        let mut completions = Completions::default();
        let (id, state) = {
            let mut state = self.state.lock();
            state.links_opened += 1;
            let id = state.links_opened;
            let in_flight_max = self.options.in_flight_max;
            let software = peer.software.clone();
            let address = peer.address.clone();
            let is_node = peer.role == Role::Node;
            let mut link = Link::new(id, peer, in_flight_max, Instant::now());
            if is_node {
                renew_subscriptions(&mut link, &state.registry);
            }
            state.link = Some(link);
            state.settle(&mut completions);
            state.flows.wake(usize::MAX, &mut completions.wakers);
            (id, ConnectionState::Connected { address, software })
        };
        completions.finish(&[]);
        self.events.send_replace(state);
        id
    }

    /// Moves a connection whose peer sent GOAWAY to the old ones. New calls wait for the next
    /// connection.
    pub(crate) fn retire_link(&self, id: u64, reason: &str) {
        let mut state = self.state.lock();
        if let Some(link) = state.link.take_if(|link| link.id == id) {
            state.old.push(link);
            state.down = reason.to_owned();
            drop(state);
            let reason = reason.to_owned();
            self.events
                .send_replace(ConnectionState::Draining { reason });
        }
    }

    /// Fails the calls of a lost connection.
    pub(crate) fn lose_link(&self, id: u64, is_last_unwritten: bool, reason: &str) {
        let mut completions = Completions::default();
        {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            if let Some(link) = state.link.take_if(|link| link.id == id) {
                state.old.push(link);
                state.down = reason.to_owned();
            }
            if let Some(link) = state.link_mut(id) {
                link.lose(is_last_unwritten, reason, &mut completions);
            }
            state.finish_change(id, &mut completions);
            state.remove_finished();
        }
        completions.finish(&[]);
    }

    /// Ends the client: fails all calls, waiting callers and subscriptions.
    pub(crate) fn shut(&self, code: ErrorCode, reason: &str) {
        let mut completions = Completions::default();
        let ended: Vec<_> = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            state.life = Life::Closed;
            state.down = reason.to_owned();
            state.old.extend(state.link.take());
            for link in &mut state.old {
                link.lose(false, reason, &mut completions);
            }
            completions.subscription_results.clear();
            state.remove_finished();
            state.wake_all(&mut completions);
            state.registry.drain().collect()
        };
        completions.finish(&[]);
        for registration in ended {
            registration.receiver.queue.end(code);
        }
        self.events.send_replace(ConnectionState::Closed);
    }

    /// Begins to close the client: no new calls, calls in flight complete.
    pub(crate) fn begin_close(&self) {
        let mut completions = Completions::default();
        {
            let mut state = self.state.lock();
            if state.life == Life::Open {
                state.life = Life::Closing;
                state.down = "the client was closed".to_owned();
            }
            state.wake_all(&mut completions);
            if let Some(link) = &mut state.link {
                link.wake();
            }
            completions.wakers.extend(state.driver.take());
        }
        completions.finish(&[]);
    }

    /// Returns the receiver of messages to a subscribed name.
    pub(crate) fn receiver(&self, name: &str) -> Option<Receiver> {
        let state = self.state.lock();
        let registration = state.registry.get(name)?;
        Some(registration.receiver.clone())
    }
}

impl State {
    /// Decides whether a caller that has not waited may queue a call now.
    pub(crate) fn admits_call(&self) -> Admission {
        match &self.link {
            _ if self.life != Life::Open => Admission::Closed,
            None => Admission::Down,
            Some(link) if !self.calls.has_waiting() && link.room() > self.calls.woken() => {
                Admission::Open
            }
            Some(_) => Admission::Full,
        }
    }

    /// Offers free room to waiting callers.
    pub(crate) fn settle(&mut self, completions: &mut Completions) {
        let Some(link) = &self.link else { return };
        if self.calls.has_waiting() {
            let room = link.room().saturating_sub(self.calls.woken());
            self.calls.wake(room, &mut completions.wakers);
        }
        if self.sends.has_waiting() {
            let credit = link.credit().saturating_sub(self.sends.woken());
            self.sends.wake(credit, &mut completions.wakers);
        }
    }

    /// Wakes all waiting callers.
    fn wake_all(&mut self, completions: &mut Completions) {
        for queue in [&mut self.calls, &mut self.sends, &mut self.flows] {
            queue.wake(usize::MAX, &mut completions.wakers);
        }
    }

    /// True if `id` is the connection for new calls.
    pub(crate) fn is_current(&self, id: u64) -> bool {
        self.link.as_ref().is_some_and(|link| link.id == id)
    }

    /// Returns the connection `id`, current or old.
    pub(crate) fn link_mut(&mut self, id: u64) -> Option<&mut Link> {
        match &mut self.link {
            Some(link) if link.id == id => Some(link),
            _ => self.old.iter_mut().find(|link| link.id == id),
        }
    }

    /// Iterates over the current and the old connections.
    pub(crate) fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.link.iter_mut().chain(&mut self.old)
    }

    /// Removes old connections without calls.
    pub(crate) fn remove_finished(&mut self) {
        if !self.old.is_empty() {
            self.old.retain(|link| !link.is_spent());
        }
    }

    /// Completes the consequences of a change of a connection while the lock is still held.
    pub(crate) fn finish_change(&mut self, id: u64, completions: &mut Completions) {
        if !completions.subscription_results.is_empty() {
            self.finish_subscribing(id, completions);
        }
        if !completions.cancels.is_empty()
            && let Some(link) = self.link_mut(id)
        {
            link.cancel(completions);
        }
        if std::mem::take(&mut completions.is_room) {
            self.settle(completions);
        }
    }

    /// Processes confirmed and refused subscriptions.
    fn finish_subscribing(&mut self, id: u64, completions: &mut Completions) {
        for (subscribing, outcome) in std::mem::take(&mut completions.subscription_results) {
            let PendingSubscription {
                registration,
                purpose,
                ..
            } = *subscribing;
            match (purpose, outcome) {
                (Purpose::New, Ok(name)) => {
                    if let Some(older) = self.registry.insert(&name, registration) {
                        completions
                            .ended
                            .push((older.receiver, ErrorCode::Replaced));
                    }
                    continue;
                }
                (Purpose::Abandoned, Ok(name)) => self.unsubscribe(id, &name),
                (Purpose::Renew(name), Ok(_)) => {
                    // The subscription may have been dropped in the meantime.
                    if self.registry.get(&name).is_none() {
                        self.unsubscribe(id, &name);
                    }
                }
                (Purpose::Renew(name), Err(code)) => {
                    // After a lost connection the subscription is repeated; only a refusal ends it.
                    let is_refusal =
                        !matches!(code, ErrorCode::Unconfirmed | ErrorCode::Unavailable);
                    if is_refusal && let Some(ended) = self.registry.remove(&name) {
                        completions.ended.push((ended.receiver, code));
                    }
                }
                (Purpose::New | Purpose::Abandoned, Err(_)) => {}
            }
            completions.replaced.push(registration);
        }
    }

    /// Sends UNSUBSCRIBE to the node.
    pub(crate) fn unsubscribe(&mut self, id: u64, name: &str) {
        if let Some(link) = self.link_mut(id) {
            link.queue_request(Timeout::NONE, Holder::Abandoned, |correlation, out| {
                wire::encode_unsubscribe(name, correlation, out);
            });
        }
    }

    /// Returns the earliest deadline in the three queues.
    pub(crate) fn queue_deadline_min(&self) -> Option<Instant> {
        let sends = earlier(self.sends.deadline_min(), self.flows.deadline_min());
        earlier(self.calls.deadline_min(), sends)
    }

    /// Wakes waiting callers whose deadline has passed.
    pub(crate) fn sweep_queues(&mut self, now: Instant, completions: &mut Completions) {
        for queue in [&mut self.calls, &mut self.sends, &mut self.flows] {
            queue.sweep(now, &mut completions.wakers);
        }
    }

    /// Wakes the task that checks the deadlines of the queues.
    pub(crate) fn wake_sweeper(&mut self) {
        match &mut self.link {
            Some(link) => link.wake(),
            None => {
                if let Some(driver) = &self.driver {
                    driver.wake_by_ref();
                }
            }
        }
    }

    /// Returns the error for a missing connection.
    pub(crate) fn unavailable(&self) -> CallError {
        CallError::new(ErrorCode::Unavailable, self.down.clone())
    }
}

/// Repeats all subscriptions on a new connection.
fn renew_subscriptions(link: &mut Link, registry: &Registry) {
    for (name, registration) in registry.iter() {
        let subscribing = PendingSubscription {
            registration: registration.clone(),
            waker: None,
            purpose: Purpose::Renew(name.into()),
        };
        let holder = Holder::Subscribing(Box::new(subscribing));
        let write = |correlation: Correlation, out: &mut Vec<u8>| {
            let description = registration.description.as_ref();
            encode_subscribe(registration.options, name, description, correlation, out);
        };
        link.queue_request(Timeout::NONE, holder, write);
    }
}
