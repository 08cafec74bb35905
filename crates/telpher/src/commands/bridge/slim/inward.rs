//! From SLIM to an agent: what an application publishes is a request, its reply is published back.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use client::{CallError, Caller, Client, WhenFull};
use model::ErrorCode;
use slim::session::{FullName, Received, SessionId};
use tokio::task::JoinSet;

use super::sessions::Sessions;
use super::terms::{self, Asked};
use crate::failure::{Exit, Failure};

/// Payloads of requests under way reach this at most, and one message more.
const REQUESTS_SIZE_MAX: usize = 64 << 20;

/// See the module's documentation.
pub(super) struct Inward {
    caller: Caller,
    deadline: Duration,
    requests_max: usize,
    /// Whether nothing is ever answered.
    is_one_way: bool,
    is_ending: bool,
    peers: HashMap<SessionId, FullName>,
    /// Each with the size of its payload.
    requests: JoinSet<(Answered, usize)>,
    requests_size: usize,
}

/// A request that has its answer.
pub(super) struct Answered {
    session: SessionId,
    asked: Asked,
    outcome: Result<Bytes, CallError>,
}

impl Inward {
    pub(super) fn new(
        client: &Client,
        agent: &model::Name,
        args: &super::Args,
    ) -> Result<Self, Failure> {
        let caller = client.caller(agent.as_str());
        Ok(Self {
            caller: caller.map_err(|error| Failure::new(Exit::Usage, error))?,
            deadline: args.deadline,
            requests_max: args.requests_max as usize,
            is_one_way: args.one_way,
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

    /// Passes on what an application has said.
    pub(super) fn said(&mut self, session: SessionId, message: Received, sessions: &mut Sessions) {
        if self.is_one_way || terms::is_one_way(&message) {
            self.send(session, &message, sessions);
            return;
        }
        let asked = Asked::new(&message);
        let refused = if self.is_ending {
            Some((ErrorCode::Unavailable, "the bridge is shutting down"))
        } else if !self.has_room() {
            Some((
                ErrorCode::Busy,
                "the bridge has as many requests as it takes",
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
                        asked,
                        outcome,
                    },
                    sessions,
                );
            }
            None => self.request(session, asked, message),
        }
    }

    fn has_room(&self) -> bool {
        self.requests.len() < self.requests_max && self.requests_size < REQUESTS_SIZE_MAX
    }

    fn send(&self, session: SessionId, message: &Received, sessions: &mut Sessions) {
        let metadata = terms::to_agent(message, self.peers.get(&session));
        let sent = self
            .caller
            .one_way(terms::method(message), &message.payload)
            .metadata(metadata)
            .now();
        match sent {
            Ok(()) => sessions.tally.one_way += 1,
            Err(_) => sessions.tally.lost += 1,
        }
    }

    fn request(&mut self, session: SessionId, asked: Asked, message: Received) {
        let metadata = terms::to_agent(&message, self.peers.get(&session));
        let (caller, deadline) = (self.caller.clone(), self.deadline);
        let size = message.payload.len();
        self.requests_size += size;
        self.requests.spawn(async move {
            let call = caller
                .call(terms::method(&message), &message.payload)
                .metadata(metadata)
                .when_full(WhenFull::Wait)
                .deadline(deadline);
            let outcome = call.await;
            let answered = Answered {
                session,
                asked,
                outcome,
            };
            (answered, size)
        });
    }

    /// The next request that is answered.
    pub(super) async fn next(&mut self) -> Answered {
        loop {
            match self.requests.join_next().await {
                Some(Ok((answered, size))) => {
                    self.requests_size -= size;
                    return answered;
                }
                // The call took what it was asked with along.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Publishes an answer.
    pub(super) fn answer(&self, answered: Answered, sessions: &mut Sessions) {
        let answer = answered.asked.answer(answered.outcome);
        let published = sessions.publish(answered.session, &answer);
        match (published, terms::is_error(&answer)) {
            (Err(_), _) => sessions.tally.unheard += 1,
            (Ok(()), true) => sessions.tally.failed += 1,
            (Ok(()), false) => sessions.tally.answered += 1,
        }
    }

    /// Takes no new requests.
    pub(super) fn finish(&mut self) {
        self.is_ending = true;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }
}
