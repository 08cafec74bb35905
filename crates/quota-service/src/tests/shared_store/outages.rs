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
fn node_grants_its_refill_share_in_an_outage_and_repays_it() {
    let store = Store::shared_by(3);
    let world = node_in(&store, 3, &[refilled()]);
    store.set_mode(StoreMode::StoreUnavailable);
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
    let view = world.node.quotas().shared_store_view().unwrap();
    assert_eq!((view.unsent, view.store.is_connected), (2, false));
    store.set_mode(StoreMode::Answers);
    done(world.node.quotas().tend_store());
    assert_eq!(remaining(&world, "a/b/c"), [30 - 14]);
}

#[test]
fn nodes_together_admit_no_more_than_the_total_in_an_outage() {
    let store = Store::shared_by(3);
    let worlds = [(); 3].map(|()| node_in(&store, 3, &[refilled()]));
    let drained = take(&worlds[0], "a/b/c", &[(Unit::REQUESTS, 30)]);
    assert!(is_admitted(&drained) && !drained.is_degraded);
    store.set_mode(StoreMode::StoreUnavailable);
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
fn outage_grants_are_debited_before_the_next_store_request() {
    let store = Store::shared_by(1);
    let world = node_in(&store, 1, &[refilled()]);
    assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::REQUESTS, 30)])));
    store.set_mode(StoreMode::StoreUnavailable);
    assert_eq!(admitted(&world, 1), 0);
    pass_ms(&world, &store, 4_000);
    assert_eq!(admitted(&world, 20), 12);
    store.set_mode(StoreMode::Answers);
    store.takes();
    // The unsent debits were not sent yet, and the refill was granted already.
    assert!(!is_admitted(&take(&world, "a/b/c", &ONE)));
    let told = store.takes();
    assert_eq!((told[0].verb, told[0].cells[0].count), (Verb::Force, 12));
}

#[test]
fn each_store_outage_starts_without_refill_credit() {
    let store = Store::shared_by(1);
    let world = node_in(&store, 1, &[refilled()]);
    store.set_mode(StoreMode::StoreUnavailable);
    assert_eq!(admitted(&world, 1), 0);
    store.set_mode(StoreMode::Answers);
    // There are no takes: the background work detects the end of the outage.
    done(world.node.quotas().tend_store());
    pass_ms(&world, &store, 60_000);
    store.set_mode(StoreMode::StoreUnavailable);
    assert_eq!(admitted(&world, 3), 0);
}

#[test]
fn budget_grants_only_its_leases_while_the_store_is_unavailable() {
    let budget = LimitConfig {
        capacity: None,
        refill: None,
        budget: Some(30),
        every: Some("day".to_owned()),
        ..bucket("spend", 0, "")
    };
    let (world, store) = one_node(&[budget]);
    store.set_mode(StoreMode::StoreUnavailable);
    let taken = take(&world, "a/b/c", &ONE);
    assert!(taken.is_degraded);
    assert!(
        matches!(taken.outcome, Outcome::Unavailable { .. }),
        "{taken:?}"
    );
}

#[test]
fn on_unreachable_denies_or_allows_all_takes_in_an_outage() {
    for (says, is_given) in [("deny", false), ("allow", true)] {
        let (world, store) = one_node(&[limit(says)]);
        store.set_mode(StoreMode::StoreUnavailable);
        for _ in 0..40 {
            let taken = take(&world, "a/b/c", &ONE);
            assert!(taken.is_degraded);
            match is_given {
                true => assert!(is_admitted(&taken)),
                false => assert!(matches!(taken.outcome, Outcome::Unavailable { .. })),
            }
        }
        store.set_mode(StoreMode::Answers);
        done(world.node.quotas().tend_store());
        let expected = if is_given { 30 - 40 } else { 30 };
        assert_eq!(remaining(&world, "a/b/c"), [expected]);
    }
}

#[test]
fn late_store_answer_makes_the_take_unconfirmed() {
    let (world, store) = one_node(&[limit("deny")]);
    store.set_mode(StoreMode::Late);
    let taken = take(&world, "a/b/c", &ONE);
    assert!(
        matches!(taken.outcome, Outcome::Unconfirmed { .. }),
        "{taken:?}"
    );
    store.set_mode(StoreMode::Answers);
    // The take was debited and is not returned, because the node does not know of it.
    assert_eq!(remaining(&world, "a/b/c"), [29]);
}

#[test]
fn slow_store_does_not_delay_local_takes() {
    let here = LimitConfig {
        unit: "sends".to_owned(),
        ..bucket("sends", 2, "0/s")
    };
    let (world, store) = one_node(&[limit("deny"), here]);
    store.set_mode(StoreMode::Slow);
    let (mut desk, begun) = (Desk::new(), begin(&world, "a/b/c", &ONE, None));
    let TakeProgress::Asks(mut parked) = begun else {
        panic!("nothing is known: {begun:?}");
    };
    assert!(poll_take(&mut parked, &mut desk).is_none());
    assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::SENDS, 1)])));
    store.set_mode(StoreMode::Answers);
    assert!(is_admitted(&poll_take(&mut parked, &mut desk).unwrap()));
    assert_eq!(remaining(&world, "a/b/c"), [29, 1]);
}

#[test]
fn slots_are_unavailable_while_the_store_is_unavailable() {
    let slots = LimitConfig {
        unit: "concurrency".to_owned(),
        refill: None,
        ..bucket("slots", 9, "")
    };
    let (world, store) = one_node(&[slots]);
    store.set_mode(StoreMode::StoreUnavailable);
    let costs = [(Unit::CONCURRENCY, 1)];
    let hold = Some(Duration::from_secs(5));
    let taken = end(begin(&world, "a/b/c", &costs, hold), &mut Desk::new());
    assert!(
        matches!(taken.outcome, Outcome::Unavailable { .. }),
        "{taken:?}"
    );
}

#[test]
fn peek_is_unavailable_while_the_store_is_unavailable() {
    let (world, store) = one_node(&[limit("allow")]);
    store.set_mode(StoreMode::StoreUnavailable);
    let (mut desk, subject) = (Desk::new(), Subject::parse("a/b/c").unwrap());
    let mut parked = world.node.quotas().peek(&mut desk, &subject).unwrap();
    let looked = poll_take(&mut parked, &mut desk).unwrap();
    assert!(matches!(looked.outcome, Outcome::Unavailable { .. }));
}
