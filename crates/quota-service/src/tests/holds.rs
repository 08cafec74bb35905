//! Holds: their ids, owners and ends; ids of takes.

use std::collections::BTreeSet;

use quota::{HoldId, Refused};

use super::*;
use crate::HoldGrant;

const HALF: [Cost; 1] = [(Unit::REQUESTS, 50)];

fn hold_by(node: &Node, principal: Option<&str>) -> HoldGrant {
    let take = Take {
        subject: Subject::parse("a/b/c").unwrap(),
        costs: &HALF,
        hold: Some(Duration::from_secs(60)),
        id: None,
        principal,
    };
    match decided(node.quotas().take(&mut Desk::new(), &take)).outcome {
        Outcome::Admitted { hold, .. } => hold.unwrap(),
        other => panic!("there is enough: {other:?}"),
    }
}

fn cancel(node: &Node, id: HoldId, requester: Requester<'_>) -> SettleOutcome {
    let quotas = node.quotas();
    let settling = quotas.settle(&mut Desk::new(), id, Settled::Cancelled, requester);
    settling.outcome
}

#[test]
fn only_its_principal_or_an_administrator_settles_a_hold() {
    let world = world(&[bucket("agent", 100, "0/s")]);
    let by = |principal| Requester {
        principal: Some(principal),
        is_admin: false,
    };
    let hold = hold_by(&world.node, Some("bot"));
    for stranger in [ANYONE, by("eve")] {
        assert_eq!(
            cancel(&world.node, hold.id, stranger),
            SettleOutcome::Denied
        );
    }
    assert_eq!(remaining(&world.node, "a/b/c"), [50]);
    assert_eq!(
        cancel(&world.node, hold.id, by("bot")),
        SettleOutcome::Settled
    );
    let hold = hold_by(&world.node, Some("bot"));
    let admin = Requester {
        is_admin: true,
        ..by("eve")
    };
    assert_eq!(cancel(&world.node, hold.id, admin), SettleOutcome::Settled);
    // Where no client has a proven name, the id is enough.
    let hold = hold_by(&world.node, None);
    assert_eq!(cancel(&world.node, hold.id, ANYONE), SettleOutcome::Settled);
}

#[test]
fn hold_principal_survives_a_crash() {
    let limits = [LimitConfig {
        durability: Some("sync".to_owned()),
        ..bucket("agent", 100, "0/s")
    }];
    let mut on_disk = OnDisk::new(&limits);
    let hold = hold_by(on_disk.node(), Some("bot"));
    on_disk.sync();
    let on_disk = on_disk.crash(&limits);
    assert_eq!(
        cancel(on_disk.node(), hold.id, ANYONE),
        SettleOutcome::Denied
    );
}

#[test]
fn hold_ids_are_unpredictable() {
    let world = world(&[bucket("agent", 1_000_000, "0/s")]);
    let ids: Vec<u128> = (0..64).map(|_| hold_by(&world.node, None).id.0).collect();
    let upper: BTreeSet<u128> = ids.iter().map(|id| id >> 64).collect();
    // Two numbers of the entropy port each.
    assert_eq!(upper.len(), ids.len());
}

#[test]
fn take_id_reused_with_another_cost_is_refused() {
    let world = world(&[bucket("agent", 100, "0/s")]);
    let take = |count| {
        let costs = [(Unit::REQUESTS, count)];
        take_with(&world.node, "a/b/c", &costs, None, Some("k1")).outcome
    };
    assert!(matches!(take(1), Outcome::Admitted { .. }));
    assert_eq!(take(5), Outcome::Refused(Refused::IdReused));
    assert!(matches!(
        take(1),
        Outcome::Admitted {
            is_repeat: true,
            ..
        }
    ));
    assert_eq!(remaining(&world.node, "a/b/c"), [99]);
}

#[test]
fn hold_with_zero_or_excessive_duration_is_refused() {
    let world = world(&[bucket("agent", 100, "0/s")]);
    let hold_max = Options::default().hold_max;
    let take = |hold| take_with(&world.node, "a/b/c", &HALF, Some(hold), None).outcome;
    assert_eq!(
        take(Duration::ZERO),
        Outcome::Refused(Refused::HoldTooShort)
    );
    let hold = hold_max + Duration::from_nanos(1);
    assert_eq!(
        take(hold),
        Outcome::Refused(Refused::HoldTooLong { hold, hold_max })
    );
    assert_eq!(remaining(&world.node, "a/b/c"), [100]);
    let now_ns = world.node.quotas().now_ns();
    let Outcome::Admitted { hold, .. } = take(hold_max) else {
        panic!("it is as long as allowed");
    };
    let deadline_ns = now_ns + hold_max.as_nanos() as u64;
    assert_eq!(hold.map(|hold| hold.deadline_ns), Some(deadline_ns));
}

#[test]
fn hold_expires_exactly_at_its_deadline() {
    let slots = LimitConfig {
        unit: "concurrency".to_owned(),
        refill: None,
        ..bucket("slots", 1, "")
    };
    let world = world(&[slots]);
    let costs = [(Unit::CONCURRENCY, 1)];
    let lasting = Some(Duration::from_secs(1));
    let take = || match take_with(&world.node, "a/b/c", &costs, lasting, None).outcome {
        Outcome::Admitted { hold, .. } => hold,
        _ => None,
    };
    let first = take().expect("it is free").id;
    world.pass_ns(999_999_999);
    assert_eq!(take(), None);
    // No sweep has run meanwhile.
    world.pass_ns(1);
    assert_eq!(remaining(&world.node, "a/b/c"), [1]);
    assert_eq!(cancel(&world.node, first, ANYONE), SettleOutcome::Ended);
    let second = take().expect("it is free again").id;
    world.pass_ns(1_000_000_000);
    assert_eq!(cancel(&world.node, second, ANYONE), SettleOutcome::Ended);
    assert!(take().is_some());
}
