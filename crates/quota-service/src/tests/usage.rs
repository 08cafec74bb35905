//! Usage: counting, days, bounds and persistence.

use quota::{HoldId, Pattern};

use super::*;
use crate::{USAGE_DAYS, UsageBy, UsageCursor, UsagePage, UsageQuery};

const DAY_MS: u64 = 86_400_000;
/// 2026-11-28, in days since 1970-01-01.
const TODAY: u32 = 20_785;
/// A tenth of a second before the end of that day.
const EVENING_MS: u64 = (TODAY as u64 + 1) * DAY_MS - 100;

/// The day, the limit, the subject, the amount and the number of takes.
type Row = (u32, String, String, u64, u64);

fn limit(name: &str, pattern: &str, unit: &str) -> LimitConfig {
    LimitConfig {
        pattern: pattern.to_owned(),
        unit: unit.to_owned(),
        ..bucket(name, 1_000_000, "0/s")
    }
}

fn query(by: UsageBy) -> UsageQuery<'static> {
    UsageQuery {
        from: 0,
        to: u32::MAX,
        limit: None,
        subject: None,
        by,
        after: None,
        count: 1_000,
        is_visible: None,
    }
}

fn rows_of(page: UsagePage) -> Vec<Row> {
    let rows = page.rows.into_iter().map(|row| {
        let UsageCursor {
            day,
            limit,
            subject,
            ..
        } = row.at;
        (
            day,
            (*limit).into(),
            (*subject).into(),
            row.amount,
            row.takes,
        )
    });
    rows.collect()
}

fn usage(node: &Node) -> Vec<Row> {
    rows_of(node.quotas().usage(&query(UsageBy::Day)))
}

fn row(day: u32, limit: &str, subject: &str, amount: u64, takes: u64) -> Row {
    (day, limit.to_owned(), subject.to_owned(), amount, takes)
}

/// Reserves requests for a minute.
fn hold(node: &Node, subject: &str, count: u64) -> HoldId {
    let costs = [(Unit::REQUESTS, count)];
    let minute = Some(Duration::from_secs(60));
    match take_with(node, subject, &costs, minute, None).outcome {
        Outcome::Admitted { hold, .. } => hold.unwrap().id,
        other => panic!("there is enough: {other:?}"),
    }
}

fn settle(node: &Node, hold: HoldId, settled: Settled<'_>) {
    let settling = node
        .quotas()
        .settle(&mut Desk::new(), hold, settled, ANYONE);
    assert_eq!(settling.outcome, SettleOutcome::Settled);
}

#[test]
fn usage_names_the_agent_under_every_limit_that_it_took_from() {
    let slots = LimitConfig {
        refill: None,
        ..limit("slots", "*/*/*", "concurrency")
    };
    let world = world_at(
        EVENING_MS,
        &[
            limit("agent", "*/*/*", "requests"),
            limit("money", "acme", "usd_micros"),
            limit("run", "*/*/*?run", "requests"),
            slots,
        ],
    );
    let costs = [(Unit::REQUESTS, 1), (Unit::USD_MICROS, 50)];
    for subject in [
        "acme/x/a",
        "acme/x/b",
        "acme/x/a/i-1",
        "acme/x/a?run=7",
        "other/x/a",
    ] {
        let taken = take(&world.node, subject, &costs);
        assert!(matches!(taken.outcome, Outcome::Admitted { .. }));
    }
    // Neither of these took anything.
    let refused = take(&world.node, "acme/x/a", &[(Unit::REQUESTS, 1_000_001)]);
    assert!(matches!(refused.outcome, Outcome::Refused(_)));
    let denied = take(&world.node, "acme/x/a", &[(Unit::REQUESTS, 999_999)]);
    assert!(matches!(denied.outcome, Outcome::Denied(_)));
    let expected = [
        row(TODAY, "agent", "acme/x/a", 3, 3),
        row(TODAY, "agent", "acme/x/b", 1, 1),
        row(TODAY, "agent", "other/x/a", 1, 1),
        row(TODAY, "money", "acme/x/a", 150, 3),
        row(TODAY, "money", "acme/x/b", 50, 1),
        row(TODAY, "run", "acme/x/a", 1, 1),
    ];
    assert_eq!(usage(&world.node), expected);
    // Sweeping and asking again changes nothing.
    world.pass_ms(100);
    assert_eq!(usage(&world.node), expected);
}

#[test]
fn a_take_id_that_is_repeated_counts_once() {
    let world = world_at(EVENING_MS, &[limit("agent", "*/*/*", "requests")]);
    for _ in 0..3 {
        let costs = [(Unit::REQUESTS, 4)];
        let taken = take_with(&world.node, "a/b/c", &costs, None, Some("t-1"));
        assert!(matches!(taken.outcome, Outcome::Admitted { .. }));
    }
    assert_eq!(usage(&world.node), [row(TODAY, "agent", "a/b/c", 4, 1)]);
}

