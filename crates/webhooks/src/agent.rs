//! The state of one agent: its settings, pending messages, and calls in flight.
//!
//! The agent's stream contains its settings, its dead letters, and retries requested by users. All
//! other unanswered messages are found after its read marks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use conversations::delivery::{
    Call, Change, Decision, Deliveries, Failure, InterruptedCall, Options, RetryAdvice,
};
use conversations::record::WebhookSettings;
use journal::Ticket;
use parking_lot::Mutex;

use conversation_service::AgentChanges;
use conversation_service::AgentTurn;

/// The state of one agent.
pub(super) struct Agent {
    pub(super) settings: Arc<WebhookSettings>,
    pub(super) deliveries: Deliveries,
    /// Calls in flight, by conversation.
    pub(super) flights: BTreeMap<u64, Flight>,
    /// Conversations whose dead letter is retried at a user's request. Their messages may lie
    /// before the read mark.
    revived: BTreeSet<u64>,
    /// The reason of the last failure of each dead letter, by conversation; not persistent.
    reasons: BTreeMap<u64, String>,
    /// By conversation, the end of its dead letter. Messages up to it are not delivered again, even
    /// if the read mark has not moved yet.
    floors: BTreeMap<u64, u64>,
    /// Changes that are not written yet.
    pub(super) unwritten: VecDeque<Change>,
    /// Dead letters that must become durable before the read mark moves.
    pub(super) burying: Vec<(Ticket, u64, u64)>,
    /// Number of changes since the snapshot.
    pub(super) changes: usize,
    /// True once all messages after the read marks were looked for.
    pub(super) is_scanned: bool,
}

/// Maximum size of a stored reason, in bytes.
const REASON_MAX: usize = 512;

/// A failed call.
pub(super) struct FailedCall<'a> {
    pub(super) failure: Failure,
    /// The reason, for display.
    pub(super) reason: &'a str,
    /// A random number for the pause before the next attempt.
    pub(super) jitter: u32,
}

/// The consequence of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureOutcome {
    /// None: the call had been given up.
    Ignored,
    /// The call will be retried.
    Retried,
    /// The messages became a dead letter.
    DeadLetter,
}

/// A call in flight.
pub(super) struct Flight {
    pub(super) number: u64,
    to_seq: u64,
    pub(super) signal: Arc<CancelSignal>,
}

/// Signals to a call in flight that it was given up.
#[derive(Debug, Default)]
pub(super) struct CancelSignal(Mutex<(bool, Option<Waker>)>);

impl CancelSignal {
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
    /// Creates an agent without calls.
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

    /// Marks the pending messages as retried at a user's request.
    pub(super) fn revived(mut self, conversations: impl Iterator<Item = u64>) -> Self {
        self.revived.extend(conversations);
        self
    }

    /// Returns the reason of the last failure of a dead letter, if known.
    pub(super) fn reason(&self, conversation: u64) -> &str {
        self.reasons.get(&conversation).map_or("", String::as_str)
    }

    /// Returns the message of a conversation after which messages are to be delivered.
    pub(super) fn floor(&self, conversation: u64) -> u64 {
        self.floors.get(&conversation).copied().unwrap_or(0)
    }

    /// Returns the snapshot to write.
    pub(super) fn snapshot(&mut self) -> conversations::record::AgentState {
        let mut settings = Vec::new();
        self.settings.encode(&mut settings);
        let mut state = self.deliveries.snapshot(settings);
        state.pending.retain(|it, _| self.revived.contains(it));
        state
    }

    /// Adds the unanswered messages of a conversation. Returns true if the conversation must be
    /// looked at again, because some of it is not durable yet.
    pub(super) fn feed(
        &mut self,
        conversation: u64,
        look: &AgentTurn,
        now_ms: u64,
        agent_changes: &AgentChanges,
    ) -> bool {
        if let Some(flight) = self.flights.get(&conversation)
            && flight.to_seq <= look.read
            && !self.revived.contains(&conversation)
        {
            // The agent answered without the call.
            let number = flight.number;
            self.answered(conversation, number, agent_changes);
        }
        let floor = self.floor(conversation);
        for seq in look.due.into_iter().flat_map(|(first, last)| [first, last]) {
            if seq <= floor {
                continue;
            }
            match self.deliveries.message(conversation, seq, now_ms) {
                Ok(ended) => {
                    if let Some(InterruptedCall { number, .. }) = ended {
                        self.end_call(conversation, number, agent_changes);
                    }
                }
                // The messages are found again by a scan, once fewer conversations wait.
                Err(_) => self.is_scanned = false,
            }
        }
        look.is_partial
    }

