//! Properties of random histories of an agent with crashes, compared with a model of messages and
//! answers.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const CONVERSATIONS: u64 = 4;

#[derive(Clone, Debug)]
enum Step {
    Say {
        conversation: u64,
    },
    Pass {
        ms: u64,
    },
    Answer {
        which: usize,
    },
    Fail {
        which: usize,
        again: u8,
    },
    Later {
        which: usize,
        ms: u64,
    },
    Revive {
        conversation: u64,
    },
    Discard {
        conversation: u64,
    },
    Snapshot,
    /// All records so far are synced.
    Sync,
    /// Records that were not synced are lost.
    Crash {
        lost: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let conversation = || 0..CONVERSATIONS;
    prop_oneof![
        6 => conversation().prop_map(|conversation| Step::Say { conversation }),
        6 => (0..40u64).prop_map(|ms| Step::Pass { ms }),
        4 => any::<usize>().prop_map(|which| Step::Answer { which }),
        2 => (any::<usize>(), 0..4u8).prop_map(|(which, again)| Step::Fail { which, again }),
        1 => (any::<usize>(), 0..80u64).prop_map(|(which, ms)| Step::Later { which, ms }),
        1 => conversation().prop_map(|conversation| Step::Revive { conversation }),
        1 => conversation().prop_map(|conversation| Step::Discard { conversation }),
        1 => Just(Step::Snapshot),
        2 => Just(Step::Sync),
        1 => (0..5usize).prop_map(|lost| Step::Crash { lost }),
    ]
}

#[derive(Clone, Debug)]
enum Record {
    Snapshot(Vec<u8>),
    Change(Vec<u8>),
}

struct World {
    agent: Deliveries,
    options: Options,
    log: Vec<Record>,
    synced: usize,
    /// All messages in order: conversation, number, time.
    events: Vec<(u64, u64, u64)>,
    fed: usize,
    /// The time at which the agent was fed each message.
    fed_ms: Vec<u64>,
    /// The last message that a call was made for, by conversation.
    called_to: HashMap<u64, u64>,
    calls: Vec<Call>,
    /// Messages that were answered, or given up by a user.
    done: BTreeSet<(u64, u64)>,
    now_ms: u64,
}

impl World {
    fn new(options: Options) -> Self {
        let mut world = Self {
            agent: Deliveries::new(options),
            options,
            log: Vec::new(),
            synced: 0,
            events: Vec::new(),
            fed: 0,
            fed_ms: Vec::new(),
            called_to: HashMap::new(),
            calls: Vec::new(),
            done: BTreeSet::new(),
            now_ms: 10_000,
        };
        world.snapshot();
        world.synced = 1;
        world
    }

    fn snapshot(&mut self) {
        let mut bytes = Vec::new();
        self.agent.snapshot(Vec::new()).encode(&mut bytes);
        self.log.push(Record::Snapshot(bytes));
    }

    fn log_change(&mut self, change: Change) {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        self.log.push(Record::Change(bytes));
    }

    fn append_message(&mut self, conversation: u64) {
        let of_it = self.events.iter().filter(|it| it.0 == conversation);
        let seq = of_it.count() as u64 + 1;
        self.events.push((conversation, seq, self.now_ms));
        self.feed();
    }

    /// Feeds the agent as many messages as it has room for.
    fn feed(&mut self) {
        while let Some((conversation, seq, _)) = self.events.get(self.fed).copied() {
            match self.agent.message(conversation, seq, self.now_ms) {
                Ok(None) => {}
                Ok(Some(InterruptedCall { number, change })) => {
                    assert_eq!(self.options.on_busy, OnBusy::Interrupt);
                    let before = self.calls.len();
                    self.calls.retain(|call| call.number != number);
                    assert_eq!(self.calls.len(), before - 1);
                    self.log_change(change);
                }
                Err(DeliveryError::Full { max }) => {
                    assert_eq!(self.agent.len(), max as usize);
                    return;
                }
                Err(other) => panic!("{other}"),
            }
            self.fed += 1;
            self.fed_ms.truncate(self.fed - 1);
            self.fed_ms.push(self.now_ms);
            self.agent.fed(0, self.fed as u64);
        }
    }

    fn poll(&mut self) {
        self.feed();
        while let Some(decision) = self.agent.poll(self.now_ms) {
            let call = match decision {
                Decision::Call(call) => call,
                Decision::Overdue {
                    conversation,
                    number,
                } => {
                    let which = self.calls.iter().position(|it| it.number == number);
                    let which = which.expect("a call that is overdue was made");
                    assert_eq!(self.calls[which].conversation, conversation);
                    self.fail(which, 0);
                    continue;
                }
            };
            let mut calls = self.calls.iter();
            assert!(!calls.any(|it| it.conversation == call.conversation));
            assert!(call.from_seq <= call.to_seq);
            // All messages before a call's first one are done.
            let dead = self.agent.dead.get(&call.conversation);
            let first = (1..).find(|seq| {
                let is_dead = dead.is_some_and(|it| (it.from_seq..=it.to_seq).contains(seq));
                !is_dead && !self.done.contains(&(call.conversation, *seq))
            });
            assert!(call.from_seq <= first.unwrap(), "{call:?} {first:?}");
            self.called_to.insert(call.conversation, call.to_seq);
            self.calls.push(call);
        }
        assert!(self.calls.len() <= self.options.calls_max as usize);
        assert_eq!(self.agent.calling() as usize, self.calls.len());
        self.check_waits();
    }