#[test]
fn a_take_counts_on_its_day_although_it_is_collected_on_the_next() {
    let world = world_at(EVENING_MS, &[limit("agent", "*/*/*", "requests")]);
    spend(&world.node, "a/b/c", 5);
    world.pass_ns(99_999_999);
    spend(&world.node, "a/b/c", 6);
    world.pass_ns(1);
    spend(&world.node, "a/b/c", 7);
    let expected = [
        row(TODAY, "agent", "a/b/c", 11, 2),
        row(TODAY + 1, "agent", "a/b/c", 7, 1),
    ];
    assert_eq!(usage(&world.node), expected);
}

#[test]
fn usage_follows_a_step_of_the_wall_clock() {
    let world = world_at(EVENING_MS, &[limit("agent", "*/*/*", "requests")]);
    spend(&world.node, "a/b/c", 5);
    world.step_wall_ms(DAY_MS as i64);
    world.node.quotas().follow_clock().unwrap();
    spend(&world.node, "a/b/c", 6);
    let expected = [
        row(TODAY, "agent", "a/b/c", 5, 1),
        row(TODAY + 1, "agent", "a/b/c", 6, 1),
    ];
    assert_eq!(usage(&world.node), expected);
}

#[test]
fn a_hold_counts_with_its_true_cost_when_it_ends() {
    let world = world_at(
        EVENING_MS - DAY_MS / 2,
        &[
            limit("agent", "*/*/*", "requests"),
            limit("money", "*/*/*", "usd_micros"),
        ],
    );
    let node = &world.node;
    let holds = ["a/x/less", "a/x/more", "a/x/same", "a/x/none", "a/x/late"]
        .map(|subject| hold(node, subject, 30));
    assert_eq!(usage(node), []);
    let [less, more, same, none, _] = holds;
    settle(node, less, Settled::Cost(&[(Unit::REQUESTS, 10)]));
    let higher = [(Unit::REQUESTS, 45), (Unit::USD_MICROS, 9)];
    settle(node, more, Settled::Cost(&higher));
    settle(node, same, Settled::Cost(&[]));
    settle(node, none, Settled::Cancelled);
    let mut expected = vec![
        row(TODAY, "agent", "a/x/less", 10, 1),
        row(TODAY, "agent", "a/x/more", 45, 1),
        row(TODAY, "agent", "a/x/same", 30, 1),
        row(TODAY, "money", "a/x/more", 9, 1),
    ];
    assert_eq!(usage(node), expected);
    // One that is not settled costs what was reserved.
    world.pass_ms(61_000);
    expected.insert(0, row(TODAY, "agent", "a/x/late", 30, 1));
    assert_eq!(usage(node), expected);
}

#[test]
fn subjects_beyond_the_maximum_of_a_day_are_counted_together() {
    let parts = Parts {
        options: Options {
            usage_rows_max: 3,
            ..Options::default()
        },
        ..quotas(&[limit("agent", "*/*/*", "requests")])
    };
    let world = World::open(EVENING_MS, parts);
    for agent in 0..3 {
        spend(&world.node, &format!("a/b/{agent}"), 1);
    }
    assert!(
        !world
            .node
            .quotas()
            .usage(&query(UsageBy::Day))
            .has_other_subjects
    );
    for agent in 0..10 {
        spend(&world.node, &format!("a/b/{agent}"), 5);
        world.node.quotas().sweep();
    }
    let page = world.node.quotas().usage(&query(UsageBy::Day));
    assert!(page.has_other_subjects);
    let expected = [
        row(TODAY, "agent", "", 35, 7),
        row(TODAY, "agent", "a/b/0", 6, 2),
        row(TODAY, "agent", "a/b/1", 6, 2),
        row(TODAY, "agent", "a/b/2", 6, 2),
    ];
    assert_eq!(rows_of(page), expected);
    // The next day has room again.
    world.pass_ms(1_000);
    spend(&world.node, "a/b/9", 5);
    let next = UsageQuery {
        from: TODAY + 1,
        ..query(UsageBy::Day)
    };
    let page = world.node.quotas().usage(&next);
    assert!(!page.has_other_subjects);
    assert_eq!(rows_of(page), [row(TODAY + 1, "agent", "a/b/9", 5, 1)]);
}

