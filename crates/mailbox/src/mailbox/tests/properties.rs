//! Random histories against a model of writes, deliveries and acknowledgements.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::*;
use crate::types::{MessageState, Straggler};

const LIMITS: Limits = Limits {
    messages_max: 20,
    bytes_max: 200,
    in_flight_max: 5,
    deliveries_max: 3,
};

const SENDERS: [&str; 3] = ["s", "t", "u"];

#[derive(Clone, Debug)]
enum Step {
    Write {
        sender: usize,
        id: u8,
        ttl_ms: u64,
    },
    Durable,
    HandOut {
        room: [u8; 3],
    },
    Acknowledge {
        which: usize,
    },
    Again {
        which: usize,
        again: u8,
    },
    Lose {
        subscriber: u8,
    },
    Pass {
        ms: u64,
    },
    Expire,
    /// Dead letters are revived.
    Revive,
    /// The oldest message is rewritten, and the stream is trimmed before the next one.
    Move,
    /// Up to this many of the newest records are lost, unless they were synced.
    Crash {
        lost: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize, 0..40u8, prop_oneof![Just(u64::MAX), 1..5_000u64])
            .prop_map(|(sender, id, ttl_ms)| Step::Write { sender, id, ttl_ms }),
        2 => Just(Step::Durable),
        4 => prop::array::uniform3(0..4u8).prop_map(|room| Step::HandOut { room }),
        4 => any::<usize>().prop_map(|which| Step::Acknowledge { which }),
        1 => (any::<usize>(), 0..3u8).prop_map(|(which, again)| Step::Again { which, again }),
        1 => (0..3u8).prop_map(|subscriber| Step::Lose { subscriber }),
        1 => (0..2_000u64).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Expire),
        1 => Just(Step::Revive),
        2 => Just(Step::Move),
        1 => (0..6usize).prop_map(|lost| Step::Crash { lost }),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Message {
    sender: usize,
    id: WriteId,
    expires_ms: u64,
}

#[derive(Clone, Debug)]
enum Record {
    Write(Message),
    Note(Note),
    Moved(u64, Message, MessageState),
    Ids(Vec<(u64, Option<WriteId>)>),
    /// Records before this offset are trimmed.
    Cut(u64),
}

/// A mailbox, its stream, and the model.
struct World {
    mailbox: Mailbox<u8>,
    /// Every record that was not lost in a crash, by offset, including trimmed ones.
    log: Vec<Record>,
    /// Records that would survive a crash.
    synced: usize,
    now_ms: u64,
    accepted: BTreeMap<u64, Message>,
    acknowledged: BTreeSet<u64>,
    /// Subscriber of each delivered message, and whether it is the first delivery.
    out: BTreeMap<u64, (u8, bool)>,
    handed_first: Vec<(usize, u64)>,
}

impl World {
    fn new() -> Self {
        Self {
            mailbox: Mailbox::new(LIMITS),
            log: Vec::new(),
            synced: 0,
            now_ms: 0,
            accepted: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            out: BTreeMap::new(),
            handed_first: Vec::new(),
        }
    }

    fn append(&mut self, record: Record) -> u64 {
        self.log.push(record);
        self.log.len() as u64 - 1
    }

    fn write(&mut self, sender: usize, id: u8, ttl_ms: u64) {
        let message = Message {
            sender,
            id: WriteId([id; 16]),
            expires_ms: self.now_ms.saturating_add(ttl_ms),
        };
        let known = self.accepted.iter().find(|(_, it)| it.id == message.id);
        match self.mailbox.accept(Some(message.id), 10, self.now_ms) {
            Ok(Accepted::Duplicate { offset }) => {
                assert_eq!(known.map(|(offset, _)| *offset), Some(offset));
            }
            Ok(Accepted::New) => {
                assert!(known.is_none(), "{known:?} was not recognised");
                let offset = self.append(Record::Write(message));
                self.mailbox.written(written(offset, message));
                self.accepted.insert(offset, message);
            }
            Err(_) => assert!(self.mailbox.len() >= 20),
        }
    }

