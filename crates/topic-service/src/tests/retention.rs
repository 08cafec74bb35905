use super::*;

/// Appends batches of a kilobyte each.
fn fill(world: &mut World, topic: &Topic, count: usize) {
    let value = "v".repeat(1_000);
    for index in 0..count {
        world.append(topic, &world.batch(&[&value])).unwrap();
        if index % 100 == 0 {
            world.sync();
        }
    }
    world.sync();
}

#[test]
fn retention_by_size_frees_disk_while_other_topics_write() {
    let mut world = World::new();
    let short = world.create("short", &[("retention.bytes", "100000")]);
    let other = world.create("other", &[]);
    world.produce(&other, &["first"]);
    fill(&mut world, &short, 16_000);
    let before = world.disk.used();
    world.pass_ms(2_000);
    let view = world.topics.view(&short, 0).unwrap();
    assert!(view.size < 300_000, "{view:?}");
    assert!(view.log_start > 15_000 && view.end == 16_000, "{view:?}");
    assert!(matches!(
        world.fetch(&short, 0),
        Err(FetchError::OutOfRange(_))
    ));
    assert_eq!(
        world.read(&short, view.log_start)[0].0 as u64,
        view.log_start
    );
    fill(&mut world, &other, 3_000);
    world.pass_ms(600_000);
    let after = world.disk.used();
    assert!(after < before, "{before} {after}");
    let world = world.crash();
    let again = world.topics.view(&world.topic("short"), 0).unwrap();
    assert_eq!((again.log_start, again.end), (view.log_start, view.end));
    assert_eq!(world.read(&world.topic("other"), 0)[0].1, "first");
}

#[test]
fn expired_records_are_deleted_and_offsets_are_not_reused() {
    let mut world = World::with(Options {
        retention_check_interval_ms: 0,
        ..Options::default()
    });
    let topic = world.create("t", &[("retention.ms", "60000")]);
    fill(&mut world, &topic, 200);
    world.pass_ms(120_000);
    let view = world.topics.view(&topic, 0).unwrap();
    assert_eq!((view.log_start, view.end), (200, 200));
    let mut world = world.crash();
    let topic = world.topic("t");
    assert_eq!(world.produce(&topic, &["next"]), 200);
    assert_eq!(world.read(&topic, 200), pairs(200, &["next"]));
}

#[test]
fn deleted_records_stay_deleted_after_restart() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    for value in ["a", "b", "c"] {
        world.produce(&topic, &[value]);
    }
    let deleted = world.topics.delete_records(&topic, 0, Some(2));
    assert_eq!(world.acknowledged(deleted).unwrap(), 2);
    let beyond = world.topics.delete_records(&topic, 0, Some(9));
    assert!(matches!(
        world.acknowledged(beyond),
        Err(FetchError::OutOfRange(_))
    ));
    let mut world = world.crash();
    let topic = world.topic("t");
    assert_eq!(world.topics.view(&topic, 0).unwrap().log_start, 2);
    assert_eq!(world.read(&topic, 2), pairs(2, &["c"]));
    let all = world.topics.delete_records(&topic, 0, None);
    assert_eq!(world.acknowledged(all).unwrap(), 3);
    world.pass_ms(2_000);
    let mut world = world.crash();
    let topic = world.topic("t");
    assert_eq!(world.produce(&topic, &["d"]), 3);
}

#[test]
fn deleting_a_topic_frees_disk() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let other = world.create("other", &[]);
    fill(&mut world, &topic, 8_000);
    let before = world.disk.used();
    let deleted = world.topics.delete(TopicRef::Name("t"));
    world.acknowledged(deleted).unwrap();
    fill(&mut world, &other, 3_000);
    world.pass_ms(600_000);
    let after = world.disk.used();
    assert!(after < before, "{before} {after}");
}

#[test]
fn restart_replays_only_records_since_the_snapshot() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    fill(&mut world, &topic, 5_000);
    world.pass_ms(1_500);
    fill(&mut world, &topic, 10);
    let world = world.crash();
    let slot = world.topic("t").slots[0].clone();
    let live = slot.lock(&world.topics.state.journal).unwrap();
    assert_eq!(live.partition.end(), 5_010);
    assert!(live.unsaved_bytes < 500_000, "{}", live.unsaved_bytes);
}

#[test]
fn acknowledged_records_survive_random_power_failures_in_order() {
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut world = World::new();
        let mut topic = world.create("t", &[("retention.bytes", "60000")]);
        let mut acknowledged = 0;
        for life in 0..4 {
            let mut waiting = Vec::new();
            for _ in 0..rng.usize(10..200) {
                let value = format!("{}", world.topics.view(&topic, 0).unwrap().end);
                let padded = format!("{value}={}", "x".repeat(rng.usize(0..2_000)));
                waiting.push(world.append(&topic, &world.batch(&[&padded])).unwrap());
                match rng.u8(0..8) {
                    0 => drop(world.line.step()),
                    1 => world.pass_ms(1_000),
                    _ => {}
                }
            }
            for placed in waiting {
                if placed.durable.poll_durable(Waker::noop()).is_ready() {
                    acknowledged = placed.offset + 1;
                }
            }
            world = world.crash();
            topic = world.topic("t");
            let view = world.topics.view(&topic, 0).unwrap();
            assert!(
                view.end >= acknowledged,
                "seed {seed}, life {life}: {acknowledged}, {view:?}"
            );
            let mut next = view.log_start;
            while next < view.end {
                for (offset, value) in world.read(&topic, next) {
                    assert!(value.starts_with(&format!("{offset}=")), "seed {seed}");
                    next = next.max(offset as u64 + 1);
                }
            }
            acknowledged = view.end;
        }
    }
}

#[test]
fn topic_without_its_own_retention_uses_the_default() {
    let mut defaults = Config::default();
    defaults
        .alter(Key::RetentionMs, Alter::Set("60000"))
        .unwrap();
    let mut world = World::with(Options {
        retention_check_interval_ms: 0,
        defaults,
        ..Options::default()
    });
    let like_all = world.create("like-all", &[]);
    let own = world.create("own", &[("retention.ms", "604800000")]);
    for topic in [&like_all, &own] {
        world.produce(topic, &["a"]);
    }
    world.pass_ms(70_000);
    let start = |topic: &Arc<Topic>| world.topics.view(topic, 0).unwrap().log_start;
    assert_eq!((start(&like_all), start(&own)), (1, 0));
}
