//! Takes while the shared store is unavailable.

use super::*;
use crate::quota_store::Verb;

fn limit(on_unreachable: &str) -> LimitConfig {
    LimitConfig {
        on_unreachable: Some(on_unreachable.to_owned()),
        ..bucket("agent", 30, "0/s")
    }
}

/// Takes one unit `count` times and returns how many takes were admitted; all are decided without
/// the store.
fn admitted(world: &World, count: usize) -> usize {
    let taken: Vec<_> = (0..count).map(|_| take(world, "a/b/c", &ONE)).collect();
    assert!(taken.iter().all(|taken| taken.is_degraded));
    taken.iter().filter(|taken| is_admitted(taken)).count()
}

fn refilled() -> LimitConfig {
    bucket("agent", 30, "3/s")
}

#[test]
fn a_node_gives_its_share_of_the_refill_while_the_store_is_away_and_owes_it() {
    let store = Store::shared_by(3);
    let world = node_in(&store, 3, &[refilled()]);
    store.set_mood(Mood::StoreUnavailable);
    // The balance in the store is unknown to the node.
    assert_eq!(admitted(&world, 5), 0);
    pass_ms(&world, &store, 4_000);
    assert_eq!(admitted(&world, 6), 4);
    // A new subject has the refill since the outage began.
    let other = take(&world, "a/b/d", &[(Unit::REQUESTS, 4)]);
    assert!(is_admitted(&other), "{other:?}");
    // The share holds no more than its part of the capacity.
    pass_ms(&world, &store, 60_000);
    assert_eq!(admitted(&world, 12), 10);
    let more = take(&world, "a/b/c", &[(Unit::REQUESTS, 11)]);
    assert!(
        matches!(more.outcome, Outcome::Unavailable { .. }),
        "{more:?}"
    );
    let view = world.node.quotas().elsewhere().unwrap();
    assert_eq!((view.owed, view.store.is_connected), (2, false));
    store.set_mood(Mood::Answers);
    done(world.node.quotas().tend_store());
    assert_eq!(left(&world, "a/b/c"), [30 - 14]);
}

#[test]
fn nodes_together_admit_no_more_than_the_total_in_an_outage() {
    let store = Store::shared_by(3);
    let worlds = [(); 3].map(|()| node_in(&store, 3, &[refilled()]));
    let drained = take(&worlds[0], "a/b/c", &[(Unit::REQUESTS, 30)]);
    assert!(is_admitted(&drained) && !drained.is_degraded);
    store.set_mood(Mood::StoreUnavailable);
    let mut total = 0;
    for _ in 0..10 {
        total += worlds
            .each_ref()
            .map(|world| admitted(world, 4))
            .iter()
            .sum::<usize>();
        for world in &worlds {
            world.pass_ms(1_000);
        }
        store.pass_ns(SECOND);
    }
    // Ten polls, nine seconds between the first and the last.
    assert_eq!(total, 27);
}

#[test]
fn what_was_given_is_debited_before_anything_is_asked_after_an_outage() {
    let store = Store::shared_by(1);
    let world = node_in(&store, 1, &[refilled()]);
    assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::REQUESTS, 30)])));
    store.set_mood(Mood::StoreUnavailable);
    assert_eq!(admitted(&world, 1), 0);
    pass_ms(&world, &store, 4_000);
    assert_eq!(admitted(&world, 20), 12);
    store.set_mood(Mood::Answers);
    store.takes();
    // The unsent debits were not sent yet, and the refill was granted already.
    assert!(!is_admitted(&take(&world, "a/b/c", &ONE)));
    let told = store.takes();
    assert_eq!((told[0].verb, told[0].cells[0].count), (Verb::Force, 12));
}

#[test]
fn an_outage_ends_when_the_store_answers_and_the_next_begins_empty() {
    let store = Store::shared_by(1);
    let world = node_in(&store, 1, &[refilled()]);
    store.set_mood(Mood::StoreUnavailable);
    assert_eq!(admitted(&world, 1), 0);
    store.set_mood(Mood::Answers);
    // There are no takes: the background work detects the end of the outage.
    done(world.node.quotas().tend_store());
    pass_ms(&world, &store, 60_000);
    store.set_mood(Mood::StoreUnavailable);
    assert_eq!(admitted(&world, 3), 0);
}

