//! `Endpoint`: the sessions of one name.

use std::collections::HashMap;

use bytes::Bytes;

use crate::draft::Draft;
use crate::link::Link;
use crate::message::Routed;
use crate::name::{Key, Prefix};
use crate::session::content::{self, JoinRequest, Kind};
use crate::session::dialogue::Dialogue;
use crate::session::full_name::FullName;
use crate::session::identity::{Identity, Untrusted};
use crate::session::incoming::Incoming;
use crate::session::packet::Packet;
use crate::session::turn::{MessageAddress, Numbers, Turn};
use crate::session::unacked::OutgoingContent;
use crate::session::{Ending, Moment, Reliability};
use crate::wire::Malformed;

/// Id of a session within its endpoint; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(u64);

/// Limits of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of sessions.
    pub sessions_max: usize,
    /// Maximum number of sessions opened by peers; 0 allows none.
    pub asked_max: usize,
    /// Time in nanoseconds without a message after which a peer counts as gone.
    pub silence_ns_max: u64,
}

/// Action for the caller of the endpoint.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send a packet.
    Send(Packet),
    /// A session is open; messages can be sent.
    Opened {
        /// Session.
        session: SessionId,
        /// Name of the peer.
        peer: FullName,
    },
    /// A message was received.
    Deliver {
        /// Session.
        session: SessionId,
        /// Message.
        message: Received,
    },
    /// The peer answered [`Endpoint::check`].
    Alive {
        /// Session.
        session: SessionId,
    },
    /// A session has ended.
    Over {
        /// Session.
        session: SessionId,
        /// Reason.
        ending: Ending,
    },
}

/// A message of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Payload.
    pub payload: Bytes,
    /// Type of the payload; `msg` by default.
    pub payload_type: String,
    /// Metadata entries in arbitrary order.
    pub metadata: Vec<(String, String)>,
}

/// Reason for dropping a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The message cannot be decoded.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The sender cannot be verified.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The destination is another name or another instance.
    #[error("the message is for another name or instance")]
    NotForUs,
    /// The session does not exist.
    #[error("the session does not exist")]
    UnknownSession,
    /// The sender is not the identity with which the session began.
    #[error("the session began with another identity")]
    Stranger,
    /// The message type is not expected in the current state.
    #[error("the message is not expected in this state")]
    Unexpected,
    /// The message is outside of the receive window; the sender will send it again.
    #[error("the message is outside of the receive window")]
    TooFar,
    /// The limit of sessions is reached.
    #[error("the limit of sessions is reached")]
    Full,
    /// The invitation requires MLS; the sender was informed.
    #[error("sessions with MLS are not supported")]
    WantsMls,
}

/// Error of publishing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPublished {
    /// The session has ended or is not open yet.
    #[error("the session is not open")]
    NotOpen,
    /// Too many messages are not acknowledged.
    #[error("too many messages wait for an acknowledgement")]
    Full,
}

/// Key of a session: the peer's name, its instance id and the session number. The id is `None`
/// during discovery.
type SessionKey = (Prefix, Option<u128>, u32);

/// The sessions of one name; see the module documentation.
pub struct Endpoint {
    name: FullName,
    identity: Identity,
    limits: Limits,
    numbers: Numbers,
    next_session: u64,
    sessions: HashMap<SessionId, Dialogue>,
    session_keys: HashMap<SessionKey, SessionId>,
    /// Discovery requests sent by [`check`](Self::check).
    checks: HashMap<SessionKey, SessionId>,
    /// Number of sessions opened by peers.
    incoming_count: usize,
}

impl Endpoint {
    /// Creates an endpoint for an instance of the application `texts`; the identity determines the
    /// instance id.
    pub fn new(texts: [&str; 3], identity: Identity, seed: u64, limits: Limits) -> Self {
        Self {
            name: FullName::new(texts, Some(identity.name_id())),
            identity,
            limits,
            numbers: Numbers::new(seed),
            next_session: 0,
            sessions: HashMap::new(),
            session_keys: HashMap::new(),
            checks: HashMap::new(),
            incoming_count: 0,
        }
    }

    /// Returns the name of the endpoint.
    pub fn name(&self) -> &FullName {
        &self.name
    }

    /// Returns the number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Encodes the subscribe message for the endpoint's name.
    pub fn subscription(&mut self, subscription_id: u64, link: &Link, at: Moment) -> Vec<u8> {
        let identity = self.identity.token(at.unix_s);
        let draft = Draft {
            source: self.name.name(),
            destination: self.name.name(),
            identity: &identity,
            fanout: 1,
            ttl: crate::TTL,
        };
        draft.subscribe(subscription_id, link)
    }

