use routing::ConnectionId;

use super::*;

const ROUTE: ThrottleId = ThrottleId {
    sender: ConnectionId(1),
    binding: 1,
};

#[test]
fn full_window_reopens_when_credit_returns() {
    let mut lane = Lane::new(4, 1000);
    assert_eq!(lane.admit(10, ROUTE, 0), Admission::Room);
    assert_eq!(lane.admit(10, ROUTE, 0), Admission::Room);
    assert_eq!(lane.admit(10, ROUTE, 0), Admission::Pressed);
    assert_eq!(lane.admit(10, ROUTE, 0), Admission::Pressed);
    assert_eq!(lane.admit(10, ROUTE, 0), Admission::Full);
    assert!(lane.credit(4, 40, 1).is_empty());
    assert_eq!(lane.admit(10, ROUTE, 2), Admission::Room);
}

#[test]
fn message_larger_than_the_window_is_admitted_alone() {
    let mut lane = Lane::new(4, 1000);
    assert_eq!(lane.admit(5000, ROUTE, 0), Admission::Pressed);
    assert_eq!(lane.admit(1, ROUTE, 0), Admission::Full);
    assert!(lane.credit(1, 5000, 1).is_empty());
    assert_eq!(lane.admit(1, ROUTE, 1), Admission::Room);
}

#[test]
fn senders_do_not_wait_for_a_stopped_client() {
    let mut lane = Lane::new(8, 1000);
    for _ in 0..5 {
        lane.admit(1, ROUTE, 0);
    }
    assert_eq!(lane.admit(1, ROUTE, STOPPED_AFTER_NS), Admission::Pressed);
    assert_eq!(lane.admit(1, ROUTE, STOPPED_AFTER_NS + 1), Admission::Room);
    assert_eq!(lane.admit(1, ROUTE, STOPPED_AFTER_NS + 1), Admission::Room);
    assert_eq!(lane.admit(1, ROUTE, STOPPED_AFTER_NS + 1), Admission::Full);
}

#[test]
fn senders_wait_again_once_a_stopped_client_returns_credit() {
    let mut lane = Lane::new(8, 1000);
    for _ in 0..5 {
        lane.admit(1, ROUTE, 0);
    }
    assert_eq!(lane.admit(1, ROUTE, STOPPED_AFTER_NS + 1), Admission::Room);
    assert!(lane.credit(1, 1, STOPPED_AFTER_NS + 2).is_empty());
    assert_eq!(
        lane.admit(1, ROUTE, STOPPED_AFTER_NS + 2),
        Admission::Pressed
    );
}
