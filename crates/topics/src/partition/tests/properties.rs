//! Random histories of a partition, compared with a model that keeps every record.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;

const PRODUCERS: i64 = 4;

#[derive(Clone, Debug)]
enum Step {
    /// Records without a producer.
    Plain {
        count: u32,
    },
    /// The producer's next batch.
    Send {
        producer: i64,
        count: u32,
    },
    /// A batch that it sent before, by how many batches ago.
    Again {
        producer: i64,
        back: usize,
    },
    /// A sequence that is not the next one.
    Gap {
        producer: i64,
        by: i32,
    },
    /// The producer begins a new epoch.
    Epoch {
        producer: i64,
    },
    /// The producer's next batch is in a transaction, or it ends the one it is in.
    Toggle {
        producer: i64,
        commit: bool,
    },
    Sync {
        part: bool,
    },
    Delete {
        share: u8,
    },
    Snapshot,
    Restart,
    /// A crash: records that are not durable are lost.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let producer = || 0..PRODUCERS;
    let count = || 1..6_u32;
    prop_oneof![
        2 => count().prop_map(|count| Step::Plain { count }),
        8 => (producer(), count()).prop_map(|(producer, count)| Step::Send { producer, count }),
        4 => (producer(), 1..8_usize).prop_map(|(producer, back)| Step::Again { producer, back }),
        1 => (producer(), 1..5_i32).prop_map(|(producer, by)| Step::Gap { producer, by }),
        1 => producer().prop_map(|producer| Step::Epoch { producer }),
        4 => (producer(), any::<bool>())
            .prop_map(|(producer, commit)| Step::Toggle { producer, commit }),
        3 => any::<bool>().prop_map(|part| Step::Sync { part }),
        1 => any::<u8>().prop_map(|share| Step::Delete { share }),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Restart),
        1 => Just(Step::Crash),
    ]
}

/// A producer's own state.
#[derive(Clone, Debug, Default)]
struct Sender {
    epoch: i16,
    next: i32,
    in_transaction: bool,
    /// The batches of its epoch, and their offsets.
    sent: Vec<(Batch, u64)>,
}

/// The fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Plain,
    Open,
    Committed,
    Aborted,
    Marker,
}

struct Model {
    world: World,
    senders: HashMap<i64, Sender>,
    /// Each record, its producer and its fate.
    records: Vec<(i64, Fate)>,
    /// The offset of the marker of each record that has one.
    ends: BTreeMap<usize, u64>,
}

impl Model {
    fn write(&mut self, batch: Batch) -> Decision {
        let end = self.world.partition.end();
        let decision = self.world.write(batch);
        let decision = decision.expect("what is next is written");
        if let Decision::Append { offset } = decision {
            assert_eq!(offset, end, "offsets are dense");
            let fate = if batch.is_transactional {
                Fate::Open
            } else {
                Fate::Plain
            };
            let whose = batch.producer.map_or(-1, |it| it.id.0);
            let more = (0..batch.offsets).map(|_| (whose, fate));
            self.records.extend(more);
        }
        decision
    }

    fn batch(&self, producer: i64, count: u32) -> Batch {
        let sender = &self.senders[&producer];
        Batch {
            offsets: count,
            size: SIZE,
            timestamp_max: self.world.now_ms,
            timestamp_base: self.world.now_ms,
            producer: Some(Sequenced {
                id: ProducerId(producer),
                epoch: sender.epoch,
                sequence: sender.next,
            }),
            is_transactional: sender.in_transaction,
        }
    }

    fn send(&mut self, producer: i64, count: u32) {
        let batch = self.batch(producer, count);
        let Decision::Append { offset } = self.write(batch) else {
            panic!("what is new is no duplicate");
        };
        let sender = self.senders.get_mut(&producer).expect("a sender");
        sender.next = crate::sequence_after(sender.next, count);
        sender.sent.push((batch, offset));
    }