    /// Processes a message whose MAC was verified.
    pub fn receive(
        &mut self,
        routed: &Routed<'_>,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<(), Rejected> {
        let incoming = Incoming::read(routed)?;
        let destination = incoming.header.destination.encoded.key();
        let us = self.name.key();
        if destination.prefix != us.prefix || destination.id.is_some_and(|id| Some(id) != us.id) {
            return Err(Rejected::NotForUs);
        }
        let kind = incoming.kind().ok_or(Rejected::Unexpected)?;
        let bearer = incoming.verify(&self.identity, at.unix_s)?;
        let source = incoming.header.source.encoded.key();
        let source_id = source.id.ok_or(Rejected::Unexpected)?;
        let key = (source.prefix, Some(source_id), incoming.session());
        let unknown = (source.prefix, None, incoming.session());
        let known = match kind {
            Kind::DiscoveryReply => self.session_keys.get(&unknown),
            _ => self.session_keys.get(&key),
        };
        match (known.copied(), kind) {
            (None, Kind::DiscoveryRequest) => self.answer_discovery(&incoming, at, out),
            (None, Kind::DiscoveryReply) => self.complete_check(key, at, out),
            (None, Kind::JoinRequest) => self.join(key, &incoming, bearer.subject, at, out),
            (None, _) => Err(Rejected::UnknownSession),
            (Some(session), _) => {
                let (dialogue, mut turn) = self.turn(session, at, out);
                let dialogue = dialogue.ok_or(Rejected::UnknownSession)?;
                let ending = dialogue.receive(&incoming, kind, bearer.subject, &mut turn)?;
                if kind == Kind::DiscoveryReply {
                    self.session_keys.remove(&unknown);
                    self.session_keys.insert(key, session);
                }
                self.end_if(session, ending, out);
                Ok(())
            }
        }
    }

