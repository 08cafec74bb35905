//! From agents to SLIM: a request is published to an application, and what it says next is the reply.
//!
//! SLIM has no numbers that would tie a reply to its request, so a session has one request at a time.
//! One that got no reply in time is not used again: the reply may still come.
//!
//! An application's instance may go without a word, and sessions with it are of no use then. So before a request is
//! published in a session in which nothing was heard for a moment, the instance is asked whether it is there. If
//! it does not answer, all idle sessions with it are ended, and the request waits for a new session.
//!
//! ```text
//! request ─▸ waiting ─▸ a session: idle, checked, or opened for it ─▸ published ─▸ reply, and idle again
//! ```

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use client::{Client, Envelope, Fault, SubscribeOptions, Subscription};
use model::{ErrorCode, Name};
use slim::session::{Ending, FullName, NotPublished, Received, Reliability, SessionId};
use tokio::time::Instant;

use super::sessions::Sessions;
use super::{parts, terms};
use crate::commands::ping;
use crate::commands::target::call_failure;
use crate::failure::Failure;

/// How messages are repeated that an application does not acknowledge. Its library does so by itself, whatever the
/// application is doing: one that has not for 4 s has gone.
const RELIABILITY: Reliability = Reliability {
    interval_ns: 1_000_000_000,
    retries: 3,
};

/// An instance that was heard so recently is not asked whether it is there.
const FRESH: Duration = Duration::from_millis(20);

/// An instance that does not answer a check in this time has gone. It takes milliseconds.
const CHECK_TIMEOUT: Duration = Duration::from_millis(500);

/// Sessions that are opened for one request. An application that has just started may miss the first.
const OPENINGS_MAX: u32 = 3;

/// See the module's documentation.
pub(super) struct Outward {
    /// `None` when nothing new is taken.
    subscription: Option<Subscription>,
    to: Name,
    reliability: Option<Reliability>,
    deadline: Duration,
    requests_max: usize,
    waiting: VecDeque<Asked>,
    /// Sessions that are being opened.
    opening: Vec<SessionId>,
    idle: Vec<SessionId>,
    /// Sessions whose instances are asked whether they are there, and until when they may answer.
    checking: HashMap<SessionId, Instant>,
    asking: HashMap<SessionId, Asked>,
    /// The instance of each open session, and when it was heard last.
    peers: HashMap<SessionId, Peer>,
}

/// An application's instance.
struct Peer {
    name: FullName,
    heard: Instant,
}

/// What an agent sent.
struct Asked {
    envelope: Envelope,
    until: Instant,
    /// Sessions that were opened for it and not taken.
    refusals: u32,
}

impl Outward {
    pub(super) async fn new(
        client: &Client,
        names: &super::Names,
        to: Name,
        args: &super::Args,
    ) -> Result<Self, Failure> {
        let options = SubscribeOptions::new().with_source();
        let subscription = client.subscribe_with(&names.agent, options).await;
        let subscription = subscription.map_err(|error| call_failure(&names.agent, &error))?;
        Ok(Self {
            subscription: Some(subscription),
            to,
            reliability: args.reliable.then_some(RELIABILITY),
            deadline: args.deadline,
            requests_max: args.requests_max as usize,
            waiting: VecDeque::new(),
            opening: Vec::new(),
            idle: Vec::new(),
            checking: HashMap::new(),
            asking: HashMap::new(),
            peers: HashMap::new(),
        })
    }

    /// The next message of an agent; the code that the subscription ended with at its end.
    pub(super) async fn next(&mut self) -> Result<Envelope, ErrorCode> {
        match &mut self.subscription {
            None => std::future::pending().await,
            Some(subscription) => match subscription.next().await {
                Some(envelope) => Ok(envelope),
                None => Err(subscription.ended().unwrap_or(ErrorCode::Unavailable)),
            },
        }
    }

    /// Takes what an agent sent.
    pub(super) fn ask(&mut self, envelope: Envelope, sessions: &mut Sessions) {
        if envelope.method() == ping::METHOD && envelope.wants_reply() {
            // Whoever pings misses an answer that he has not waited for.
            let _ = envelope.reply("");
            return;
        }
        let refused = if !sessions.is_up() {
            Some((
                ErrorCode::Unavailable,
                "the bridge has no connection to its SLIM node",
            ))
        } else if envelope.body.len() > terms::PAYLOAD_SIZE_MAX {
            Some((ErrorCode::TooLarge, terms::TOO_LARGE))
        } else if self.waiting.len() + self.asking.len() >= self.requests_max {
            Some((
                ErrorCode::Busy,
                "the bridge has as many requests as it takes",
            ))
        } else {
            None
        };
        let remaining = envelope.deadline_remaining().unwrap_or(self.deadline);
        let until = Instant::now() + remaining.min(self.deadline);
        let asked = Asked {
            envelope,
            until,
            refusals: 0,
        };
        match refused {
            Some((code, text)) => refuse(asked, code, text, sessions),
            None => {
                self.waiting.push_back(asked);
                self.serve(sessions);
            }
        }
    }

