use std::collections::VecDeque;

use proptest::prelude::*;

use crate::testing::{Given, TestClient, World};
use crate::{Counter, Limits};

const NEWS: &str = "test/news/all";
const WINDOW: u32 = 64;
/// The first message above half of the window.
const PRESSING: u32 = WINDOW / 2 + 1;

fn subscribers(world: &World, count: usize) -> Vec<TestClient> {
    let names = (0..count).map(|index| format!("{NEWS}/{index}"));
    names.map(|name| world.subscriber(&name, WINDOW)).collect()
}

#[test]
fn a_route_goes_on_with_the_last_subscriber_that_drains() {
    let world = World::new(Limits::default());
    let mut subscribers = subscribers(&world, 10);
    let mut sender = world.sender(NEWS);
    sender.send(PRESSING);
    assert_eq!(sender.flows(), [true]);
    let last = subscribers.pop().unwrap();
    for subscriber in &mut subscribers {
        subscriber.credit(PRESSING);
        // Credit that comes when it has let go already changes nothing.
        subscriber.credit(PRESSING);
    }
    assert_eq!(sender.flows(), []);
    // What was under way arrives at half-empty windows and fits.
    sender.send(WINDOW - PRESSING);
    assert_eq!(world.node.counters().get(Counter::Dropped), 0);
    let mut last = last;
    last.credit(WINDOW);
    assert_eq!(sender.flows(), [false]);
}

/// Two subscribers press a route. One drains, the other lets go in the way that is tested: only
/// then the route goes on, and once.
fn check_letting_go(way: impl FnOnce(&World, TestClient) -> Vec<TestClient>) {
    let world = World::new(Limits::default());
    let mut first = world.subscriber("test/news/all/first", WINDOW);
    let second = world.subscriber("test/news/all/second", WINDOW);
    let mut sender = world.sender(NEWS);
    sender.send(PRESSING);
    first.credit(PRESSING);
    assert_eq!(sender.flows(), [true]);
    let left = way(&world, second);
    assert_eq!(sender.flows(), [false]);
    world.pass_ms(1000);
    first.credit(1);
    drop((first, left));
    assert_eq!(sender.flows(), []);
}

#[test]
fn a_route_goes_on_when_the_last_to_press_it_drains() {
    check_letting_go(|_, mut second| {
        second.credit(PRESSING);
        vec![second]
    });
}

#[test]
fn a_route_goes_on_when_the_last_to_press_it_disconnects() {
    check_letting_go(|_, second| {
        drop(second);
        vec![]
    });
}

#[test]
fn a_route_goes_on_when_the_last_to_press_it_unsubscribes() {
    check_letting_go(|_, mut second| {
        second.unsubscribe("test/news/all/second");
        vec![second]
    });
}

#[test]
fn a_route_goes_on_when_the_last_to_press_it_is_replaced() {
    check_letting_go(|world, second| {
        vec![second, world.subscriber("test/news/all/second", WINDOW)]
    });
}

#[test]
fn a_route_goes_on_when_the_last_to_press_it_has_stopped() {
    check_letting_go(|world, second| {
        world.pass_ms(300);
        vec![second]
    });
}

#[test]
fn a_subscriber_with_another_instance_still_presses() {
    let world = World::new(Limits::default());
    let mut subscriber = world.subscriber("test/news/all/1", WINDOW);
    subscriber.subscribe("test/news/all/2");
    let mut sender = world.sender(NEWS);
    sender.send(PRESSING);
    assert_eq!(sender.flows(), [true]);
    subscriber.unsubscribe("test/news/all/1");
    assert_eq!(sender.flows(), []);
    subscriber.unsubscribe("test/news/all/2");
    assert_eq!(sender.flows(), [false]);
}

#[test]
fn a_route_that_is_bound_anew_begins_open_and_hears_nothing_of_the_old() {
    let world = World::new(Limits::default());
    let mut subscriber = world.subscriber("test/news/all/1", WINDOW);
    let mut other = world.subscriber("test/other/all/1", WINDOW);
    let mut sender = world.sender(NEWS);
    sender.send(PRESSING);
    assert_eq!(sender.flows(), [true]);
    sender.bind("test/other/all");
    assert_eq!(sender.flows(), [false]);
    sender.send(PRESSING);
    assert_eq!(sender.flows(), [true]);
    subscriber.credit(PRESSING);
    assert_eq!(sender.flows(), []);
    other.credit(PRESSING);
    assert_eq!(sender.flows(), [false]);
    // To a name that is none: nobody will ever let go of it.
    sender.send(PRESSING);
    assert_eq!(sender.flows(), [true]);
    sender.bind("no name");
    assert_eq!(sender.flows(), [false]);
}