    /// Opens a session with an instance of an application.
    pub fn open(
        &mut self,
        texts: [&str; 3],
        reliability: Option<Reliability>,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<SessionId, Rejected> {
        if self.sessions.len() >= self.limits.sessions_max {
            return Err(Rejected::Full);
        }
        let peer = FullName::new(texts, None);
        let session = self.next_session();
        let prefix = peer.key().prefix;
        let number = loop {
            let number = self.numbers.session();
            if !self.session_keys.contains_key(&(prefix, None, number)) {
                break number;
            }
        };
        let (_, mut turn) = self.turn(session, at, out);
        let dialogue = Dialogue::initiate(session, number, peer, reliability, &mut turn);
        self.sessions.insert(session, dialogue);
        self.session_keys.insert((prefix, None, number), session);
        Ok(session)
    }

    /// Sends a message in a session.
    pub fn publish(
        &mut self,
        session: SessionId,
        outgoing: &Received,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<(), NotPublished> {
        let outgoing = OutgoingContent {
            content: content::payload(&outgoing.payload_type, &outgoing.payload),
            metadata: outgoing.metadata.clone(),
        };
        let (dialogue, mut turn) = self.turn(session, at, out);
        dialogue
            .ok_or(NotPublished::NotOpen)?
            .publish(outgoing, &mut turn)
    }

    /// Checks that the instance at the other end of a session still exists. [`Decision::Alive`]
    /// reports its answer; an instance that is gone does not answer. The session itself is
    /// unchanged.
    pub fn check(&mut self, session: SessionId, at: Moment, out: &mut Vec<Decision>) {
        let Some(dialogue) = self.sessions.get(&session) else {
            return;
        };
        let peer = dialogue.peer().clone();
        let Key { prefix, id } = peer.key();
        let (number, message) = (self.numbers.session(), self.numbers.message());
        self.checks.insert((prefix, id, number), session);
        let to = MessageAddress {
            peer: &peer,
            session: number,
            kind: Kind::DiscoveryRequest,
            number: message,
        };
        let (_, mut turn) = self.turn(session, at, out);
        turn.control(to, content::bare(content::DISCOVERY_REQUEST));
    }

    /// Ends a session at once. The peer is informed, without waiting for its answer.
    pub fn abandon(&mut self, session: SessionId, at: Moment, out: &mut Vec<Decision>) {
        let (dialogue, mut turn) = self.turn(session, at, out);
        if let Some(dialogue) = dialogue {
            let ending = dialogue.leave(&mut turn).unwrap_or(Ending::Left);
            self.end_if(session, Some(ending), out);
        }
    }

    /// Closes a session. It ends when the peer answers, or after a timeout.
    pub fn close(&mut self, session: SessionId, at: Moment, out: &mut Vec<Decision>) {
        let (dialogue, mut turn) = self.turn(session, at, out);
        let ending = dialogue.and_then(|dialogue| dialogue.leave(&mut turn));
        self.end_if(session, ending, out);
    }

    /// Closes all sessions.
    pub fn close_all(&mut self, at: Moment, out: &mut Vec<Decision>) {
        for session in self.ids() {
            self.close(session, at, out);
        }
    }

    /// Resumes all sessions on a new link. Between two links [`tick`](Self::tick) must not be
    /// called, so that peers do not count as silent.
    pub fn resume(&mut self, at: Moment) {
        for dialogue in self.sessions.values_mut() {
            dialogue.resume(at.now_ns);
        }
    }

    /// Performs the actions that are due. Must be called about ten times per second while there are
    /// sessions.
    pub fn tick(&mut self, at: Moment, out: &mut Vec<Decision>) {
        let silence_ns_max = self.limits.silence_ns_max;
        for session in self.ids() {
            let (dialogue, mut turn) = self.turn(session, at, out);
            let ending = dialogue.and_then(|dialogue| dialogue.tick(silence_ns_max, &mut turn));
            self.end_if(session, ending, out);
        }
    }

    /// Processes the answer to a check.
    fn complete_check(
        &mut self,
        key: SessionKey,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<(), Rejected> {
        let session = self.checks.remove(&key);
        let session = session.ok_or(Rejected::UnknownSession)?;
        let dialogue = self.sessions.get_mut(&session);
        dialogue.ok_or(Rejected::UnknownSession)?.resume(at.now_ns);
        out.push(Decision::Alive { session });
        Ok(())
    }

    fn answer_discovery(
        &mut self,
        incoming: &Incoming<'_>,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<(), Rejected> {
        self.check_room()?;
        let content = content::bare(content::DISCOVERY_REPLY);
        self.answer(incoming, Kind::DiscoveryReply, content, at, out);
        Ok(())
    }

    fn join(
        &mut self,
        key: SessionKey,
        incoming: &Incoming<'_>,
        subject: &str,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<(), Rejected> {
        let request = JoinRequest::read(incoming.content)?;
        if request.wants_mls {
            // A reply without a key package fails the invitation at once.
            let content = content::join_reply(self.name.name());
            self.answer(incoming, Kind::JoinReply, content, at, out);
            return Err(Rejected::WantsMls);
        }
        self.check_room()?;
        let session = self.next_session();
        let (_, mut turn) = self.turn(session, at, out);
        let dialogue = Dialogue::accept(session, incoming, &request, subject, &mut turn);
        self.sessions.insert(session, dialogue);
        self.session_keys.insert(key, session);
        self.incoming_count += 1;
        Ok(())
    }

    fn check_room(&self) -> Result<(), Rejected> {
        let has_room = self.sessions.len() < self.limits.sessions_max
            && self.incoming_count < self.limits.asked_max;
        has_room.then_some(()).ok_or(Rejected::Full)
    }

    /// Answers a message that belongs to no session.
    fn answer(
        &mut self,
        incoming: &Incoming<'_>,
        kind: Kind,
        content: Vec<u8>,
        at: Moment,
        out: &mut Vec<Decision>,
    ) {
        let to = MessageAddress {
            peer: &FullName::from(&incoming.header.source),
            session: incoming.session(),
            kind,
            number: incoming.number(),
        };
        let (_, mut turn) = self.turn(SessionId(u64::MAX), at, out);
        turn.control(to, content);
    }

    fn next_session(&mut self) -> SessionId {
        self.next_session += 1;
        SessionId(self.next_session)
    }

    fn ids(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }

    fn turn<'a>(
        &'a mut self,
        session: SessionId,
        at: Moment,
        out: &'a mut Vec<Decision>,
    ) -> (Option<&'a mut Dialogue>, Turn<'a>) {
        let turn = Turn {
            us: &self.name,
            identity: &mut self.identity,
            numbers: &mut self.numbers,
            at,
            out,
        };
        (self.sessions.get_mut(&session), turn)
    }

    fn end_if(&mut self, session: SessionId, ending: Option<Ending>, out: &mut Vec<Decision>) {
        let Some(ending) = ending else {
            return;
        };
        let Some(dialogue) = self.sessions.remove(&session) else {
            return;
        };
        self.checks.retain(|_, checked| *checked != session);
        let key = dialogue.peer().key();
        self.session_keys
            .remove(&(key.prefix, key.id, dialogue.number()));
        if dialogue.is_incoming() {
            self.incoming_count -= 1;
        }
        out.push(Decision::Over { session, ending });
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}
