//! Properties of holds and their settlement.

use proptest::prelude::*;
use quota::{Decision, Every, Settled, Unit};

use crate::world::{SECOND, World, bucket, budget, limit};

proptest! {
    #[test]
    fn settlement_charges_the_true_cost(
        script in prop::collection::vec((1_u64..100, 0_u64..150, 0_u8..4), 1..40),
    ) {
        let money = limit("money", "*/*/*", Unit::TOKENS, budget(2_000, Every::Never));
        let mut world = World::new(vec![money]);
        let mut used = 0;
        for (reserved, truly, how) in script {
            let Some(hold) = world.hold("a/b/c", &[(Unit::TOKENS, reserved)], 0) else {
                prop_assert!(used + i128::from(reserved) > 2_000);
                continue;
            };
            let costs = [(Unit::TOKENS, truly)];
            let (settled, cost) = match how {
                0 => (Settled::Cancelled, 0),
                1 => (Settled::Expired, reserved),
                2 => (Settled::Cost(&[]), reserved),
                _ => (Settled::Cost(&costs), truly),
            };
            world.settle(&hold, settled, 0);
            used += i128::from(cost);
            prop_assert_eq!(world.peek("a/b/c", 0), vec![(2_000 - used, 2_000)]);
        }
    }

    #[test]
    fn credit_taken_before_a_reset_is_not_refunded(
        is_session in any::<bool>(),
        script in prop::collection::vec((0_u8..9, 1_u64..70, 0_usize..4), 1..60),
    ) {
        let every = if is_session { Every::Never } else { Every::Minute };
        let mut world = World::new(vec![limit("a", "*/*/*", Unit::TOKENS, budget(100, every))]);
        let (mut now, mut used, mut resets, mut held) = (0, 0_u64, 0, Vec::new());
        for (what, count, which) in script {
            let costs = [(Unit::TOKENS, count)];
            let minute = if is_session { 0 } else { now / (60 * SECOND) };
            match what {
                0..=2 => {
                    let hold = world.hold("a/b/c", &costs, now);
                    prop_assert_eq!(hold.is_some(), used + count <= 100);
                    used += hold.as_ref().map_or(0, |_| count);
                    held.extend(hold.map(|hold| (hold, count, (minute, resets))));
                }
                3..=5 if which < held.len() => {
                    let (hold, reserved, taken) = held.swap_remove(which);
                    let (settled, truly) = match what {
                        3 => (Settled::Cancelled, 0),
                        4 => (Settled::Expired, reserved),
                        _ => (Settled::Cost(&costs), count),
                    };
                    world.settle(&hold, settled, now);
                    used += truly.saturating_sub(reserved);
                    if taken == (minute, resets) {
                        used -= reserved.saturating_sub(truly);
                    }
                }
                6 => {
                    world.reset("a/b/c", now);
                    (used, resets) = (0, resets + 1);
                }
                7 => {
                    now += count * SECOND;
                    if !is_session && now / (60 * SECOND) > minute {
                        used = 0;
                    }
                }
                _ => {
                    let is_admitted = world.take("a/b/c", &costs, now) == Decision::Admitted;
                    prop_assert_eq!(is_admitted, used + count <= 100);
                    used += if is_admitted { count } else { 0 };
                }
            }
            let left = 100 - i128::from(used);
            prop_assert_eq!(world.peek("a/b/c", now), vec![(left, 100)]);
        }
    }

    #[test]
    fn refunds_never_admit_more_than_capacity_and_refill(
        script in prop::collection::vec((0_u64..SECOND, 1_u64..20, any::<bool>()), 1..60),
    ) {
        let mut world = World::new(vec![limit("a", "*/*/*", Unit::REQUESTS, bucket(20, 5, SECOND))]);
        let mut now = 0;
        let mut kept = 0;
        for (wait, count, is_cancelled) in script {
            now += wait;
            if let Some(hold) = world.hold("a/b/c", &[(Unit::REQUESTS, count)], now) {
                now += wait;
                match is_cancelled {
                    true => world.settle(&hold, Settled::Cancelled, now),
                    false => kept += i128::from(count),
                }
            }
            let most = 20 * i128::from(SECOND) + i128::from(now) * 5;
            prop_assert!(kept * i128::from(SECOND) <= most);
            prop_assert!(world.peek("a/b/c", now)[0].0 <= 20);
        }
    }
}

