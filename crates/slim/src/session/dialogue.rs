//! `Dialogue`: the state of one session.

use bytes::Bytes;

use crate::session::arrivals::{Arrivals, ReceiveOutcome};
use crate::session::content::{self, JoinRequest, Kind};
use crate::session::endpoint::{Decision, NotPublished, Received, Rejected, SessionId};
use crate::session::full_name::FullName;
use crate::session::incoming::Incoming;
use crate::session::turn::{MessageAddress, Turn};
use crate::session::unacked::{OutgoingContent, RetriesExhausted, Unacked};
use crate::session::{Ending, Reliability};

const SECOND_NS: u64 = 1_000_000_000;

/// Retransmission of our control messages.
const CONTROL: Reliability = Reliability {
    interval_ns: SECOND_NS,
    retries: 9,
};
const DISCOVERY_RETRIES: u32 = 2;
const LEAVE_RETRIES: u32 = 2;

/// Interval of heartbeats. The libraries give up a peer after three intervals of 10 s without a
/// message.
const HEARTBEAT_NS: u64 = 10 * SECOND_NS;

/// Limits for the parameters that peers request.
const INTERVAL_MS_MIN: u32 = 20;
const INTERVAL_MS_MAX: u32 = 60_000;
const RETRIES_MAX: u32 = 1_000;

/// Metadata entry by which a participant announces that it leaves.
const LEAVING: (&str, &str) = ("LEAVING_SESSION", "TRUE");

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The session is being established.
    Opening,
    Open,
    /// This side has closed the session and waits for the answer.
    Leaving,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// This side opened the session.
    Initiator,
    Responder,
}

/// A control message that is sent again until it is answered.
struct Pending {
    kind: Kind,
    number: u32,
    outgoing: OutgoingContent,
    again_ns: u64,
    left: u32,
}

/// State of one session.
pub(super) struct Dialogue {
    id: SessionId,
    number: u32,
    peer: FullName,
    /// Subject in the peer's tokens, once one was received.
    subject: Option<String>,
    role: Role,
    stage: Stage,
    reliability: Option<Reliability>,
    pending: Option<Pending>,
    heard_ns: u64,
    sent_ns: u64,
    arrivals: Arrivals<Received>,
    unacked: Unacked,
    /// Number of our last message.
    last_number: u32,
}

impl Dialogue {
    /// Starts a session with an instance of `peer`.
    pub(super) fn initiate(
        id: SessionId,
        number: u32,
        peer: FullName,
        reliability: Option<Reliability>,
        turn: &mut Turn<'_>,
    ) -> Self {
        let mut this = Self::new(id, number, peer, Role::Initiator, reliability, turn);
        let outgoing = OutgoingContent::control(content::bare(content::DISCOVERY_REQUEST));
        this.send_until_answered(Kind::DiscoveryRequest, outgoing, DISCOVERY_RETRIES, turn);
        this
    }

    /// Creates a session that the peer asked for.
    pub(super) fn accept(
        id: SessionId,
        incoming: &Incoming<'_>,
        request: &JoinRequest,
        subject: &str,
        turn: &mut Turn<'_>,
    ) -> Self {
        let peer = FullName::from(&incoming.header.source);
        let reliability = request.timing.map(|[timeout_ms, retries]| Reliability {
            interval_ns: u64::from(timeout_ms.clamp(INTERVAL_MS_MIN, INTERVAL_MS_MAX)) * 1_000_000,
            retries: retries.min(RETRIES_MAX),
        });
        let number = incoming.session();
        let mut this = Self::new(id, number, peer, Role::Responder, reliability, turn);
        this.subject = Some(subject.to_owned());
        this.answer_join(incoming.number(), turn);
        this
    }

    fn new(
        id: SessionId,
        number: u32,
        peer: FullName,
        role: Role,
        reliability: Option<Reliability>,
        turn: &Turn<'_>,
    ) -> Self {
        Self {
            id,
            number,
            peer,
            subject: None,
            role,
            stage: Stage::Opening,
            reliability,
            pending: None,
            heard_ns: turn.at.now_ns,
            sent_ns: turn.at.now_ns,
            arrivals: Arrivals::new(),
            unacked: Unacked::default(),
            last_number: 0,
        }
    }

