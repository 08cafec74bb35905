use std::task::Wake;

use journal::disk::simulated::{Fault, Kind as Call};
use recordbatch::MAGIC;

use super::*;

#[test]
fn batch_is_fetched_once_durable_with_unchanged_bytes_except_its_offset() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    world.produce(&topic, &["a", "b"]);
    let bytes = world.batch(&["c", "d"]);
    let placed = world.append(&topic, &bytes).unwrap();
    assert_eq!(placed.offset, 2);
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b"]));
    world.settle(placed);
    let fetched = world.fetch(&topic, 2).unwrap();
    let [served] = &batches(&fetched)[..] else {
        panic!("one batch");
    };
    assert_eq!(served[..8], 2_i64.to_be_bytes());
    assert_eq!(served[8..12], bytes[8..12]);
    assert_eq!(served[12..16], 0_i32.to_be_bytes());
    assert_eq!(served[16..], bytes[16..]);
    assert_eq!((fetched.high_watermark, fetched.log_start), (4, 0));
}

#[test]
fn fetch_returns_the_first_batch_whole_beyond_max_bytes() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    for values in [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]] {
        world.produce(&topic, &values);
    }
    let all = ["d", "e", "f", "g", "h", "i"];
    assert_eq!(world.read(&topic, 4), pairs(3, &all));
    let ask = Ask {
        topic: topic.clone(),
        partition: 0,
        offset: 4,
        bytes_max: 1,
        leader_epoch: Some(0),
    };
    let limits = FetchLimits {
        isolation: Isolation::Uncommitted,
        bytes_min: 0,
        bytes_max: 1,
        placement: BatchPlacement::Memory,
    };
    let mut fetching = world.topics.fetch(vec![ask.clone(), ask], limits);
    let Poll::Ready(fetched) = fetching.poll_fetched(Waker::noop()) else {
        panic!("it waits");
    };
    assert_eq!(values(fetched[0].as_ref().unwrap()), pairs(3, &all[..3]));
    assert_eq!(fetched[1].as_ref().unwrap().size(), 0);
}

#[test]
fn invalid_multiple_or_oversized_batches_are_refused() {
    let mut world = World::new();
    let topic = world.create("t", &[("max.message.bytes", "200")]);
    let good = world.batch(&["a"]);
    let twice = good.repeat(2);
    assert_eq!(
        world.append(&topic, &twice).unwrap_err(),
        ProduceError::NotOne
    );
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut old = good.clone();
    old[16] = 1;
    let large = world.batch(&[&"x".repeat(200)]);
    for bad in [&flipped, &old, &large, &good[..60].to_vec()] {
        world.append(&topic, bad).unwrap_err();
    }
    assert_ne!(MAGIC, 1);
    let unknown = world.topics.producing().append(&topic, 1, &good, None);
    assert!(matches!(unknown, Err(ProduceError::Unknown(_))));
    world.sync();
    assert_eq!(world.topics.view(&topic, 0).unwrap().end, 0);
}

#[test]
fn compacted_topic_refuses_records_without_keys() {
    let mut world = World::new();
    let topic = world.create("t", &[("cleanup.policy", "compact")]);
    let mut builder = Builder::new();
    builder.push(1, Some(b"key"), Some(b"value"), &[]);
    builder.push(1, None, Some(b"value"), &[]);
    let mut bytes = Vec::new();
    builder.finish(&Template::default(), &mut bytes);
    assert_eq!(
        world.append(&topic, &bytes).unwrap_err(),
        ProduceError::NoKey { indexes: vec![1] }
    );
    world.produce(&topic, &["a"]);
}

#[test]
fn log_append_time_topic_stamps_records_with_the_node_clock() {
    let mut world = World::new();
    let topic = world.create("t", &[("message.timestamp.type", "LogAppendTime")]);
    let bytes = batch_of(&["a"], 5, None, &Template::default());
    let placed = world.append(&topic, &bytes).unwrap();
    assert_eq!(placed.append_time_ms, Some(START_MS as i64));
    world.settle(placed);
    let served = batches(&world.fetch(&topic, 0).unwrap());
    let (batch, _) = Batch::split(&served[0]).unwrap();
    assert!(batch.is_intact());
    let record = batch.records().unwrap().next().unwrap().unwrap();
    assert_eq!(record.timestamp, START_MS as i64);
}

