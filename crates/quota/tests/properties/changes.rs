//! Properties of limits that change while they are used.

use proptest::prelude::*;
use quota::{Decision, Factor, Halt, Override, Policies, Prefix, Rules, Unit};

use crate::world::{SECOND, World, bucket, limit};

fn other_policies(world: &World, kind: quota::Kind, now: u64) -> Rules {
    let limits = vec![limit("a", "*/*/*", Unit::REQUESTS, kind)];
    let policies = world.rules.policies().next(limits).unwrap();
    world.rules.with_policies(policies, now)
}

fn change(capacity: Option<u64>, grant: u64, until_ns: u64) -> Override {
    Override {
        capacity,
        refill: None,
        grant,
        until_ns,
        by: "root".into(),
        reason: "launch day".into(),
    }
}

impl World {
    fn override_a(&mut self, prefix: &str, change: Override, now: u64) {
        let prefix = Prefix::parse(prefix).unwrap();
        let granted = change.grant;
        let rules = self.rules.with_override("a", prefix, change, now).unwrap();
        let (key, table) = rules.key("a", prefix).unwrap();
        self.tables[usize::from(table)].follow_override(&self.rules, &rules, key, granted, now);
        self.rules = rules;
    }
}

proptest! {
    #[test]
    fn limit_changes_preserve_usage_and_create_no_credit(
        script in prop::collection::vec(
            (0_u64..3_000_000_000, 1_u64..8, 8_u64..40, 0_u64..9, 1_u64..4_000_000_000), 1..40,
        ),
    ) {
        let mut world = World::new(vec![limit("a", "*/*/*", Unit::REQUESTS, bucket(20, 4, SECOND))]);
        let (mut capacity, mut amount, mut period, mut now) = (20_u64, 4_u64, SECOND, 0_u64);
        // The exact allowed amount, as a fraction of numbers that fit.
        let mut have = num(20, 1);
        for (wait, count, new_capacity, new_amount, new_period) in script {
            now += wait;
            have = least(add(have, num(i128::from(wait) * i128::from(amount), i128::from(period))), num(i128::from(capacity), 1));
            if world.take("a/b/c", &[(Unit::REQUESTS, count)], now) == Decision::Admitted {
                have = add(have, num(-i128::from(count), 1));
                prop_assert!(have.0 >= 0, "more was admitted than there was: {have:?}");
            }
            let rules = other_policies(&world, bucket(new_capacity, new_amount, new_period), now);
            world.follow(rules, now);
            have = least(add(have, num(i128::from(new_capacity) - i128::from(capacity), 1)), num(i128::from(new_capacity), 1));
            (capacity, amount, period) = (new_capacity, new_amount, new_period);
            // Never more than the fraction, and less only because of rounding.
            let left = world.peek("a/b/c", now)[0].0;
            let exactly = have.0.div_euclid(have.1);
            prop_assert!(left == exactly || left == exactly - 1, "{left} {have:?}");
        }
    }

    #[test]
    fn a_factor_multiplies_the_refill_only_while_it_is_set(
        numerator in 0_u32..20, denominator in 1_u32..20,
        set in 0_u64..100, length in 1_u64..100, then in 0_u64..100,
    ) {
        let kind = bucket(1_000_000, 1_000, SECOND);
        let mut world = World::new(vec![limit("a", "*/*/*", Unit::REQUESTS, kind)]);
        prop_assert_eq!(world.take("a/b/c", &[(Unit::REQUESTS, 1_000_000)], 0), Decision::Admitted);
        let factor = Factor::new(numerator, denominator).unwrap();
        let (set_ns, end_ns) = (set * SECOND, (set + length) * SECOND);
        let rules = world.rules.with_factor("a", factor, Some(end_ns), set_ns).unwrap();
        world.follow(rules, set_ns);
        let left = world.peek("a/b/c", end_ns + then * SECOND)[0].0;
        let refilled = u128::from(set + then) * 1_000
            + u128::from(length) * 1_000 * u128::from(numerator) / u128::from(denominator);
        let refilled = refilled.min(1_000_000) as i128;
        prop_assert!(left == refilled || left == refilled - 1, "{left} of {refilled}");
    }
}

fn num(numerator: i128, denominator: i128) -> (i128, i128) {
    (numerator, denominator)
}

/// Rounds up to 10⁻⁹, which keeps numbers small but still reveals created credit.
fn add(left: (i128, i128), right: (i128, i128)) -> (i128, i128) {
    const UNIT: i128 = 1_000_000_000;
    let scaled = |(n, d): (i128, i128)| (n * UNIT + d - 1).div_euclid(d);
    (scaled(left) + scaled(right), UNIT)
}

fn least(left: (i128, i128), right: (i128, i128)) -> (i128, i128) {
    if left.0 * right.1 <= right.0 * left.1 {
        left
    } else {
        right
    }
}

