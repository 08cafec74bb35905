//! Holds, ids and administrative changes, with a shared store.

use quota::{Factor, Override, Prefix, Settled};

use super::super::{ANYONE, BY};
use super::*;
use crate::quota_store::Verb;
use crate::{ChangeError, SettleOutcome};

fn new_hold(world: &World, count: u64, lasting: Duration) -> quota::HoldId {
    let costs = [(Unit::REQUESTS, count)];
    match end(
        begin(world, "a/b/c", &costs, Some(lasting)),
        &mut Desk::new(),
    )
    .outcome
    {
        Outcome::Admitted { hold, .. } => hold.expect("it is held").id,
        other => panic!("there is enough: {other:?}"),
    }
}

#[test]
fn settled_and_expired_holds_correct_the_shared_store() {
    let (world, store) = one_node(&[bucket("agent", 100, "0/s")]);
    let quotas = world.node.quotas();
    let minute = Duration::from_secs(60);
    let (cheap, dear, cancelled) = (
        new_hold(&world, 30, minute),
        new_hold(&world, 10, minute),
        new_hold(&world, 20, minute),
    );
    assert_eq!(remaining(&world, "a/b/c"), [40]);
    let mut desk = Desk::new();
    for (hold, settled) in [
        (cheap, Settled::Cost(&[(Unit::REQUESTS, 5)])),
        (dear, Settled::Cost(&[(Unit::REQUESTS, 25)])),
        (cancelled, Settled::Cancelled),
    ] {
        let settling = quotas.settle(&mut desk, hold, settled, ANYONE);
        assert_eq!(settling.outcome, SettleOutcome::Settled);
        assert!(settling.failed.is_none());
        let again = quotas.settle(&mut desk, hold, settled, ANYONE);
        assert_eq!(again.outcome, SettleOutcome::Ended);
    }
    done(quotas.tend_store());
    assert_eq!(remaining(&world, "a/b/c"), [70]);
    // A hold that is never settled costs its reservation.
    new_hold(&world, 7, Duration::from_secs(1));
    pass_ms(&world, &store, 1_200);
    done(quotas.tend_store());
    assert_eq!(
        (remaining(&world, "a/b/c"), quotas.hold_count()),
        (vec![63], 0)
    );
}

#[test]
fn shared_slot_is_taken_with_duration_and_released_by_mark() {
    let slots = LimitConfig {
        unit: "concurrency".to_owned(),
        refill: None,
        ..bucket("slots", 2, "")
    };
    let (world, store) = one_node(&[slots]);
    let costs = [(Unit::CONCURRENCY, 1)];
    let hold = Some(Duration::from_secs(5));
    let taken = || end(begin(&world, "a/b/c", &costs, hold), &mut Desk::new()).outcome;
    let Outcome::Admitted {
        hold: Some(hold), ..
    } = taken()
    else {
        panic!("both are free");
    };
    assert!(matches!(taken(), Outcome::Admitted { .. }));
    let Outcome::Denied(denial) = taken() else {
        panic!("both are in use");
    };
    assert_eq!(
        (denial.retry_after_ns, denial.is_exhausted()),
        (None, false)
    );
    assert_eq!(store.takes()[0].cells[0].lasting_ns, 5 * SECOND);
    let quotas = world.node.quotas();
    let settling = quotas.settle(&mut Desk::new(), hold.id, Settled::Cancelled, ANYONE);
    assert_eq!(settling.outcome, SettleOutcome::Settled);
    done(quotas.tend_store());
    let told = store.takes();
    let cell = &told[0].cells[0];
    assert_eq!(
        (told[0].verb, cell.count, cell.mark),
        (Verb::Force, -1, Some(7))
    );
    assert!(matches!(taken(), Outcome::Admitted { .. }));
}

#[test]
fn repeated_take_id_during_or_after_the_first_takes_nothing() {
    let (world, store) = one_node(&[bucket("agent", 10, "0/s")]);
    let take = Take {
        subject: Subject::parse("a/b/c").unwrap(),
        costs: &[(Unit::REQUESTS, 4)],
        hold: None,
        id: Some("x"),
        principal: None,
    };
    let (quotas, mut desk) = (world.node.quotas(), Desk::new());
    store.set_mode(StoreMode::Slow);
    let TakeProgress::Asks(mut first) = quotas.take(&mut desk, &take) else {
        panic!("nothing is known");
    };
    assert!(poll_take(&mut first, &mut desk).is_none());
    let second = end(quotas.take(&mut desk, &take), &mut desk);
    assert!(
        matches!(second.outcome, Outcome::Unavailable { .. }),
        "{second:?}"
    );
    store.set_mode(StoreMode::Answers);
    let told = [
        poll_take(&mut first, &mut desk).unwrap(),
        end(quotas.take(&mut desk, &take), &mut desk),
    ];
    let told = told.map(|taken| match taken.outcome {
        Outcome::Admitted { is_repeat, .. } => is_repeat,
        other => panic!("there is enough: {other:?}"),
    });
    assert_eq!((told, remaining(&world, "a/b/c")), ([false, true], vec![6]));
}

