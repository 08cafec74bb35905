use recordbatch::Attributes;

use super::*;

/// Initialises a producer with a transactional id.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    producer: Producer,
    sequence: i32,
}

impl World {
    pub(super) fn init(&mut self, timeout_ms: i32) -> Result<Writer, TransactionError> {
        let init = InitProducer {
            name: Some("tx"),
            timeout_ms,
            expected: None,
        };
        let producer = self.topics.init_producer(&init);
        let producer = self.acknowledged(producer)?;
        let sequence = 0;
        Ok(Writer { producer, sequence })
    }

    pub(super) fn add(
        &mut self,
        writer: &Writer,
        topic: &Arc<Topic>,
    ) -> Result<(), TransactionError> {
        let added = self
            .topics
            .add_partitions(&writer.claim(), &[(topic.clone(), 0)]);
        self.acknowledged(added)
    }

    /// Appends in the transaction, to which the topic was added.
    pub(super) fn write(
        &mut self,
        writer: &mut Writer,
        topic: &Topic,
        value: &str,
    ) -> Result<u64, ProduceError> {
        let producer = BatchProducer {
            id: writer.producer.producer.0,
            epoch: writer.producer.epoch,
            sequence: writer.sequence,
        };
        let template = Template {
            attributes: Attributes::default().transactional(),
            ..Template::default()
        };
        let time_ms = self.clock.unix_ms() as i64;
        let bytes = batch_of(&[value], time_ms, Some(producer), &template);
        let placed = self
            .topics
            .producing()
            .append(topic, 0, &bytes, Some("tx"))?;
        writer.sequence += 1;
        Ok(self.settle(placed))
    }

    pub(super) fn end(&mut self, writer: &Writer, ending: Ending) -> Result<(), TransactionError> {
        let ended = self.topics.end_transaction(&writer.claim(), ending);
        self.acknowledged(ended)
    }

    fn read_committed(&self, topic: &Arc<Topic>) -> (Vec<String>, usize, u64) {
        let fetched = self.fetch_as(topic, 0, Isolation::Committed).unwrap();
        let values = values(&fetched).into_iter().map(|it| it.1);
        (values.collect(), fetched.aborted.len(), fetched.last_stable)
    }
}

impl Writer {
    fn claim(&self) -> Claim<'static> {
        Claim {
            name: "tx",
            producer: self.producer.producer,
            epoch: self.producer.epoch,
        }
    }
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn transaction_is_readable_once_committed_and_the_next_may_begin() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut writer = world.init(60_000).unwrap();
    for round in 0..3 {
        world.add(&writer, &topic).unwrap();
        let value = format!("{round}");
        let offset = world.write(&mut writer, &topic, &value).unwrap();
        assert_eq!(offset, 2 * round);
        assert_eq!(world.read_committed(&topic).2, 2 * round);
        world.end(&writer, Ending::Commit).unwrap();
    }
    assert_eq!(
        world.read_committed(&topic),
        (texts(&["0", "1", "2"]), 0, 6)
    );
}

#[test]
fn read_committed_fetch_lists_aborted_transactions() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut writer = world.init(60_000).unwrap();
    world.add(&writer, &topic).unwrap();
    world.write(&mut writer, &topic, "never").unwrap();
    world.end(&writer, Ending::Abort).unwrap();
    let fetched = world.fetch_as(&topic, 0, Isolation::Committed).unwrap();
    assert_eq!(fetched.aborted, [(writer.producer.producer, 0)]);
    let world = world.crash();
    let topic = world.topic("t");
    let fetched = world.fetch_as(&topic, 0, Isolation::Committed).unwrap();
    assert_eq!(fetched.aborted, [(writer.producer.producer, 0)]);
    assert_eq!(fetched.last_stable, 2);
}

#[test]
fn batch_for_a_partition_not_in_the_transaction_is_refused() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut writer = world.init(60_000).unwrap();
    let refused = world.write(&mut writer, &topic, "a").unwrap_err();
    assert!(matches!(refused, ProduceError::Transaction(_)), "{refused}");
    world.add(&writer, &topic).unwrap();
    world.write(&mut writer, &topic, "a").unwrap();
    world.end(&writer, Ending::Commit).unwrap();
    let late = world.write(&mut writer, &topic, "b").unwrap_err();
    assert!(matches!(late, ProduceError::Transaction(_)), "{late}");
    assert_eq!(world.topics.view(&topic, 0).unwrap().end, 2);
}

