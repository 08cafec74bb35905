//! From agents to SLIM: requests are published to an application, whose next message is the reply.
//!
//! SLIM has no correlation ids, so a session has one open request at a time. A session whose
//! request got no reply in time is not used again, because the reply may still arrive.
//!
//! An instance of an application may disappear without notice, which makes its sessions useless.
//! Before a request is published in a session that was silent for a while, the instance is
//! therefore checked. If it does not answer, all idle sessions with it are ended, and the request
//! waits for a new session.
//!
//! ```text
//! request ─▸ waiting ─▸ a session: idle, checked, or opened for it ─▸ published ─▸ reply, and idle
//! again
//! ```

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use client::{Client, Envelope, Fault, SubscribeOptions, Subscription};
use console::{Failure, call_failure};
use model::{ErrorCode, Name};
use slim::session::{Ending, FullName, NotPublished, Received, Reliability, SessionId};
use tokio::time::Instant;

use super::messages;
use super::options::{Options, parts};
use super::sessions::Sessions;

/// Repetition of messages that an application does not acknowledge. Its library acknowledges
/// independently of the application, so an instance that is silent for 4 s is gone.
const RELIABILITY: Reliability = Reliability {
    interval_ns: 1_000_000_000,
    retries: 3,
};

/// An instance that sent a message within this time is not checked.
const FRESH: Duration = Duration::from_millis(20);

/// An instance that does not answer a check within this time is gone. An answer takes milliseconds.
const CHECK_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum number of sessions that are opened for one request. An application that has just started
/// may miss the first one.
const OPENINGS_MAX: u32 = 3;

/// Forwards requests of agents to a SLIM application.
pub(super) struct Outward {
    /// `None` once no new requests are accepted.
    subscription: Option<Subscription>,
    to: Name,
    reliability: Option<Reliability>,
    deadline: Duration,
    requests_max: usize,
    waiting: VecDeque<OpenRequest>,
    /// Sessions that are being opened.
    opening: Vec<SessionId>,
    idle: Vec<SessionId>,
    /// Sessions whose instances are being checked, with the deadline of the answer.
    checking: HashMap<SessionId, Instant>,
    open_requests: HashMap<SessionId, OpenRequest>,
    /// The instance of each open session, with the time of its last message.
    peers: HashMap<SessionId, Peer>,
}

/// An instance of the application.
struct Peer {
    name: FullName,
    heard: Instant,
}

/// A request of an agent.
struct OpenRequest {
    envelope: Envelope,
    until: Instant,
    /// Number of sessions for this request that were refused.
    refusals: u32,
}

impl Outward {
    pub(super) async fn new(client: &Client, to: Name, options: &Options) -> Result<Self, Failure> {
        let with_source = SubscribeOptions::new().with_source();
        let subscription = client.subscribe_with(&options.agent, with_source).await;
        let subscription = subscription.map_err(|error| call_failure(&options.agent, &error))?;
        Ok(Self {
            subscription: Some(subscription),
            to,
            reliability: options.reliable.then_some(RELIABILITY),
            deadline: options.deadline,
            requests_max: options.requests_max,
            waiting: VecDeque::new(),
            opening: Vec::new(),
            idle: Vec::new(),
            checking: HashMap::new(),
            open_requests: HashMap::new(),
            peers: HashMap::new(),
        })
    }

    /// Returns the next message of an agent, or the code with which the subscription ended.
    pub(super) async fn next(&mut self) -> Result<Envelope, ErrorCode> {
        match &mut self.subscription {
            None => std::future::pending().await,
            Some(subscription) => match subscription.next().await {
                Some(envelope) => Ok(envelope),
                None => Err(subscription.ended().unwrap_or(ErrorCode::Unavailable)),
            },
        }
    }