    /// Returns the next call to make.
    pub(super) fn poll(&mut self, now_ms: u64, agent_changes: &AgentChanges) -> Option<Call> {
        loop {
            match self.deliveries.poll(now_ms)? {
                Decision::Overdue {
                    conversation,
                    number,
                } => {
                    let failed = FailedCall {
                        failure: Failure {
                            status: 0,
                            again: RetryAdvice::Later,
                        },
                        reason: "the agent did not send its promised answer in time",
                        jitter: 0,
                    };
                    self.failed(conversation, number, failed, now_ms, agent_changes);
                }
                Decision::Call(call) => {
                    let flight = Flight {
                        number: call.number,
                        to_seq: call.to_seq,
                        signal: Arc::default(),
                    };
                    if self.deliveries.refuses(call.conversation) {
                        agent_changes.set_busy(call.conversation, call.to_seq);
                    }
                    self.flights.insert(call.conversation, flight);
                    return Some(call);
                }
            }
        }
    }

    /// Records that a call was answered.
    pub(super) fn answered(
        &mut self,
        conversation: u64,
        number: u64,
        agent_changes: &AgentChanges,
    ) {
        let Some(change) = self.deliveries.answered(conversation, number) else {
            return;
        };
        self.end_call(conversation, number, agent_changes);
        if self.revived.remove(&conversation) {
            self.unwritten.push_back(change);
        }
    }

    /// Records that the agent will answer a call later.
    pub(super) fn accepted(
        &mut self,
        conversation: u64,
        number: u64,
        until_ms: u64,
        agent_changes: &AgentChanges,
    ) {
        if let Some(flight) = self.flights.get(&conversation)
            && flight.number == number
        {
            agent_changes.set_awaited(conversation, flight.to_seq);
            self.deliveries.accepted(conversation, number, until_ms);
        }
    }

    /// Records that a call failed.
    pub(super) fn failed(
        &mut self,
        conversation: u64,
        number: u64,
        failed: FailedCall<'_>,
        now_ms: u64,
        agent_changes: &AgentChanges,
    ) -> FailureOutcome {
        let FailedCall {
            failure,
            reason,
            jitter,
        } = failed;
        let change = self
            .deliveries
            .failed(conversation, number, failure, now_ms, jitter);
        let Some(change) = change else {
            return FailureOutcome::Ignored;
        };
        self.end_call(conversation, number, agent_changes);
        let Change::Dead { letter, .. } = change else {
            return FailureOutcome::Retried;
        };
        self.revived.remove(&conversation);
        let reason = &reason[..reason.floor_char_boundary(REASON_MAX)];
        self.reasons.insert(conversation, reason.to_owned());
        self.floors.insert(conversation, letter.to_seq);
        self.unwritten.push_back(change);
        FailureOutcome::DeadLetter
    }

    /// Makes the messages of a dead letter pending again.
    pub(super) fn revive(
        &mut self,
        conversation: u64,
        now_ms: u64,
    ) -> Result<(), conversations::delivery::DeliveryError> {
        let change = self.deliveries.revive(conversation, now_ms)?;
        self.revived.insert(conversation);
        self.reasons.remove(&conversation);
        self.unwritten.push_back(change);
        Ok(())
    }

    /// Removes a dead letter.
    pub(super) fn discard(
        &mut self,
        conversation: u64,
    ) -> Result<(), conversations::delivery::DeliveryError> {
        let change = self.deliveries.discard(conversation)?;
        self.reasons.remove(&conversation);
        self.unwritten.push_back(change);
        Ok(())
    }

    /// Removes a conversation that no longer names the agent.
    pub(super) fn forget(&mut self, conversation: u64, agent_changes: &AgentChanges) {
        let is_kept = self.floors.remove(&conversation).is_some();
        self.reasons.remove(&conversation);
        let (number, change) = self.deliveries.forget(conversation);
        if let Some(number) = number {
            self.end_call(conversation, number, agent_changes);
        }
        if self.revived.remove(&conversation) || is_kept {
            self.unwritten.push_back(change);
        }
    }

    /// Ends all calls.
    pub(super) fn end_all_calls(&mut self, agent_changes: &AgentChanges) {
        for (conversation, flight) in std::mem::take(&mut self.flights) {
            flight.signal.end();
            agent_changes.call_ended(conversation);
        }
    }

    fn end_call(&mut self, conversation: u64, number: u64, agent_changes: &AgentChanges) {
        let flight = self.flights.get(&conversation);
        if flight.is_some_and(|flight| flight.number == number)
            && let Some(flight) = self.flights.remove(&conversation)
        {
            flight.signal.end();
            agent_changes.call_ended(conversation);
        }
    }

    /// Returns whether the pending messages of a conversation were retried at a user's request.
    pub(super) fn is_revived(&self, conversation: u64) -> bool {
        self.revived.contains(&conversation)
    }

    /// Returns the options of the deliveries.
    pub(super) fn options(&self) -> &Options {
        self.deliveries.options()
    }
}
