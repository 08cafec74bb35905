use proptest::prelude::*;

use super::*;
use crate::calendar::Every;
use crate::decide::{decide, look};
use crate::key::Seed;
use crate::limit::{Durability, Limit, Unreachable};
use crate::pattern::Pattern;
use crate::policies::Policies;
use crate::table::Table;
use crate::unit::Unit;

const SECOND: u64 = 1_000_000_000;

fn rules(kind: Kind, factor: Factor, mode: Mode) -> Rules {
    let limit = Limit {
        name: "one".into(),
        pattern: Pattern::parse("*/*/*").unwrap(),
        unit: Unit::REQUESTS,
        kind,
        mode,
        durability: Durability::Async,
        factor,
        weight: 2,
        warn: Vec::new(),
        on_unreachable: Unreachable::Degrade,
    };
    let policies = Policies::default().next(vec![limit]).unwrap();
    Rules::new(Seed(1), 1).with_policies(policies, 0)
}

fn bucket(capacity: u64, amount: u64, period_ns: u64) -> Kind {
    Kind::Bucket(Bucket {
        capacity,
        amount,
        period_ns,
    })
}

#[test]
fn a_part_includes_weight_and_factor() {
    let factor = Factor::new(1, 3).unwrap();
    let subject = Subject::parse("a/b/c").unwrap();
    let budget = Kind::Budget {
        amount: 10,
        every: Every::Day,
        zone: crate::Zone::UTC,
    };
    let slots = Kind::Slots { capacity: 10 };
    for (kind, expected) in [
        (bucket(10, 6, SECOND), bucket(10, 1, SECOND / 4)),
        (slots, Kind::Slots { capacity: 3 }),
        (
            budget,
            Kind::Budget {
                amount: 3,
                every: Every::Day,
                zone: crate::Zone::UTC,
            },
        ),
    ] {
        let rules = rules(kind, factor, Mode::Enforce);
        let mut plan = Plan::default();
        rules
            .plan(&mut plan, &subject, &[(Unit::REQUESTS, 2)])
            .unwrap();
        let part = plan.parts(&rules, &subject, 0).next().unwrap();
        assert_eq!((part.kind, part.count), (expected, 2));
    }
}

#[test]
fn impossible_takes_are_refused_without_the_store() {
    let subject = Subject::parse("a/b/c").unwrap();
    let mut plan = Plan::default();
    for (mode, is_refused) in [(Mode::Enforce, true), (Mode::Shadow, false)] {
        let rules = rules(bucket(10, 1, SECOND), Factor::ONE, mode);
        rules
            .plan(&mut plan, &subject, &[(Unit::REQUESTS, 11)])
            .unwrap();
        let turned = rules.turn_down(&plan, &subject, 0);
        let is_it = matches!(
            turned,
            Err(Decision::Refused(Refused::AboveCapacity { need: 11, .. }))
        );
        assert_eq!(is_it, is_refused);
    }
}

#[test]
fn a_charge_carries_the_marker_of_the_store() {
    let slots = Kind::Slots { capacity: 3 };
    let rules = rules(slots, Factor::ONE, Mode::Enforce);
    let subject = Subject::parse("a/b/c").unwrap();
    let mut plan = Plan::default();
    rules
        .plan(&mut plan, &subject, &[(Unit::REQUESTS, 1)])
        .unwrap();
    plan.tell(&rules, &subject, 0, store_answer(2, 77), SECOND);
    assert_eq!(plan.charges(&rules)[0].period, 77);
}

fn store_answer(have: i128, mark: u64) -> StoreAnswer {
    StoreAnswer {
        have,
        mark: Some(mark),
        touched_ns: None,
        is_shadowed: false,
    }
}