#[test]
fn a_raised_capacity_applies_at_once() {
    let mut world = World::new(vec![limit(
        "a",
        "*/*/*",
        Unit::REQUESTS,
        bucket(10, 1, SECOND),
    )]);
    assert_eq!(world.drain("a/b/c", 0), 10);
    let rules = other_policies(&world, bucket(25, 1, SECOND), 0);
    world.follow(rules, 0);
    assert_eq!(world.drain("a/b/c", 0), 15);
}

#[test]
fn an_override_raises_one_bucket_and_expires() {
    let mut world = World::new(vec![limit(
        "a",
        "*/*/*",
        Unit::REQUESTS,
        bucket(10, 0, SECOND),
    )]);
    assert_eq!(world.drain("a/b/c", 0), 10);
    world.override_a("a/b/c", change(Some(30), 0, 100 * SECOND), 0);
    assert_eq!(world.drain("a/b/c", 0), 20);
    assert_eq!(world.drain("a/b/d", 0), 10);
    // After its end, the used amount stays used and becomes debt.
    assert_eq!(world.peek("a/b/c", 100 * SECOND), [(-20, 10)]);
}

#[test]
fn a_grant_is_not_refilled() {
    let mut world = World::new(vec![limit(
        "a",
        "*/*/*",
        Unit::REQUESTS,
        bucket(10, 1, SECOND),
    )]);
    world.override_a("a/b/c", change(None, 5, 1_000 * SECOND), 0);
    assert_eq!(world.drain("a/b/c", 0), 15);
    assert_eq!(world.drain("a/b/c", 100 * SECOND), 10);
}

#[test]
fn predicted_admission_time_is_exact_across_an_override_end() {
    let mut world = World::new(vec![limit(
        "a",
        "*/*/*",
        Unit::REQUESTS,
        bucket(10, 1, SECOND),
    )]);
    let slow = Override {
        refill: Some((0, SECOND)),
        ..change(None, 0, 7 * SECOND)
    };
    world.override_a("a/b/c", slow, 0);
    assert_eq!(world.drain("a/b/c", 0), 10);
    let Decision::Denied(denied) = world.take("a/b/c", &[(Unit::REQUESTS, 3)], SECOND) else {
        panic!("there is nothing");
    };
    assert_eq!(denied.when, quota::When::At(10 * SECOND));
    let before = world.take("a/b/c", &[(Unit::REQUESTS, 3)], 10 * SECOND - 1);
    assert!(matches!(before, Decision::Denied(_)));
    let then = world.take("a/b/c", &[(Unit::REQUESTS, 3)], 10 * SECOND);
    assert_eq!(then, Decision::Admitted);
}

#[test]
fn a_halt_denies_every_subject_below_its_prefix() {
    let mut world = World::new(vec![limit(
        "a",
        "*/*/*",
        Unit::REQUESTS,
        bucket(10, 1, SECOND),
    )]);
    let halt = Halt {
        since_ns: 0,
        by: "root".into(),
        reason: "it loops".into(),
    };
    let prefix = Prefix::parse("acme/search").unwrap();
    world.rules = world.rules.with_halt(prefix, halt).unwrap();
    let mut take = |name| world.take(name, &[(Unit::REQUESTS, 1)], 0);
    assert!(matches!(take("acme/search/bot"), Decision::Halted { .. }));
    assert_eq!(take("acme/other/bot"), Decision::Admitted);
    world.rules = world.rules.without_halt(prefix).unwrap();
    assert_eq!(
        world.take("acme/search/bot", &[(Unit::REQUESTS, 1)], 0),
        Decision::Admitted
    );
    assert!(world.rules.without_halt(prefix).is_err());
}

#[test]
fn a_removed_limit_leaves_no_cells() {
    let mut world = World::new(vec![limit(
        "a",
        "*/*/*",
        Unit::REQUESTS,
        bucket(10, 1, SECOND),
    )]);
    world.drain("a/b/c", 0);
    let b = limit("b", "*", Unit::REQUESTS, bucket(10, 1, SECOND));
    let policies = world.rules.policies().next(vec![b]).unwrap();
    let rules = world.rules.with_policies(policies, 0);
    world.follow(rules, 0);
    assert_eq!((world.cells(), world.rules.policies().version()), (0, 2));
    let names = ["c", "b"].map(|name| limit(name, "*", Unit::TOKENS, bucket(1, 1, 1)));
    let policies = world.rules.policies().next(names.to_vec()).unwrap();
    let ids: Vec<_> = policies.limits().iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [3, 2]);
}

#[test]
fn every_mistake_of_every_limit_is_reported() {
    let mut first = limit("a b", "*", Unit::TOKENS, bucket(1, 1, 0));
    first.weight = 0;
    let second = limit("b", "*", Unit::TOKENS, bucket(u64::MAX, 1, 1));
    let mistakes = Policies::default()
        .next(vec![first, second.clone(), second])
        .unwrap_err();
    assert_eq!(mistakes.len(), 6, "{mistakes:?}");
}
