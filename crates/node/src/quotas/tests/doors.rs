use super::*;

fn sends(capacity: u64) -> LimitConfig {
    LimitConfig {
        unit: "sends".to_owned(),
        ..bucket("sends", capacity, "10/s")
    }
}

#[test]
fn a_sender_over_its_limit_is_throttled_and_goes_on_when_there_is_credit() {
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
fn a_limit_on_something_else_costs_a_sender_nothing() {
    let world = world(&[bucket("agent", 1, "1/s")]);
    let subscriber = world.subscriber("x/y/z", 100);
    world.sender("x/y/z").send(20);
    assert_eq!(std::iter::from_fn(|| subscriber.next()).count(), 20);
    assert_eq!(world.node.quotas().bucket_counts().buckets, 0);
}

#[test]
fn calls_are_counted_until_they_end() {
    let slots = LimitConfig {
        unit: "requests_in_flight".to_owned(),
        refill: None,
        ..bucket("calls", 1, "")
    };
    let world = world(&[slots]);
    let responder = world.subscriber("x/y/z", 100);
    let mut caller = world.client(1);
    let name = model::Name::parse("x/y/z").unwrap();
    let route = caller.connection.turn().bind(1, name, crate::Cast::Any, "");
    let tag = |slot| crate::Ticket {
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
    let anonymous = || left(&world.node, "default/default/anonymous");
    assert_eq!(anonymous(), [0]);
    // The responder disconnects, which ends its calls.
    drop(responder);
    assert_eq!(anonymous(), [1]);
}