    /// A duplicate gets its earlier offset or, beyond five batches, none.
    fn send_duplicate(&mut self, producer: i64, back: usize) {
        let sent = &self.senders[&producer].sent;
        let Some(at) = sent.len().checked_sub(back) else {
            return;
        };
        let (batch, given) = sent[at];
        match self.world.partition.decide(&batch) {
            Ok(Decision::Duplicate { offset, end, .. }) => {
                assert!(back <= 5);
                let expected = (given, given + u64::from(batch.offsets));
                assert_eq!((offset, end), expected);
            }
            Ok(Decision::Append { .. }) => panic!("{batch:?} would be there twice"),
            Err(_) => assert!(back > 5, "{batch:?} is one of the last five"),
        }
    }

    fn gap(&mut self, producer: i64, by: i32) {
        let mut batch = self.batch(producer, 1);
        let sender = &self.senders[&producer];
        let is_known = self.world.partition.producers();
        let is_known = is_known.into_iter().any(|it| it.id.0 == producer);
        if let Some(producer) = &mut batch.producer {
            producer.sequence += by;
        }
        if is_known && (!sender.sent.is_empty() || sender.epoch > 0) {
            let refused = self.world.partition.decide(&batch);
            let is_refused = matches!(refused, Err(Refusal::OutOfOrder { .. }));
            assert!(is_refused, "{refused:?}");
        }
    }

    fn end(&mut self, producer: i64, epoch: i16, ending: Ending) {
        let marker = Marker {
            id: ProducerId(producer),
            epoch,
            ending,
            coordinator_epoch: 0,
            size: SIZE,
            timestamp: self.world.now_ms,
        };
        let offset = self.world.mark(marker).expect("a marker is written");
        for (at, record) in self.records.iter_mut().enumerate() {
            if *record == (producer, Fate::Open) {
                record.1 = match ending {
                    Ending::Commit => Fate::Committed,
                    Ending::Abort => Fate::Aborted,
                };
                self.ends.insert(at, offset);
            }
        }
        self.records.push((producer, Fate::Marker));
    }

    /// After a crash only durable records are left. Then a coordinator aborts the open
    /// transactions, each in its next epoch.
    fn crash(&mut self) {
        let durable = self.world.partition.high_watermark();
        let is_durable = |kept: &StreamRecord| match kept {
            StreamRecord::Batch(place, batch) => place.offset + u64::from(batch.offsets) <= durable,
            StreamRecord::Marker(place, _) => place.offset < durable,
            StreamRecord::Change(_) => true,
        };
        let log = &mut self.world.log;
        let left = log.iter().position(|it| !is_durable(it));
        log.truncate(left.unwrap_or(log.len()));
        self.world.rebuild();
        let end = self.world.partition.end();
        assert!(end <= durable && durable - end < 6, "{end} of {durable}");
        self.records.truncate(end as usize);
        let (ends, records) = (&mut self.ends, &mut self.records);
        let lost = ends.extract_if(.., |_, marker| *marker >= end);
        for (at, _) in lost {
            if let Some(record) = records.get_mut(at) {
                record.1 = Fate::Open;
            }
        }
        for producer in 0..PRODUCERS {
            let sender = self.senders.get_mut(&producer).expect("a sender");
            sender.epoch += 1;
            let epoch = sender.epoch;
            *sender = Sender {
                epoch,
                ..Sender::default()
            };
            self.end(producer, epoch, Ending::Abort);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Plain { count } => {
                let batch = Batch {
                    producer: None,
                    is_transactional: false,
                    ..self.batch(0, count)
                };
                self.write(batch);
            }
            Step::Send { producer, count } => self.send(producer, count),
            Step::Again { producer, back } => self.send_duplicate(producer, back),
            Step::Gap { producer, by } => self.gap(producer, by),
            Step::Epoch { producer } => {
                // As a coordinator does: an open transaction is aborted in the new epoch.
                let sender = self.senders.get_mut(&producer).expect("a sender");
                let before = std::mem::take(sender);
                sender.epoch = before.epoch + 1;
                let epoch = sender.epoch;
                if before.in_transaction {
                    self.end(producer, epoch, Ending::Abort);
                }
            }
            Step::Toggle { producer, commit } => {
                let sender = self.senders.get_mut(&producer).expect("a sender");
                sender.in_transaction = !sender.in_transaction;
                let epoch = sender.epoch;
                if !sender.in_transaction {
                    let ending = if commit {
                        Ending::Commit
                    } else {
                        Ending::Abort
                    };
                    self.end(producer, epoch, ending);
                }
            }
            Step::Sync { part } => {
                let partition = &mut self.world.partition;
                let (durable, end) = (partition.high_watermark(), partition.end());
                let until = if part { durable.midpoint(end) } else { end };
                partition.durable(until);
            }
            Step::Delete { share } => {
                let partition = &self.world.partition;
                let durable = partition.high_watermark();
                let offset = durable * u64::from(share) / 512;
                let change = partition.decide_delete(Some(offset));
                if let Some(change) = change.expect("what is durable may be deleted") {
                    self.world.change(change);
                }
            }
            Step::Snapshot => self.world.keep_snapshot(),
            Step::Restart => self.world.restart(),
            Step::Crash => self.crash(),
        }
        self.world.now_ms += 1;
    }