#[test]
fn a_subscriber_that_is_slow_is_waited_for_and_one_that_stops_anywhere_is_not() {
    let world = World::new(Limits::default());
    let mut subscriber = world.subscriber("test/news/all/1", WINDOW);
    let mut sender = world.sender(NEWS);
    sender.send(WINDOW);
    assert_eq!(sender.flows(), [true]);
    for _ in 0..3 {
        world.pass_ms(200);
        subscriber.credit(WINDOW / 4 - 1);
        assert_eq!(sender.flows(), []);
    }
    // Less than half is outstanding, and more than a quarter: nobody would press for it.
    world.pass_ms(300);
    assert_eq!(sender.flows(), [false]);
    // It is not waited for again before it moves.
    sender.send(WINDOW);
    assert_eq!(sender.flows(), []);
    subscriber.credit(WINDOW);
    sender.send(WINDOW);
    assert_eq!(sender.flows(), [true]);
}

#[test]
fn a_sender_learns_of_a_pause_before_it_gets_credit_for_the_message_that_caused_it() {
    let world = World::new(Limits {
        credit_messages: 32,
        ..Limits::default()
    });
    let mut subscriber = world.subscriber("test/news/all/1", WINDOW);
    let mut sender = world.sender(NEWS);
    sender.send(16);
    assert_eq!(sender.next(), Some(Given::Credit { messages: 16 }));
    subscriber.credit(15);
    sender.send(16);
    assert_eq!(sender.next(), Some(Given::Credit { messages: 16 }));
    sender.send(16);
    let full = Given::Flow {
        route: 1,
        full: true,
    };
    assert_eq!(sender.next(), Some(full));
    assert_eq!(sender.next(), Some(Given::Credit { messages: 16 }));
}

/// A sender that obeys, a pipe to the node and one back, and subscribers that return credit in
/// quarters of their windows.
struct Flood {
    world: World,
    sender: TestClient,
    /// What the sender may still send before credit comes back.
    credit: u32,
    is_paused: bool,
    to_send: u32,
    /// Sent, and not yet read by the node.
    under_way: u32,
    subscribers: Vec<(TestClient, u32)>,
    /// Of the node, read by the sender after the steps that the number says.
    way_back: VecDeque<Given>,
}

impl Flood {
    const CREDIT: u32 = WINDOW / 2;

    fn new(subscriber_count: usize, to_send: u32) -> Self {
        let world = World::new(Limits {
            credit_messages: Self::CREDIT,
            ..Limits::default()
        });
        let subscribers = subscribers(&world, subscriber_count);
        let sender = world.sender(NEWS);
        Self {
            world,
            sender,
            credit: Self::CREDIT,
            is_paused: false,
            to_send,
            under_way: 0,
            subscribers: subscribers.into_iter().map(|one| (one, 0)).collect(),
            way_back: VecDeque::new(),
        }
    }

    fn send(&mut self, count: u32) {
        if !self.is_paused {
            let count = count.min(self.credit).min(self.to_send);
            self.credit -= count;
            self.to_send -= count;
            self.under_way += count;
        }
    }

    fn arrive(&mut self, count: u32) {
        let count = count.min(self.under_way);
        self.under_way -= count;
        self.sender.send(count);
        self.way_back
            .extend(std::iter::from_fn(|| self.sender.next()));
    }

    fn hear(&mut self, count: u32) {
        self.way_back
            .extend(std::iter::from_fn(|| self.sender.next()));
        for given in self
            .way_back
            .drain(..(count as usize).min(self.way_back.len()))
        {
            match given {
                Given::Flow { full, .. } => self.is_paused = full,
                Given::Credit { messages } => self.credit += messages,
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn consume(&mut self, index: usize, count: u32) {
        let index = index % self.subscribers.len();
        let (subscriber, consumed) = &mut self.subscribers[index];
        for _ in 0..count {
            let Some(given) = subscriber.next() else {
                break;
            };
            assert_eq!(given, Given::Message);
            *consumed += 1;
            if *consumed == WINDOW / 4 {
                subscriber.credit(std::mem::take(consumed));
            }
        }
    }

    /// Everybody goes on until nothing is left to do; returns whether all of it was sent.
    fn settle(&mut self) -> bool {
        for _ in 0..4 * (self.to_send + WINDOW) {
            self.send(1);
            self.arrive(1);
            self.hear(u32::MAX);
            for index in 0..self.subscribers.len() {
                self.consume(index, 2);
            }
        }
        self.to_send == 0 && self.under_way == 0 && !self.is_paused
    }
}

proptest! {
    #[test]
    fn a_flood_to_many_at_any_pace_loses_nothing_and_never_hangs(
        subscriber_count in 1_usize..11,
        steps in prop::collection::vec((0_u8..4, 0_u32..40, 0_usize..10), 0..400),
    ) {
        let mut flood = Flood::new(subscriber_count, 2000);
        for (verb, count, index) in steps {
            match verb {
                0 => flood.send(count),
                1 => flood.arrive(count),
                2 => flood.hear(count),
                _ => flood.consume(index, count),
            }
        }
        prop_assert!(flood.settle());
        let counters = flood.world.node.counters();
        prop_assert_eq!(counters.get(Counter::Dropped), 0);
        prop_assert_eq!(counters.get(Counter::Delivered), 2000 * subscriber_count as u64);
    }
}
