//! Steps of the wall clock: sessions and transactions follow a clock that never steps.

use super::consumer_groups::caller;
use super::*;

const DAY_MS: i64 = 24 * 3_600_000;
const MINUTE_MS: u64 = 60_000;

impl World {
    fn step_clock(&mut self, by_ms: i64) {
        self.clock.1.fetch_add(by_ms, Ordering::Relaxed);
    }
}

#[test]
fn group_sessions_ignore_wall_clock_steps() {
    for by_ms in [DAY_MS, -DAY_MS] {
        let mut world = World::new();
        let (member, generation) = world.member("g");
        world.step_clock(by_ms);
        world.pass_ms(5_000);
        let beat = world.topics.heartbeat(caller("g", &member, generation));
        world.acknowledged(beat).unwrap();
        // A silent member is expelled as soon as before.
        world.pass_ms(11_000);
        let beat = world.topics.heartbeat(caller("g", &member, generation));
        world.acknowledged(beat).unwrap_err();
    }
}

#[test]
fn transaction_timeouts_ignore_wall_clock_steps() {
    for by_ms in [DAY_MS, -DAY_MS] {
        let mut world = World::new();
        let topic = world.create("t", &[]);
        let mut writer = world.init(60_000).unwrap();
        world.add(&writer, &topic).unwrap();
        world.write(&mut writer, &topic, "a").unwrap();
        world.pass_ms(1_000);
        world.step_clock(by_ms);
        world.pass_ms(30_000);
        world.write(&mut writer, &topic, "b").unwrap();
        world.pass_ms(40_000);
        assert_eq!(
            world.topics.transaction("tx").unwrap().state.as_str(),
            "CompleteAbort"
        );
    }
}

#[test]
fn transaction_open_at_a_restart_is_aborted_after_its_timeout() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut writer = world.init(60_000).unwrap();
    world.add(&writer, &topic).unwrap();
    world.write(&mut writer, &topic, "a").unwrap();
    world.pass_ms(40_000);
    let mut world = world.crash();
    world.pass_ms(10_000);
    assert_eq!(
        world.topics.transaction("tx").unwrap().state.as_str(),
        "Ongoing"
    );
    world.pass_ms(20_000);
    assert_eq!(
        world.topics.transaction("tx").unwrap().state.as_str(),
        "CompleteAbort"
    );
}

#[test]
fn committed_offsets_survive_restart_after_the_clock_was_set_forward() {
    let mut world = World::new();
    // A machine without a battery for its clock: it starts in the past and is set right later.
    world.step_clock(365 * DAY_MS);
    let (member, generation) = world.member("g");
    world.commit(caller("g", &member, generation), 7).unwrap();
    let mut world = world.crash();
    world.pass_ms(120_000);
    assert_eq!(world.committed("g"), Some(7));
}

#[test]
fn transactional_id_outlives_producer_id_expiration() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let writer = world.init(60_000).unwrap();
    world.pass_ms(6 * DAY_MS as u64);
    world.add(&writer, &topic).unwrap();
    world.end(&writer, Ending::Commit).unwrap();
    world.pass_ms(8 * DAY_MS as u64);
    assert!(world.topics.transaction("tx").is_none());
}

/// Encodes a batch of one record with the current time.
fn record(timestamp: i64) -> Vec<u8> {
    batch_of(&["value"], timestamp, None, &Template::default())
}

#[test]
fn wall_clock_step_deletes_records_only_after_it_has_lasted() {
    let mut world = World::new();
    let topic = world.create("t", &[("retention.ms", "86400000")]);
    let log_start = |world: &World| world.topics.view(&topic, 0).unwrap().log_start;
    world.produce(&topic, &["value"]);
    world.pass_ms(10 * MINUTE_MS);
    world.step_clock(30 * DAY_MS);
    world.pass_ms(5 * MINUTE_MS);
    assert_eq!(log_start(&world), 0);
    world.step_clock(-30 * DAY_MS);
    world.pass_ms(20 * MINUTE_MS);
    assert_eq!(log_start(&world), 0);
    world.step_clock(30 * DAY_MS);
    world.pass_ms(12 * MINUTE_MS);
    assert_eq!(log_start(&world), 1);
}

#[test]
fn records_appended_after_a_clock_correction_keep_their_full_retention() {
    let mut world = World::new();
    let topic = world.create("t", &[("retention.ms", "86400000")]);
    world.pass_ms(MINUTE_MS);
    // A machine without a battery for its clock: it starts in the past and is set right later.
    world.step_clock(365 * DAY_MS);
    world.pass_ms(MINUTE_MS);
    for timestamp in [world.clock.unix_ms() as i64, recordbatch::NO_TIMESTAMP] {
        let placed = world.append(&topic, &record(timestamp)).unwrap();
        world.settle(placed);
    }
    world.pass_ms(60 * MINUTE_MS);
    let log_start = |world: &World| world.topics.view(&topic, 0).unwrap().log_start;
    assert_eq!(log_start(&world), 0);
    world.pass_ms(DAY_MS as u64 - 30 * MINUTE_MS);
    assert_eq!(log_start(&world), 2);
}

#[test]
fn clock_set_back_does_not_stop_compaction() {
    let mut world = World::new();
    let topic = world.create("t", &[("cleanup.policy", "compact")]);
    world.step_clock(DAY_MS);
    world.write_keys(&topic, 0..3_000, recordbatch::Compression::None);
    world.step_clock(-DAY_MS);
    world.pass_ms(20_000);
    let (_, count) = world.newest(&topic);
    assert!(count < 3_000, "{count}");
}