struct WakeCounter(AtomicU64);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn fetch_waits_for_min_bytes_of_durable_records() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let woken = Arc::new(WakeCounter(AtomicU64::new(0)));
    let waker = Waker::from(woken.clone());
    let size = world.batch(&["a"]).len();
    let mut fetching = world.fetching(&topic, 0, Isolation::Uncommitted, size + 1);
    assert!(fetching.poll_fetched(&waker).is_pending());
    let placed = world.append(&topic, &world.batch(&["a"])).unwrap();
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    world.settle(placed);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(fetching.poll_fetched(&waker).is_pending());
    // Requested while an append waits for the disk.
    let placed = world.append(&topic, &world.batch(&["b"])).unwrap();
    assert!(fetching.poll_fetched(&waker).is_pending());
    world.settle(placed);
    assert!(woken.0.load(Ordering::Relaxed) >= 2);
    let Poll::Ready(fetched) = fetching.poll_fetched(&waker) else {
        panic!("there is enough");
    };
    assert_eq!(values(fetched[0].as_ref().unwrap()), pairs(0, &["a", "b"]));
    let mut fetching = world.fetching(&topic, 2, Isolation::Uncommitted, 1);
    assert!(fetching.poll_fetched(&waker).is_pending());
    fetching.hurry();
    let Poll::Ready(fetched) = fetching.poll_fetched(&waker) else {
        panic!("it does not hurry");
    };
    assert_eq!(fetched[0].as_ref().unwrap().size(), 0);
}

#[test]
fn offsets_are_found_by_timestamp_earliest_and_latest() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    for times in [[10, 20, 30], [40, 70, 50], [60, 61, 62]] {
        let mut builder = Builder::new();
        for time in times {
            builder.push(time, None, Some(b"value"), &[]);
        }
        let mut bytes = Vec::new();
        let template = Template::default();
        builder.finish_compressed(&template, recordbatch::Compression::Gzip, &mut bytes);
        let placed = world.append(&topic, &bytes).unwrap();
        world.settle(placed);
    }
    let mut locate = |what| {
        let found = world.topics.locate(&topic, 0, what, Isolation::Committed);
        let found = world.acknowledged(found).unwrap();
        found.map(|it| (it.offset, it.timestamp))
    };
    assert_eq!(locate(Find::Earliest), Some((0, -1)));
    assert_eq!(locate(Find::Latest), Some((9, -1)));
    assert_eq!(locate(Find::Time(20)), Some((1, 20)));
    assert_eq!(locate(Find::Time(31)), Some((3, 40)));
    assert_eq!(locate(Find::Time(65)), Some((4, 70)));
    assert_eq!(locate(Find::Time(71)), None);
    assert_eq!(locate(Find::MaxTimestamp), Some((4, 70)));
}

#[test]
fn failed_sync_makes_waiting_batches_unconfirmed_and_refuses_new_ones() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    world.produce(&topic, &["a"]);
    let placed = world.append(&topic, &world.batch(&["b"])).unwrap();
    let broken = |call: &journal::disk::simulated::Call<'_>| call.kind == Call::SyncData;
    world.disk.fail_always(Fault::Broken, broken);
    world.sync();
    let acknowledged = placed.durable.poll_durable(Waker::noop());
    assert_eq!(acknowledged, Poll::Ready(Err(NotDurable::Failed)));
    let refused = world.append(&topic, &world.batch(&["c"])).unwrap_err();
    let ProduceError::Storage(Storage::Failed { .. }) = refused else {
        panic!("{refused}");
    };
    assert_eq!(world.read(&topic, 0), pairs(0, &["a"]));
}

#[test]
fn the_topic_that_was_used_last_is_looked_up_again_after_a_change() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let named = |name| TopicRef::Name(name);
    let mut producing = world.topics.producing();
    for asked in [named("t"), TopicRef::Id(topic.about().id), named("t")] {
        let found = producing.find(asked).unwrap();
        assert!(Arc::ptr_eq(found.topic(), &topic));
        producing.keep(found);
    }
    assert!(producing.find(named("u")).is_none());
    let found = producing.find(named("t")).unwrap();
    producing.keep(found);
    drop(world.topics.set_partitions("t", 2, Execution::Do));
    let found = producing.find(named("t")).unwrap();
    assert_eq!(found.topic().about().partitions, 2);
    producing.keep(found);
    drop(world.topics.delete(named("t")));
    assert!(producing.find(named("t")).is_none());
}
