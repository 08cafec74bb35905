//! One agent: its settings, what it has to answer, and the calls that are in flight.
//!
//! What is kept in its stream are its settings, its dead letters and what was asked for again by
//! hand. What else it has not answered is found behind its read marks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use conversations::delivery::{Again, Call, Change, Decision, Deliveries, Ended, Failure, Options};
use conversations::record::WebhookSettings;
use journal::Ticket;
use parking_lot::Mutex;

use super::touched::Touched;
use crate::conversations::Look;

/// See the module's documentation.
pub(super) struct Agent {
    pub(super) settings: Arc<WebhookSettings>,
    pub(super) deliveries: Deliveries,
    /// By conversation.
    pub(super) flights: BTreeMap<u64, Flight>,
    /// What was asked for again by hand: it is not behind a read mark.
    revived: BTreeSet<u64>,
    /// Why the last call for each dead letter failed. It is known until the node goes down.
    reasons: BTreeMap<u64, String>,
    /// Behind which message there may be anything: dead letters whose read mark may not have moved.
    floors: BTreeMap<u64, u64>,
    /// What is to be kept and is not yet.
    pub(super) unwritten: VecDeque<Change>,
    /// Dead letters that are being made durable before their read mark moves.
    pub(super) burying: Vec<(Ticket, u64, u64)>,
    /// Changes behind the snapshot.
    pub(super) changes: usize,
    /// Whether everything behind its read marks was looked for.
    pub(super) is_scanned: bool,
}

/// Bytes that are kept of a reason.
const REASON_MAX: usize = 512;

/// How a call has failed.
pub(super) struct Failed<'a> {
    pub(super) failure: Failure,
    /// For people.
    pub(super) reason: &'a str,
    /// Chance for the pause before the next one.
    pub(super) jitter: u32,
}

/// What becomes of a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nobody waited for it any more.
    Unheard,
    /// There will be another.
    Again,
    /// What it was for is a dead letter.
    Dead,
}

/// A call in flight.
pub(super) struct Flight {
    pub(super) number: u64,
    to_seq: u64,
    pub(super) signal: Arc<Signal>,
}

/// Tells a call that nobody waits for it any more.
#[derive(Debug, Default)]
pub(super) struct Signal(Mutex<(bool, Option<Waker>)>);

impl Signal {
    pub(super) fn end(&self) {
        let mut inside = self.0.lock();
        inside.0 = true;
        inside.1.take().into_iter().for_each(Waker::wake);
    }

