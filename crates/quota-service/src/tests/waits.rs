use super::*;
use crate::{Attempt, WaitingTake};

fn parked(node: &Node, subject: &str, wait_s: u64, priority: u8) -> WaitingTake {
    let take = Take {
        subject: Subject::parse(subject).unwrap(),
        costs: &[(Unit::REQUESTS, 1)],
        hold: None,
        id: None,
        principal: None,
    };
    node.quotas()
        .take_waiting(&take, Duration::from_secs(wait_s), priority)
}

fn poll(parked: &mut WaitingTake) -> Result<bool, Duration> {
    match parked.poll(&mut Desk::new(), Waker::noop()) {
        Attempt::Done(taken) => Ok(matches!(taken.outcome, Outcome::Admitted { .. })),
        Attempt::Wait(wait) => Err(wait),
    }
}

#[test]
fn waiting_takes_are_admitted_in_order_at_the_announced_time() {
    let world = world(&[bucket("agent", 1, "1/s")]);
    let mut first = parked(&world.node, "a/b/c", 60, 0);
    assert_eq!(poll(&mut first), Ok(true));
    let mut second = parked(&world.node, "a/b/c", 60, 0);
    let mut third = parked(&world.node, "a/b/c", 60, 0);
    assert_eq!(poll(&mut second), Err(Duration::from_secs(1)));
    assert_eq!(poll(&mut third), Err(Duration::from_secs(60)));
    world.pass_ms(1_000);
    // Neither a take behind it nor one that does not wait overtakes it.
    assert!(poll(&mut third).is_err());
    assert!(!is_admitted(&world.node, "a/b/c"));
    assert_eq!(poll(&mut second), Ok(true));
    assert_eq!(poll(&mut third), Err(Duration::from_secs(1)));
    world.pass_ms(1_000);
    assert_eq!(poll(&mut third), Ok(true));
    world.pass_ms(1_000);
    assert!(is_admitted(&world.node, "a/b/c"));
}

#[test]
fn waiting_take_with_higher_priority_is_admitted_first() {
    let world = world(&[bucket("agent", 1, "1/s")]);
    assert!(is_admitted(&world.node, "a/b/c"));
    let (mut low, mut high) = (
        parked(&world.node, "a/b/c", 60, 0),
        parked(&world.node, "a/b/c", 60, 9),
    );
    assert!(poll(&mut low).is_err() && poll(&mut high).is_err());
    world.pass_ms(1_000);
    assert!(poll(&mut low).is_err());
    assert_eq!(poll(&mut high), Ok(true));
}

#[test]
fn take_that_cannot_pass_before_its_deadline_is_denied_at_once() {
    let world = world(&[bucket("agent", 1, "1/h")]);
    assert!(is_admitted(&world.node, "a/b/c"));
    assert_eq!(poll(&mut parked(&world.node, "a/b/c", 60, 0)), Ok(false));
}

#[test]
fn cancelled_waiting_take_consumes_no_credit() {
    let world = world(&[bucket("agent", 1, "1/s")]);
    assert!(is_admitted(&world.node, "a/b/c"));
    let (mut first, mut second) = (
        parked(&world.node, "a/b/c", 60, 0),
        parked(&world.node, "a/b/c", 60, 0),
    );
    assert!(poll(&mut first).is_err() && poll(&mut second).is_err());
    drop(first);
    world.pass_ms(1_000);
    assert_eq!(poll(&mut second), Ok(true));
    world.pass_ms(1_000);
    assert!(is_admitted(&world.node, "a/b/c"));
    // Past its deadline it gets the same answer as other takes.
    let mut late = parked(&world.node, "a/b/c", 1, 0);
    let mut behind = parked(&world.node, "a/b/c", 1, 0);
    assert!(poll(&mut late).is_err() && poll(&mut behind).is_err());
    world.pass_ms(1_100);
    assert_eq!(poll(&mut behind), Ok(false));
    assert_eq!(poll(&mut late), Ok(true));
}
