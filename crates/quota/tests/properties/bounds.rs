//! Properties of takes of several tiers and units, with a bounded number of cells.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quota::{Decision, Every, Kind, Refused, Unit, When};

use crate::world::{SECOND, World, bucket, budget, limit};

fn tiers() -> World {
    World::new(vec![
        limit("org", "*", Unit::REQUESTS, bucket(40, 1, SECOND)),
        limit("team", "*/*", Unit::TOKENS, bucket(300, 10, SECOND)),
        limit("money", "*/*", Unit::USD_MICROS, budget(500, Every::Day)),
        limit("agent", "*/*/*", Unit::REQUESTS, bucket(10, 1, SECOND)),
        limit("run", "*/*/*?run", Unit::REQUESTS, budget(4, Every::Never)),
    ])
}

proptest! {
    #[test]
    fn a_denied_take_changes_nothing_at_any_tier(
        script in prop::collection::vec(
            (0_u64..2, 0_usize..3, 0_usize..3, 1_u64..4, 0_u64..120, 0_u64..200), 1..80,
        ),
    ) {
        let mut world = tiers();
        let mut now = SECOND;
        for (wait, team, agent, requests, tokens, money) in script {
            now += wait * SECOND;
            let run = if agent == 0 { "?run=r" } else { "" };
            let subject = format!("acme/team-{team}/agent-{agent}{run}");
            let before = world.state();
            let costs = [
                (Unit::REQUESTS, requests),
                (Unit::TOKENS, tokens),
                (Unit::USD_MICROS, money),
            ];
            if world.take(&subject, &costs, now) != Decision::Admitted {
                prop_assert_eq!(world.state(), before);
            }
        }
    }

    #[test]
    fn an_admitted_take_is_debited_at_every_tier(
        script in prop::collection::vec((0_usize..2, 0_usize..2, 1_u64..4, 1_u64..60), 1..40),
    ) {
        let mut world = tiers();
        let mut used = BTreeMap::<String, u64>::new();
        for (team, agent, requests, tokens) in script {
            let name = format!("acme/{team}/{agent}");
            let costs = [(Unit::REQUESTS, requests), (Unit::TOKENS, tokens)];
            if world.take(&name, &costs, SECOND) == Decision::Admitted {
                *used.entry("acme".to_owned()).or_default() += requests;
                *used.entry(name.clone()).or_default() += requests;
                *used.entry(format!("acme/{team}")).or_default() += tokens;
            }
            let left: Vec<_> = world.peek(&name, SECOND).into_iter().map(|(have, _)| have).collect();
            let of = |name: &str| i128::from(used.get(name).copied().unwrap_or(0));
            prop_assert_eq!(left[0], 40 - of("acme"));
            prop_assert_eq!(left[1], 300 - of(&format!("acme/{team}")));
            prop_assert_eq!(left[3], 10 - of(&name));
        }
    }

    #[test]
    fn only_full_cells_are_evicted_and_eviction_refunds_nothing(
        script in prop::collection::vec((0_u64..SECOND, 0_usize..60), 1..200),
    ) {
        let kind = bucket(3, 1, SECOND);
        let limits = || vec![limit("a", "*/*/*", Unit::REQUESTS, kind)];
        let mut small = World::bounded(limits(), 4);
        let mut large = World::new(limits());
        let mut now = 0;
        for (wait, agent) in script {
            now += wait;
            small.tables.iter_mut().for_each(quota::Table::clean);
            let name = format!("a/b/{agent}");
            let in_large = large.take(&name, &[(Unit::REQUESTS, 1)], now);
            let in_small = small.take(&name, &[(Unit::REQUESTS, 1)], now);
            // A subject without its own cell uses the shared one: it is admitted less, never more.
            let is_shared = small.plan.limit_states(&small.rules, now).any(|it| it.is_shared);
            if !is_shared && in_small == Decision::Admitted && in_large != Decision::Admitted {
                // A denial comes from the shared cell if that was the subject's cell.
                prop_assert!(small.cells() > 4);
            }
            // Four tables of four cells, and one shared cell.
            prop_assert!(small.cells() <= 4 * 4 + 1);
        }
    }
}

#[test]
fn subjects_beyond_the_cell_limit_share_one_bucket_per_limit() {
    let kind = bucket(5, 0, SECOND);
    let mut world = World::bounded(vec![limit("a", "*/*/*", Unit::REQUESTS, kind)], 2);
    let admitted = (0..1_000)
        .filter(|n| {
            let name = format!("a/b/{n}");
            world.take(&name, &[(Unit::REQUESTS, 1)], 0) == Decision::Admitted
        })
        .count();
    // The eight subjects with their own cell took one each, all others together took five.
    assert_eq!((admitted, world.cells()), (13, 9));
    let refused: u64 = world.tables.iter().map(|it| it.tally().refused).sum();
    assert_eq!(refused, 992);
}