proptest! {
    #[test]
    fn a_plan_with_store_answers_equals_a_local_plan(
        capacity in 1_u64..1_000, amount in 0_u64..50, period_ns in 1_u64..2_000, taken in 1_u64..1_000,
        kind in 0..3,
    ) {
        let taken = taken.min(capacity);
        let kind = match kind {
            0 => bucket(capacity, amount, period_ns),
            1 => Kind::Budget { amount: capacity, every: Every::Hour, zone: crate::Zone::UTC },
            _ => Kind::Slots { capacity },
        };
        let (rules, subject) = (rules(kind, Factor::ONE, Mode::Enforce), Subject::parse("a/b/c").unwrap());
        let (mut tables, now_ns) = ([Box::new(Table::new(Seed(1), 10))], 5_000_000 * SECOND);
        let (mut here, mut there) = (Plan::default(), Plan::default());
        for plan in [&mut here, &mut there] {
            rules.plan(plan, &subject, &[(Unit::REQUESTS, taken)]).unwrap();
        }
        prop_assert_eq!(decide(&rules, &mut here, &subject, &mut tables, now_ns), Decision::Admitted);
        look(&rules, &mut here, &subject, &mut tables, now_ns);
        let have = i128::from(capacity - taken);
        let mark = match kind {
            Kind::Budget { every, zone, .. } => every.period(now_ns, zone),
            Kind::Bucket(_) | Kind::Slots { .. } => 0,
        };
        there.tell(&rules, &subject, 0, store_answer(have, mark), now_ns);
        let balances = |plan: &Plan| {
            plan.limit_states(&rules, now_ns).map(|it| (it.have, it.capacity, it.reset_ns)).collect::<Vec<_>>()
        };
        prop_assert_eq!(balances(&here), balances(&there));
        prop_assert_eq!(here.charges(&rules), there.charges(&rules));
    }

    #[test]
    fn a_factor_that_does_not_fit_never_refills_faster(
        amount in 1_u64..1_000_000_000_000_000_000, period_ns in 1_u64..31_622_400_000_000_000,
        numerator in 1_u32..1_000_000, denominator in 1_u32..1_000_000,
    ) {
        let Ok(factor) = Factor::new(numerator, denominator) else { return Ok(()) };
        let by = Bucket { capacity: 1, amount, period_ns }.by(factor);
        // amount × numerator ÷ (period × denominator) ≥ by.amount ÷ by.period, by their logarithms.
        let exact = (amount as f64).log2() + f64::from(numerator).log2()
            - (period_ns as f64).log2() - f64::from(denominator).log2();
        let made = (by.amount as f64).log2() - (by.period_ns as f64).log2();
        prop_assert!(by.period_ns > 0 && made <= exact + 1e-9 && made >= exact - 1e-6, "{made} of {exact}");
    }
}

#[test]
fn override_that_raises_nothing_only_tightens() {
    let change = |capacity, refill, grant| crate::admin::Override {
        capacity,
        refill,
        grant,
        until_ns: u64::MAX,
        by: "root".into(),
        reason: "a test".into(),
    };
    // With its weight, ten are refilled in a second.
    let rules = rules(bucket(100, 5, SECOND), Factor::ONE, Mode::Enforce);
    for (change, expected) in [
        (change(Some(100), None, 0), true),
        (change(Some(0), Some((0, 1)), 0), true),
        (change(None, Some((20, 2 * SECOND)), 0), true),
        (change(None, Some((21, 2 * SECOND)), 0), false),
        (change(Some(101), None, 0), false),
        (change(Some(1), None, 1), false),
    ] {
        assert_eq!(rules.tightens("one", &change), Ok(expected), "{change:?}");
    }
    assert!(rules.tightens("two", &change(None, None, 0)).is_err());
    let ratio = |numerator, denominator| Factor::new(numerator, denominator).unwrap();
    assert!(ratio(1, 3).is_at_most(ratio(2, 6)) && ratio(0, 1).is_at_most(ratio(1, 1_000_000)));
    assert!(!ratio(2, 3).is_at_most(ratio(3, 5)));
}