    /// Accepts a message of an agent.
    pub(super) fn ask(&mut self, envelope: Envelope, sessions: &mut Sessions) {
        if envelope.method() == model::PING_METHOD && envelope.wants_reply() {
            // The answer is lost if the caller has gone.
            let _ = envelope.reply("");
            return;
        }
        let refused = if !sessions.is_up() {
            Some((
                ErrorCode::Unavailable,
                "the bridge has no connection to its SLIM node",
            ))
        } else if envelope.body.len() > messages::PAYLOAD_SIZE_MAX {
            Some((ErrorCode::TooLarge, messages::TOO_LARGE))
        } else if self.waiting.len() + self.open_requests.len() >= self.requests_max {
            Some((
                ErrorCode::Busy,
                "the bridge has the maximum number of open requests (--requests-max)",
            ))
        } else {
            None
        };
        let remaining = envelope.deadline_remaining().unwrap_or(self.deadline);
        let until = Instant::now() + remaining.min(self.deadline);
        let request = OpenRequest {
            envelope,
            until,
            refusals: 0,
        };
        match refused {
            Some((code, text)) => refuse(request, code, text, sessions),
            None => {
                self.waiting.push_back(request);
                self.serve(sessions);
            }
        }
    }

    /// Publishes waiting requests, as far as there are sessions, and opens or checks sessions.
    fn serve(&mut self, sessions: &mut Sessions) {
        while let Some(session) = self.idle.pop() {
            if self.is_fresh(session)
                && let Some(request) = self.waiting.pop_front()
            {
                self.publish(session, request, sessions);
            } else if self.checking.len() < self.waiting.len() {
                self.checking
                    .insert(session, Instant::now() + CHECK_TIMEOUT);
                sessions.check(session);
            } else {
                self.idle.push(session);
                break;
            }
        }
        while self.opening.len() + self.checking.len() < self.waiting.len() {
            match sessions.open(parts(&self.to), self.reliability) {
                Ok(session) => self.opening.push(session),
                // The maximum is reached; a session becomes idle when its request is done.
                Err(_) => return,
            }
        }
    }

    fn publish(&mut self, session: SessionId, request: OpenRequest, sessions: &mut Sessions) {
        let message = messages::to_application(&request.envelope);
        match sessions.publish(session, &message) {
            Ok(()) if request.envelope.wants_reply() => {
                self.open_requests.insert(session, request);
            }
            Ok(()) => {
                sessions.tally.one_way += 1;
                self.idle.push(session);
            }
            Err(NotPublished::Full) => {
                refuse(
                    request,
                    ErrorCode::Busy,
                    "the application acknowledges too slowly",
                    sessions,
                );
                self.idle.push(session);
            }
            // The end of the session is reported separately.
            Err(NotPublished::NotOpen) => self.waiting.push_front(request),
        }
    }

    pub(super) fn opened(&mut self, session: SessionId, name: FullName, sessions: &mut Sessions) {
        self.opening.retain(|opening| *opening != session);
        let heard = Instant::now();
        self.peers.insert(session, Peer { name, heard });
        self.idle.push(session);
        self.serve(sessions);
    }

    /// Handles the answer of an instance to a check.
    pub(super) fn alive(&mut self, session: SessionId, sessions: &mut Sessions) {
        self.hear(session);
        if self.checking.remove(&session).is_some() {
            self.idle.push(session);
            self.serve(sessions);
        }
    }

    fn hear(&mut self, session: SessionId) {
        if let Some(peer) = self.peers.get_mut(&session) {
            peer.heard = Instant::now();
        }
    }

    fn is_fresh(&self, session: SessionId) -> bool {
        let peer = self.peers.get(&session);
        peer.is_some_and(|peer| peer.heard.elapsed() < FRESH)
    }

