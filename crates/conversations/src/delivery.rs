//! Webhook deliveries of one agent: when it is called for which conversation, and the retries of a
//! failed call.
//!
//! An agent is called for all messages since its last answer: a short time after the newest message
//! (*debounce*), but no later than the *maximum wait* after the oldest one. Each conversation has
//! at most one call in flight. A message that arrives during a call waits for the next call,
//! interrupts the call, or is refused: see [`OnBusy`]. A failed call is retried after a growing
//! pause. After the maximum number of attempts, or if a retry is useless, the messages become a
//! *dead letter*, which is listed, and the conversation continues without them.
//!
//! ```text
//! Waiting => Calling => (gone | Waiting | dead letter)
//! ```
//!
//! Invariants: *no message is skipped: each one is answered, a dead letter, or pending; the first
//! pending message only moves forward with an answer or a dead letter, in memory and in the
//! records.*
//!
//! The shell feeds events in order and journals [`Change`]s and [`crate::record::AgentState`]s. A
//! restored agent is fed again from the events that its state names. The shell knows the authors of
//! messages, selects the messages for an agent, and makes the calls.

mod dead;
mod restore;
mod types;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use types::{
    Call, Change, DeadLetter, Decision, DeliveryError, Failure, InterruptedCall, OnBusy, Options,
    RetryAdvice,
};

/// Maximum number of calls for the same messages that newer messages may interrupt.
const INTERRUPTS_MAX: u32 = 3;

/// Maximum pause that an agent may request by `Retry-After`.
const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// The pending messages of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingMessages {
    from_seq: u64,
    to_seq: u64,
    /// The arrival of the oldest message that no call was made for.
    since_ms: u64,
    /// The arrival of the newest message.
    last_ms: u64,
    attempts: u32,
    interrupts: u32,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The conversation is in the queue.
    Waiting {
        due_ms: u64,
        /// The end of the pause after a failed call.
        not_before_ms: u64,
    },
    Calling {
        number: u64,
        to_seq: u64,
        /// The deadline of an answer that the agent promised to send later.
        deadline_ms: Option<u64>,
    },
}

/// The deliveries of one agent; see the module's documentation.
#[derive(Debug)]
pub struct Deliveries {
    options: Options,
    entries: BTreeMap<u64, PendingMessages>,
    /// Conversations in the queue, by due time.
    due: BTreeSet<(u64, u64)>,
    /// Conversations with a promised answer, by deadline.
    deadlines: BTreeSet<(u64, u64)>,
    calling: u32,
    next_number: u64,
    dead: BTreeMap<u64, DeadLetter>,
    /// The next event to feed, by partition.
    cursors: BTreeMap<u16, u64>,
    /// By conversation, the last message restored as answered. Needed until the earlier events have
    /// been fed again.
    answered: HashMap<u64, u64>,
}