#[test]
fn reset_and_grant_apply_in_the_store_and_local_increases_are_refused() {
    let (world, store) = one_node(&[bucket("agent", 10, "0/s")]);
    let (quotas, subject) = (world.node.quotas(), Subject::parse("a/b/c").unwrap());
    assert!(is_admitted(&take(&world, "a/b/c", &[(Unit::REQUESTS, 10)])));
    assert!(!is_admitted(&take(&world, "a/b/c", &ONE)));
    done(quotas.reset_in_store(&subject)).unwrap();
    let _applied = quotas.reset(&subject, BY).unwrap();
    assert_eq!(remaining(&world, "a/b/c"), [10]);
    // The earlier denial is not believed any more.
    assert!(is_admitted(&take(&world, "a/b/c", &ONE)));
    pass_ms(&world, &store, 300);
    done(quotas.tend_store());
    let prefix = Prefix::parse("a/b/c").unwrap();
    done(quotas.reset_bucket_in_store("agent", prefix)).unwrap();
    let change = |capacity, grant| Override {
        capacity,
        refill: None,
        grant,
        until_ns: u64::MAX,
        by: "root".into(),
        reason: "a test".into(),
    };
    done(quotas.grant_in_store("agent", prefix, &change(None, 5))).unwrap();
    let _applied = quotas
        .set_override("agent", prefix, change(None, 5))
        .unwrap();
    assert_eq!(remaining(&world, "a/b/c"), [15]);
    let refused = [
        quotas
            .set_override("agent", prefix, change(Some(50), 0))
            .err(),
        quotas
            .set_override("agent", prefix, change(Some(5), 1))
            .err(),
        quotas
            .set_factor("agent", Factor::new(3, 2).unwrap(), None, BY)
            .err(),
    ];
    for error in refused {
        assert!(
            matches!(error, Some(ChangeError::Apart { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn lowering_override_applies_at_one_node_and_creates_no_credit() {
    let store = Store::shared_by(2);
    let limits = [bucket("agent", 10, "0/s"), bucket("wide", 100, "0/s")];
    let [here, there] = [(); 2].map(|()| node_in(&store, 2, &limits));
    let quotas = here.node.quotas();
    let prefix = Prefix::parse("a/b/c").unwrap();
    let tight = Override {
        capacity: Some(4),
        refill: None,
        grant: 0,
        until_ns: u64::MAX,
        by: "root".into(),
        reason: "a test".into(),
    };
    let stands = quotas.set_override("agent", prefix, tight).unwrap();
    assert!(stands.is_here_alone);
    assert_eq!(
        (remaining(&here, "a/b/c"), remaining(&there, "a/b/c")),
        (vec![4, 100], vec![10, 100])
    );
    // All nodes together admit the available credit, whichever of them is asked.
    let admitted =
        |world: &World, count| is_admitted(&take(world, "a/b/c", &[(Unit::REQUESTS, count)]));
    assert!(admitted(&there, 3) && admitted(&here, 1));
    assert_eq!(
        (remaining(&here, "a/b/c"), remaining(&there, "a/b/c")),
        (vec![0, 96], vec![6, 96])
    );
    assert!(!admitted(&here, 1) && admitted(&there, 6));
    assert!(!admitted(&there, 1));
    // During an outage, only credit that is known to be left is granted.
    pass_ms(&here, &store, 1_200);
    store.set_mode(StoreMode::StoreUnavailable);
    let taken = take(&here, "a/b/c", &ONE);
    assert!(
        matches!(taken.outcome, Outcome::Unavailable { .. }),
        "{taken:?}"
    );
    store.set_mode(StoreMode::Answers);
    let half = Factor::new(1, 2).unwrap();
    assert!(
        quotas
            .set_factor("agent", half, None, BY)
            .unwrap()
            .is_here_alone
    );
    assert!(quotas.halt(prefix, BY).unwrap().is_here_alone);
    let halted = take(&here, "a/b/c", &ONE).outcome;
    assert!(matches!(halted, Outcome::Halted { .. }), "{halted:?}");
    assert!(quotas.resume(prefix, BY).unwrap().is_here_alone);
}

#[test]
fn a_reset_that_does_not_reach_the_store_is_refused() {
    let (world, store) = one_node(&[bucket("agent", 10, "0/s")]);
    store.set_mode(StoreMode::StoreUnavailable);
    let subject = Subject::parse("a/b/c").unwrap();
    assert!(done(world.node.quotas().reset_in_store(&subject)).is_err());
}

#[test]
fn usage_counts_what_this_node_admitted_from_the_shared_store() {
    let (world, store) = one_node(&[bucket("agent", 10_000, "0/s")]);
    let quotas = world.node.quotas();
    // Some of these are asked for, and others are decided from leases.
    for _ in 0..50 {
        assert!(is_admitted(&take(&world, "a/b/c", &ONE)));
        pass_ms(&world, &store, 1);
    }
    let hold = new_hold(&world, 30, Duration::from_secs(60));
    let cost = Settled::Cost(&[(Unit::REQUESTS, 5)]);
    quotas.settle(&mut Desk::new(), hold, cost, ANYONE);
    let page = quotas.usage(&crate::UsageQuery {
        from: 0,
        to: 0,
        limit: None,
        subject: None,
        by: crate::UsageBy::Day,
        after: None,
        count: 10,
        is_visible: None,
    });
    let rows: Vec<_> = page
        .rows
        .iter()
        .map(|row| (row.amount, row.takes))
        .collect();
    assert_eq!(rows, [(55, 51)]);
}
