//! When a webhook is called for a conversation, and what becomes of the call.
//!
//! An agent is called for what was said since its last answer: a little after the newest message
//! (*debounce*), and not long after the oldest one, however many come (*maximum wait*). There is one
//! call in flight per conversation. What comes meanwhile waits for the next one, or ends the call, or
//! is not let in: that is [`OnBusy`]. A call that fails is made again after a pause that grows; after
//! so many, or if that makes no sense, what it was for is a *dead letter*: it is listed, and the
//! conversation goes on.
//!
//! ```text
//! Waiting => Calling => (gone | Waiting | dead letter)
//! ```
//!
//! Invariants: *nothing is skipped: every message is answered, a dead letter, or waits; what is
//! waited for moves only with an answer, in memory and in the records.*
//!
//! The shell feeds events in order and keeps [`Change`]s and [`crate::record::AgentState`]s; an
//! agent that was read back is fed again from the events its state names. It knows who has written a
//! message, what an agent is to hear of, and how to call it.

mod dead;
mod restore;
mod terms;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use terms::{
    Again, Call, Change, DeadLetter, Decision, Ended, Failure, OnBusy, Options, Refused,
};

/// Calls for the same messages that are ended by newer ones.
const INTERRUPTS_MAX: u32 = 3;

/// Longest pause that an agent may ask for.
const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// What waits of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    from_seq: u64,
    to_seq: u64,
    /// When the oldest message came that no call was made for.
    since_ms: u64,
    /// When the newest one came.
    last_ms: u64,
    attempts: u32,
    interrupts: u32,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// In the queue.
    Waiting {
        due_ms: u64,
        /// The end of a pause.
        not_before_ms: u64,
    },
    Calling {
        number: u64,
        to_seq: u64,
        /// When an answer that was to come later is given up.
        deadline_ms: Option<u64>,
    },
}

/// What one agent has to answer. See the module's documentation.
#[derive(Debug)]
pub struct Deliveries {
    options: Options,
    entries: BTreeMap<u64, Entry>,
    /// Those that wait, by time.
    due: BTreeSet<(u64, u64)>,
    /// Those that are to be answered later, by time.
    deadlines: BTreeSet<(u64, u64)>,
    calling: u32,
    next_number: u64,
    dead: BTreeMap<u64, DeadLetter>,
    /// The next event of each partition.
    cursors: BTreeMap<u16, u64>,
    /// What was read back as answered, until the events before it have been fed again.
    answered: HashMap<u64, u64>,
}

impl Deliveries {
    /// Of an agent that was told nothing.
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