    fn hand_out(&mut self, mut room: [u8; 3]) {
        let Self {
            mailbox,
            accepted,
            acknowledged,
            out,
            handed_first,
            now_ms,
            ..
        } = self;
        mailbox.hand_out(*now_ms, |offer| {
            let free = |it: &u8| room[usize::from(*it)] > 0;
            let mut all = 0..3u8;
            let found = match offer.place {
                Eligibility::Any => all.find(free),
                Eligibility::Only(only) if free(only) => Some(*only),
                Eligibility::Only(_) => return Answer::Full,
                Eligibility::Other(other) => {
                    let found = all.find(|it| it != other && free(it));
                    found.or(Some(*other).filter(free))
                }
            };
            let Some(found) = found else {
                return Answer::NoSubscriber;
            };
            room[usize::from(found)] -= 1;
            let Offer {
                offset, delivery, ..
            } = offer;
            let message = accepted[&offset];
            assert!(
                !acknowledged.contains(&offset),
                "{offset} again after its ack"
            );
            assert!(message.expires_ms > *now_ms, "{offset} has expired");
            let is_first = delivery == 1;
            if is_first {
                for (other, (at, first)) in out.iter() {
                    let is_own = accepted[other].sender == message.sender;
                    assert!(!is_own || !first || *at == found, "{other} is elsewhere");
                }
                handed_first.push((message.sender, offset));
            }
            assert!(out.insert(offset, (found, is_first)).is_none());
            Answer::Handed(found)
        });
        assert!(out.len() <= 5);
    }

    fn answer(&mut self, which: usize, again: Option<Again>) {
        let Some(offset) = self.out.keys().nth(which % self.out.len().max(1)).copied() else {
            return;
        };
        self.out.remove(&offset);
        match again {
            None => {
                assert!(self.mailbox.acknowledge(offset));
                self.acknowledged.insert(offset);
            }
            Some(again) => assert!(self.mailbox.again(offset, again, self.now_ms)),
        }
    }

    fn note(&mut self) {
        let notes = self.mailbox.take_notes();
        self.log.extend(notes.into_iter().map(Record::Note));
    }

    /// Makes all records durable.
    fn sync(&mut self) {
        self.note();
        self.synced = self.log.len();
        self.mailbox.durable(self.log.len() as u64);
    }

    /// Rewrites and trims as a shell does when too much of the stream is dead.
    fn move_oldest(&mut self) {
        self.note();
        let Some(straggler) = self.mailbox.straggler(u64::MAX) else {
            return;
        };
        let Straggler {
            offset,
            record,
            state,
        } = straggler;
        let is_there = match &self.log[record as usize] {
            Record::Write(_) => record == offset,
            Record::Moved(moved, ..) => *moved == offset,
            _ => false,
        };
        assert!(
            is_there && record >= self.start(),
            "{straggler:?} is not there"
        );
        let message = self.accepted[&offset];
        let record = self.append(Record::Moved(offset, message, state));
        self.mailbox.moved(offset, record);
        let ids = self.append(Record::Ids(self.mailbox.ids().collect()));
        let start = self.mailbox.oldest().map_or(ids, |oldest| oldest.min(ids));
        assert!(
            start > straggler.record,
            "nothing is cut off by {straggler:?}"
        );
        self.append(Record::Cut(start));
    }

    fn start(&self) -> u64 {
        let start = |record: &Record| match record {
            Record::Cut(start) => Some(*start),
            _ => None,
        };
        self.log.iter().rev().find_map(start).unwrap_or(0)
    }

