//! A turn: the frames from one read of a connection, decided on the thread that read them.
//!
//! A turn read-locks the routing table at most once, and flushes each receiver once, at its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mailbox::Again;
use model::{ErrorCode, Name};
use parking_lot::RwLockReadGuard;
use routing::{Table, Ticket};

use crate::access::Principal;
use crate::connection::{Local, Path, Route};
use crate::counters::Counter;
use crate::lane::Caller;
use crate::node::Inner;
use crate::peer::{Peer, PushOutcome};
use crate::ports::{Failure, Message, Outgoing};
use crate::quotas::{InFlight, Told};
use crate::store::{Outcome, check_stream_name};
use crate::throttle::{Throttle, ThrottleId};

/// The first part of names that are reserved for the node itself.
pub const SYSTEM_ORG: &str = "telpher";

/// The delivery mode of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To one subscriber.
    Any,
    /// To every subscriber.
    All,
}

/// A batch of frames in progress. It ends with [`Turn::finish`] or when it is dropped.
pub struct Turn<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) peer: &'a Arc<Peer>,
    pub(crate) local: &'a mut Local,
    pub(crate) table: Option<RwLockReadGuard<'a, Table<Arc<Peer>>>>,
    pub(crate) now_ns: u64,
    unix_ms: Option<u64>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(inner: &'a Arc<Inner>, peer: &'a Arc<Peer>, local: &'a mut Local) -> Self {
        Self {
            inner,
            peer,
            local,
            table: None,
            now_ns: inner.ports.clock.now_ns(),
            unix_ms: None,
        }
    }

    /// Returns the authenticated identity of the client.
    pub fn principal(&self) -> &Principal {
        &self.peer.facts.principal
    }

    /// Returns the wall clock time in milliseconds since 1970-01-01 UTC, read once per turn.
    pub(crate) fn unix_ms(&mut self) -> u64 {
        let clock = &self.inner.ports.clock;
        *self.unix_ms.get_or_insert_with(|| clock.unix_ms())
    }

    /// Binds a route. Route numbers are dense from 1. Returns false if the number skips others,
    /// which violates the protocol.
    #[must_use]
    pub fn bind(&mut self, route: u16, name: &str, cast: Cast, method: &str) -> bool {
        let index = usize::from(route).wrapping_sub(1);
        if index > self.local.routes.len() {
            return false;
        }
        self.table = None;
        let bound = match Name::parse(name) {
            Ok(name) => {
                let mut table = self.inner.table.write();
                let target = table.target(&name);
                self.local.bindings += 1;
                let id = ThrottleId {
                    sender: self.peer.id,
                    binding: self.local.bindings,
                };
                let base = table.base(&target).clone();
                Route::Bound {
                    name,
                    target,
                    cast,
                    method: method.into(),
                    throttle: Throttle::new(id, self.peer, route, base),
                }
            }
            Err(error) => Route::Invalid {
                reason: error.to_string(),
            },
        };
        self.put_route(index, bound);
        true
    }

    /// Binds a route to a stream of records, like [`Turn::bind`].
    #[must_use]
    pub fn bind_stream(&mut self, route: u16, name: &str) -> bool {
        let index = usize::from(route).wrapping_sub(1);
        if index > self.local.routes.len() {
            return false;
        }
        let parsed = Name::parse(name).map_err(|error| error.to_string());
        let checked = parsed.and_then(|name| check_stream_name(&name).map(|()| name));
        let bound = match checked {
            Ok(name) => Route::Stream {
                name,
                location: None,
            },
            Err(reason) => Route::Invalid { reason },
        };
        self.put_route(index, bound);
        true
    }

    /// Binds a route to a conversation, like [`Turn::bind`].
    #[must_use]
    pub fn bind_conversation(&mut self, route: u16, name: &str) -> bool {
        let index = usize::from(route).wrapping_sub(1);
        if index > self.local.routes.len() {
            return false;
        }
        let bound = match Name::parse(name) {
            Ok(name) => Route::Conversation { name, slot: None },
            Err(error) => Route::Invalid {
                reason: error.to_string(),
            },
        };
        self.put_route(index, bound);
        true
    }

    pub(crate) fn put_route(&mut self, index: usize, bound: Route) {
        let Some(slot) = self.local.routes.get_mut(index) else {
            return self.local.routes.push(bound);
        };
        if let Route::Bound {
            target, throttle, ..
        } = std::mem::replace(slot, bound)
        {
            self.table = None;
            self.inner.table.write().release(target);
            throttle.end(&mut self.local.dirty);
        }
    }

    /// Subscribes to a name. The answer carries the tag.
    pub fn subscribe(&mut self, tag: Ticket, name: &str, with_source: bool) {
        match self.try_subscribe(name, with_source) {
            Ok(name) => {
                self.answer(Outgoing::Subscribed { tag, name: &name });
                self.local.joined.push(name);
            }
            Err((code, message)) => self.fail(tag, Failure::new(code, &message)),
        }
    }

    fn try_subscribe(
        &mut self,
        name: &str,
        with_source: bool,
    ) -> Result<Name, (ErrorCode, String)> {
        let invalid = |error: model::NameError| (ErrorCode::InvalidArgument, error.to_string());
        let mut name = Name::parse(name).map_err(invalid)?;
        let allowed = self.peer.facts.principal.check(&name);
        allowed.map_err(|forbidden| (ErrorCode::Denied, forbidden.to_string()))?;
        if name.instance().is_none() {
            let instance = format!("i-{:012x}", self.inner.ports.entropy.next_u64() >> 16);
            name = name.with_instance(&instance).map_err(invalid)?;
        }
        let limit = self.inner.limits.subscriptions_per_connection_max;
        {
            let mut held = self.peer.subscriptions.lock();
            if held.len() >= limit && !held.contains(&name) {
                let message = format!(
                    "too many subscriptions on this connection \
                     (limit {limit}, native.subscriptions_per_connection_max)"
                );
                return Err((ErrorCode::Busy, message));
            }
            held.insert(name.clone());
        }
        self.table = None;
        let peer = self.peer.clone();
        let mut table = self.inner.table.write();
        let replaced = table
            .subscribe(name.clone(), peer.id, with_source, peer)
            .replaced;
        drop(table);
        if let Some(old) = replaced.filter(|old| old.connection != self.peer.id) {
            old.peer.remove_subscription(&name);
            let ended = Outgoing::Ended {
                name: &name,
                code: ErrorCode::Replaced,
            };
            old.peer.push(ended, &mut self.local.dirty);
        }
        Ok(name)
    }

    /// Ends a subscription. The answer carries the tag.
    pub fn unsubscribe(&mut self, tag: Ticket, name: &str) {
        let parsed = match Name::parse(name) {
            Ok(parsed) => parsed,
            Err(error) => {
                return self.fail(
                    tag,
                    Failure::new(ErrorCode::InvalidArgument, &error.to_string()),
                );
            }
        };
        self.table = None;
        let removed = self
            .inner
            .table
            .write()
            .unsubscribe(&parsed, self.peer.id)
            .is_some();
        if removed {
            self.peer.remove_subscription(&parsed);
            self.answer(Outgoing::Subscribed { tag, name: &parsed });
        } else {
            let message = format!("this connection is not subscribed to `{parsed}`");
            self.fail(tag, Failure::new(ErrorCode::InvalidArgument, &message));
        }
    }

    /// Registers a tag used by the client. Tag slots are dense from 0. Returns false if the slot
    /// skips others, which violates the protocol. The edge claims every tag before using it.
    #[must_use]
    pub fn claim(&mut self, tag: Ticket) -> bool {
        let slot = tag.slot as usize;
        if slot == self.local.paths.len() {
            self.local.paths.push(None);
        }
        slot < self.local.paths.len()
    }

    /// Routes a call. Exactly one outcome will be sent with the tag.
    pub fn request(&mut self, route: u16, tag: Ticket, stream: bool, message: Message<'_>) {
        self.local.tally.count(Counter::Requests);
        self.local.tally.add(Counter::Bytes, message.size());
        let limit = self.inner.limits.calls_max;
        if tag.slot >= limit {
            let message = format!("too many calls in flight (limit {limit}, native.calls_max)");
            return self.fail(tag, Failure::new(ErrorCode::Busy, &message));
        }
        match self.admit_call(route) {
            Ok((in_flight, Told::AtOnce)) => self.hand_on(route, tag, stream, message, in_flight),
            Ok((in_flight, Told::OnDisk)) => self.hold_call(route, tag, stream, message, in_flight),
            Err(throttled) => self.fail(tag, throttled.as_failure()),
        }
    }

    /// Returns whether a route leads to an agent of the node itself.
    pub(crate) fn is_to_node(&self, route: u16) -> bool {
        let index = usize::from(route).checked_sub(1);
        let route = index.and_then(|index| self.local.routes.get(index));
        matches!(route, Some(Route::Bound { name, .. }) if name.org() == SYSTEM_ORG)
    }

    /// Routes an admitted call to a responder.
    pub(crate) fn hand_on(
        &mut self,
        route: u16,
        tag: Ticket,
        stream: bool,
        message: Message<'_>,
        in_flight: Option<Arc<InFlight>>,
    ) {
        match self.try_request(route, tag, stream, message, in_flight) {
            Ok(path) => self.local.paths[tag.slot as usize] = Some(path),
            Err((code, message)) => self.fail(tag, Failure::new(code, &message)),
        }
    }

    fn try_request(
        &mut self,
        route: u16,
        tag: Ticket,
        stream: bool,
        message: Message<'_>,
        in_flight: Option<Arc<InFlight>>,
    ) -> Result<Path, (ErrorCode, String)> {
        let table = &**self.table.get_or_insert_with(|| self.inner.table.read());
        let Bound {
            target,
            cast,
            method,
            ..
        } = lookup(&self.local.routes, route)?;
        if cast == Cast::All {
            let message = "a request needs one receiver: bind the route with cast `any`";
            return Err((ErrorCode::InvalidArgument, message.to_owned()));
        }
        let deadline_ns = match message.deadline_ms {
            Some(ms) => self.now_ns.saturating_add(u64::from(ms) * 1_000_000),
            None => u64::MAX,
        };
        let mut full = 0_u32;
        for subscriber in table.any(target, self.peer.id) {
            let responder = &subscriber.peer;
            let caller = Caller::Peer {
                peer: self.peer.clone(),
                tag,
                _in_flight: in_flight.clone(),
            };
            let Some(ticket) = responder.admit_call(caller, deadline_ns, self.inner) else {
                full += 1;
                continue;
            };
            let source = subscriber
                .with_source
                .then(|| responder.source_from(self.peer));
            let outgoing = Outgoing::Request {
                to: &subscriber.name,
                method,
                ticket,
                stream,
                source: source.as_deref(),
                message,
            };
            let handed = responder.push(outgoing, &mut self.local.dirty);
            if handed == PushOutcome::Queued {
                subscriber.delivered.fetch_add(1, Ordering::Relaxed);
                return Ok(Path {
                    generation: tag.generation,
                    responder: responder.id,
                    ticket,
                });
            }
            responder.lane.lock().calls.take(ticket);
            full += u32::from(handed == PushOutcome::NoRoom);
        }
        if full > 0 {
            let message = format!("all {full} instances of `{}` are full", table.base(target));
            return Err((ErrorCode::Busy, message));
        }
        self.local.tally.count(Counter::Undeliverable);
        table.count_undeliverable(target, 1);
        Err((
            ErrorCode::NoResponder,
            format!("no subscribers of `{}`", table.base(target)),
        ))
    }

    /// Forwards a responder's answer, or one item of it.
    pub fn reply(&mut self, ticket: Ticket, more: bool, message: Message<'_>) {
        let caller = match more {
            true => self
                .peer
                .lane
                .lock()
                .calls
                .get(ticket)
                .map(|call| call.caller.clone()),
            false => self
                .peer
                .lane
                .lock()
                .calls
                .take(ticket)
                .map(|call| call.caller),
        };
        let (peer, tag) = match caller {
            None => return self.local.tally.count(Counter::LateReplies),
            Some(Caller::Peer { peer, tag, .. }) => (peer, tag),
            // A message from a mailbox needs one answer, whose content is discarded.
            Some(Caller::Mailbox { .. }) if more => return,
            Some(Caller::Mailbox { slot, offset }) => {
                let outcome = (slot, offset, Outcome::Acknowledged);
                return self.local.outcomes.push(outcome);
            }
        };
        self.local.tally.count(if more {
            Counter::Items
        } else {
            Counter::Replies
        });
        self.local.tally.add(Counter::Bytes, message.size());
        let outgoing = Outgoing::Reply { tag, more, message };
        peer.push(outgoing, &mut self.local.dirty);
    }

    /// Forwards a responder's failure.
    pub fn reply_failure(&mut self, ticket: Ticket, failure: Failure<'_>) {
        let Some(call) = self.peer.lane.lock().calls.take(ticket) else {
            return self.local.tally.count(Counter::LateReplies);
        };
        let (peer, tag) = match call.caller {
            Caller::Peer { peer, tag, .. } => (peer, tag),
            Caller::Mailbox { slot, offset } => {
                let again = match failure.retry_after_ms {
                    0 => Again::Later,
                    pause_ms => Again::After {
                        pause_ms: u64::from(pause_ms),
                    },
                };
                let outcome = (slot, offset, Outcome::Again(again));
                return self.local.outcomes.push(outcome);
            }
        };
        self.inner.counters.count_failure(failure.code);
        let outgoing = Outgoing::Failure {
            tag: Some(tag),
            failure,
        };
        peer.push(outgoing, &mut self.local.dirty);
    }

    /// Cancels a call for its caller. The call ends as `cancelled` unless it has already ended.
    pub fn cancel(&mut self, tag: Ticket) {
        if self.unfollow(tag) {
            return;
        }
        if self.local.answers.cancel_call(tag) {
            let message = "cancelled by the caller before it was routed";
            return self.fail(tag, Failure::new(ErrorCode::Cancelled, message));
        }
        let Some(path) = self.path(tag) else { return };
        if self.inner.cancel(path.responder, path.ticket) {
            let message = "cancelled by the caller";
            self.fail(
                tag,
                Failure::new(ErrorCode::Cancelled, message).after_sending(),
            );
        }
    }

    /// Forwards the caller's credit for items of a stream.
    pub fn stream_credit(&mut self, tag: Ticket, items: u32) {
        if self.follower_credit(tag, items) {
            return;
        }
        let Some(path) = self.path(tag) else { return };
        let Some(responder) = self.inner.peer(path.responder) else {
            return;
        };
        if responder.lane.lock().calls.get(path.ticket).is_some() {
            let outgoing = Outgoing::StreamCredit {
                ticket: path.ticket,
                items,
            };
            responder.push(outgoing, &mut self.local.dirty);
        }
    }

    fn path(&self, tag: Ticket) -> Option<Path> {
        let path = *self.local.paths.get(tag.slot as usize)?;
        path.filter(|path| path.generation == tag.generation)
    }

    /// Returns the client's credit for consumed one-way messages.
    pub fn credit(&mut self, messages: u32, bytes: u64) {
        let mut lane = self.peer.lane.lock();
        let pressures = lane.credit(messages, bytes, self.now_ns);
        drop(lane);
        drop(pressures);
    }

    /// Counts an event that only the edge can see.
    pub fn count(&mut self, counter: Counter) {
        self.local.tally.count(counter);
    }

    /// Refuses a request for a reason that only the edge can judge.
    pub fn refuse(&mut self, tag: Ticket, failure: Failure<'_>) {
        self.fail(tag, failure);
    }

    /// Sends the client a failure that belongs to none of its requests.
    pub fn fail_connection(&mut self, failure: Failure<'_>) {
        self.inner.counters.count_failure(failure.code);
        self.answer(Outgoing::Failure { tag: None, failure });
    }

    pub(crate) fn fail(&mut self, tag: Ticket, failure: Failure<'_>) {
        self.inner.counters.count_failure(failure.code);
        self.answer(Outgoing::Failure {
            tag: Some(tag),
            failure,
        });
    }

    pub(crate) fn answer(&mut self, outgoing: Outgoing<'_>) {
        self.peer.push(outgoing, &mut self.local.dirty);
    }

    /// Ends the turn: adds its counts and flushes all receivers.
    pub fn finish(self) {}
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.table = None;
        if let Some(store) = &self.inner.store {
            let (outcomes, dirty) = (&mut self.local.outcomes, &mut self.local.dirty);
            store.settle(self.inner, outcomes, dirty);
            for name in self.local.joined.drain(..) {
                store.deliver_to_new_subscriber(self.inner, name.base(), dirty);
            }
        }
        self.local.joined.clear();
        if !self.local.keeps_rounds {
            self.local.round = None;
        }
        self.inner.counters.add(&mut self.local.tally);
        for peer in self.local.dirty.drain(..) {
            peer.outlet.flush();
        }
    }
}

