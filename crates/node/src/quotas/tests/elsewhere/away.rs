//! What nodes give while the store cannot be asked.

use super::*;

fn limit(on_unreachable: &str) -> Written {
    Written {
        on_unreachable: Some(on_unreachable.to_owned()),
        ..bucket("agent", 30, "0/s")
    }
}

#[test]
fn a_node_gives_its_share_while_the_store_is_away_and_owes_it() {
    let store = Store::shared_by(3);
    let world = node_in(&store, 3, &[limit("degrade")]);
    store.set_mood(Mood::Away);
    let taken: Vec<_> = (0..12).map(|_| take(&world, "a/b/c", &ONE)).collect();
    assert!(taken.iter().all(|taken| taken.is_degraded));
    assert_eq!(taken.iter().filter(|taken| is_admitted(taken)).count(), 10);
    let more = take(&world, "a/b/c", &[(Unit::REQUESTS, 11)]);
    assert!(
        matches!(more.outcome, Outcome::Unavailable { .. }),
        "{more:?}"
    );
    let view = world.node.quotas().elsewhere().unwrap();
    assert_eq!((view.owed, view.store.is_connected), (1, false));
    assert_eq!(world.node.quotas().take_counts().degraded, 13);
    store.set_mood(Mood::Answers);
    done(world.node.quotas().tend_store());
    assert_eq!(left(&world, "a/b/c"), [20]);
}

#[test]
fn nothing_or_everything_is_given_where_the_limit_says_so() {
    for (says, is_given) in [("deny", false), ("allow", true)] {
        let (world, store) = one_node(&[limit(says)]);
        store.set_mood(Mood::Away);
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
    // It was taken, and is not given back: nobody knows that here.
    assert_eq!(left(&world, "a/b/c"), [29]);
}

#[test]
fn a_slow_store_holds_up_nobody_else() {
    let here = Written {
        unit: "sends".to_owned(),
        ..bucket("sends", 2, "0/s")
    };
    let (world, store) = one_node(&[limit("deny"), here]);
    store.set_mood(Mood::Slow);
    let (mut desk, begun) = (Desk::new(), begin(&world, "a/b/c", &ONE, None));
    let Begun::Asks(mut parked) = begun else {
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
    let slots = Written {
        unit: "concurrency".to_owned(),
        refill: None,
        ..bucket("slots", 9, "")
    };
    let (world, store) = one_node(&[slots]);
    store.set_mood(Mood::Away);
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
    store.set_mood(Mood::Away);
    let (mut desk, subject) = (Desk::new(), Subject::parse("a/b/c").unwrap());
    let mut parked = world.node.quotas().peek(&mut desk, &subject).unwrap();
    let looked = look(&mut parked, &mut desk).unwrap();
    assert!(matches!(looked.outcome, Outcome::Unavailable { .. }));
}