#[test]
fn second_producer_of_a_transactional_id_fences_and_aborts_the_first() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut first = world.init(60_000).unwrap();
    world.add(&first, &topic).unwrap();
    world.write(&mut first, &topic, "never").unwrap();
    let concurrent = world.init(60_000);
    assert!(matches!(
        concurrent,
        Err(TransactionError::Denied(Denied::Concurrent))
    ));
    world.pass_ms(500);
    let second = world.init(60_000).unwrap();
    assert_eq!(second.producer.producer, first.producer.producer);
    assert!(second.producer.epoch > first.producer.epoch);
    assert!(world.end(&first, Ending::Commit).is_err());
    assert!(world.write(&mut first, &topic, "zombie").is_err());
    let (_, aborted, last_stable) = world.read_committed(&topic);
    assert_eq!((aborted, last_stable), (1, 2));
}

#[test]
fn abandoned_transaction_is_aborted_after_its_timeout_and_unblocks_readers() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut writer = world.init(5_000).unwrap();
    world.add(&writer, &topic).unwrap();
    world.write(&mut writer, &topic, "never").unwrap();
    world.produce(&topic, &["other"]);
    assert_eq!(world.read_committed(&topic).2, 0);
    world.pass_ms(10_000);
    let (_, aborted, last_stable) = world.read_committed(&topic);
    assert_eq!((aborted, last_stable), (1, 3));
    assert!(world.end(&writer, Ending::Commit).is_err());
}

#[test]
fn prepared_transaction_completes_after_power_failure() {
    for steps in 0..12 {
        let mut world = World::new();
        let topic = world.create("t", &[]);
        let mut writer = world.init(60_000).unwrap();
        world.add(&writer, &topic).unwrap();
        world.write(&mut writer, &topic, "a").unwrap();
        let mut ended = world
            .topics
            .end_transaction(&writer.claim(), Ending::Commit);
        let mut is_told = false;
        for _ in 0..steps {
            world.line.step();
            is_told |= !is_told && ended.poll_answer(Waker::noop()).is_ready();
        }
        drop(ended);
        let mut world = world.crash();
        world.pass_ms(500);
        let state = world.topics.transaction("tx").unwrap().state;
        let (values, ..) = world.read_committed(&world.topic("t"));
        match state {
            TransactionState::CompleteCommit => assert_eq!(values, texts(&["a"])),
            // The end was not acknowledged, and the transaction is still open.
            state => {
                assert_eq!(state, TransactionState::Ongoing, "{steps}");
                assert!(!is_told && values.is_empty(), "{steps}");
            }
        }
    }
}

#[test]
fn transactional_offsets_take_effect_on_commit() {
    let mut world = World::new();
    let writer = world.init(60_000).unwrap();
    let caller = Caller {
        group: "g",
        member: "",
        instance: None,
        generation: -1,
    };
    let mark = Mark {
        topic: "t",
        partition: 0,
        offset: 9,
        leader_epoch: -1,
        metadata: "",
    };
    let early = world
        .topics
        .commit_in_transaction(&writer.claim(), caller, &[mark]);
    assert!(matches!(
        world.acknowledged(early),
        Err(GroupError::Transaction(_))
    ));
    let added = world.topics.add_group(&writer.claim(), "g");
    world.acknowledged(added).unwrap();
    let pending = world
        .topics
        .commit_in_transaction(&writer.claim(), caller, &[mark]);
    assert_eq!(world.acknowledged(pending).unwrap(), [Ok(())]);
    let look = |world: &mut World| {
        let committed = world.topics.committed("g", Some(&[("t", 0)]));
        let one = world.acknowledged(committed).unwrap().remove(0);
        (one.mark.map(|it| it.offset), one.is_unstable)
    };
    assert_eq!(look(&mut world), (None, true));
    world.end(&writer, Ending::Commit).unwrap();
    assert_eq!(look(&mut world), (Some(9), false));
    let mut world = world.crash();
    assert_eq!(look(&mut world), (Some(9), false));
}

#[test]
fn producer_ids_are_never_reused() {
    let mut world = World::new();
    let mut newest = -1;
    for _ in 0..3 {
        for _ in 0..10 {
            let init = InitProducer {
                name: None,
                timeout_ms: 0,
                expected: None,
            };
            let producer = world.topics.init_producer(&init);
            let producer = world.acknowledged(producer).unwrap();
            assert!(producer.producer.0 > newest);
            newest = producer.producer.0;
        }
        world = world.crash();
    }
}

#[test]
fn producer_id_is_answered_once_its_reservation_is_durable() {
    let mut world = World::new();
    let init = InitProducer {
        name: None,
        timeout_ms: 0,
        expected: None,
    };
    let mut answer = world.topics.init_producer(&init);
    assert!(answer.poll_answer(Waker::noop()).is_pending());
    world.sync();
    assert!(answer.poll_answer(Waker::noop()).is_ready());
}