    /// Returns the name of the peer.
    pub(super) fn peer(&self) -> &FullName {
        &self.peer
    }

    /// Returns the session number, which both ends use.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// True if the peer opened the session.
    pub(super) fn is_incoming(&self) -> bool {
        self.role == Role::Responder
    }

    /// Processes a verified message. Returns the reason if the session ends.
    pub(super) fn receive(
        &mut self,
        incoming: &Incoming<'_>,
        kind: Kind,
        subject: &str,
        turn: &mut Turn<'_>,
    ) -> Result<Option<Ending>, Rejected> {
        if self
            .subject
            .as_deref()
            .is_some_and(|known| known != subject)
        {
            return Err(Rejected::Stranger);
        }
        self.heard_ns = turn.at.now_ns;
        match kind {
            Kind::Message => self.receive_message(incoming, turn)?,
            Kind::Repeated => self.receive_repeated(incoming, turn)?,
            Kind::Acknowledgement => self.unacked.settle(incoming.number()),
            Kind::Again => self.retransmit(incoming.number(), turn),
            Kind::DiscoveryReply => self.discovered(incoming, subject, turn)?,
            Kind::JoinReply => self.joined(incoming, turn)?,
            Kind::GroupAck | Kind::LeaveReply => return self.acknowledged(incoming, turn),
            Kind::JoinRequest if self.role == Role::Responder => {
                self.answer_join(incoming.number(), turn);
            }
            Kind::Welcome if self.role == Role::Responder => self.welcomed(incoming, turn),
            Kind::LeaveRequest | Kind::Close => {
                self.answer_leave(kind, incoming.number(), turn);
                return Ok(Some(Ending::Closed));
            }
            Kind::Heartbeat => {}
            Kind::DiscoveryRequest | Kind::JoinRequest | Kind::Welcome => {
                return Err(Rejected::Unexpected);
            }
        }
        Ok(None)
    }

    /// Sends an application message.
    pub(super) fn publish(
        &mut self,
        outgoing: OutgoingContent,
        turn: &mut Turn<'_>,
    ) -> Result<(), NotPublished> {
        if self.stage != Stage::Open {
            return Err(NotPublished::NotOpen);
        }
        let number = (self.last_number + 1) % (1 << 31);
        if let Some(reliability) = self.reliability {
            if !self.unacked.has_room(outgoing.content.len()) {
                return Err(NotPublished::Full);
            }
            let now_ns = turn.at.now_ns;
            self.unacked
                .push(number, outgoing.clone(), reliability, now_ns);
        }
        self.last_number = number;
        self.send(Kind::Message, number, outgoing, turn);
        Ok(())
    }

