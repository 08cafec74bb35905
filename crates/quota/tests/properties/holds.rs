//! What is reserved, and what it truly cost.

use proptest::prelude::*;
use quota::{Every, Settled, Unit};

use crate::world::{SECOND, World, bucket, budget, limit};

proptest! {
    #[test]
    fn whatever_is_settled_the_budget_has_lost_what_it_truly_cost(
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
    fn giving_back_never_admits_more_than_capacity_and_refill(
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
fn what_costs_more_than_was_reserved_becomes_debt_that_is_paid_first() {
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
fn what_was_taken_from_a_day_that_is_over_is_not_given_back_to_the_next() {
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
fn a_hold_leaves_the_list_once_and_the_earliest_first() {
    use quota::{Hold, HoldId, Holds};
    let mut holds = Holds::new(2);
    let hold = |deadline_ns| Hold {
        subject: "a/b/c".into(),
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
