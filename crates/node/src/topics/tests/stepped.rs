//! The wall clock steps: sessions and transactions go by a clock that never does.

use super::grouped::caller;
use super::*;

const DAY_MS: i64 = 24 * 3_600_000;

impl World {
    fn step_clock(&mut self, by_ms: i64) {
        self.clock.1.fetch_add(by_ms, Ordering::Relaxed);
    }
}

#[test]
fn members_stay_when_the_wall_clock_steps() {
    for by_ms in [DAY_MS, -DAY_MS] {
        let mut world = World::new();
        let (member, generation) = world.member("g");
        world.step_clock(by_ms);
        world.pass_ms(5_000);
        let beat = world.topics.heartbeat(caller("g", &member, generation));
        world.told(beat).unwrap();
        // A member that says nothing is expelled as soon as ever.
        world.pass_ms(11_000);
        let beat = world.topics.heartbeat(caller("g", &member, generation));
        world.told(beat).unwrap_err();
    }
}

#[test]
fn transactions_end_after_their_timeout_whatever_the_wall_clock_does() {
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
fn a_transaction_open_at_a_restart_ends_after_its_timeout() {
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
fn committed_offsets_are_dated_by_the_wall_clock() {
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
fn a_transactional_id_outlives_the_memory_of_producers() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let writer = world.init(60_000).unwrap();
    world.pass_ms(6 * DAY_MS as u64);
    world.add(&writer, &topic).unwrap();
    world.end(&writer, Ending::Commit).unwrap();
    world.pass_ms(8 * DAY_MS as u64);
    assert!(world.topics.transaction("tx").is_none());
}
