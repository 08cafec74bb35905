//! The catalogue and the partitions, which are in different shards.

use store::{AppendSize, Kind, Location};
use topics::{Topic as About, TopicError, TopicId, record};

use super::*;

const OTHER: TopicId = TopicId([9; 16]);

impl World {
    /// Appends a record to a stream of topics.
    fn write_to(
        &self,
        kind: Kind,
        name: &str,
        shard: journal::ShardId,
        tag: u8,
        bytes: &[u8],
    ) -> Location {
        let lock = |shard| self.store.journal.lock(shard, START_MS);
        let names = [(kind, name)];
        let locked = self
            .store
            .lock_or_create(shard, names, AppendSize::default(), lock);
        let (mut guard, [at]) = locked.unwrap();
        guard.append(at.stream, None, tag, bytes).unwrap();
        at
    }

    /// Appends a record to the catalogue.
    fn catalogue(&self, tag: u8, bytes: &[u8]) -> Location {
        self.write_to(Kind::Topics, "catalogue", journal::ShardId(0), tag, bytes)
    }

    /// Appends a record to a partition of a topic that the catalogue does not have.
    fn left_over(&self) -> Location {
        let name = format!("{OTHER:?}/0");
        let shard = self.store.shard_of(&name);
        self.write_to(Kind::Partition, &name, shard, 1, b"left over")
    }

    /// Writes the topic `torn` of three partitions to the catalogue, without the partitions.
    fn torn_topic(&mut self) {
        let topic = self.create("t", &[]);
        let about = About {
            id: OTHER,
            name: "torn".to_owned(),
            partitions: 3,
            ..topic.about().clone()
        };
        let mut bytes = Vec::new();
        about.encode(&mut bytes);
        self.catalogue(record::TOPIC, &bytes);
        self.sync();
    }

    fn is_empty(&self, at: Location) -> bool {
        let state = self.store.journal.stream(at.shard, at.stream).unwrap();
        state.start == state.next
    }
}

#[test]
fn start_creates_partitions_that_a_crash_lost() {
    let mut world = World::new();
    world.torn_topic();
    for _ in 0..2 {
        world = world.crash();
        assert_eq!(world.topic("torn").about().partitions, 3);
    }
    let topic = world.topic("torn");
    assert_eq!(world.produce(&topic, &["a"]), 0);
    let world = world.crash();
    assert_eq!(world.read(&world.topic("torn"), 0), pairs(0, &["a"]));
}

#[test]
fn topic_waits_for_partitions_that_cannot_be_created() {
    let mut world = World::new();
    world.torn_topic();
    let mut world = world.crash();
    let state = world.topics.state.clone();
    let about = world.topic("torn").about().clone();
    state.known.write().put(about.clone(), Box::default());
    state.incomplete.lock().push(about);
    assert_eq!(world.topic("torn").about().partitions, 0);
    let new = NewTopic {
        name: "torn",
        partitions: Some(1),
        configs: &[],
    };
    let created = world.topics.create(&new, Execution::Do);
    let exists = TopicError::Exists {
        name: "torn".to_owned(),
    };
    assert_eq!(world.acknowledged(created), Err(exists.into()));
    world.pass_ms(2_000);
    let topic = world.topic("torn");
    assert_eq!(topic.about().partitions, 3);
    assert!(state.incomplete.lock().is_empty());
    assert_eq!(world.produce(&topic, &["a"]), 0);
    let world = world.crash();
    assert_eq!(world.read(&world.topic("torn"), 0), pairs(0, &["a"]));
}

#[test]
fn created_topic_is_acknowledged_when_its_partitions_are_durable() {
    let mut world = World::new();
    let topic = NewTopic {
        name: "t",
        partitions: Some(20),
        configs: &[],
    };
    let mut created = world.topics.create(&topic, Execution::Do);
    assert!(created.poll_answer(Waker::noop()).is_pending());
    world.line.step();
    let answer = created.poll_answer(Waker::noop());
    assert!(matches!(answer, Poll::Ready(Ok(_))), "one sync is enough");
    let world = world.crash();
    assert_eq!(world.store.all(Kind::Partition).len(), 20);
}

#[test]
fn partition_of_an_unknown_topic_is_emptied_after_a_durable_deletion() {
    let world = World::new();
    let at = world.left_over();
    let mut world = world;
    world.sync();
    let mut world = world.crash();
    assert!(!world.is_empty(at), "its deletion was not swept yet");
    world.topics.sweep();
    world.sync();
    assert!(world.is_empty(at));
    let catalogue = world.store.find(Kind::Topics, "catalogue").unwrap();
    let mut gone = Vec::new();
    let read = world.store.each_record(catalogue, |it| {
        gone.push((it.tag, it.payload.to_vec()));
        Ok::<_, journal::ReadError>(())
    });
    read.unwrap();
    assert_eq!(gone, [(record::TOPIC_GONE, OTHER.0.to_vec())]);
    let world = world.crash();
    let state = world
        .store
        .journal
        .stream(catalogue.shard, catalogue.stream);
    assert_eq!(state.unwrap().next, 1, "it is written once");
}

#[test]
fn deletion_that_was_not_durable_empties_nothing() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    world.produce(&topic, &["a"]);
    drop(world.topics.delete(TopicRef::Name("t")));
    world.topics.sweep();
    let world = world.crash();
    assert_eq!(world.read(&world.topic("t"), 0), pairs(0, &["a"]));
}