    /// Closes the session. It ends when the peer has acknowledged that.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_>) -> Option<Ending> {
        match self.stage {
            // The peer does not know the session yet, or will give it up soon.
            Stage::Opening => return Some(Ending::Left),
            Stage::Leaving => return None,
            Stage::Open => self.stage = Stage::Leaving,
        }
        match self.role {
            Role::Initiator => {
                let both = [turn.us.name(), self.peer.name()];
                let outgoing = OutgoingContent::control(content::close(both));
                self.send_until_answered(Kind::Close, outgoing, LEAVE_RETRIES, turn);
            }
            Role::Responder => {
                let (key, value) = LEAVING;
                let outgoing = OutgoingContent {
                    content: content::bare(content::LEAVE_REQUEST),
                    metadata: vec![(key.to_owned(), value.to_owned())],
                };
                self.send_until_answered(Kind::LeaveRequest, outgoing, LEAVE_RETRIES, turn);
            }
        }
        None
    }

    /// Restarts the silence timeout of the peer.
    pub(super) fn resume(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    /// Performs the actions that are due. Returns the reason if the session ends.
    pub(super) fn tick(&mut self, silence_ns_max: u64, turn: &mut Turn<'_>) -> Option<Ending> {
        let now_ns = turn.at.now_ns;
        if let Some(ending) = self.repeat_pending(turn) {
            return Some(ending);
        }
        if now_ns.saturating_sub(self.heard_ns) >= silence_ns_max {
            return Some(Ending::Silent);
        }
        if let Some(reliability) = self.reliability {
            match self.unacked.repeat(reliability, now_ns) {
                Err(RetriesExhausted) => return Some(Ending::Silent),
                Ok(repeated) => {
                    for (number, outgoing) in repeated {
                        self.send(Kind::Message, number, outgoing, turn);
                    }
                }
            }
            self.ask_for_missing(reliability, turn);
        }
        if self.stage == Stage::Open && now_ns.saturating_sub(self.sent_ns) >= HEARTBEAT_NS {
            let number = turn.numbers.message();
            let outgoing = OutgoingContent::control(content::heartbeat());
            self.send(Kind::Heartbeat, number, outgoing, turn);
        }
        None
    }

    fn receive_message(
        &mut self,
        incoming: &Incoming<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), Rejected> {
        if self.stage != Stage::Open {
            return Err(Rejected::Unexpected);
        }
        let received = received(incoming)?;
        let Some(reliability) = self.reliability else {
            self.deliver(received, turn);
            return Ok(());
        };
        self.take(incoming.number(), received, reliability, turn)?;
        let number = incoming.number();
        let outgoing = OutgoingContent::control(content::payload("", &[]));
        self.send(Kind::Acknowledgement, number, outgoing, turn);
        Ok(())
    }

    /// Processes the answer to a request for a missing message.
    fn receive_repeated(
        &mut self,
        incoming: &Incoming<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), Rejected> {
        let reliability = self.reliability.ok_or(Rejected::Unexpected)?;
        if !incoming.is_error() {
            let received = received(incoming)?;
            return self.take(incoming.number(), received, reliability, turn);
        }
        self.arrivals.lose(incoming.number());
        self.deliver_all(turn);
        Ok(())
    }

    fn take(
        &mut self,
        number: u32,
        received: Received,
        reliability: Reliability,
        turn: &mut Turn<'_>,
    ) -> Result<(), Rejected> {
        let size = received.payload.len();
        let now_ns = turn.at.now_ns;
        let taken = self
            .arrivals
            .take(number, received, size, reliability, now_ns);
        if taken == ReceiveOutcome::TooFar {
            return Err(Rejected::TooFar);
        }
        self.deliver_all(turn);
        self.ask_for_missing(reliability, turn);
        Ok(())
    }

    fn deliver_all(&mut self, turn: &mut Turn<'_>) {
        while let Some(received) = self.arrivals.pop() {
            self.deliver(received, turn);
        }
    }

    fn deliver(&self, message: Received, turn: &mut Turn<'_>) {
        let session = self.id;
        turn.out.push(Decision::Deliver { session, message });
    }

    fn ask_for_missing(&mut self, reliability: Reliability, turn: &mut Turn<'_>) {
        for number in self.arrivals.ask_for(reliability, turn.at.now_ns) {
            let outgoing = OutgoingContent::control(content::payload("", &[]));
            self.send(Kind::Again, number, outgoing, turn);
        }
        self.deliver_all(turn);
    }

    /// Answers a request for a missing message of ours.
    fn retransmit(&mut self, number: u32, turn: &mut Turn<'_>) {
        let to = self.to(Kind::Repeated, number);
        match self.unacked.get(number) {
            Some(outgoing) => turn.send(to, outgoing.clone()),
            None => turn.send_missing(to, OutgoingContent::control(content::payload("", &[]))),
        }
        self.sent_ns = turn.at.now_ns;
    }

    /// Processes the discovery reply of an instance.
    fn discovered(
        &mut self,
        incoming: &Incoming<'_>,
        subject: &str,
        turn: &mut Turn<'_>,
    ) -> Result<(), Rejected> {
        self.settle(Kind::DiscoveryRequest, incoming)?;
        self.peer = FullName::from(&incoming.header.source);
        self.subject = Some(subject.to_owned());
        let request = JoinRequest {
            timing: self.reliability.map(|reliability| {
                let interval_ms = reliability.interval_ns / 1_000_000;
                let interval_ms = u32::try_from(interval_ms).unwrap_or(INTERVAL_MS_MAX);
                [interval_ms, reliability.retries]
            }),
            wants_mls: false,
        };
        let outgoing = OutgoingContent::control(request.content());
        self.send_until_answered(Kind::JoinRequest, outgoing, CONTROL.retries, turn);
        Ok(())
    }

    fn joined(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Rejected> {
        self.settle(Kind::JoinRequest, incoming)?;
        let outgoing =
            OutgoingContent::control(content::welcome([turn.us.name(), self.peer.name()]));
        self.send_until_answered(Kind::Welcome, outgoing, CONTROL.retries, turn);
        Ok(())
    }

    fn acknowledged(
        &mut self,
        incoming: &Incoming<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<Option<Ending>, Rejected> {
        let kind = self.pending.as_ref().map(|pending| pending.kind);
        let kind = kind.ok_or(Rejected::Unexpected)?;
        self.settle(kind, incoming)?;
        match kind {
            Kind::Welcome => {
                self.open(turn);
                Ok(None)
            }
            Kind::Close | Kind::LeaveRequest => Ok(Some(Ending::Left)),
            _ => Err(Rejected::Unexpected),
        }
    }

    fn open(&mut self, turn: &mut Turn<'_>) {
        if self.stage == Stage::Opening {
            self.stage = Stage::Open;
            let peer = self.peer.clone();
            let session = self.id;
            turn.out.push(Decision::Opened { session, peer });
        }
    }

    fn answer_join(&mut self, number: u32, turn: &mut Turn<'_>) {
        let outgoing = OutgoingContent::control(content::join_reply(turn.us.name()));
        self.send(Kind::JoinReply, number, outgoing, turn);
    }

    fn welcomed(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) {
        let outgoing = OutgoingContent::control(content::bare(content::GROUP_ACK));
        self.send(Kind::GroupAck, incoming.number(), outgoing, turn);
        self.open(turn);
    }

    fn answer_leave(&mut self, kind: Kind, number: u32, turn: &mut Turn<'_>) {
        let (kind, command) = match kind {
            Kind::Close => (Kind::GroupAck, content::GROUP_ACK),
            _ => (Kind::LeaveReply, content::LEAVE_REPLY),
        };
        self.send(
            kind,
            number,
            OutgoingContent::control(content::bare(command)),
            turn,
        );
    }

    /// Sends a control message, repeatedly until it is answered.
    fn send_until_answered(
        &mut self,
        kind: Kind,
        outgoing: OutgoingContent,
        retries: u32,
        turn: &mut Turn<'_>,
    ) {
        let number = turn.numbers.message();
        self.pending = Some(Pending {
            kind,
            number,
            outgoing: outgoing.clone(),
            again_ns: turn.at.now_ns + CONTROL.interval_ns,
            left: retries,
        });
        self.send(kind, number, outgoing, turn);
    }

    /// Accepts an answer only to the last control message.
    fn settle(&mut self, kind: Kind, incoming: &Incoming<'_>) -> Result<(), Rejected> {
        let number = incoming.number();
        let is_answer = |pending: &mut Pending| pending.kind == kind && pending.number == number;
        let settled = self.pending.take_if(is_answer);
        settled.map(drop).ok_or(Rejected::Unexpected)
    }

    fn repeat_pending(&mut self, turn: &mut Turn<'_>) -> Option<Ending> {
        let pending = self.pending.as_mut()?;
        if turn.at.now_ns < pending.again_ns {
            return None;
        }
        if pending.left == 0 {
            return Some(match pending.kind {
                Kind::DiscoveryRequest => Ending::Nobody,
                Kind::Close | Kind::LeaveRequest => Ending::Left,
                _ => Ending::Silent,
            });
        }
        pending.left -= 1;
        pending.again_ns = turn.at.now_ns + CONTROL.interval_ns;
        let (kind, number, outgoing) = (pending.kind, pending.number, pending.outgoing.clone());
        self.send(kind, number, outgoing, turn);
        None
    }

    fn send(&mut self, kind: Kind, number: u32, outgoing: OutgoingContent, turn: &mut Turn<'_>) {
        self.sent_ns = turn.at.now_ns;
        turn.send(self.to(kind, number), outgoing);
    }

    fn to(&self, kind: Kind, number: u32) -> MessageAddress<'_> {
        MessageAddress {
            peer: &self.peer,
            session: self.number,
            kind,
            number,
        }
    }
}

fn received(incoming: &Incoming<'_>) -> Result<Received, Rejected> {
    let (payload_type, payload) = content::read_payload(incoming.content)?;
    let metadata = incoming.metadata.iter();
    Ok(Received {
        payload: Bytes::copy_from_slice(payload),
        payload_type: payload_type.to_owned(),
        metadata: metadata
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    })
}
