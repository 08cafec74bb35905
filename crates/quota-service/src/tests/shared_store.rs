//! Nodes whose cells are in a simulated shared store.

mod leases;
mod outages;
mod persistence;
mod store;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quota::{Cost, Subject, Unit};

use super::{Parts, World, bucket, quotas, read};
use crate::{
    Attempt, DecidedTake, Desk, LimitConfig, Outcome, SharedStore, Take, TakeProgress, WaitingTake,
};
use store::{SECOND, Store, StoreMode};

const ONE: [Cost; 1] = [(Unit::REQUESTS, 1)];

/// Starts a node with these limits, in a store shared by `nodes` nodes.
fn node_in(store: &Store, nodes: u32, limits: &[LimitConfig]) -> World {
    let parts = Parts {
        shared: Some(SharedStore {
            store: Arc::new(store.clone()),
            nodes,
        }),
        ..quotas(limits)
    };
    World::open(0, parts)
}

fn one_node(limits: &[LimitConfig]) -> (World, Store) {
    let store = Store::shared_by(1);
    (node_in(&store, 1, limits), store)
}

fn begin(world: &World, subject: &str, costs: &[Cost], hold: Option<Duration>) -> TakeProgress {
    let take = Take {
        subject: Subject::parse(subject).unwrap(),
        costs,
        hold,
        id: None,
        principal: None,
    };
    world.node.quotas().take(&mut Desk::new(), &take)
}

/// Polls once.
fn poll_take(parked: &mut WaitingTake, desk: &mut Desk) -> Option<DecidedTake> {
    match parked.poll(desk, Waker::noop()) {
        Attempt::Done(taken) => Some(taken),
        Attempt::Wait(_) => None,
    }
}

/// Returns the outcome of a take that the store answers at once.
fn end(begun: TakeProgress, desk: &mut Desk) -> DecidedTake {
    match begun {
        TakeProgress::Done(taken) => taken,
        TakeProgress::Asks(mut parked) => {
            poll_take(&mut parked, desk).expect("the store has answered")
        }
    }
}

fn take(world: &World, subject: &str, costs: &[Cost]) -> DecidedTake {
    end(begin(world, subject, costs, None), &mut Desk::new())
}

fn is_admitted(taken: &DecidedTake) -> bool {
    matches!(taken.outcome, Outcome::Admitted { .. })
}

/// Returns the credit left per limit, according to the store.
fn remaining(world: &World, subject: &str) -> Vec<i128> {
    let mut desk = Desk::new();
    let subject = Subject::parse(subject).unwrap();
    let parked = world.node.quotas().peek(&mut desk, &subject);
    let looked = poll_take(&mut parked.expect("the store is asked"), &mut desk);
    assert!(is_admitted(&looked.expect("the store has answered")));
    desk.limit_states().map(|state| state.have).collect()
}

/// Returns the result of a request that the store answers at once.
fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("the store has answered"),
    }
}

/// Advances the clocks of the node and the store.
fn pass_ms(world: &World, store: &Store, ms: u64) {
    world.pass_ms(ms);
    store.pass_ns(ms.div_ceil(100) * 100_000_000);
}

#[test]
fn take_of_several_cells_is_one_atomic_store_request() {
    let org = LimitConfig {
        pattern: "*".to_owned(),
        ..bucket("org", 10, "0/s")
    };
    let (world, store) = one_node(&[bucket("agent", 3, "0/s"), org]);
    let mut desk = Desk::new();
    let take = Take {
        subject: Subject::parse("acme/b/c").unwrap(),
        costs: &[(Unit::REQUESTS, 2)],
        hold: None,
        id: None,
        principal: None,
    };
    let taken = end(world.node.quotas().take(&mut desk, &take), &mut desk);
    assert!(is_admitted(&taken) && !taken.is_degraded);
    let states: Vec<_> = desk
        .limit_states()
        .map(|it| (it.have, it.capacity))
        .collect();
    assert_eq!(states, [(1, 3), (8, 10)]);
    let asked = store.takes();
    assert_eq!((asked.len(), asked[0].cells.len()), (1, 2));
    // If one cell denies a take, nothing is taken from the others.
    let denied = end(world.node.quotas().take(&mut desk, &take), &mut desk);
    let Outcome::Denied(denial) = denied.outcome else {
        panic!("there is one left: {denied:?}");
    };
    assert_eq!(
        (&*denial.limit.name, denial.have, denial.need),
        ("agent", 1, 2)
    );
    assert_eq!(remaining(&world, "acme/b/c"), [1, 8]);
}

