//! Calls: requests to responders, their replies and cancellations.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mailbox::Again;
use model::{ErrorCode, Failure};
use platform::{Counter, Durable};
use quota_service::{InFlight, Throttled};
use routing::Ticket;

use crate::held_call::HeldCall;
use crate::lane::Caller;
use crate::local::Path;
use crate::mailboxes::Outcome;
use crate::outlet::{Message, Outgoing};
use crate::peer::PushOutcome;
use crate::route::{Cast, Route};
use crate::turn::Turn;

/// The reason why a call was not handed on to a responder.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    /// A limit or a halt.
    #[error(transparent)]
    Throttled(#[from] Throttled),
    /// The caller has the maximum number of calls in flight.
    #[error("too many calls in flight (limit {limit}, native.calls_max)")]
    TooManyCalls {
        /// The limit.
        limit: u32,
    },
    /// The route leads to all subscribers.
    #[error("a request needs one receiver: bind the route with cast `any`")]
    NotOneReceiver,
    /// Every subscriber has the maximum number of calls, or does not read.
    #[error("all {count} instances of `{name}` are full")]
    Full {
        /// The number of subscribers.
        count: u32,
        /// The name.
        name: Arc<str>,
    },
    /// The name has no subscribers.
    #[error("no subscribers of `{name}`")]
    NoResponder {
        /// The name.
        name: Arc<str>,
    },
    /// The charge of the call is not on disk.
    #[error("the journal has failed: the call was not handed on")]
    NotCharged,
}

impl RequestError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Throttled(throttled) => throttled.code(),
            Self::TooManyCalls { .. } | Self::Full { .. } => ErrorCode::Busy,
            Self::NotOneReceiver => ErrorCode::InvalidArgument,
            Self::NoResponder { .. } => ErrorCode::NoResponder,
            Self::NotCharged => ErrorCode::Unavailable,
        }
    }
}

/// An accepted call.
#[must_use = "a held call has to be handed on"]
pub enum Requested {
    /// A responder was sent the call. Exactly one outcome will be pushed with the tag.
    Sent,
    /// The call is held until its charge is on disk; then [`Turn::resume`] it, or drop it to cancel
    /// it.
    Held(HeldCall, Durable),
}

impl Turn<'_> {
    /// Routes a call. Tag slots must be dense from 0.
    pub fn request(
        &mut self,
        route: &Route,
        tag: Ticket,
        stream: bool,
        message: Message<'_>,
    ) -> Result<Requested, RequestError> {
        self.local.tally.count(Counter::Requests);
        self.local.tally.add(Counter::Bytes, message.size());
        let limit = self.messaging.limits.calls_max;
        if tag.slot >= limit {
            return Err(RequestError::TooManyCalls { limit });
        }
        let (in_flight, charge) = self.admit_call(route)?;
        match charge {
            Some(charge) => {
                let call = HeldCall::new(stream, message, in_flight, self.now_ns);
                Ok(Requested::Held(call, charge))
            }
            None => {
                self.hand_on(route, tag, stream, message, in_flight)?;
                Ok(Requested::Sent)
            }
        }
    }

    /// Routes a held call whose charge is on disk.
    pub fn resume(
        &mut self,
        route: &Route,
        tag: Ticket,
        call: &HeldCall,
    ) -> Result<(), RequestError> {
        let (message, in_flight) = (call.message(self.now_ns), call.in_flight());
        self.hand_on(route, tag, call.is_streamed(), message, in_flight)
    }

    /// Routes an admitted call to a responder.
    fn hand_on(
        &mut self,
        route: &Route,
        tag: Ticket,
        stream: bool,
        message: Message<'_>,
        in_flight: Option<Arc<InFlight>>,
    ) -> Result<(), RequestError> {
        let path = self.try_request(route, tag, stream, message, in_flight)?;
        let (slot, paths) = (tag.slot as usize, &mut self.local.paths);
        if slot >= paths.len() {
            paths.resize(slot + 1, None);
        }
        paths[slot] = Some(path);
        Ok(())
    }

    fn try_request(
        &mut self,
        route: &Route,
        tag: Ticket,
        stream: bool,
        message: Message<'_>,
        in_flight: Option<Arc<InFlight>>,
    ) -> Result<Path, RequestError> {
        let table = &**self
            .table
            .get_or_insert_with(|| self.messaging.router.table.read());
        let Route { target, method, .. } = route;
        if route.cast == Cast::All {
            return Err(RequestError::NotOneReceiver);
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
            let router = &self.messaging.router;
            let Some(ticket) = router.admit_call(responder, caller, deadline_ns) else {
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
        let name = table.base(target).clone();
        if full > 0 {
            return Err(RequestError::Full { count: full, name });
        }
        self.local.tally.count(Counter::Undeliverable);
        table.count_undeliverable(target, 1);
        Err(RequestError::NoResponder { name })
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
        self.messaging.platform.counters.count_failure(failure.code);
        let outgoing = Outgoing::Failure { tag, failure };
        peer.push(outgoing, &mut self.local.dirty);
    }

    /// Cancels a call for its caller, unless it has ended. Returns true if it ends as `cancelled`.
    pub fn cancel(&mut self, tag: Ticket) -> bool {
        match self.path(tag) {
            Some(path) => self.messaging.router.cancel(path.responder, path.ticket),
            None => false,
        }
    }

    /// Forwards the caller's credit for items of a stream.
    pub fn stream_credit(&mut self, tag: Ticket, items: u32) {
        let Some(path) = self.path(tag) else { return };
        let Some(responder) = self.messaging.router.peer(path.responder) else {
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
}