/// A bound route that leads to a name.
pub(crate) struct Bound<'a> {
    pub(crate) name: &'a Name,
    pub(crate) target: &'a routing::Target,
    pub(crate) cast: Cast,
    pub(crate) method: &'a Arc<str>,
    pub(crate) throttle: &'a Arc<Throttle>,
}

pub(crate) fn lookup(routes: &[Route], route: u16) -> Result<Bound<'_>, (ErrorCode, String)> {
    match routes.get(usize::from(route).wrapping_sub(1)) {
        Some(Route::Bound {
            name,
            target,
            cast,
            method,
            throttle,
        }) => Ok(Bound {
            name,
            target,
            cast: *cast,
            method,
            throttle,
        }),
        Some(Route::Stream { name, .. }) => Err((
            ErrorCode::InvalidArgument,
            format!("the route is bound to a stream, `{name}`"),
        )),
        Some(Route::Conversation { name, .. }) => Err((
            ErrorCode::InvalidArgument,
            format!("the route is bound to a conversation, `{name}`"),
        )),
        Some(Route::Topic(route)) => Err((
            ErrorCode::InvalidArgument,
            format!("the route is bound to a topic, `{}`", route.topic),
        )),
        Some(Route::Invalid { reason }) => Err((ErrorCode::InvalidArgument, reason.clone())),
        None => Err((
            ErrorCode::InvalidArgument,
            format!("route {route} is not bound"),
        )),
    }
}
