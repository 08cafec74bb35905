//! A full disk: nothing is lost, readers continue, and operations that free space are carried out.

use store::StorageState;

use super::consumer_groups::{caller, joining};
use super::*;

impl World {
    fn state(&self) -> StorageState {
        self.health.view().state
    }

    /// Appends until the disk is full; returns the number of acknowledged batches.
    fn fill_up(&mut self, topic: &Topic) -> u64 {
        self.disk.set_capacity(self.disk.used() + (6 << 20));
        let value = "v".repeat(10_000);
        for count in 0..10_000 {
            match self.append(topic, &self.batch(&[&value])) {
                Ok(placed) => assert_eq!(self.settle(placed), count),
                Err(error) => {
                    assert_eq!(error, Storage::DiskFull.into());
                    assert_eq!(self.state(), StorageState::DiskFull);
                    return count;
                }
            }
        }
        panic!("the disk is never full");
    }

    /// Advances the clock until the node itself has freed space.
    fn wait_for_space(&mut self) {
        for _ in 0..100 {
            self.pass_ms(1_000);
            if self.state() == StorageState::Serving {
                return;
            }
        }
        panic!("the disk stays full: {:?}", self.state());
    }
}

#[test]
fn full_disk_refuses_batches_until_a_topic_is_deleted() {
    let mut world = World::new();
    let (kept, topic) = (world.create("kept", &[]), world.create("t", &[]));
    world.produce(&kept, &["one"]);
    let count = world.fill_up(&topic);
    assert_eq!(world.topics.view(&topic, 0).unwrap().end, count);
    assert_eq!(world.read(&kept, 0), pairs(0, &["one"]));
    assert_eq!(world.fetch(&topic, count - 1).unwrap().batches.len(), 1);
    let new = NewTopic {
        name: "new",
        partitions: Some(1),
        configs: &[],
    };
    let created = world.topics.create(&new, Execution::Do);
    assert_eq!(world.acknowledged(created), Err(Storage::DiskFull.into()));
    let deleted = world.topics.delete(TopicRef::Name("t"));
    world.acknowledged(deleted).unwrap();
    world.wait_for_space();
    world.produce(&kept, &["two"]);
    let world = world.crash();
    assert_eq!(
        world.read(&world.topic("kept"), 0),
        pairs(0, &["one", "two"])
    );
    assert!(world.topics.find(TopicRef::Name("t")).is_none());
}

#[test]
fn delete_records_frees_a_full_disk() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let count = world.fill_up(&topic);
    let deleted = world.topics.delete_records(&topic, 0, Some(count));
    assert_eq!(world.acknowledged(deleted), Ok(count));
    world.wait_for_space();
    assert_eq!(world.produce(&topic, &["next"]), count);
    let world = world.crash();
    assert_eq!(
        world.read(&world.topic("t"), count),
        pairs(count as i64, &["next"])
    );
}

#[test]
fn retention_by_time_frees_a_full_disk() {
    let mut world = World::with(Options {
        retention_check_interval_ms: 0,
        ..Options::default()
    });
    let topic = world.create("t", &[("retention.ms", "60000")]);
    let count = world.fill_up(&topic);
    world.pass_ms(30_000);
    assert_eq!(world.topics.view(&topic, 0).unwrap().log_start, 0);
    world.pass_ms(60_000);
    world.wait_for_space();
    assert_eq!(world.topics.view(&topic, 0).unwrap().log_start, count);
    assert_eq!(world.produce(&topic, &["next"]), count);
}

#[test]
fn group_keeps_members_and_committed_offsets_on_a_full_disk() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let (member, generation) = world.member("g");
    let own = caller("g", &member, generation);
    world.commit(own, 7).unwrap();
    let count = world.fill_up(&topic);
    assert_eq!(world.commit(own, 8), Err(Storage::DiskFull.into()));
    let joining = world.topics.join(joining("g", ""));
    assert_eq!(
        world.acknowledged(joining).map(drop),
        Err(Storage::DiskFull.into())
    );
    // Nothing was decided: the group is unchanged.
    let beating = world.topics.heartbeat(own);
    assert_eq!(world.acknowledged(beating), Ok(()));
    assert_eq!(world.committed("g"), Some(7));
    assert!(!world.fetch(&topic, 0).unwrap().batches.is_empty());
    // A silent member is still expelled.
    world.pass_ms(30_000);
    let beating = world.topics.heartbeat(own);
    let gone = Refused::UnknownMember.into();
    assert_eq!(world.acknowledged(beating), Err(gone));
    assert_eq!(world.committed("g"), Some(7));
    let deleted = world.topics.delete_records(&topic, 0, Some(count));
    assert_eq!(world.acknowledged(deleted), Ok(count));
    world.wait_for_space();
    let (member, generation) = world.member("g");
    world.commit(caller("g", &member, generation), 9).unwrap();
    let mut world = world.crash();
    assert_eq!(world.committed("g"), Some(9));
}

#[test]
fn full_disk_lets_open_transactions_commit_but_none_begin() {
    let mut world = World::new();
    let (topic, other) = (world.create("t", &[]), world.create("other", &[]));
    let mut writer = world.init(60_000).unwrap();
    world.add(&writer, &other).unwrap();
    world.write(&mut writer, &other, "one").unwrap();
    let committed = |world: &World| {
        let fetched = world.fetch_as(&other, 0, Isolation::Committed);
        values(&fetched.unwrap())
    };
    world.fill_up(&topic);
    let refused = world.write(&mut writer, &other, "two");
    assert_eq!(refused, Err(Storage::DiskFull.into()));
    assert_eq!(committed(&world), []);
    world.end(&writer, Ending::Commit).unwrap();
    assert_eq!(committed(&world), pairs(0, &["one"]));
    let refused = world.add(&writer, &other);
    assert_eq!(refused, Err(Storage::DiskFull.into()));
    let world = world.crash();
    let other = world.topic("other");
    let fetched = world.fetch_as(&other, 0, Isolation::Committed);
    assert_eq!(values(&fetched.unwrap()), pairs(0, &["one"]));
}