    fn check_model(&self) {
        let partition = &self.world.partition;
        assert_eq!(partition.end(), self.records.len() as u64);
        let (start, stable) = (partition.log_start(), partition.last_stable());
        let durable = partition.high_watermark();
        assert!(start <= stable && stable <= durable.max(start) && durable <= partition.end());
        for (at, (_, fate)) in self.records.iter().enumerate() {
            let is_settled = match fate {
                Fate::Open => false,
                _ => self.ends.get(&at).is_none_or(|end| *end < durable),
            };
            let is_below = (at as u64) < stable && at as u64 >= start;
            assert!(
                is_settled || !is_below,
                "{at} is below {stable} and not settled"
            );
        }
        // Nothing else holds the last stable offset back.
        if stable < durable {
            let fate = self.records[stable as usize];
            let is_open = fate.1 == Fate::Open;
            let end = self.ends.get(&(stable as usize));
            assert!(is_open || end.is_some_and(|end| *end >= durable) || stable == start);
        }
        self.read(start, stable);
        self.read(start.midpoint(stable), stable);
        self.read(start, start.midpoint(stable));
    }

    /// Reads as a consumer does: a producer's records are skipped from the reported first offset to
    /// the producer's next marker.
    fn read(&self, from: u64, end: u64) {
        let partition = &self.world.partition;
        let mut told: Vec<_> = partition.aborted(from, end).collect();
        told.sort_unstable_by_key(|it| it.1);
        let mut told = told.into_iter().peekable();
        let mut skipped = Vec::new();
        for offset in from..end {
            while let Some((id, _)) = told.next_if(|it| it.1 <= offset) {
                skipped.push(id.0);
            }
            let (whose, fate) = self.records[offset as usize];
            if fate == Fate::Marker {
                skipped.retain(|it| *it != whose);
                continue;
            }
            let is_skipped = fate != Fate::Plain && skipped.contains(&whose);
            assert_eq!(
                is_skipped,
                fate == Fate::Aborted,
                "{offset} of {from}..{end}"
            );
        }
    }
}

proptest! {
    #[test]
    fn offsets_duplicates_and_the_last_stable_offset_match_a_model(steps in prop::collection::vec(step(), 1..80)) {
        let senders = (0..PRODUCERS).map(|it| (it, Sender::default()));
        let mut bystander = Model {
            world: World::new(LIMITS),
            senders: senders.collect(),
            records: Vec::new(),
            ends: BTreeMap::new(),
        };
        for step in &steps {
            bystander.step(step);
            bystander.check_model();
        }
        bystander.world.restart();
        bystander.check_model();
    }
}
