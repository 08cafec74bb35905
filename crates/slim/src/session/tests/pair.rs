//! Two endpoints and the network between them.

use std::collections::VecDeque;

use crate::session::content::Kind;
use crate::session::{
    Decision, Ending, Endpoint, Entropy, Identity, Limits, Moment, Received, Rejected, Reliability,
    SessionId,
};
use crate::{Link, Message};

pub(super) const SECRET: &[u8] = b"a-secret-of-at-least-32-characters!!";
pub(super) const SECOND_NS: u64 = 1_000_000_000;
pub(super) const RELIABLE: Option<Reliability> = Some(Reliability {
    interval_ns: SECOND_NS,
    retries: 3,
});
pub(super) const LIMITS: Limits = Limits {
    sessions_max: 4,
    asked_max: 4,
    silence_ns_max: 30 * SECOND_NS,
};

pub(super) fn entropy(byte: u8) -> Entropy {
    [byte; 48]
}

pub(super) fn end(agent: &str, byte: u8, limits: Limits) -> Endpoint {
    let identity = Identity::new(agent, SECRET, &entropy(byte)).unwrap();
    Endpoint::new(["org", "ns", agent], identity, byte.into(), limits)
}

/// One of the two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Caller,
    Callee,
}

use Side::{Callee, Caller};

/// A message in transit.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) from: Side,
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Pair {
    pub(super) caller: Endpoint,
    pub(super) callee: Endpoint,
    pub(super) link: Link,
    pub(super) at: Moment,
    pub(super) wire: VecDeque<Sent>,
    /// Log of messages and events, in words.
    pub(super) notes: Vec<String>,
    pub(super) rejected: Vec<Rejected>,
    /// The caller's session once it is open, and the callee's.
    pub(super) sessions: [Option<SessionId>; 2],
}

impl Pair {
    pub(super) fn new() -> Self {
        Self::of(end("caller", 1, LIMITS), end("callee", 2, LIMITS))
    }

    pub(super) fn of(caller: Endpoint, callee: Endpoint) -> Self {
        Self {
            caller,
            callee,
            link: Link::with_secret(b"secret", "link"),
            at: Moment {
                now_ns: 0,
                unix_s: 1_800_000_000,
            },
            wire: VecDeque::new(),
            notes: Vec::new(),
            rejected: Vec::new(),
            sessions: [None; 2],
        }
    }

    /// Creates two endpoints with an open session.
    pub(super) fn open(reliability: Option<Reliability>) -> Self {
        let mut this = Self::new();
        this.ask(reliability);
        this.run();
        assert_eq!(this.take_notes(), ["Callee open", "Caller open"]);
        this
    }

    pub(super) fn ask(&mut self, reliability: Option<Reliability>) {
        let mut out = Vec::new();
        let to = ["org", "ns", "callee"];
        self.caller
            .open(to, reliability, self.at, &mut out)
            .unwrap();
        self.decide(Caller, out);
    }

    pub(super) fn end_of(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Caller => &mut self.caller,
            Callee => &mut self.callee,
        }
    }

    pub(super) fn send_text(&mut self, side: Side, text: &str) {
        let session = self.sessions[side as usize].unwrap();
        let said = message(text);
        let (at, mut out) = (self.at, Vec::new());
        let said = self.end_of(side).publish(session, &said, at, &mut out);
        said.unwrap();
        self.decide(side, out);
    }

    pub(super) fn close(&mut self, side: Side) {
        let session = self.sessions[side as usize].unwrap();
        let (at, mut out) = (self.at, Vec::new());
        self.end_of(side).close(session, at, &mut out);
        self.decide(side, out);
    }

    /// The caller checks that the callee exists.
    pub(super) fn check(&mut self) {
        let session = self.sessions[Caller as usize].unwrap();
        let mut out = Vec::new();
        self.caller.check(session, self.at, &mut out);
        self.decide(Caller, out);
    }

    /// The caller ends the session at once.
    pub(super) fn abandon(&mut self) {
        let session = self.sessions[Caller as usize].unwrap();
        let mut out = Vec::new();
        self.caller.abandon(session, self.at, &mut out);
        self.decide(Caller, out);
    }

    /// Advances the time in steps of a second, without delivering messages.
    pub(super) fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.at.now_ns += SECOND_NS;
            for side in [Caller, Callee] {
                let (at, mut out) = (self.at, Vec::new());
                self.end_of(side).tick(at, &mut out);
                self.decide(side, out);
            }
        }
    }

    /// Delivers all messages in transit, and those that result.
    pub(super) fn run(&mut self) {
        while let Some(sent) = self.wire.pop_front() {
            self.deliver(&sent);
        }
    }

    pub(super) fn deliver(&mut self, sent: &Sent) {
        let to = match sent.from {
            Caller => Callee,
            Callee => Caller,
        };
        let message = Message::scan(&sent.bytes).unwrap();
        let Message::Publish(routed) = message else {
            panic!("{message:?}")
        };
        assert!(self.link.verify(&routed.header, &mut Vec::new()));
        let (at, mut out) = (self.at, Vec::new());
        if let Err(rejected) = self.end_of(to).receive(&routed, at, &mut out) {
            self.rejected.push(rejected);
        }
        self.decide(to, out);
    }

    pub(super) fn decide(&mut self, side: Side, decisions: Vec<Decision>) {
        for decision in decisions {
            match decision {
                Decision::Send(packet) => self.wire.push_back(Sent {
                    from: side,
                    kind: Kind::from_number(packet.session[1]).unwrap(),
                    bytes: packet.encode(&self.link),
                }),
                Decision::Opened { session, .. } => {
                    self.sessions[side as usize] = Some(session);
                    self.notes.push(format!("{side:?} open"));
                }
                Decision::Deliver { message, .. } => {
                    let text = String::from_utf8(message.payload.to_vec()).unwrap();
                    self.notes.push(format!("{side:?} hears {text}"));
                }
                Decision::Alive { .. } => self.notes.push(format!("{side:?} alive")),
                Decision::Over { ending, .. } => {
                    self.notes.push(format!("{side:?} over: {ending:?}"));
                }
            }
        }
    }

    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Returns the types of the messages in transit.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        self.wire.iter().map(|sent| sent.kind).collect()
    }

    /// Removes and returns the messages in transit.
    pub(super) fn cut(&mut self) -> Vec<Sent> {
        self.wire.drain(..).collect()
    }

    pub(super) fn ended(side: Side, ending: Ending) -> String {
        format!("{side:?} over: {ending:?}")
    }
}

pub(super) fn message(text: &str) -> Received {
    Received {
        payload: text.to_owned().into(),
        payload_type: "msg".to_owned(),
        metadata: vec![("key".to_owned(), text.to_owned())],
    }
}
