//! Leader epochs of partitions, and the answers that readers get about them (KIP-101, KIP-320).

use super::*;

const MEMORY: [(&str, &str); 1] = [("telpher.durability", "memory")];

impl World {
    fn epoch(&self, topic: &Topic) -> i32 {
        self.topics.view(topic, 0).unwrap().leader_epoch
    }

    fn end_of(&self, topic: &Topic, epoch: i32) -> Option<(i32, u64)> {
        self.topics.end_of_epoch(topic, 0, epoch).unwrap()
    }

    /// Returns the offset of each batch and the epoch in which it was written.
    fn written(&self, topic: &Arc<Topic>) -> Vec<(i64, i32)> {
        let fetched = self.fetch(topic, 0).unwrap();
        let batches = batches(&fetched).into_iter().map(|bytes| {
            let (batch, _) = Batch::split(&bytes).unwrap();
            assert!(batch.is_intact());
            (batch.header().base_offset, batch.header().leader_epoch)
        });
        batches.collect()
    }

    fn fetch_in(&self, topic: &Arc<Topic>, offset: u64, epoch: i32) -> Result<(), FetchError> {
        let ask = Ask {
            topic: topic.clone(),
            partition: 0,
            offset,
            bytes_max: 1 << 20,
            leader_epoch: Some(epoch),
        };
        let limits = FetchLimits {
            isolation: Isolation::Uncommitted,
            bytes_min: 0,
            bytes_max: 1 << 20,
            placement: BatchPlacement::Memory,
        };
        let mut fetching = self.topics.fetch(vec![ask], limits);
        match fetching.poll_fetched(Waker::noop()) {
            Poll::Ready(mut fetched) => fetched.remove(0).map(drop),
            Poll::Pending => panic!("it waits"),
        }
    }

    fn located(&mut self, topic: &Topic, what: Find) -> (u64, i32) {
        let found = self.topics.locate(topic, 0, what, Isolation::Uncommitted);
        let found = self.acknowledged(found).unwrap().unwrap();
        (found.offset, found.leader_epoch)
    }
}

#[test]
fn each_restart_has_a_new_leader_epoch_and_batches_keep_theirs() {
    let mut world = World::new();
    let mut topic = world.create("t", &[]);
    assert_eq!(world.epoch(&topic), 0);
    world.produce(&topic, &["a", "b"]);
    let mut epochs = vec![0];
    for value in ["c", "d", "e"] {
        // With a snapshot to start from, and without.
        world.pass_ms(if value == "d" { 62_000 } else { 0 });
        world = world.crash();
        topic = world.topic("t");
        epochs.push(world.epoch(&topic));
        world.produce(&topic, &[value]);
    }
    assert!(epochs.is_sorted_by(|a, b| a < b), "{epochs:?}");
    let starts = [0, 2, 3, 4];
    let written: Vec<_> = starts.into_iter().zip(epochs.iter().copied()).collect();
    assert_eq!(world.written(&topic), written);
    for (place, epoch) in epochs.iter().copied().enumerate() {
        let end = starts.get(place + 1).map_or(5, |next| *next as u64);
        assert_eq!(world.end_of(&topic, epoch), Some((epoch, end)));
    }
    let newest = epochs[3];
    assert_eq!(world.end_of(&topic, newest + 1), None);
    assert_eq!(world.fetch_in(&topic, 0, newest), Ok(()));
    assert!(matches!(
        world.fetch_in(&topic, 0, epochs[2]),
        Err(FetchError::Fenced { .. })
    ));
    assert!(matches!(
        world.fetch_in(&topic, 0, newest + 1),
        Err(FetchError::Ahead { .. })
    ));
    assert_eq!(world.located(&topic, Find::Earliest), (0, 0));
    assert_eq!(world.located(&topic, Find::Latest), (5, newest));
    let then = START_MS as i64 + 1;
    assert_eq!(world.located(&topic, Find::Time(then)), (3, epochs[2]));
    let other = world.create("other", &[]);
    assert_eq!(world.epoch(&other), newest);
}

#[test]
fn consumer_past_a_lost_tail_is_fenced_even_after_equal_appends() {
    let mut world = World::new();
    let topic = world.create("t", &MEMORY);
    for value in ["a", "b"] {
        world.append(&topic, &world.batch(&[value])).unwrap();
    }
    world.sync();
    for value in ["c", "d"] {
        world.append(&topic, &world.batch(&[value])).unwrap();
    }
    let read = world.read(&topic, 0);
    assert_eq!(read, pairs(0, &["a", "b", "c", "d"]));
    let before = world.epoch(&topic);
    let mut world = world.crash();
    let topic = world.topic("t");
    world.produce(&topic, &["x"]);
    world.produce(&topic, &["y"]);
    world.produce(&topic, &["z"]);
    // The request of a consumer that learns of another leader; its position is 4.
    assert!(matches!(
        world.fetch_in(&topic, 4, before),
        Err(FetchError::Fenced { .. })
    ));
    assert_eq!(world.end_of(&topic, before), Some((before, 2)));
}

#[test]
fn memory_records_are_readable_only_once_the_leader_epoch_is_durable() {
    let mut world = World::new();
    let topic = world.create("t", &MEMORY);
    world.append(&topic, &world.batch(&["a"])).unwrap();
    world.sync();
    let world = world.crash();
    let topic = world.topic("t");
    let first = world.append(&topic, &world.batch(&["b"])).unwrap();
    assert!(first.durable.poll_durable(Waker::noop()).is_pending());
    assert_eq!(world.read(&topic, 0), pairs(0, &["a"]));
    let epoch = world.epoch(&topic);
    // Nothing in it was acknowledged or shown.
    let mut world = world.crash();
    let topic = world.topic("t");
    assert_eq!(world.epoch(&topic), epoch);
    world.produce(&topic, &["c"]);
    let next = world.append(&topic, &world.batch(&["d"])).unwrap();
    assert!(next.durable.poll_durable(Waker::noop()).is_ready());
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "c", "d"]));
    let world = world.crash();
    assert!(world.epoch(&world.topic("t")) > epoch);
}