#[test]
fn usage_is_removed_after_90_days() {
    let limits = [limit("agent", "*/*/*", "requests")];
    let mut on_disk = OnDisk::new_at(&limits, EVENING_MS);
    spend(on_disk.node(), "a/b/c", 5);
    on_disk.world.pass_ms(2_000);
    spend(on_disk.node(), "a/b/c", 6);
    on_disk.world.pass_ms(2_000);
    on_disk.sync();
    let last_ms = EVENING_MS + u64::from(USAGE_DAYS - 1) * DAY_MS;
    let mut on_disk = on_disk.crash_to(&limits, last_ms);
    let expected = [
        row(TODAY, "agent", "a/b/c", 5, 1),
        row(TODAY + 1, "agent", "a/b/c", 6, 1),
    ];
    assert_eq!(usage(on_disk.node()), expected);
    on_disk.world.pass_ms(1_000);
    assert_eq!(usage(on_disk.node()), expected[1..]);
    on_disk.sync();
    let on_disk = on_disk.crash_to(&limits, last_ms + DAY_MS);
    assert_eq!(usage(on_disk.node()), expected[1..]);
}

#[test]
fn usage_older_than_a_second_survives_a_crash() {
    let limits = [limit("agent", "*/*/*", "requests")];
    let mut on_disk = OnDisk::new_at(&limits, EVENING_MS - DAY_MS / 2);
    let mut sums = [0; 2];
    for round in 1..=50_u64 {
        spend(on_disk.node(), "a/b/c", round);
        sums[1] += round;
        on_disk.world.pass_ms(100);
        on_disk.sync();
        if round == 39 {
            sums[0] = sums[1];
        }
    }
    let on_disk = on_disk.crash_to(&limits, EVENING_MS);
    let kept = usage(on_disk.node());
    let [(TODAY, _, _, amount, _)] = kept[..] else {
        panic!("{kept:?}");
    };
    assert!(
        (sums[0]..=sums[1]).contains(&amount),
        "{amount}, not {sums:?}"
    );
    // It goes on from there.
    spend(on_disk.node(), "a/b/c", 1);
    assert_eq!(usage(on_disk.node())[0].3, amount + 1);
}

#[test]
fn usage_survives_a_clean_stop() {
    let limits = [limit("agent", "*/*/*", "requests")];
    let mut on_disk = OnDisk::new_at(&limits, EVENING_MS - DAY_MS / 2);
    for agent in ["a", "b"] {
        spend(on_disk.node(), &format!("a/b/{agent}"), 42);
        // The first is written at once, the second would wait for a second.
        on_disk.world.pass_ms(100);
    }
    let durable = on_disk.node().quotas().flush_all().unwrap();
    assert_eq!(is_durable(&durable), None);
    on_disk.sync();
    assert_eq!(is_durable(&durable), Some(true));
    let on_disk = on_disk.crash_to(&limits, EVENING_MS);
    let expected = [
        row(TODAY, "agent", "a/b/a", 42, 1),
        row(TODAY, "agent", "a/b/b", 42, 1),
    ];
    assert_eq!(usage(on_disk.node()), expected);
}

#[test]
fn no_hold_counts_twice_after_a_crash() {
    let limits = [limit("agent", "*/*/*", "requests")];
    let morning_ms = EVENING_MS - DAY_MS / 2;
    for sweeps in 0..25 {
        let mut on_disk = OnDisk::new_at(&limits, morning_ms);
        let held = hold(on_disk.node(), "a/b/c", 30);
        on_disk.world.pass_ms(1_500);
        on_disk.sync();
        settle(on_disk.node(), held, Settled::Cost(&[(Unit::REQUESTS, 10)]));
        // A query must not write usage before the end of the hold.
        assert_eq!(usage(on_disk.node()), [row(TODAY, "agent", "a/b/c", 10, 1)]);
        on_disk.world.pass_ms(sweeps * 100);
        on_disk.sync();
        let on_disk = on_disk.crash_to(&limits, morning_ms + 10_000);
        on_disk.world.pass_ms(120_000);
        let counted: Vec<_> = usage(on_disk.node()).iter().map(|row| row.3).collect();
        // The end, or its usage, may be lost.
        let possible: &[&[u64]] = match sweeps {
            0 => &[&[30]],
            1..=12 => &[&[], &[10]],
            _ => &[&[10]],
        };
        assert!(possible.contains(&&counted[..]), "{sweeps}: {counted:?}");
    }
}

#[test]
fn removed_limits_and_changed_units_keep_their_usage() {
    let limits = [limit("agent", "*/*/*", "requests")];
    let mut on_disk = OnDisk::new_at(&limits, EVENING_MS - DAY_MS / 2);
    spend(on_disk.node(), "a/b/c", 5);
    let quotas = on_disk.node().quotas();
    let tokens = read(&[limit("agent", "*/*/*", "tokens")]);
    let _ = quotas.set_policies(tokens, None, BY).unwrap();
    let taken = take(on_disk.node(), "a/b/c", &[(Unit::TOKENS, 700)]);
    assert!(matches!(taken.outcome, Outcome::Admitted { .. }));
    let _ = quotas.set_policies(Vec::new(), None, BY).unwrap();
    on_disk.world.pass_ms(2_000);
    on_disk.sync();
    let on_disk = on_disk.crash_to(&limits, EVENING_MS);
    let expected = [
        row(TODAY, "agent", "a/b/c", 5, 1),
        row(TODAY, "agent", "a/b/c", 700, 1),
    ];
    assert_eq!(usage(on_disk.node()), expected);
}