#[test]
fn denied_subject_causes_no_store_request_before_its_retry_time() {
    let (world, store) = one_node(&[bucket("agent", 5, "2/s")]);
    assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::REQUESTS, 5)])));
    let retry_ns = || match take(&world, "a/b/c", &ONE).outcome {
        Outcome::Denied(denial) => denial.retry_after_ns,
        other => panic!("nothing is left: {other:?}"),
    };
    assert_eq!(retry_ns(), Some(SECOND / 2));
    let leases = store.lease_count();
    store.takes();
    pass_ms(&world, &store, 300);
    assert_eq!(retry_ns(), Some(SECOND / 5));
    assert_eq!((store.takes().len(), store.lease_count()), (0, leases));
    pass_ms(&world, &store, 200);
    assert!(is_admitted(&take(&world, "a/b/c", &ONE)));
    assert_eq!(world.node.quotas().shared_store_view().unwrap().denied, 1);
}

#[test]
fn invalid_cost_is_refused_without_a_store_request() {
    let (world, store) = one_node(&[bucket("agent", 5, "2/s")]);
    for costs in [[(Unit::REQUESTS, 6)], [(Unit::REQUESTS, 0)]] {
        let refused = take(&world, "a/b/c", &costs).outcome;
        assert!(matches!(refused, Outcome::Refused(_)), "{refused:?}");
    }
    assert!(store.takes().is_empty());
}

#[test]
fn waiting_takes_are_admitted_in_order_when_the_store_refills() {
    let (world, store) = one_node(&[bucket("agent", 1, "1/s")]);
    assert!(is_admitted(&take(&world, "a/b/c", &ONE)));
    let quotas = world.node.quotas();
    let take = Take {
        subject: Subject::parse("a/b/c").unwrap(),
        costs: &ONE,
        hold: None,
        id: None,
        principal: None,
    };
    let mut desk = Desk::new();
    let waiting = |ms| quotas.take_waiting(&take, Duration::from_millis(ms), 0);
    let (mut first, mut second, mut hasty) = (waiting(3_000), waiting(3_000), waiting(100));
    for parked in [&mut first, &mut second] {
        assert!(poll_take(parked, &mut desk).is_none());
    }
    let denied = poll_take(&mut hasty, &mut desk);
    assert!(denied.is_none_or(|taken| !is_admitted(&taken)));
    drop(hasty);
    pass_ms(&world, &store, 1_000);
    assert!(is_admitted(&poll_take(&mut first, &mut desk).unwrap()));
    assert!(poll_take(&mut second, &mut desk).is_none());
    pass_ms(&world, &store, 1_000);
    assert!(is_admitted(&poll_take(&mut second, &mut desk).unwrap()));
    assert_eq!(quotas.waiting_count(), 0);
}

#[test]
fn limits_counted_by_listeners_stay_local_to_each_node() {
    let sends = LimitConfig {
        unit: "sends".to_owned(),
        ..bucket("sends", 2, "0/s")
    };
    let (world, store) = one_node(&[bucket("agent", 5, "0/s"), sends]);
    let costs = [(Unit::SENDS, 1)];
    let told = [(); 3].map(|()| is_admitted(&take(&world, "a/b/c", &costs)));
    assert_eq!(told, [true, true, false]);
    assert!(store.takes().is_empty());
    let both = take(&world, "a/b/c", &[(Unit::SENDS, 1), (Unit::REQUESTS, 1)]);
    assert!(
        matches!(both.outcome, Outcome::Unavailable { .. }),
        "{both:?}"
    );
    assert_eq!(remaining(&world, "a/b/c"), [5, 0]);
}