    /// From now on it is called like this.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// How it is called.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A message that it is to answer was appended. If that ends a call, says which. One that it was
    /// told of is passed over.
    pub fn message(
        &mut self,
        conversation: u64,
        seq: u64,
        now_ms: u64,
    ) -> Result<Option<Ended>, Refused> {
        let answered = self.answered.get(&conversation);
        if answered.is_some_and(|through| seq <= *through) {
            return Ok(None);
        }
        let Some(entry) = self.entries.get_mut(&conversation) else {
            let max = self.options.pending_max;
            if self.entries.len() >= max as usize {
                return Err(Refused::Full { max });
            }
            let entry = Entry::new(seq, seq, now_ms);
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
                // The first that comes during the call.
                let since_ms = if before == to_seq {
                    now_ms
                } else {
                    entry.since_ms
                };
                let entry = Entry { since_ms, ..entry };
                self.entries.insert(conversation, entry);
                let interrupts =
                    self.options.on_busy == OnBusy::Interrupt && entry.interrupts < INTERRUPTS_MAX;
                Ok(interrupts.then(|| self.interrupt(conversation, entry, number)))
            }
        }
    }

    fn interrupt(&mut self, conversation: u64, entry: Entry, number: u64) -> Ended {
        self.hung_up(conversation);
        let interrupts = entry.interrupts + 1;
        let entry = Entry {
            interrupts,
            ..entry
        };
        self.wait(conversation, entry, 0);
        Ended {
            number,
            change: entry.again(conversation),
        }
    }

    /// Whether a message is not to be let into a conversation, because the agent is busy with it.
    pub fn refuses(&self, conversation: u64) -> bool {
        self.options.on_busy == OnBusy::Reject && self.is_calling(conversation)
    }

    /// Whether a call is in flight.
    pub fn is_calling(&self, conversation: u64) -> bool {
        let entry = self.entries.get(&conversation);
        entry.is_some_and(|entry| matches!(entry.phase, Phase::Calling { .. }))
    }

    /// The next thing to do now. Ask until there is nothing.
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

    /// When there is something to do, if nothing happens before.
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

    /// The agent took a call and will answer later, at the latest then.
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

    /// A call was answered, and the answer appended. `None` if nobody waits for it any more.
    pub fn answered(&mut self, conversation: u64, number: u64) -> Option<Change> {
        let through_seq = self.called_to(conversation, number)?;
        self.hung_up(conversation);
        self.go_on(conversation, through_seq);
        Some(Change::Answered {
            conversation,
            through_seq,
        })
    }

    /// A call has failed. `jitter` is a random number, so that agents that failed together are not
    /// called together. `None` if nobody waits for it any more.
    pub fn failed(
        &mut self,
        conversation: u64,
        number: u64,
        failure: Failure,
        now_ms: u64,
        jitter: u32,
    ) -> Option<Change> {
        let called_to = self.called_to(conversation, number)?;
        self.hung_up(conversation);
        let mut entry = *self.entries.get(&conversation)?;
        entry.attempts = entry.attempts.saturating_add(1);
        let pause_ms = match failure.again {
            Again::Never => None,
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
                let letter = self.bury(conversation, letter);
                self.go_on(conversation, called_to);
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

    /// The pause doubles, between half of it and all of it.
    fn pause_ms(&self, attempts: u32, again: Again, jitter: u32) -> u64 {
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
            Again::After { pause_ms: asked_ms } => pause_ms.max(asked_ms.min(RETRY_AFTER_MS_MAX)),
            Again::Later | Again::Never => pause_ms,
        }
    }

    /// The last message of a call that is in flight.
    fn called_to(&self, conversation: u64, number: u64) -> Option<u64> {
        match self.entries.get(&conversation)?.phase {
            Phase::Calling {
                number: it, to_seq, ..
            } if it == number => Some(to_seq),
            _ => None,
        }
    }

    /// A call is not in flight any more.
    fn hung_up(&mut self, conversation: u64) {
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

    /// What was called for is done with; what came behind it waits for the next call.
    fn go_on(&mut self, conversation: u64, through_seq: u64) {
        let Some(entry) = self.entries.remove(&conversation) else {
            return;
        };
        if entry.to_seq > through_seq {
            let entry = Entry {
                from_seq: through_seq + 1,
                attempts: 0,
                interrupts: 0,
                ..entry
            };
            self.wait(conversation, entry, 0);
        }
    }

    fn wait(&mut self, conversation: u64, entry: Entry, not_before_ms: u64) {
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
        self.entries.insert(conversation, Entry { phase, ..entry });
    }

    fn unqueue(&mut self, conversation: u64) {
        if let Some(entry) = self.entries.get(&conversation)
            && let Phase::Waiting { due_ms, .. } = entry.phase
        {
            self.due.remove(&(due_ms, conversation));
        }
    }

    /// A conversation is gone. Says which call there is to be ended, and what is to be kept.
    pub fn forget(&mut self, conversation: u64) -> (Option<u64>, Change) {
        let number = match self.entries.get(&conversation).map(|it| it.phase) {
            Some(Phase::Calling { number, .. }) => {
                self.hung_up(conversation);
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

    /// Conversations that wait or are called for.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether everything is answered or a dead letter.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Calls in flight.
    pub fn calling(&self) -> u32 {
        self.calling
    }
}

impl Entry {
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
