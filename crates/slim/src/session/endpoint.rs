//! The sessions of one name.

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
use crate::session::turn::{Numbers, To, Turn};
use crate::session::unacked::Said;
use crate::session::{Ending, Moment, Reliability};
use crate::wire::Malformed;

/// A session, for whoever holds the endpoint. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(u64);

/// What an endpoint takes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Sessions at the same time.
    pub sessions_max: usize,
    /// Of these, sessions that others began; with 0 nobody can.
    pub asked_max: usize,
    /// A peer that says nothing for so long has gone.
    pub silence_ns_max: u64,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// To be sent.
    Send(Packet),
    /// Messages go both ways from now on.
    Opened {
        /// The session.
        session: SessionId,
        /// Who is at the other end.
        peer: FullName,
    },
    /// Somebody said something.
    Deliver {
        /// Where.
        session: SessionId,
        /// What.
        message: Received,
    },
    /// The peer of a session has answered [`Endpoint::check`].
    Alive {
        /// The session.
        session: SessionId,
    },
    /// The session is no more.
    Over {
        /// Which.
        session: SessionId,
        /// Why.
        ending: Ending,
    },
}

/// What an application said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The bytes.
    pub payload: Bytes,
    /// What they are: `msg`, unless the application says otherwise.
    pub payload_type: String,
    /// Entries beside them, in no order.
    pub metadata: Vec<(String, String)>,
}

/// Why a message was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Its bytes are wrong.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It is not believed.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// It is for another name, or another instance of ours.
    #[error("the message is for somebody else")]
    NotForUs,
    /// Nobody knows the session.
    #[error("the session is not known")]
    UnknownSession,
    /// Somebody else than whom the session began with.
    #[error("the session began with another identity")]
    Stranger,
    /// Nothing that a point-to-point session would say now.
    #[error("the message does not belong there")]
    Unexpected,
    /// It lies too far ahead of what has arrived: it is to come again.
    #[error("the message lies too far ahead of what has arrived")]
    TooFar,
    /// There are as many sessions as there may be.
    #[error("there are as many sessions as there may be")]
    Full,
    /// The session would be with MLS; whoever asked was told.
    #[error("sessions with MLS are not supported")]
    WantsMls,
}

/// Why something was not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPublished {
    /// It has ended, or not begun.
    #[error("the session is not open")]
    NotOpen,
    /// What was said before has not been acknowledged.
    #[error("too much waits to be acknowledged")]
    Full,
}

/// A peer's instance and what it calls the session. While an instance is looked for there is none.
type Place = (Prefix, Option<u128>, u32);

/// See the module's documentation.
pub struct Endpoint {
    name: FullName,
    identity: Identity,
    limits: Limits,
    numbers: Numbers,
    next_session: u64,
    sessions: HashMap<SessionId, Dialogue>,
    places: HashMap<Place, SessionId>,
    /// Discoveries that [`check`](Self::check) has sent.
    checks: HashMap<Place, SessionId>,
    /// Sessions that others asked for.
    asked_count: usize,
}

impl Endpoint {
    /// The instance of `texts` whose id follows from the identity.
    pub fn new(texts: [&str; 3], identity: Identity, seed: u64, limits: Limits) -> Self {
        Self {
            name: FullName::new(texts, Some(identity.name_id())),
            identity,
            limits,
            numbers: Numbers::new(seed),
            next_session: 0,
            sessions: HashMap::new(),
            places: HashMap::new(),
            checks: HashMap::new(),
            asked_count: 0,
        }
    }

    /// What it is reached by.
    pub fn name(&self) -> &FullName {
        &self.name
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// The message that has a node send us what is for our name.
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

    /// Takes a message whose MAC is the link's.
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
        let place = (source.prefix, Some(source_id), incoming.session());
        let unknown = (source.prefix, None, incoming.session());
        let known = match kind {
            Kind::DiscoveryReply => self.places.get(&unknown),
            _ => self.places.get(&place),
        };
        match (known.copied(), kind) {
            (None, Kind::DiscoveryRequest) => self.answer_discovery(&incoming, at, out),
            (None, Kind::DiscoveryReply) => self.checked(place, at, out),
            (None, Kind::JoinRequest) => self.join(place, &incoming, bearer.subject, at, out),
            (None, _) => Err(Rejected::UnknownSession),
            (Some(session), _) => {
                let (dialogue, mut turn) = self.turn(session, at, out);
                let dialogue = dialogue.ok_or(Rejected::UnknownSession)?;
                let ending = dialogue.receive(&incoming, kind, bearer.subject, &mut turn)?;
                if kind == Kind::DiscoveryReply {
                    self.places.remove(&unknown);
                    self.places.insert(place, session);
                }
                self.end_if(session, ending, out);
                Ok(())
            }
        }
    }