#[test]
fn a_cost_above_the_reservation_becomes_debt() {
    let mut world = World::new(vec![limit(
        "a",
        "*/*/*",
        Unit::TOKENS,
        bucket(100, 10, SECOND),
    )]);
    let hold = world.hold("a/b/c", &[(Unit::TOKENS, 80)], 0).unwrap();
    world.settle(&hold, Settled::Cost(&[(Unit::TOKENS, 150)]), 0);
    assert_eq!(world.peek("a/b/c", 0), [(-50, 100)]);
    assert_eq!(world.peek("a/b/c", 6 * SECOND), [(10, 100)]);
}

#[test]
fn credit_taken_on_an_earlier_day_is_not_refunded() {
    let day = 86_400 * SECOND;
    let mut world = World::new(vec![limit("a", "*", Unit::TOKENS, budget(100, Every::Day))]);
    let hold = world
        .hold("a/b/c", &[(Unit::TOKENS, 60)], day - SECOND)
        .unwrap();
    world.settle(&hold, Settled::Cancelled, day + SECOND);
    assert_eq!(world.peek("a/b/c", day + SECOND), [(100, 100)]);
    let late = world
        .hold("a/b/c", &[(Unit::TOKENS, 60)], day + SECOND)
        .unwrap();
    world.settle(&late, Settled::Cancelled, day + SECOND);
    assert_eq!(world.peek("a/b/c", day + SECOND), [(100, 100)]);
}

#[test]
fn a_reset_budget_is_not_evicted_before_its_period_ends() {
    let money = limit("a", "*/*/*", Unit::TOKENS, budget(100, Every::Minute));
    let mut world = World::bounded(vec![money], 1);
    let hold = world.hold("a/b/c", &[(Unit::TOKENS, 60)], 0).unwrap();
    world.reset("a/b/c", 0);
    let others = |world: &mut World, now| {
        world.tables.iter_mut().for_each(quota::Table::clean);
        for n in 0..100 {
            let _ = world.take(&format!("a/b/{n}"), &[(Unit::TOKENS, 1)], now);
        }
    };
    others(&mut world, 0);
    let taken = world.take("a/b/c", &[(Unit::TOKENS, 50)], 0);
    assert_eq!(taken, Decision::Admitted);
    world.settle(&hold, Settled::Cancelled, 0);
    assert_eq!(world.peek("a/b/c", 0), [(50, 100)]);
    // Afterwards it is an ordinary subject, whose cell is a new one.
    let before = world.state();
    others(&mut world, 60 * SECOND);
    assert_ne!(world.state(), before);
    assert!(world.cells() <= 4 + 1);
}

#[test]
fn holds_are_removed_once_in_order_of_their_deadline() {
    use quota::{Hold, HoldId, Holds};
    let mut holds = Holds::new(2);
    let hold = |deadline_ns| Hold {
        subject: "a/b/c".into(),
        principal: "".into(),
        charges: Box::default(),
        deadline_ns,
    };
    holds.insert(HoldId(1), hold(20));
    holds.insert(HoldId(2), hold(10));
    assert!(holds.check_room().is_err());
    assert_eq!(holds.next_ns(), Some(10));
    assert_eq!(holds.expire(9), None);
    assert_eq!(holds.expire(20).map(|(id, _)| id), Some(HoldId(2)));
    assert!(holds.remove(HoldId(1)).is_some());
    assert_eq!(
        (holds.remove(HoldId(1)), holds.expire(u64::MAX)),
        (None, None)
    );
}