    /// While the agent is free, no message waits longer than allowed, except after a failure.
    fn check_waits(&self) {
        if self.calls.len() == self.options.calls_max as usize {
            return;
        }
        for (conversation, entry) in &self.agent.entries {
            let Phase::Waiting { not_before_ms, .. } = entry.phase else {
                continue;
            };
            // Messages before `from_seq` are done or a dead letter; another check ensures that.
            let called_to = self.called_to.get(conversation).copied().unwrap_or(0);
            let called_to = called_to.max(entry.from_seq - 1);
            let fed = self.events.iter().zip(&self.fed_ms);
            // A revived letter can end before messages that were answered meanwhile.
            let mut of_it = fed.filter(|((it, seq, _), _)| {
                it == conversation && *seq > called_to && !self.done.contains(&(*it, *seq))
            });
            let oldest_ms = of_it.next().map_or(self.now_ms, |(_, fed_ms)| *fed_ms);
            let may_wait = oldest_ms + self.options.max_wait_ms > self.now_ms;
            assert!(may_wait || not_before_ms > self.now_ms, "{entry:?}");
        }
    }

    fn answer(&mut self, which: usize) {
        if self.calls.is_empty() {
            return;
        }
        let call = self.calls.swap_remove(which % self.calls.len());
        let change = self.agent.answered(call.conversation, call.number);
        let change = change.expect("a call that is in flight is waited for");
        assert_eq!(self.agent.answered(call.conversation, call.number), None);
        self.log_change(change);
        let seqs = call.from_seq..=call.to_seq;
        self.done.extend(seqs.map(|seq| (call.conversation, seq)));
    }

    fn fail(&mut self, which: usize, again: u8) {
        if self.calls.is_empty() {
            return;
        }
        let call = self.calls.swap_remove(which % self.calls.len());
        let again = match again {
            0 | 1 => RetryAdvice::Later,
            2 => RetryAdvice::After { pause_ms: 33 },
            _ => RetryAdvice::Never,
        };
        let failure = Failure { status: 0, again };
        let Call {
            conversation,
            number,
            ..
        } = call;
        let change = self
            .agent
            .failed(conversation, number, failure, self.now_ms, 7);
        self.log_change(change.expect("a call that is in flight is waited for"));
    }

    fn discard(&mut self, conversation: u64) {
        let letter = self.agent.dead.get(&conversation).copied();
        match (self.agent.discard(conversation), letter) {
            (Ok(change), Some(letter)) => {
                self.log_change(change);
                let seqs = letter.from_seq..=letter.to_seq;
                self.done.extend(seqs.map(|seq| (conversation, seq)));
            }
            (Err(DeliveryError::Missing), None) => {}
            other => panic!("{other:?}"),
        }
    }

    fn crash(&mut self, lost: usize) {
        let kept = self.log.len().saturating_sub(lost).max(self.synced);
        self.log.truncate(kept);
        self.synced = kept;
        self.calls.clear();
        let is_snapshot = |record: &Record| matches!(record, Record::Snapshot(_));
        let newest = self.log.iter().rposition(is_snapshot).unwrap();
        for record in &self.log[newest..] {
            match record {
                Record::Snapshot(bytes) => {
                    let state = AgentState::decode(bytes).unwrap();
                    self.agent = Deliveries::load(&state, self.now_ms);
                }
                Record::Change(bytes) => {
                    let change = Change::decode(bytes).unwrap();
                    self.agent.restore(&change, self.now_ms);
                }
            }
        }
        self.fed = self.agent.next_event(0) as usize;
        self.fed_ms.fill(self.now_ms);
        self.called_to.clear();
    }

    /// Answers all messages.
    fn drain(&mut self) {
        for _ in 0..200 {
            self.now_ms += 1000;
            self.poll();
            while !self.calls.is_empty() {
                self.answer(0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_message_is_skipped_or_waits_forever(
        on_busy in prop_oneof![Just(OnBusy::Queue), Just(OnBusy::Interrupt), Just(OnBusy::Reject)],
        limits in (1..4u32, 2..5u32, 0..3u32),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let (calls_max, pending_max, dead_max) = limits;
        let options = Options { on_busy, calls_max, pending_max, dead_max, ..OPTIONS };
        let mut world = World::new(options);
        for step in steps {
            match step {
                Step::Say { conversation } => world.append_message(conversation),
                Step::Pass { ms } => world.now_ms += ms,
                Step::Answer { which } => world.answer(which),
                Step::Fail { which, again } => world.fail(which, again),
                Step::Later { which, ms } => {
                    if !world.calls.is_empty() {
                        let call = world.calls[which % world.calls.len()];
                        let until_ms = world.now_ms + ms;
                        world.agent.accepted(call.conversation, call.number, until_ms);
                    }
                }
                Step::Revive { conversation } => {
                    if let Ok(change) = world.agent.revive(conversation, world.now_ms) {
                        world.log_change(change);
                    }
                }
                Step::Discard { conversation } => world.discard(conversation),
                Step::Snapshot => {
                    // Only once everything that was fed before the restart has been fed again.
                    if world.fed == world.events.len() {
                        world.snapshot();
                    }
                }
                Step::Sync => world.synced = world.log.len(),
                Step::Crash { lost } => world.crash(lost),
            }
            world.poll();
            prop_assert!(world.agent.len() <= options.pending_max as usize);
            prop_assert!(world.agent.dead().len() <= options.dead_max.max(1) as usize);
        }
        world.drain();
        prop_assert!(world.agent.is_empty());
        prop_assert_eq!(world.fed, world.events.len());
        for (conversation, seq, _) in &world.events {
            let is_dead = world.agent.dead.get(conversation).is_some_and(|letter| {
                (letter.from_seq..=letter.to_seq).contains(seq)
            });
            prop_assert!(
                is_dead || world.done.contains(&(*conversation, *seq)),
                "message {} of {} was skipped", seq, conversation
            );
        }
    }
}