    /// Ends the idle sessions with instances that did not answer a check in time.
    fn abandon_silent(&mut self, sessions: &mut Sessions) {
        let now = Instant::now();
        let silent: Vec<_> = self.checking.extract_if(|_, until| *until <= now).collect();
        for (session, _) in silent {
            let Some(peer) = self.peers.remove(&session) else {
                continue;
            };
            sessions.abandon(session);
            let others = self.idle.iter().chain(self.checking.keys());
            let is_with =
                |other: &&SessionId| self.peers.get(other).is_some_and(|it| it.name == peer.name);
            let others: Vec<_> = others.filter(is_with).copied().collect();
            for other in others {
                self.idle.retain(|idle| *idle != other);
                self.checking.remove(&other);
                self.peers.remove(&other);
                sessions.abandon(other);
            }
        }
        self.serve(sessions);
    }

    /// Handles a message of the application.
    pub(super) fn said(&mut self, session: SessionId, message: Received, sessions: &mut Sessions) {
        self.hear(session);
        // A message without an open request is dropped.
        let Some(request) = self.open_requests.remove(&session) else {
            sessions.tally.unheard += 1;
            return;
        };
        let (is_error, answered) = match messages::outcome(message) {
            Ok(reply) => (false, request.envelope.reply(reply)),
            Err(fault) => (true, request.envelope.refuse(fault)),
        };
        match (answered, is_error) {
            (Err(_), _) => sessions.tally.unheard += 1,
            (Ok(()), true) => sessions.tally.failed += 1,
            (Ok(()), false) => sessions.tally.answered += 1,
        }
        self.idle.push(session);
        self.serve(sessions);
    }

    pub(super) fn over(&mut self, session: SessionId, ending: Ending, sessions: &mut Sessions) {
        self.idle.retain(|idle| *idle != session);
        self.checking.remove(&session);
        self.peers.remove(&session);
        if let Some(request) = self.open_requests.remove(&session) {
            let text = match ending {
                Ending::Silent => "the application does not acknowledge messages",
                _ => "the application ended the session before it answered",
            };
            refuse(request, ErrorCode::Unconfirmed, text, sessions);
        }
        let opening_count = self.opening.len();
        self.opening.retain(|opening| *opening != session);
        // The session was opened for the oldest waiting request.
        if self.opening.len() < opening_count
            && ending != Ending::Left
            && let Some(mut request) = self.waiting.pop_front()
        {
            request.refusals += 1;
            let text = match ending {
                Ending::Nobody => Some("no SLIM application with that name answers"),
                _ if request.refusals >= OPENINGS_MAX => {
                    Some("the SLIM application accepts no session")
                }
                _ => None,
            };
            match text {
                Some(text) => refuse(request, ErrorCode::NoResponder, text, sessions),
                // The request was not published, so another session does not duplicate it.
                None => self.waiting.push_front(request),
            }
        }
        self.serve(sessions);
    }

    /// Refuses requests whose deadline has passed.
    pub(super) fn tick(&mut self, sessions: &mut Sessions) {
        let now = Instant::now();
        let text = "the SLIM application did not answer in time";
        let late: Vec<_> = self
            .open_requests
            .extract_if(|_, request| request.until <= now)
            .collect();
        for (session, request) in late {
            sessions.close(session);
            refuse(request, ErrorCode::DeadlineExceeded, text, sessions);
        }
        let text = "there was no session with the SLIM application in time";
        let (late, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|request| request.until <= now);
        self.waiting = waiting;
        self.abandon_silent(sessions);
        for request in late {
            refuse(request, ErrorCode::DeadlineExceeded, text, sessions);
        }
    }

    /// Accepts no new requests from now on.
    pub(super) fn finish(&mut self) {
        self.subscription = None;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.open_requests.is_empty()
    }
}

fn refuse(request: OpenRequest, code: ErrorCode, text: &str, sessions: &mut Sessions) {
    if !request.envelope.wants_reply() {
        sessions.tally.lost += 1;
        return;
    }
    match request.envelope.refuse(Fault::with_code(code, text)) {
        Ok(()) => sessions.tally.failed += 1,
        Err(_) => sessions.tally.unheard += 1,
    }
}