    /// Serves who waits, as far as there are sessions.
    fn serve(&mut self, sessions: &mut Sessions) {
        while let Some(session) = self.idle.pop() {
            if self.is_fresh(session)
                && let Some(asked) = self.waiting.pop_front()
            {
                self.publish(session, asked, sessions);
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
                // Somebody will be done with his.
                Err(_) => return,
            }
        }
    }

    fn publish(&mut self, session: SessionId, asked: Asked, sessions: &mut Sessions) {
        let message = terms::to_application(&asked.envelope);
        match sessions.publish(session, &message) {
            Ok(()) if asked.envelope.wants_reply() => {
                self.asking.insert(session, asked);
            }
            Ok(()) => {
                sessions.tally.one_way += 1;
                self.idle.push(session);
            }
            Err(NotPublished::Full) => {
                refuse(
                    asked,
                    ErrorCode::Busy,
                    "the application acknowledges too slowly",
                    sessions,
                );
                self.idle.push(session);
            }
            // Its end is told on its own.
            Err(NotPublished::NotOpen) => self.waiting.push_front(asked),
        }
    }

    pub(super) fn opened(&mut self, session: SessionId, name: FullName, sessions: &mut Sessions) {
        self.opening.retain(|opening| *opening != session);
        let heard = Instant::now();
        self.peers.insert(session, Peer { name, heard });
        self.idle.push(session);
        self.serve(sessions);
    }

    /// An instance has answered that it is there.
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

    /// Ends the sessions in which nothing is under way with instances that have not answered in time.
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

    /// Takes what an application has said.
    pub(super) fn said(&mut self, session: SessionId, message: Received, sessions: &mut Sessions) {
        self.hear(session);
        // What nobody asked for is for nobody.
        let Some(asked) = self.asking.remove(&session) else {
            sessions.tally.unheard += 1;
            return;
        };
        let (is_error, answered) = match terms::outcome(message) {
            Ok(reply) => (false, asked.envelope.reply(reply)),
            Err(fault) => (true, asked.envelope.refuse(fault)),
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
        if let Some(asked) = self.asking.remove(&session) {
            let text = match ending {
                Ending::Silent => "the application does not acknowledge what it is sent",
                _ => "the application ended the session before it answered",
            };
            refuse(asked, ErrorCode::Unconfirmed, text, sessions);
        }
        let opening_count = self.opening.len();
        self.opening.retain(|opening| *opening != session);
        // It was opened for one of those who wait.
        if self.opening.len() < opening_count
            && ending != Ending::Left
            && let Some(mut asked) = self.waiting.pop_front()
        {
            asked.refusals += 1;
            let text = match ending {
                Ending::Nobody => Some("no SLIM application of that name answers"),
                _ if asked.refusals >= OPENINGS_MAX => {
                    Some("the SLIM application takes no session")
                }
                _ => None,
            };
            match text {
                Some(text) => refuse(asked, ErrorCode::NoResponder, text, sessions),
                // Nothing was published: another session repeats nothing.
                None => self.waiting.push_front(asked),
            }
        }
        self.serve(sessions);
    }

    /// Refuses those whose time is over.
    pub(super) fn tick(&mut self, sessions: &mut Sessions) {
        let now = Instant::now();
        let text = "the SLIM application did not answer in time";
        let late: Vec<_> = self
            .asking
            .extract_if(|_, asked| asked.until <= now)
            .collect();
        for (session, asked) in late {
            sessions.close(session);
            refuse(asked, ErrorCode::DeadlineExceeded, text, sessions);
        }
        let text = "there was no session with the SLIM application in time";
        let (late, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|asked| asked.until <= now);
        self.waiting = waiting;
        self.abandon_silent(sessions);
        for asked in late {
            refuse(asked, ErrorCode::DeadlineExceeded, text, sessions);
        }
    }

    /// Takes nothing new.
    pub(super) fn finish(&mut self) {
        self.subscription = None;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.asking.is_empty()
    }
}

fn refuse(asked: Asked, code: ErrorCode, text: &str, sessions: &mut Sessions) {
    if !asked.envelope.wants_reply() {
        sessions.tally.lost += 1;
        return;
    }
    match asked.envelope.refuse(Fault::with_code(code, text)) {
        Ok(()) => sessions.tally.failed += 1,
        Err(_) => sessions.tally.unheard += 1,
    }
}