#[test]
fn full_cells_are_evicted_and_return_at_full_capacity() {
    let kind = bucket(2, 1, SECOND);
    let mut world = World::bounded(vec![limit("a", "*/*/*", Unit::REQUESTS, kind)], 1);
    for n in 0..100 {
        let now = n * 10 * SECOND;
        assert_eq!(world.drain(&format!("a/b/{n}"), now), 2);
        world.tables.iter_mut().for_each(quota::Table::clean);
        assert!(world.cells() <= 4);
    }
    let evicted: u64 = world.tables.iter().map(|it| it.tally().evicted).sum();
    assert_eq!(evicted, 100 - world.cells() as u64);
    assert_eq!(world.drain("a/b/0", 2_000 * SECOND), 2);
}

#[test]
fn invalid_takes_are_refused_and_create_no_cell() {
    let mut world = tiers();
    let mut refused = |costs: &[(Unit, u64)]| world.take("a/b/c", costs, SECOND);
    assert_eq!(refused(&[]), Decision::Refused(Refused::Nothing));
    assert_eq!(
        refused(&[(Unit::REQUESTS, 0)]),
        Decision::Refused(Refused::Nothing)
    );
    assert!(matches!(
        refused(&[(Unit::REQUESTS, 11)]),
        Decision::Refused(Refused::AboveCapacity {
            capacity: 10,
            need: 11,
            ..
        })
    ));
    let unit = Unit::parse("parsecs").unwrap();
    assert_eq!(
        refused(&[(unit, 1)]),
        Decision::Refused(Refused::UnknownUnit { unit })
    );
    let unit = Unit::TOKENS;
    assert_eq!(
        refused(&[(unit, u64::MAX)]),
        Decision::Refused(Refused::TooMuch { unit })
    );
    assert_eq!(world.cells(), 0);
}

#[test]
fn capacity_zero_denies_takes_with_a_cost() {
    let limits = vec![
        limit(
            "blocked",
            "*/*/*",
            Unit::USD_MICROS,
            budget(0, Every::Never),
        ),
        limit("agent", "*/*/*", Unit::REQUESTS, bucket(5, 1, SECOND)),
    ];
    let mut world = World::new(limits);
    let both = [(Unit::REQUESTS, 1), (Unit::USD_MICROS, 1)];
    let Decision::Denied(denied) = world.take("a/b/c", &both, 0) else {
        panic!("it is blocked");
    };
    assert_eq!((denied.when, denied.have), (When::Never, 0));
    let free = [(Unit::REQUESTS, 1), (Unit::USD_MICROS, 0)];
    assert_eq!(world.take("a/b/c", &free, 0), Decision::Admitted);
}

#[test]
fn a_denial_names_the_limit_that_admits_last() {
    let mut world = tiers();
    let costs = [(Unit::REQUESTS, 5), (Unit::USD_MICROS, 400)];
    assert_eq!(world.take("a/b/c", &costs, SECOND), Decision::Admitted);
    let Decision::Denied(denied) = world.take(
        "a/b/c",
        &[(Unit::REQUESTS, 6), (Unit::USD_MICROS, 200)],
        SECOND,
    ) else {
        panic!("neither has so much");
    };
    assert_eq!(&*world.rules.limit(denied.index).name, "money");
    assert_eq!((denied.have, denied.need), (100, 200));
    assert_eq!(denied.when, When::Period(86_400 * SECOND));
}

#[test]
fn a_shadow_limit_reports_denials_and_an_off_limit_does_not() {
    let kind = bucket(1, 1, SECOND);
    let mut shadow = limit("shadow", "*/*/*", Unit::REQUESTS, kind);
    shadow.mode = quota::Mode::Shadow;
    let mut off = limit("off", "*/*/*", Unit::REQUESTS, kind);
    off.mode = quota::Mode::Off;
    let mut world = World::new(vec![shadow, off]);
    let shadowed = |world: &World| {
        let states = world.plan.limit_states(&world.rules, 0);
        states.map(|it| it.shadowed.is_some()).collect::<Vec<_>>()
    };
    for expected in [[false], [true], [true]] {
        assert_eq!(
            world.take("a/b/c", &[(Unit::REQUESTS, 1)], 0),
            Decision::Admitted
        );
        assert_eq!(shadowed(&world), expected);
    }
}

#[test]
fn slots_are_taken_and_given_back() {
    let kind = Kind::Slots { capacity: 2 };
    let mut world = World::new(vec![limit("slots", "*/*/*", Unit::CONCURRENCY, kind)]);
    let costs = [(Unit::CONCURRENCY, 1)];
    let first = world.hold("a/b/c", &costs, 0).unwrap();
    assert!(world.hold("a/b/c", &costs, 0).is_some());
    let Decision::Denied(denied) = world.take("a/b/c", &costs, 0) else {
        panic!("both are in use");
    };
    assert_eq!(denied.when, When::Release);
    world.settle(&first, quota::Settled::Expired, SECOND);
    assert!(world.hold("a/b/c", &costs, SECOND).is_some());
}
