//! Topics with `telpher.durability=memory`.

use std::sync::atomic::AtomicBool;
use std::task::Wake;

use super::*;

const MEMORY: [(&str, &str); 1] = [("telpher.durability", "memory")];

/// Records whether the waker was woken.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn is_acknowledged(placed: &Placed) -> bool {
    placed.durable.poll_durable(Waker::noop()) == Poll::Ready(Ok(()))
}

impl World {
    fn offset(&mut self, topic: &Topic, what: Find) -> Option<u64> {
        let found = self.topics.locate(topic, 0, what, Isolation::Uncommitted);
        self.acknowledged(found).unwrap().map(|it| it.offset)
    }

    fn set_durability(&mut self, topic: &str, durability: &str) {
        let alters = [("telpher.durability", Alter::Set(durability))];
        let altered = self.topics.alter(topic, &alters, Execution::Do);
        self.acknowledged(altered).unwrap();
    }
}

#[test]
fn memory_topic_acknowledges_and_serves_records_before_the_sync() {
    let mut world = World::new();
    let topic = world.create("t", &MEMORY);
    world.clock.0.fetch_add(10, Ordering::Relaxed);
    for value in ["a", "b"] {
        let placed = world.append(&topic, &world.batch(&[value])).unwrap();
        assert!(is_acknowledged(&placed));
    }
    assert!(world.topics.state.journal.stats().queued_bytes > 0);
    let shown = world.fetch(&topic, 0).unwrap();
    assert_eq!(values(&shown), pairs(0, &["a", "b"]));
    assert_eq!((shown.high_watermark, shown.last_stable), (2, 2));
    assert_eq!(world.read(&topic, 1), pairs(1, &["b"]));
    assert_eq!(world.offset(&topic, Find::Latest), Some(2));
    let time = world.clock.unix_ms() as i64;
    assert_eq!(world.offset(&topic, Find::Time(time)), Some(0));
    assert_eq!(world.offset(&topic, Find::MaxTimestamp), Some(0));
    world.append(&topic, &world.batch(&["c"])).unwrap();
    world.sync();
    let placed = world.append(&topic, &world.batch(&["d"])).unwrap();
    assert!(is_acknowledged(&placed));
    assert_eq!(world.read(&topic, 1), pairs(1, &["b", "c", "d"]));
    world.sync();
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b", "c", "d"]));
}

#[test]
fn waiting_fetch_is_woken_by_a_record_in_memory() {
    let world = &mut World::new();
    let topic = world.create("t", &MEMORY);
    let woken = Arc::new(WakeFlag::default());
    let waker = Waker::from(woken.clone());
    let mut fetching = world.fetching(&topic, 0, Isolation::Committed, 1);
    assert!(fetching.poll_fetched(&waker).is_pending());
    drop(world.fetching(&topic, 0, Isolation::Committed, 1));
    world.append(&topic, &world.batch(&["a"])).unwrap();
    assert!(woken.0.load(Ordering::Relaxed));
    let Poll::Ready(fetched) = fetching.poll_fetched(&waker) else {
        panic!("there is enough");
    };
    assert_eq!(values(fetched[0].as_ref().unwrap()), pairs(0, &["a"]));
}

#[test]
fn crash_loses_only_the_newest_unsynced_memory_records() {
    let mut world = World::new();
    let topic = world.create("t", &MEMORY);
    for value in ["a", "b", "c"] {
        world.append(&topic, &world.batch(&[value])).unwrap();
    }
    world.sync();
    for value in ["d", "e"] {
        let placed = world.append(&topic, &world.batch(&[value])).unwrap();
        assert!(is_acknowledged(&placed));
    }
    assert_eq!(world.fetch(&topic, 5).unwrap().high_watermark, 5);
    let world = world.crash();
    let topic = world.topic("t");
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b", "c"]));
    let refused = world.fetch(&topic, 5).unwrap_err();
    let out_of_range = OutOfRange {
        offset: 5,
        log_start: 0,
        end: 3,
    };
    assert_eq!(refused, FetchError::OutOfRange(out_of_range));
}