    pub(super) fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inside = self.0.lock();
        if inside.0 {
            return Poll::Ready(());
        }
        inside.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Agent {
    /// One that is called for nothing yet.
    pub(super) fn new(settings: WebhookSettings, deliveries: Deliveries) -> Self {
        let floors = deliveries.dead().map(|(at, letter)| (at, letter.to_seq));
        Self {
            settings: Arc::new(settings),
            floors: floors.collect(),
            deliveries,
            flights: BTreeMap::new(),
            revived: BTreeSet::new(),
            reasons: BTreeMap::new(),
            unwritten: VecDeque::new(),
            burying: Vec::new(),
            changes: 0,
            is_scanned: false,
        }
    }

    /// What waits was asked for by hand.
    pub(super) fn revived(mut self, conversations: impl Iterator<Item = u64>) -> Self {
        self.revived.extend(conversations);
        self
    }

    /// Why the last call for a dead letter failed, as far as that is known.
    pub(super) fn reason(&self, conversation: u64) -> &str {
        self.reasons.get(&conversation).map_or("", String::as_str)
    }

    /// Behind which message of a conversation there may be something for it.
    pub(super) fn floor(&self, conversation: u64) -> u64 {
        self.floors.get(&conversation).copied().unwrap_or(0)
    }

    /// What its settings and its state come to, to be kept.
    pub(super) fn snapshot(&mut self) -> conversations::record::AgentState {
        let mut settings = Vec::new();
        self.settings.encode(&mut settings);
        let mut state = self.deliveries.snapshot(settings);
        state.pending.retain(|it, _| self.revived.contains(it));
        state
    }

    /// A conversation was looked at. True if it has to be looked at again, as too many wait.
    pub(super) fn feed(
        &mut self,
        conversation: u64,
        look: &Look,
        now_ms: u64,
        touched: &Touched,
    ) -> bool {
        if let Some(flight) = self.flights.get(&conversation)
            && flight.to_seq <= look.read
            && !self.revived.contains(&conversation)
        {
            // It has answered by itself.
            let number = flight.number;
            self.answered(conversation, number, touched);
        }
        let floor = self.floor(conversation);
        for seq in look.due.into_iter().flat_map(|(first, last)| [first, last]) {
            if seq <= floor {
                continue;
            }
            match self.deliveries.message(conversation, seq, now_ms) {
                Ok(ended) => {
                    if let Some(Ended { number, .. }) = ended {
                        self.land(conversation, number, touched);
                    }
                }
                // It is found again when fewer wait.
                Err(_) => self.is_scanned = false,
            }
        }
        look.is_partial
    }

    /// The next call that is to be made.
    pub(super) fn poll(&mut self, now_ms: u64, touched: &Touched) -> Option<Call> {
        loop {
            match self.deliveries.poll(now_ms)? {
                Decision::Overdue {
                    conversation,
                    number,
                } => {
                    let failed = Failed {
                        failure: Failure {
                            status: 0,
                            again: Again::Later,
                        },
                        reason: "it has not said what it promised, in time",
                        jitter: 0,
                    };
                    self.failed(conversation, number, failed, now_ms, touched);
                }
                Decision::Call(call) => {
                    let flight = Flight {
                        number: call.number,
                        to_seq: call.to_seq,
                        signal: Arc::default(),
                    };
                    if self.deliveries.refuses(call.conversation) {
                        touched.set_busy(call.conversation, call.to_seq);
                    }
                    self.flights.insert(call.conversation, flight);
                    return Some(call);
                }
            }
        }
    }

    /// A call was answered.
    pub(super) fn answered(&mut self, conversation: u64, number: u64, touched: &Touched) {
        let Some(change) = self.deliveries.answered(conversation, number) else {
            return;
        };
        self.land(conversation, number, touched);
        if self.revived.remove(&conversation) {
            self.unwritten.push_back(change);
        }
    }

    /// A call will be answered later.
    pub(super) fn accepted(
        &mut self,
        conversation: u64,
        number: u64,
        until_ms: u64,
        touched: &Touched,
    ) {
        if let Some(flight) = self.flights.get(&conversation)
            && flight.number == number
        {
            touched.set_awaited(conversation, flight.to_seq);
            self.deliveries.accepted(conversation, number, until_ms);
        }
    }

    /// A call has failed.
    pub(super) fn failed(
        &mut self,
        conversation: u64,
        number: u64,
        failed: Failed<'_>,
        now_ms: u64,
        touched: &Touched,
    ) -> Fate {
        let Failed {
            failure,
            reason,
            jitter,
        } = failed;
        let change = self
            .deliveries
            .failed(conversation, number, failure, now_ms, jitter);
        let Some(change) = change else {
            return Fate::Unheard;
        };
        self.land(conversation, number, touched);
        let Change::Dead { letter, .. } = change else {
            return Fate::Again;
        };
        self.revived.remove(&conversation);
        let reason = &reason[..reason.floor_char_boundary(REASON_MAX)];
        self.reasons.insert(conversation, reason.to_owned());
        self.floors.insert(conversation, letter.to_seq);
        self.unwritten.push_back(change);
        Fate::Dead
    }

    /// A dead letter waits again.
    pub(super) fn revive(
        &mut self,
        conversation: u64,
        now_ms: u64,
    ) -> Result<(), conversations::delivery::Refused> {
        let change = self.deliveries.revive(conversation, now_ms)?;
        self.revived.insert(conversation);
        self.reasons.remove(&conversation);
        self.unwritten.push_back(change);
        Ok(())
    }

    /// A dead letter is not listed any more.
    pub(super) fn discard(
        &mut self,
        conversation: u64,
    ) -> Result<(), conversations::delivery::Refused> {
        let change = self.deliveries.discard(conversation)?;
        self.reasons.remove(&conversation);
        self.unwritten.push_back(change);
        Ok(())
    }

    /// The conversation is not its own any more.
    pub(super) fn forget(&mut self, conversation: u64, touched: &Touched) {
        let is_kept = self.floors.remove(&conversation).is_some();
        self.reasons.remove(&conversation);
        let (number, change) = self.deliveries.forget(conversation);
        if let Some(number) = number {
            self.land(conversation, number, touched);
        }
        if self.revived.remove(&conversation) || is_kept {
            self.unwritten.push_back(change);
        }
    }

    /// Ends every call.
    pub(super) fn hang_up(&mut self, touched: &Touched) {
        for (conversation, flight) in std::mem::take(&mut self.flights) {
            flight.signal.end();
            touched.hung_up(conversation);
        }
    }

    fn land(&mut self, conversation: u64, number: u64, touched: &Touched) {
        let flight = self.flights.get(&conversation);
        if flight.is_some_and(|flight| flight.number == number)
            && let Some(flight) = self.flights.remove(&conversation)
        {
            flight.signal.end();
            touched.hung_up(conversation);
        }
    }

    /// Whether what waits of a conversation was asked for by hand.
    pub(super) fn is_revived(&self, conversation: u64) -> bool {
        self.revived.contains(&conversation)
    }

    /// How it is called.
    pub(super) fn options(&self) -> &Options {
        self.deliveries.options()
    }
}
