//! From SLIM to an agent: messages of applications are requests, whose replies are published.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use client::{CallError, Caller, Client, WhenFull};
use console::{Exit, Failure};
use model::ErrorCode;
use slim::session::{FullName, Received, SessionId};
use tokio::task::JoinSet;

use super::messages::{self, ReplyContext};
use super::options::Options;
use super::sessions::Sessions;

/// Maximum size of the payloads of open requests; the last one may exceed it.
const REQUESTS_SIZE_MAX: usize = 64 << 20;

/// Forwards messages of SLIM applications to an agent.
pub(super) struct Inward {
    caller: Caller,
    deadline: Duration,
    requests_max: usize,
    /// True if no message is answered.
    is_one_way: bool,
    is_ending: bool,
    peers: HashMap<SessionId, FullName>,
    /// The open requests, each with the size of its payload.
    requests: JoinSet<(Answered, usize)>,
    requests_size: usize,
}

/// A request with its outcome.
pub(super) struct Answered {
    session: SessionId,
    context: ReplyContext,
    outcome: Result<Bytes, CallError>,
}

impl Inward {
    pub(super) fn new(client: &Client, options: &Options) -> Result<Self, Failure> {
        let caller = client.caller(options.agent.as_str());
        Ok(Self {
            caller: caller.map_err(|error| Failure::new(Exit::Usage, error))?,
            deadline: options.deadline,
            requests_max: options.requests_max,
            is_one_way: options.one_way,
            is_ending: false,
            peers: HashMap::new(),
            requests: JoinSet::new(),
            requests_size: 0,
        })
    }

    pub(super) fn opened(&mut self, session: SessionId, peer: FullName) {
        self.peers.insert(session, peer);
    }

    pub(super) fn over(&mut self, session: SessionId) {
        self.peers.remove(&session);
    }

    /// Forwards a message of an application.
    pub(super) fn said(&mut self, session: SessionId, message: Received, sessions: &mut Sessions) {
        if self.is_one_way || messages::is_one_way(&message) {
            self.send(session, &message, sessions);
            return;
        }
        let context = ReplyContext::new(&message);
        let refused = if self.is_ending {
            Some((ErrorCode::Unavailable, "the bridge is shutting down"))
        } else if !self.has_room() {
            Some((
                ErrorCode::Busy,
                "the bridge has the maximum number of open requests (--requests-max)",
            ))
        } else {
            None
        };
        match refused {
            Some((code, text)) => {
                let outcome = Err(CallError::new(code, text));
                self.answer(
                    Answered {
                        session,
                        context,
                        outcome,
                    },
                    sessions,
                );
            }
            None => self.request(session, context, message),
        }
    }

    fn has_room(&self) -> bool {
        self.requests.len() < self.requests_max && self.requests_size < REQUESTS_SIZE_MAX
    }

    fn send(&self, session: SessionId, message: &Received, sessions: &mut Sessions) {
        let metadata = messages::to_agent(message, self.peers.get(&session));
        let sent = self
            .caller
            .one_way(messages::method(message), &message.payload)
            .metadata(metadata)
            .now();
        match sent {
            Ok(()) => sessions.tally.one_way += 1,
            Err(_) => sessions.tally.lost += 1,
        }
    }

    fn request(&mut self, session: SessionId, context: ReplyContext, message: Received) {
        let metadata = messages::to_agent(&message, self.peers.get(&session));
        let (caller, deadline) = (self.caller.clone(), self.deadline);
        let size = message.payload.len();
        self.requests_size += size;
        self.requests.spawn(async move {
            let call = caller
                .call(messages::method(&message), &message.payload)
                .metadata(metadata)
                .when_full(WhenFull::Wait)
                .deadline(deadline);
            let outcome = call.await;
            let answered = Answered {
                session,
                context,
                outcome,
            };
            (answered, size)
        });
    }

    /// Returns the next request that has its outcome.
    pub(super) async fn next(&mut self) -> Answered {
        loop {
            match self.requests.join_next().await {
                Some(Ok((answered, size))) => {
                    self.requests_size -= size;
                    return answered;
                }
                // The task panicked; its request is lost with it.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Publishes the outcome of a request.
    pub(super) fn answer(&self, answered: Answered, sessions: &mut Sessions) {
        let answer = answered.context.answer(answered.outcome);
        let published = sessions.publish(answered.session, &answer);
        match (published, messages::is_error(&answer)) {
            (Err(_), _) => sessions.tally.unheard += 1,
            (Ok(()), true) => sessions.tally.failed += 1,
            (Ok(()), false) => sessions.tally.answered += 1,
        }
    }

    /// Refuses new requests from now on.
    pub(super) fn finish(&mut self) {
        self.is_ending = true;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }
}