    /// Loses the newest records and all memory.
    fn crash(&mut self, lost: usize) {
        let kept = self.log.len().saturating_sub(lost).max(self.synced);
        for (offset, lost) in self.log.drain(kept..).enumerate() {
            match lost {
                Record::Write(_) => {
                    self.accepted.remove(&((kept + offset) as u64));
                }
                Record::Note(Note::Left { offset }) => {
                    self.acknowledged.remove(&offset);
                }
                _ => {}
            }
        }
        self.synced = kept;
        self.mailbox = Mailbox::new(LIMITS);
        self.out.clear();
        self.restore();
        // A first delivery may be lost, together with later ones.
        let is_kept = |offset: u64| {
            self.log.iter().any(|record| match record {
                Record::Note(Note::Handed { offset: it, .. } | Note::Left { offset: it }) => {
                    *it == offset
                }
                _ => false,
            })
        };
        self.handed_first.retain(|(_, offset)| is_kept(*offset));
    }

    fn restore(&mut self) {
        let start = self.start();
        for (offset, record) in self.log.iter().enumerate().skip(start as usize) {
            let offset = offset as u64;
            match record {
                Record::Write(message) => self.mailbox.restore(written(offset, *message)),
                Record::Note(note) => self.mailbox.restore_note(*note),
                Record::Moved(first, message, state) => {
                    let written = written(*first, *message);
                    self.mailbox.restore_moved(written, offset, *state);
                }
                Record::Ids(ids) => {
                    for (offset, id) in ids {
                        self.mailbox.restore_id(*offset, *id);
                    }
                }
                Record::Cut(_) => {}
            }
        }
        self.mailbox.restored();
    }

    /// Delivers and acknowledges everything.
    fn drain(&mut self) {
        self.sync();
        for _ in 0..100 {
            self.now_ms += 60_000;
            self.mailbox.revive_all();
            self.hand_out([3; 3]);
            while !self.out.is_empty() {
                self.answer(0, None);
            }
        }
        self.note();
    }
}

fn written(offset: u64, message: Message) -> NewMessage<'static> {
    NewMessage {
        offset,
        id: Some(message.id),
        sender: SENDERS[message.sender],
        size: 10,
        expires_ms: message.expires_ms,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_message_is_lost_reordered_or_redelivered_after_its_ack(
        steps in prop::collection::vec(step(), 0..120)
    ) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Write { sender, id, ttl_ms } => world.write(sender, id, ttl_ms),
                Step::Durable => world.sync(),
                Step::HandOut { room } => world.hand_out(room),
                Step::Acknowledge { which } => world.answer(which, None),
                Step::Again { which, again } => {
                    let again = match again {
                        0 => Again::Now,
                        1 => Again::Later,
                        _ => Again::After { pause_ms: 300 },
                    };
                    world.answer(which, Some(again));
                }
                Step::Lose { subscriber } => {
                    while let Some(index) = world.out.values().position(|it| it.0 == subscriber) {
                        world.answer(index, Some(Again::Now));
                    }
                }
                Step::Pass { ms } => world.now_ms += ms,
                Step::Expire => world.mailbox.expire(world.now_ms),
                Step::Revive => {
                    let dead = world.mailbox.dead();
                    prop_assert_eq!(world.mailbox.revive_all(), dead);
                }
                Step::Move => world.move_oldest(),
                Step::Crash { lost } => world.crash(lost),
            }
            world.note();
            prop_assert!(world.mailbox.len() <= 20);
            prop_assert_eq!(world.mailbox.bytes(), world.mailbox.len() as u64 * 10);
            prop_assert_eq!(world.mailbox.in_flight(), world.out.len());
            let is_dead = |it: &Pending<'_>| matches!(it.state, State::Dead(_));
            let dead = world.mailbox.pending(0).filter(is_dead).count();
            prop_assert_eq!(world.mailbox.dead(), dead);
        }
        world.drain();
        prop_assert_eq!(world.mailbox.len(), 0);
        for (offset, message) in &world.accepted {
            let is_done = world.acknowledged.contains(offset) || message.expires_ms < u64::MAX;
            prop_assert!(is_done, "{} was lost", offset);
        }
        for sender in 0..3 {
            let firsts = world.handed_first.iter().filter(|(it, _)| *it == sender);
            let firsts: Vec<_> = firsts.map(|(_, offset)| *offset).collect();
            prop_assert!(firsts.is_sorted(), "{:?}", firsts);
        }
    }
}
