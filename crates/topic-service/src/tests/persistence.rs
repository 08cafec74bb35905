use recordbatch::Compression;

use super::*;

#[test]
fn acknowledged_records_survive_power_failure_without_offset_gaps() {
    let mut world = World::new();
    let topic = world.create("t", &[("retention.ms", "-1")]);
    let id = topic.about().id;
    world.produce(&topic, &["a", "b"]);
    let lost = world.append(&topic, &world.batch(&["lost"])).unwrap();
    assert_eq!(lost.offset, 2);
    let mut world = world.crash();
    let topic = world.topic("t");
    assert_eq!((topic.about().id, topic.about().partitions), (id, 1));
    assert_eq!(topic.about().config.retention_ms(), None);
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b"]));
    assert_eq!(world.produce(&topic, &["c"]), 2);
    let world = world.crash();
    assert_eq!(world.read(&world.topic("t"), 1), pairs(0, &["a", "b", "c"]));
}

#[test]
fn unacknowledged_topic_creation_may_be_lost_and_leaves_no_trace() {
    let world = World::new();
    let topic = world.topics.find_or_create("t").unwrap();
    assert_eq!(topic.about().partitions, 3);
    let placed = world.append(&topic, &world.batch(&["a"])).unwrap();
    assert!(placed.durable.poll_durable(Waker::noop()).is_pending());
    let mut world = world.crash();
    assert!(world.topics.find(TopicRef::Name("t")).is_none());
    let topic = world.create("t", &[]);
    assert_eq!(world.produce(&topic, &["b"]), 0);
}

#[test]
fn recreated_topic_has_a_new_id_and_starts_at_offset_0() {
    let mut world = World::new();
    let old = world.create("t", &[]);
    world.produce(&old, &["a"]);
    let deleted = world.topics.delete(TopicRef::Name("t"));
    world.acknowledged(deleted).unwrap();
    assert!(matches!(world.fetch(&old, 0), Err(FetchError::Unknown(_))));
    let refused = world.append(&old, &world.batch(&["b"]));
    assert!(matches!(refused, Err(ProduceError::Unknown(_))));
    let new = world.create("t", &[]);
    assert_ne!(new.about().id, old.about().id);
    assert_eq!(world.produce(&new, &["c"]), 0);
    let world = world.crash();
    assert_eq!(world.topic("t").about().id, new.about().id);
    assert!(world.topics.find(TopicRef::Id(old.about().id)).is_none());
    assert_eq!(world.read(&world.topic("t"), 0), pairs(0, &["c"]));
}

#[test]
fn added_partitions_and_config_values_survive_a_restart() {
    let mut world = World::new();
    let topic = world.create("t", &[("retention.bytes", "5")]);
    world.produce(&topic, &["a"]);
    let more = world.topics.set_partitions("t", 4, Execution::Do);
    world.acknowledged(more).unwrap();
    let alters = [("max.message.bytes", Alter::Set("100"))];
    let tried = world.topics.alter("t", &alters, Execution::Try);
    assert_eq!(
        world.acknowledged(tried).unwrap().config.batch_size_max(),
        100
    );
    assert_eq!(world.topic("t").about().config.batch_size_max(), 1_048_588);
    let altered = world.topics.alter("t", &alters, Execution::Do);
    world.acknowledged(altered).unwrap();
    let large = world.batch(&[&"x".repeat(100)]);
    world.append(&topic, &world.batch(&["b"])).unwrap();
    world.append(&world.topic("t"), &large).unwrap_err();
    world.sync();
    let world = world.crash();
    let topic = world.topic("t");
    assert_eq!(topic.about().partitions, 4);
    assert_eq!(topic.about().config.batch_size_max(), 100);
    assert_eq!(topic.about().config.retention_bytes(), Some(5));
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b"]));
}

#[test]
fn duplicate_batch_is_acknowledged_once_durable_and_detected_after_restart() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let from = |sequence| {
        let producer = BatchProducer {
            id: 7,
            epoch: 0,
            sequence,
        };
        batch_of(&["a"], 1, Some(producer), &Template::default())
    };
    for sequence in 0..7 {
        let placed = world.append(&topic, &from(sequence)).unwrap();
        assert!(!placed.is_duplicate);
        let again = world.append(&topic, &from(sequence)).unwrap();
        assert_eq!((again.offset, again.is_duplicate), (placed.offset, true));
        assert!(again.durable.poll_durable(Waker::noop()).is_pending());
        world.settle(again);
    }
    let mut world = world.crash();
    let topic = world.topic("t");
    let again = world.append(&topic, &from(4)).unwrap();
    assert_eq!((again.offset, again.is_duplicate), (4, true));
    let gap = world.append(&topic, &from(9)).unwrap_err();
    assert!(matches!(
        gap,
        ProduceError::Refused(Refusal::OutOfOrder { last: 6, .. })
    ));
    let placed = world.append(&topic, &from(7)).unwrap();
    assert_eq!(world.settle(placed), 7);
}

#[test]
fn compressed_batch_is_stored_and_fetched_unchanged() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    for compression in Compression::ALL {
        let mut builder = Builder::new();
        builder.push(1, None, Some(&[7; 1000]), &[]);
        let mut bytes = Vec::new();
        builder.finish_compressed(&Template::default(), compression, &mut bytes);
        let placed = world.append(&topic, &bytes).unwrap();
        let offset = world.settle(placed);
        let fetched = world.fetch(&topic, offset).unwrap();
        assert_eq!(batches(&fetched)[0][16..], bytes[16..]);
    }
}

#[test]
fn old_records_are_fetched_from_extents() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let value = "v".repeat(1000);
    for _ in 0..5_000 {
        let placed = world.append(&topic, &world.batch(&[&value])).unwrap();
        if placed.offset.is_multiple_of(100) {
            world.sync();
        }
    }
    world.sync();
    let mut seen = 0;
    while seen < 5_000 {
        let read = world.read(&topic, seen);
        assert_eq!(read[0].0, seen as i64);
        seen += read.len() as u64;
    }
    let mut world = world.crash();
    let topic = world.topic("t");
    assert_eq!(world.read(&topic, 2_500)[0].0, 2_500);
    assert_eq!(world.produce(&topic, &["end"]), 5_000);
}