#[test]
fn usage_stream_is_trimmed() {
    let limits = [limit("agent", "*/*/*", "requests")];
    let mut on_disk = OnDisk::new_at(&limits, EVENING_MS);
    let (shard, stream) = (STATE.0, StreamId(5));
    let mut rounds = 0;
    while on_disk
        .journal
        .stream(shard, stream)
        .is_none_or(|it| it.start == 0)
    {
        rounds += 1;
        assert!(rounds < 1_000, "nothing was trimmed");
        for agent in 0..300 {
            spend(on_disk.node(), &format!("a/b/agent-{agent}"), 1);
        }
        on_disk.world.pass_ms(1_100);
        on_disk.sync();
    }
    // Nothing changes from here on, so that everything is written.
    on_disk.world.pass_ms(1_100);
    on_disk.sync();
    let before = usage(on_disk.node());
    assert_eq!(before.iter().map(|row| row.3).sum::<u64>(), rounds * 300);
    assert_eq!(before.len(), 600, "two days");
    let on_disk = on_disk.crash_to(&limits, EVENING_MS);
    assert_eq!(usage(on_disk.node()), before);
}

#[test]
fn usage_is_counted_although_the_journal_fails() {
    use journal::disk::simulated::{Fault, Kind as Call};
    let limits = [limit("agent", "*/*/*", "requests")];
    let mut on_disk = OnDisk::new_at(&limits, EVENING_MS - DAY_MS / 2);
    on_disk
        .disk
        .fail_always(Fault::Broken, |call| call.kind == Call::SyncData);
    spend(on_disk.node(), "a/b/c", 5);
    on_disk.world.pass_ms(100);
    on_disk.sync();
    // The journal takes nothing more, and the node goes on counting.
    spend(on_disk.node(), "a/b/d", 6);
    on_disk.world.pass_ms(2_000);
    let expected = [
        row(TODAY, "agent", "a/b/c", 5, 1),
        row(TODAY, "agent", "a/b/d", 6, 1),
    ];
    assert_eq!(usage(on_disk.node()), expected);
    assert!(on_disk.node().quotas().sweep(), "work is left");
}

#[test]
fn usage_is_selected_summed_and_paged() {
    let world = world_at(
        EVENING_MS,
        &[
            limit("agent", "*/*/*", "requests"),
            limit("org", "*", "requests"),
        ],
    );
    let node = &world.node;
    let take_all = || {
        for subject in ["acme/x/a", "acme/y/b", "other/x/c"] {
            spend(node, subject, 10);
        }
    };
    take_all();
    world.pass_ms(200);
    take_all();
    let select = |query: UsageQuery<'_>| {
        let rows = rows_of(node.quotas().usage(&query)).into_iter();
        rows.map(|(day, limit, subject, amount, _)| (day, limit, subject, amount))
            .collect::<Vec<_>>()
    };
    let cell = |day, limit: &str, subject: &str, amount| {
        (day, limit.to_owned(), subject.to_owned(), amount)
    };
    let expected = [cell(0, "agent", "", 60), cell(0, "org", "", 60)];
    assert_eq!(select(query(UsageBy::Limit)), expected);
    let acme = Pattern::parse("acme").unwrap();
    let of_acme = UsageQuery {
        limit: Some("org"),
        subject: Some(&acme),
        ..query(UsageBy::Subject)
    };
    let expected = [
        cell(0, "org", "acme/x/a", 20),
        cell(0, "org", "acme/y/b", 20),
    ];
    assert_eq!(select(of_acme), expected);
    let is_visible = |name: &str| name == "other/x/c";
    let visible = UsageQuery {
        from: TODAY + 1,
        is_visible: Some(&is_visible),
        ..query(UsageBy::Day)
    };
    let expected = [
        cell(TODAY + 1, "agent", "other/x/c", 10),
        cell(TODAY + 1, "org", "other/x/c", 10),
    ];
    assert_eq!(select(visible), expected);
    for by in [UsageBy::Day, UsageBy::Subject, UsageBy::Limit] {
        let all = node.quotas().usage(&query(by));
        assert!(!all.is_more);
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = node.quotas().usage(&UsageQuery {
                count: 1,
                after,
                ..query(by)
            });
            after = page.rows.last().map(|row| row.at.clone());
            paged.extend(page.rows);
            if !page.is_more {
                break;
            }
        }
        assert_eq!(paged, all.rows, "{by:?}");
    }
}
