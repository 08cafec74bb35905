//! Budgets under steps of the wall clock.

use super::*;

const HOUR_MS: u64 = 3_600_000;
/// 2026-11-23T12:00:00Z.
const NOON_MS: u64 = 1_795_435_200_000;

fn daily() -> LimitConfig {
    LimitConfig {
        capacity: None,
        refill: None,
        budget: Some(1_000),
        every: Some("day".to_owned()),
        ..bucket("daily", 0, "")
    }
}

/// A daily budget and a bucket, at noon.
fn world_at_noon() -> World {
    world_at(NOON_MS, &[daily(), bucket("agent", 1_000, "0/s")])
}

fn reset_hours(node: &Node) -> u64 {
    let (mut desk, subject) = (Desk::new(), Subject::parse("a/b/c").unwrap());
    assert!(node.quotas().peek(&mut desk, &subject).is_none());
    let reset_ns = desk.limit_states().next().unwrap().reset_ns.unwrap();
    (reset_ns - node.quotas().now_ns()) / 1_000_000 / HOUR_MS
}

#[test]
fn wall_clock_step_advances_budgets_but_not_buckets() {
    let world = world_at_noon();
    spend(&world.node, "a/b/c", 600);
    assert_eq!(world.node.quotas().follow_clock(), None);
    world.step_wall_ms(20 * HOUR_MS as i64);
    let step = world.node.quotas().follow_clock().unwrap();
    assert_eq!((step.size.as_secs(), step.is_back), (20 * 3_600, false));
    // The clock shows eight in the morning of the next day.
    assert_eq!(remaining(&world.node, "a/b/c"), [1_000, 400]);
    assert_eq!(reset_hours(&world.node), 16);
    assert_eq!(world.node.quotas().take_counts().clock_steps, 1);
    assert_eq!(world.node.quotas().follow_clock(), None);
}

#[test]
fn clock_set_back_delays_a_budget_only_until_its_period_ends() {
    let world = world_at_noon();
    // Five years ahead, and back.
    world.step_wall_ms(5 * 365 * 24 * HOUR_MS as i64);
    world.node.quotas().follow_clock().unwrap();
    spend(&world.node, "a/b/c", 600);
    world.step_wall_ms(-5 * 365 * 24 * HOUR_MS as i64);
    assert!(world.node.quotas().follow_clock().unwrap().is_back);
    // Spent credit stays spent until midnight.
    assert_eq!(remaining(&world.node, "a/b/c"), [400, 400]);
    assert_eq!(reset_hours(&world.node), 12);
}

#[test]
fn budget_stored_with_a_future_clock_resets_next_period() {
    let limits = [daily()];
    let mut on_disk = OnDisk::new_at(&limits, NOON_MS + 5 * 365 * 24 * HOUR_MS);
    spend(on_disk.node(), "a/b/c", 600);
    on_disk.node().quotas().flush_all();
    on_disk.sync();
    let on_disk = on_disk.crash_to(&limits, NOON_MS);
    assert_eq!(remaining(on_disk.node(), "a/b/c"), [400]);
    assert_eq!(reset_hours(on_disk.node()), 12);
}