impl Deliveries {
    /// Creates the deliveries of a new agent.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            entries: BTreeMap::new(),
            due: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            calling: 0,
            next_number: 1,
            dead: BTreeMap::new(),
            cursors: BTreeMap::new(),
            answered: HashMap::new(),
        }
    }

    /// Changes the options of the agent.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// Returns the options of the agent.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds a message that the agent is to answer. If the message interrupts a call, returns that
    /// call. A message that was added before is ignored.
    pub fn message(
        &mut self,
        conversation: u64,
        seq: u64,
        now_ms: u64,
    ) -> Result<Option<InterruptedCall>, DeliveryError> {
        let answered = self.answered.get(&conversation);
        if answered.is_some_and(|through| seq <= *through) {
            return Ok(None);
        }
        let Some(entry) = self.entries.get_mut(&conversation) else {
            let max = self.options.pending_max;
            if self.entries.len() >= max as usize {
                return Err(DeliveryError::Full { max });
            }
            let entry = PendingMessages::new(seq, seq, now_ms);
            self.wait(conversation, entry, 0);
            return Ok(None);
        };
        if seq <= entry.to_seq {
            return Ok(None);
        }
        let before = entry.to_seq;
        entry.to_seq = seq;
        entry.last_ms = now_ms;
        let entry = *entry;
        match entry.phase {
            Phase::Waiting { not_before_ms, .. } => {
                self.unqueue(conversation);
                self.wait(conversation, entry, not_before_ms);
                Ok(None)
            }
            Phase::Calling { number, to_seq, .. } => {
                // This is the first message to arrive during the call.
                let since_ms = if before == to_seq {
                    now_ms
                } else {
                    entry.since_ms
                };
                let entry = PendingMessages { since_ms, ..entry };
                self.entries.insert(conversation, entry);
                let interrupts =
                    self.options.on_busy == OnBusy::Interrupt && entry.interrupts < INTERRUPTS_MAX;
                Ok(interrupts.then(|| self.interrupt(conversation, entry, number)))
            }
        }
    }

    fn interrupt(
        &mut self,
        conversation: u64,
        entry: PendingMessages,
        number: u64,
    ) -> InterruptedCall {
        self.call_ended(conversation);
        let interrupts = entry.interrupts + 1;
        let entry = PendingMessages {
            interrupts,
            ..entry
        };
        self.wait(conversation, entry, 0);
        InterruptedCall {
            number,
            change: entry.again(conversation),
        }
    }

    /// Returns whether a new message to the conversation must be refused because the agent is busy
    /// with it.
    pub fn refuses(&self, conversation: u64) -> bool {
        self.options.on_busy == OnBusy::Reject && self.is_calling(conversation)
    }

    /// Returns whether a call for the conversation is in flight.
    pub fn is_calling(&self, conversation: u64) -> bool {
        let entry = self.entries.get(&conversation);
        entry.is_some_and(|entry| matches!(entry.phase, Phase::Calling { .. }))
    }

    /// Returns the next action that is due. Call it until it returns `None`.
    pub fn poll(&mut self, now_ms: u64) -> Option<Decision> {
        if let Some((deadline_ms, conversation)) = self.deadlines.first().copied()
            && deadline_ms <= now_ms
        {
            self.deadlines.pop_first();
            return self.overdue(conversation);
        }
        if self.calling >= self.options.calls_max {
            return None;
        }
        let (due_ms, conversation) = self.due.first().copied()?;
        if due_ms > now_ms {
            return None;
        }
        self.due.pop_first();
        let number = self.next_number;
        let Some(entry) = self.entries.get_mut(&conversation) else {
            unreachable!("what is due waits");
        };
        entry.phase = Phase::Calling {
            number,
            to_seq: entry.to_seq,
            deadline_ms: None,
        };
        self.next_number += 1;
        self.calling += 1;
        Some(Decision::Call(Call {
            conversation,
            number,
            from_seq: entry.from_seq,
            to_seq: entry.to_seq,
            attempt: entry.attempts.saturating_add(1),
            interrupts: entry.interrupts,
        }))
    }

    fn overdue(&mut self, conversation: u64) -> Option<Decision> {
        match &mut self.entries.get_mut(&conversation)?.phase {
            Phase::Calling {
                number,
                deadline_ms,
                ..
            } => {
                *deadline_ms = None;
                Some(Decision::Overdue {
                    conversation,
                    number: *number,
                })
            }
            Phase::Waiting { .. } => None,
        }
    }

    /// Returns when the next action is due if no event arrives before.
    pub fn next_ms(&self) -> Option<u64> {
        let deadline_ms = self.deadlines.first().map(|(at_ms, _)| *at_ms);
        let due_ms = match self.calling < self.options.calls_max {
            true => self.due.first().map(|(at_ms, _)| *at_ms),
            false => None,
        };
        match (deadline_ms, due_ms) {
            (Some(deadline_ms), Some(due_ms)) => Some(deadline_ms.min(due_ms)),
            (one, other) => one.or(other),
        }
    }

    /// Records that the agent accepted a call and will answer later, at the latest at `until_ms`.
    pub fn accepted(&mut self, conversation: u64, number: u64, until_ms: u64) {
        if self.called_to(conversation, number).is_none() {
            return;
        }
        if let Some(entry) = self.entries.get_mut(&conversation)
            && let Phase::Calling { deadline_ms, .. } = &mut entry.phase
        {
            if let Some(before_ms) = deadline_ms.replace(until_ms) {
                self.deadlines.remove(&(before_ms, conversation));
            }
            self.deadlines.insert((until_ms, conversation));
        }
    }

    /// Records that the answer to a call was appended. Returns `None` if the call was given up
    /// before.
    pub fn answered(&mut self, conversation: u64, number: u64) -> Option<Change> {
        let through_seq = self.called_to(conversation, number)?;
        self.call_ended(conversation);
        self.finish_through(conversation, through_seq);
        Some(Change::Answered {
            conversation,
            through_seq,
        })
    }

    /// Records that a call failed. `jitter` is a random number that spreads the retries of agents
    /// that failed together. Returns `None` if the call was given up before.
    pub fn failed(
        &mut self,
        conversation: u64,
        number: u64,
        failure: Failure,
        now_ms: u64,
        jitter: u32,
    ) -> Option<Change> {
        let called_to = self.called_to(conversation, number)?;
        self.call_ended(conversation);
        let mut entry = *self.entries.get(&conversation)?;
        entry.attempts = entry.attempts.saturating_add(1);
        let pause_ms = match failure.again {
            RetryAdvice::Never => None,
            _ if entry.attempts >= self.options.attempts_max => None,
            again => Some(self.pause_ms(entry.attempts, again, jitter)),
        };
        let is_listed = self.dead.contains_key(&conversation);
        let has_room = is_listed || self.dead.len() < self.options.dead_max as usize;
        match pause_ms {
            None if has_room => {
                let letter = DeadLetter {
                    from_seq: entry.from_seq,
                    to_seq: called_to,
                    attempts: entry.attempts,
                    status: failure.status,
                    at_ms: now_ms,
                };
                let letter = self.add_dead_letter(conversation, letter);
                self.finish_through(conversation, called_to);
                Some(Change::Dead {
                    conversation,
                    letter,
                })
            }
            pause_ms => {
                let pause_ms = pause_ms.unwrap_or(self.options.pause_ms_max);
                let not_before_ms = now_ms.saturating_add(pause_ms);
                self.wait(conversation, entry, not_before_ms);
                Some(entry.again(conversation))
            }
        }
    }

    /// Returns the pause before the next attempt. It doubles with each attempt and is randomized
    /// between half and all of that.
    fn pause_ms(&self, attempts: u32, again: RetryAdvice, jitter: u32) -> u64 {
        let doublings = attempts.saturating_sub(1).min(32);
        let Options {
            pause_ms,
            pause_ms_max,
            ..
        } = self.options;
        let pause_ms = pause_ms.saturating_mul(1 << doublings).min(pause_ms_max);
        let half = pause_ms / 2;
        let part = u128::from(pause_ms - half) * u128::from(jitter) / u128::from(u32::MAX);
        let pause_ms = half + part as u64;
        match again {
            RetryAdvice::After { pause_ms: asked_ms } => {
                pause_ms.max(asked_ms.min(RETRY_AFTER_MS_MAX))
            }
            RetryAdvice::Later | RetryAdvice::Never => pause_ms,
        }
    }

    /// Returns the last message of a call that is in flight.
    fn called_to(&self, conversation: u64, number: u64) -> Option<u64> {
        match self.entries.get(&conversation)?.phase {
            Phase::Calling {
                number: it, to_seq, ..
            } if it == number => Some(to_seq),
            _ => None,
        }
    }

    /// Records the end of a call in flight.
    fn call_ended(&mut self, conversation: u64) {
        self.calling -= 1;
        if let Some(entry) = self.entries.get(&conversation)
            && let Phase::Calling {
                deadline_ms: Some(deadline_ms),
                ..
            } = entry.phase
        {
            self.deadlines.remove(&(deadline_ms, conversation));
        }
    }

    /// Removes the messages up to `through_seq`; later messages wait for the next call.
    fn finish_through(&mut self, conversation: u64, through_seq: u64) {
        let Some(entry) = self.entries.remove(&conversation) else {
            return;
        };
        if entry.to_seq > through_seq {
            let entry = PendingMessages {
                from_seq: through_seq + 1,
                attempts: 0,
                interrupts: 0,
                ..entry
            };
            self.wait(conversation, entry, 0);
        }
    }

    fn wait(&mut self, conversation: u64, entry: PendingMessages, not_before_ms: u64) {
        let Options {
            debounce_ms,
            max_wait_ms,
            ..
        } = self.options;
        let quiet_ms = entry.last_ms.saturating_add(debounce_ms);
        let latest_ms = entry.since_ms.saturating_add(max_wait_ms);
        let due_ms = quiet_ms.min(latest_ms).max(not_before_ms);
        let phase = Phase::Waiting {
            due_ms,
            not_before_ms,
        };
        self.due.insert((due_ms, conversation));
        self.entries
            .insert(conversation, PendingMessages { phase, ..entry });
    }

    fn unqueue(&mut self, conversation: u64) {
        if let Some(entry) = self.entries.get(&conversation)
            && let Phase::Waiting { due_ms, .. } = entry.phase
        {
            self.due.remove(&(due_ms, conversation));
        }
    }

    /// Removes a conversation. Returns the call to end, if there is one, and the change to journal.
    pub fn forget(&mut self, conversation: u64) -> (Option<u64>, Change) {
        let number = match self.entries.get(&conversation).map(|it| it.phase) {
            Some(Phase::Calling { number, .. }) => {
                self.call_ended(conversation);
                Some(number)
            }
            _ => {
                self.unqueue(conversation);
                None
            }
        };
        self.entries.remove(&conversation);
        self.dead.remove(&conversation);
        (number, Change::Forgotten { conversation })
    }

    /// Returns the number of conversations with pending messages.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no messages are pending.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of calls in flight.
    pub fn calling(&self) -> u32 {
        self.calling
    }
}

impl PendingMessages {
    fn new(from_seq: u64, to_seq: u64, now_ms: u64) -> Self {
        Self {
            from_seq,
            to_seq,
            since_ms: now_ms,
            last_ms: now_ms,
            attempts: 0,
            interrupts: 0,
            phase: Phase::Waiting {
                due_ms: 0,
                not_before_ms: 0,
            },
        }
    }

    fn again(&self, conversation: u64) -> Change {
        Change::Again {
            conversation,
            attempts: self.attempts,
            interrupts: self.interrupts,
        }
    }
}

#[cfg(test)]
mod tests;
