//! The SLIM sessions of the bridge: drives the session engine with the link and the clock.

use std::collections::VecDeque;

use console::utc;
use slim::session::{
    Decision, Ending, Endpoint, FullName, Moment, NotPublished, Packet, Received, Rejected,
    Reliability, SessionId, Untrusted,
};
use slim::{Ack, Link, Message};
use tokio::time::Instant;

use super::line::Writes;
use super::tally::Tally;

/// An event of the sessions.
pub(super) enum Happened {
    /// The node has answered the subscription to the bridge's name.
    Subscribed(Result<(), String>),
    Opened(SessionId, FullName),
    Said(SessionId, Received),
    /// The instance of the session has answered a check.
    Alive(SessionId),
    Over(SessionId, Ending),
}

/// All sessions of the bridge.
pub(super) struct Sessions {
    endpoint: Endpoint,
    up: Option<Up>,
    decisions: Vec<Decision>,
    happened: VecDeque<Happened>,
    start: Instant,
    /// A buffer for the computation of MACs.
    scratch: Vec<u8>,
    subscriptions: u64,
    pub(super) tally: Tally,
}

/// An established link with its queue of messages to write.
struct Up {
    link: Box<Link>,
    writes: Writes,
}

impl Sessions {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            up: None,
            decisions: Vec::new(),
            happened: VecDeque::new(),
            start: Instant::now(),
            scratch: Vec::new(),
            subscriptions: 0,
            tally: Tally::default(),
        }
    }

    /// Returns the full SLIM name of the bridge.
    pub(super) fn name(&self) -> &FullName {
        self.endpoint.name()
    }

    pub(super) fn count(&self) -> usize {
        self.endpoint.session_count()
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.is_some()
    }

    /// Handles an established link: subscribes to the bridge's name first.
    pub(super) fn up(&mut self, link: Box<Link>, writes: Writes) {
        let at = self.moment();
        self.subscriptions += 1;
        let message = self.endpoint.subscription(self.subscriptions, &link, at);
        // The queue is empty, so this succeeds.
        writes.push(message);
        self.up = Some(Up { link, writes });
        self.endpoint.resume(at);
    }

    pub(super) fn down(&mut self) {
        self.up = None;
    }

    /// Handles a message of the node.
    pub(super) fn receive(&mut self, message: &[u8]) {
        let at = self.moment();
        let Some(up) = &self.up else {
            return;
        };
        let taken = match Message::scan(message) {
            Ok(Message::Publish(routed)) if up.link.verify(&routed.header, &mut self.scratch) => {
                self.endpoint.receive(&routed, at, &mut self.decisions)
            }
            Ok(Message::Publish(_)) => Err(Untrusted::Mac.into()),
            Ok(Message::Ack(Ack {
                subscription_id,
                error,
            })) => {
                if subscription_id == self.subscriptions {
                    let outcome = error.map_or(Ok(()), |error| Err(error.to_owned()));
                    self.happened.push_back(Happened::Subscribed(outcome));
                }
                Ok(())
            }
            Ok(_) => Err(Rejected::Unexpected),
            Err(malformed) => Err(malformed.into()),
        };
        if let Err(rejected) = taken {
            self.tally.reject(&rejected);
        }
        self.settle();
    }

    pub(super) fn open(
        &mut self,
        to: [&str; 3],
        reliability: Option<Reliability>,
    ) -> Result<SessionId, Rejected> {
        let at = self.moment();
        let opened = self.endpoint.open(to, reliability, at, &mut self.decisions);
        self.settle();
        opened
    }

    pub(super) fn publish(
        &mut self,
        session: SessionId,
        said: &Received,
    ) -> Result<(), NotPublished> {
        let at = self.moment();
        let said = self
            .endpoint
            .publish(session, said, at, &mut self.decisions);
        self.settle();
        said
    }

    /// Checks that the instance of a session still exists.
    pub(super) fn check(&mut self, session: SessionId) {
        let at = self.moment();
        self.endpoint.check(session, at, &mut self.decisions);
        self.settle();
    }

    /// Ends a session with an instance that is gone.
    pub(super) fn abandon(&mut self, session: SessionId) {
        let at = self.moment();
        self.endpoint.abandon(session, at, &mut self.decisions);
        self.settle();
    }

    pub(super) fn close(&mut self, session: SessionId) {
        let at = self.moment();
        self.endpoint.close(session, at, &mut self.decisions);
        self.settle();
    }

    pub(super) fn close_all(&mut self) {
        let at = self.moment();
        self.endpoint.close_all(at, &mut self.decisions);
        self.settle();
    }

    /// Runs due timers. Without a link timers are paused, because no answer could arrive.
    pub(super) fn tick(&mut self) {
        if self.is_up() {
            let at = self.moment();
            self.endpoint.tick(at, &mut self.decisions);
            self.settle();
        }
    }

    /// Returns the next event.
    pub(super) fn next(&mut self) -> Option<Happened> {
        self.happened.pop_front()
    }

    fn settle(&mut self) {
        for decision in std::mem::take(&mut self.decisions) {
            match decision {
                Decision::Send(packet) => self.send(&packet),
                Decision::Opened { session, peer } => {
                    self.happened.push_back(Happened::Opened(session, peer));
                }
                Decision::Deliver { session, message } => {
                    self.happened.push_back(Happened::Said(session, message));
                }
                Decision::Alive { session } => {
                    self.happened.push_back(Happened::Alive(session));
                }
                Decision::Over { session, ending } => {
                    self.happened.push_back(Happened::Over(session, ending));
                }
            }
        }
    }

    /// Sends a packet. If the queue is full the packet is dropped; reliable sessions repeat it.
    fn send(&mut self, packet: &Packet) {
        let pushed = |up: &Up| up.writes.push(packet.encode(&up.link));
        if !self.up.as_ref().is_some_and(pushed) {
            self.tally.unsent += 1;
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            now_ns: self.start.elapsed().as_nanos() as u64,
            unix_s: utc::now_s(),
        }
    }
}