#[test]
fn a_budget_gives_nothing_beyond_its_leases_while_the_store_is_away() {
    let budget = LimitConfig {
        capacity: None,
        refill: None,
        budget: Some(30),
        every: Some("day".to_owned()),
        ..bucket("spend", 0, "")
    };
    let (world, store) = one_node(&[budget]);
    store.set_mood(Mood::StoreUnavailable);
    let taken = take(&world, "a/b/c", &ONE);
    assert!(taken.is_degraded);
    assert!(
        matches!(taken.outcome, Outcome::Unavailable { .. }),
        "{taken:?}"
    );
}

#[test]
fn nothing_or_everything_is_given_where_the_limit_says_so() {
    for (says, is_given) in [("deny", false), ("allow", true)] {
        let (world, store) = one_node(&[limit(says)]);
        store.set_mood(Mood::StoreUnavailable);
        for _ in 0..40 {
            let taken = take(&world, "a/b/c", &ONE);
            assert!(taken.is_degraded);
            match is_given {
                true => assert!(is_admitted(&taken)),
                false => assert!(matches!(taken.outcome, Outcome::Unavailable { .. })),
            }
        }
        store.set_mood(Mood::Answers);
        done(world.node.quotas().tend_store());
        let expected = if is_given { 30 - 40 } else { 30 };
        assert_eq!(left(&world, "a/b/c"), [expected]);
    }
}

#[test]
fn an_answer_that_comes_too_late_is_no_decision() {
    let (world, store) = one_node(&[limit("deny")]);
    store.set_mood(Mood::Late);
    let taken = take(&world, "a/b/c", &ONE);
    assert!(
        matches!(taken.outcome, Outcome::Unconfirmed { .. }),
        "{taken:?}"
    );
    store.set_mood(Mood::Answers);
    // The take was debited and is not returned, because the node does not know of it.
    assert_eq!(left(&world, "a/b/c"), [29]);
}

#[test]
fn a_slow_store_holds_up_nobody_else() {
    let here = LimitConfig {
        unit: "sends".to_owned(),
        ..bucket("sends", 2, "0/s")
    };
    let (world, store) = one_node(&[limit("deny"), here]);
    store.set_mood(Mood::Slow);
    let (mut desk, begun) = (Desk::new(), begin(&world, "a/b/c", &ONE, None));
    let TakeProgress::Asks(mut parked) = begun else {
        panic!("nothing is known: {begun:?}");
    };
    assert!(look(&mut parked, &mut desk).is_none());
    assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::SENDS, 1)])));
    store.set_mood(Mood::Answers);
    assert!(is_admitted(&look(&mut parked, &mut desk).unwrap()));
    assert_eq!(left(&world, "a/b/c"), [29, 1]);
}

#[test]
fn slots_are_not_shared_out() {
    let slots = LimitConfig {
        unit: "concurrency".to_owned(),
        refill: None,
        ..bucket("slots", 9, "")
    };
    let (world, store) = one_node(&[slots]);
    store.set_mood(Mood::StoreUnavailable);
    let costs = [(Unit::CONCURRENCY, 1)];
    let hold = Some(Duration::from_secs(5));
    let taken = end(begin(&world, "a/b/c", &costs, hold), &mut Desk::new());
    assert!(
        matches!(taken.outcome, Outcome::Unavailable { .. }),
        "{taken:?}"
    );
}

#[test]
fn a_look_is_unavailable_while_the_store_is_away() {
    let (world, store) = one_node(&[limit("allow")]);
    store.set_mood(Mood::StoreUnavailable);
    let (mut desk, subject) = (Desk::new(), Subject::parse("a/b/c").unwrap());
    let mut parked = world.node.quotas().peek(&mut desk, &subject).unwrap();
    let looked = look(&mut parked, &mut desk).unwrap();
    assert!(matches!(looked.outcome, Outcome::Unavailable { .. }));
}