#[test]
fn memory_topic_acknowledges_nothing_before_its_creation_is_durable() {
    let mut world = World::new();
    let configs = [("telpher.durability", Some("memory"))];
    let topic = NewTopic {
        name: "t",
        partitions: Some(1),
        configs: &configs,
    };
    let created = world.topics.create(&topic, Execution::Do);
    let topic = world.topic("t");
    let placed = world.append(&topic, &world.batch(&["a"])).unwrap();
    assert!(!is_acknowledged(&placed));
    assert_eq!(world.read(&topic, 0), []);
    world.acknowledged(created).unwrap();
    assert!(is_acknowledged(&placed));
    assert_eq!(world.read(&topic, 0), pairs(0, &["a"]));
}

#[test]
fn memory_records_wait_for_earlier_records_that_need_the_disk() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    world.set_durability("t", "disk");
    world.append(&topic, &world.batch(&["a"])).unwrap();
    let _altered = world.topics.alter(
        "t",
        &[("telpher.durability", Alter::Set("memory"))],
        Execution::Do,
    );
    let topic = world.topic("t");
    let placed = world.append(&topic, &world.batch(&["b"])).unwrap();
    assert!(!is_acknowledged(&placed));
    assert_eq!(world.read(&topic, 0), []);
    world.sync();
    assert!(is_acknowledged(&placed));
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b"]));
    let placed = world.append(&topic, &world.batch(&["c"])).unwrap();
    assert!(is_acknowledged(&placed));
    let _altered = world.topics.alter(
        "t",
        &[("telpher.durability", Alter::Set("disk"))],
        Execution::Do,
    );
    let placed = world.append(&topic, &world.batch(&["d"])).unwrap();
    assert!(!is_acknowledged(&placed));
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b", "c"]));
    world.sync();
    assert_eq!(world.read(&topic, 0), pairs(0, &["a", "b", "c", "d"]));
}

/// Writers that read their records as soon as they are acknowledged, while the disk is busy.
#[test]
fn acknowledged_memory_record_is_in_the_next_fetch_under_load() {
    const WRITERS: usize = 4;
    const BATCHES: usize = 400;
    let mut world = World::new();
    let topic = world.create("t", &MEMORY);
    let (is_over, line) = (AtomicBool::new(false), &mut world.line);
    let (background, clock) = (&mut world.background, &world.clock);
    let topics = &world.topics;
    let fetch = |offset| {
        let ask = Ask {
            topic: topic.clone(),
            partition: 0,
            offset,
            bytes_max: 1,
            leader_epoch: None,
        };
        let limits = FetchLimits {
            isolation: Isolation::Committed,
            bytes_min: 1,
            bytes_max: 1,
            placement: BatchPlacement::Memory,
        };
        let mut fetching = topics.fetch(vec![ask], limits);
        match fetching.poll_fetched(Waker::noop()) {
            Poll::Ready(mut fetched) => fetched.remove(0).unwrap(),
            Poll::Pending => panic!("{offset} was acknowledged and is not there"),
        }
    };
    let write = |writer: usize| {
        for number in 0..BATCHES {
            let value = format!("{writer}={number}{}", "x".repeat(300));
            let bytes = batch_of(&[&value], 1, None, &Template::default());
            let placed = topics.producing().append(&topic, 0, &bytes, None).unwrap();
            assert!(is_acknowledged(&placed));
            let fetched = fetch(placed.offset);
            assert!(fetched.high_watermark > placed.offset);
            assert_eq!(values(&fetched), [(placed.offset as i64, value)]);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                line.step();
                background.step(clock.unix_ms());
            }
        });
        let write = &write;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        let written: Vec<_> = writers.into_iter().map(|it| it.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(written.iter().all(Result::is_ok));
    });
    let mut next = 0;
    while next < (WRITERS * BATCHES) as u64 {
        let read = world.read(&topic, next);
        assert_eq!(read[0].0, next as i64);
        next += read.len() as u64;
    }
}
