//! Spending from leases.

use super::*;

/// Takes repeatedly until a take is denied.
fn drain(world: &World, subject: &str) -> u64 {
    (0..)
        .find(|_| !is_admitted(&take(world, subject, &ONE)))
        .unwrap()
}

#[test]
fn hot_bucket_is_spent_from_local_leases_to_the_last_credit() {
    let (world, store) = one_node(&[bucket("agent", 10_000, "0/s")]);
    assert_eq!(drain(&world, "a/b/c"), 10_000);
    let (asked, leases) = (store.takes().len(), store.lease_count());
    assert!(
        asked as u64 + leases < 200,
        "{asked} questions, {leases} leases"
    );
    let view = world.node.quotas().shared_store_view().unwrap();
    assert!(view.leased > 9_500, "{view:?}");
    assert_eq!(remaining(&world, "a/b/c"), [0]);
}

#[test]
fn concurrent_takes_share_one_lease_request() {
    let (world, store) = one_node(&[bucket("agent", 1_000, "0/s")]);
    let mut desk = Desk::new();
    for _ in 0..2 {
        assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::REQUESTS, 10)])));
    }
    pass_ms(&world, &store, 1_500);
    store.set_mode(StoreMode::Slow);
    let mut parked: Vec<WaitingTake> = (0..20)
        .filter_map(|_| match begin(&world, "a/b/c", &ONE, None) {
            TakeProgress::Asks(parked) => Some(parked),
            TakeProgress::Done(_) => None,
        })
        .collect();
    assert_eq!(parked.len(), 20);
    let leases = store.lease_count();
    // The first take asks for itself, and the second for all others. A dropped take gives up its
    // turn.
    for parked in &mut parked {
        assert!(poll_take(parked, &mut desk).is_none());
    }
    drop(parked.remove(1));
    for parked in &mut parked {
        assert!(poll_take(parked, &mut desk).is_none());
    }
    store.set_mode(StoreMode::Answers);
    let mut remaining = parked;
    while !remaining.is_empty() {
        let before = remaining.len();
        remaining.retain_mut(|parked| match poll_take(parked, &mut desk) {
            Some(taken) => {
                assert!(is_admitted(&taken));
                false
            }
            None => true,
        });
        assert!(remaining.len() < before, "no waiting take was decided");
    }
    assert_eq!(store.lease_count() - leases, 1);
}

#[test]
fn unused_lease_is_returned_and_used_lease_is_renewed() {
    let (world, store) = one_node(&[bucket("agent", 1_000, "0/s")]);
    for _ in 0..20 {
        assert!(is_admitted(&take(&world, "a/b/c", &ONE)));
    }
    let kind = read(&[bucket("agent", 1_000, "0/s")])[0].kind;
    assert!(store.used(kind) > 20, "something is leased");
    pass_ms(&world, &store, 300);
    done(world.node.quotas().tend_store());
    assert_eq!(store.used(kind), 20);
    // With continuous takes, a lease has the amount requested in a tenth of a second.
    for _ in 0..20 {
        pass_ms(&world, &store, 100);
        for _ in 0..5 {
            assert!(is_admitted(&take(&world, "a/b/c", &ONE)));
        }
        done(world.node.quotas().tend_store());
    }
    assert!(store.lease_count() < 40, "{}", store.lease_count());
    done(world.node.quotas().leave_store()).unwrap();
    assert_eq!(store.used(kind), 120);
}

#[test]
fn leased_credit_still_counts_for_a_large_take() {
    let (world, store) = one_node(&[bucket("agent", 100, "0/s")]);
    for _ in 0..10 {
        assert!(is_admitted(&take(&world, "a/b/c", &ONE)));
    }
    // More than the store itself has left.
    assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::REQUESTS, 90)])));
    assert_eq!(remaining(&world, "a/b/c"), [0]);
    drop(store);
}

#[test]
fn lease_credit_is_refunded_when_another_cell_denies() {
    let org = LimitConfig {
        pattern: "*".to_owned(),
        ..bucket("org", 1_000, "0/s")
    };
    let (world, _store) = one_node(&[bucket("agent", 2, "0/s"), org]);
    for agent in 0..30 {
        let subject = format!("acme/b/{agent}");
        let told = [(); 3].map(|()| is_admitted(&take(&world, &subject, &ONE)));
        assert_eq!(told, [true, true, false]);
    }
    assert_eq!(remaining(&world, "acme/b/x"), [2, 940]);
}

#[test]
fn nodes_sharing_a_bucket_never_overadmit_after_a_node_restarts() {
    for (seed, refill) in [(1, "0/s"), (2, "50/s"), (3, "1000/s")] {
        let mut random = fastrand::Rng::with_seed(seed);
        let store = Store::shared_by(3);
        let limits = [bucket("agent", 300, refill)];
        let node = || node_in(&store, 3, &limits);
        let mut nodes = [node(), node(), node()];
        let (amount, _) = crate::parse_refill(refill).unwrap();
        let (mut admitted, mut passed_ms) = (0, 0);
        for round in 0..6_000 {
            let node = random.usize(0..3);
            admitted += u64::from(is_admitted(&take(&nodes[node], "a/b/c", &ONE)));
            if round % 40 == 0 {
                nodes.iter().for_each(|node| node.pass_ms(100));
                store.pass_ns(100_000_000);
                passed_ms += 100;
                done(nodes[node].node.quotas().tend_store());
            }
            if round == 3_000 {
                // The credit that it had leased is lost.
                let world = node_in(&store, 3, &limits);
                world.pass_ms(passed_ms);
                nodes[0] = world;
            }
            let there = 300 + amount * passed_ms / 1_000;
            assert!(
                admitted <= there,
                "{admitted} of {there} after {passed_ms} ms"
            );
        }
        let there = 300 + amount * passed_ms / 1_000;
        assert!(
            admitted * 10 >= there.min(6_000) * 7,
            "{admitted} of {there}"
        );
    }
}
