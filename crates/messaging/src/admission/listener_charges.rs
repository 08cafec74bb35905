use quota::Subject;
use quota_service::{Desk, LimitConfig};

use crate::Limits;
use crate::testing::World;

/// A limit on each agent, as it would be written.
fn limit(name: &str, unit: &str, capacity: u64, refill: Option<&str>) -> LimitConfig {
    LimitConfig {
        name: name.to_owned(),
        pattern: "*/*/*".to_owned(),
        unit: unit.to_owned(),
        capacity: Some(capacity),
        refill: refill.map(str::to_owned),
        ..LimitConfig::default()
    }
}

/// Opens messaging with these quotas.
fn world(quotas: &[LimitConfig]) -> World {
    World::open(Limits::default(), quotas)
}

fn sends(capacity: u64) -> LimitConfig {
    limit("sends", "sends", capacity, Some("10/s"))
}

#[test]
fn throttled_sender_resumes_when_credit_refills() {
    let world = world(&[sends(5)]);
    let subscriber = world.subscriber("x/y/z", 100);
    let mut sender = world.sender("x/y/z");
    assert_eq!(sender.send(8), 3);
    let received = || std::iter::from_fn(|| subscriber.next()).count();
    assert_eq!(received(), 5);
    world.pass_ms(200);
    sender.send(8);
    assert_eq!(received(), 2);
    // Clients without a name share one bucket.
    world.sender("x/y/z").send(1);
    assert_eq!(received(), 0);
}

#[test]
fn request_limits_do_not_charge_one_way_sends() {
    let world = world(&[limit("agent", "requests", 1, Some("1/s"))]);
    let subscriber = world.subscriber("x/y/z", 100);
    world.sender("x/y/z").send(20);
    assert_eq!(std::iter::from_fn(|| subscriber.next()).count(), 20);
    assert_eq!(world.quotas().bucket_counts().buckets, 0);
}

#[test]
fn calls_hold_a_requests_in_flight_slot_until_they_end() {
    let slots = limit("calls", "requests_in_flight", 1, None);
    let world = world(&[slots]);
    let responder = world.subscriber("x/y/z", 100);
    let mut caller = world.client(1);
    let name = model::Name::parse("x/y/z").unwrap();
    let route = caller.connection.turn().bind(1, name, crate::Cast::Any, "");
    let tag = |slot| routing::Ticket {
        slot,
        generation: 1,
    };
    let mut call = |slot| {
        let mut turn = caller.connection.turn();
        turn.request(&route, tag(slot), false, crate::Message::default())
    };
    assert!(call(0).is_ok());
    let refused = call(1).err().unwrap();
    assert!(matches!(refused, crate::RequestError::Throttled(_)));
    let anonymous = || {
        let (mut desk, subject) = (Desk::new(), "default/default/anonymous");
        let subject = Subject::parse(subject).unwrap();
        let asked = world.quotas().peek(&mut desk, &subject);
        assert!(asked.is_none(), "there is no store to ask");
        let left = desk.limit_states().map(|state| state.have);
        left.collect::<Vec<i128>>()
    };
    assert_eq!(anonymous(), [0]);
    // The responder disconnects, which ends its calls.
    drop(responder);
    assert_eq!(anonymous(), [1]);
}