    /// Asks for a session with an instance of an application.
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
            if !self.places.contains_key(&(prefix, None, number)) {
                break number;
            }
        };
        let (_, mut turn) = self.turn(session, at, out);
        let dialogue = Dialogue::ask(session, number, peer, reliability, &mut turn);
        self.sessions.insert(session, dialogue);
        self.places.insert((prefix, None, number), session);
        Ok(session)
    }

    /// Says something in a session.
    pub fn publish(
        &mut self,
        session: SessionId,
        said: &Received,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<(), NotPublished> {
        let said = Said {
            content: content::payload(&said.payload_type, &said.payload),
            metadata: said.metadata.clone(),
        };
        let (dialogue, mut turn) = self.turn(session, at, out);
        dialogue
            .ok_or(NotPublished::NotOpen)?
            .publish(said, &mut turn)
    }

    /// Asks the instance at the other end of a session whether it is still there: [`Decision::Alive`] is its answer.
    /// An instance that has gone gives none. The session itself is not touched.
    pub fn check(&mut self, session: SessionId, at: Moment, out: &mut Vec<Decision>) {
        let Some(dialogue) = self.sessions.get(&session) else {
            return;
        };
        let peer = dialogue.peer().clone();
        let Key { prefix, id } = peer.key();
        let (number, message) = (self.numbers.session(), self.numbers.message());
        self.checks.insert((prefix, id, number), session);
        let to = To {
            peer: &peer,
            session: number,
            kind: Kind::DiscoveryRequest,
            number: message,
        };
        let (_, mut turn) = self.turn(session, at, out);
        turn.control(to, content::bare(content::DISCOVERY_REQUEST));
    }

    /// Ends a session at once. The peer is told, and its answer is not waited for.
    pub fn abandon(&mut self, session: SessionId, at: Moment, out: &mut Vec<Decision>) {
        let (dialogue, mut turn) = self.turn(session, at, out);
        if let Some(dialogue) = dialogue {
            let ending = dialogue.leave(&mut turn).unwrap_or(Ending::Left);
            self.end_if(session, Some(ending), out);
        }
    }

    /// Ends a session once its peer knows, or does not answer.
    pub fn close(&mut self, session: SessionId, at: Moment, out: &mut Vec<Decision>) {
        let (dialogue, mut turn) = self.turn(session, at, out);
        let ending = dialogue.and_then(|dialogue| dialogue.leave(&mut turn));
        self.end_if(session, ending, out);
    }

    /// Ends them all.
    pub fn close_all(&mut self, at: Moment, out: &mut Vec<Decision>) {
        for session in self.ids() {
            self.close(session, at, out);
        }
    }

    /// There is a link again. While there was none [`tick`](Self::tick) was not to be called: nobody
    /// could say anything, and nobody is silent for that.
    pub fn resume(&mut self, at: Moment) {
        for dialogue in self.sessions.values_mut() {
            dialogue.resume(at.now_ns);
        }
    }

    /// Does what is due; to be called ten times a second or so while there are sessions.
    pub fn tick(&mut self, at: Moment, out: &mut Vec<Decision>) {
        let silence_ns_max = self.limits.silence_ns_max;
        for session in self.ids() {
            let (dialogue, mut turn) = self.turn(session, at, out);
            let ending = dialogue.and_then(|dialogue| dialogue.tick(silence_ns_max, &mut turn));
            self.end_if(session, ending, out);
        }
    }

    /// An instance has answered a check.
    fn checked(
        &mut self,
        place: Place,
        at: Moment,
        out: &mut Vec<Decision>,
    ) -> Result<(), Rejected> {
        let session = self.checks.remove(&place);
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
        place: Place,
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
        let dialogue = Dialogue::asked(session, incoming, &request, subject, &mut turn);
        self.sessions.insert(session, dialogue);
        self.places.insert(place, session);
        self.asked_count += 1;
        Ok(())
    }

    fn check_room(&self) -> Result<(), Rejected> {
        let has_room = self.sessions.len() < self.limits.sessions_max
            && self.asked_count < self.limits.asked_max;
        has_room.then_some(()).ok_or(Rejected::Full)
    }

    /// Answers a message of a session that there is not.
    fn answer(
        &mut self,
        incoming: &Incoming<'_>,
        kind: Kind,
        content: Vec<u8>,
        at: Moment,
        out: &mut Vec<Decision>,
    ) {
        let to = To {
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
        self.places.remove(&(key.prefix, key.id, dialogue.number()));
        if dialogue.was_asked() {
            self.asked_count -= 1;
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
