use std::collections::VecDeque;

use platform::Counter;
use proptest::prelude::*;

use crate::Limits;
use crate::testing::{RecordedOutput, TestClient, World};

const NEWS: &str = "test/news/all";
const WINDOW: u32 = 64;
/// The first message above half of the window.
const PRESSING: u32 = WINDOW / 2 + 1;

fn subscribers(world: &World, count: usize) -> Vec<TestClient> {
    let names = (0..count).map(|index| format!("{NEWS}/{index}"));
    names.map(|name| world.subscriber(&name, WINDOW)).collect()
}

#[test]
fn route_resumes_after_the_last_pressing_subscriber_returns_credit() {
    let world = World::new(Limits::default());
    let mut subscribers = subscribers(&world, 10);
    let mut sender = world.sender(NEWS);
    sender.send(PRESSING);
    assert_eq!(sender.flows(), [true]);
    let last = subscribers.pop().unwrap();
    for subscriber in &mut subscribers {
        subscriber.credit(PRESSING);
        // Credit that arrives after the release changes nothing.
        subscriber.credit(PRESSING);
    }
    assert_eq!(sender.flows(), []);
    // Messages in flight arrive at half-empty windows and fit.
    sender.send(WINDOW - PRESSING);
    assert_eq!(world.count(Counter::Dropped), 0);
    let mut last = last;
    last.credit(WINDOW);
    assert_eq!(sender.flows(), [false]);
}

/// Two subscribers press a route. One drains; the other releases it in the tested way. Only then
/// does the route resume, exactly once.
fn check_route_resumes(way: impl FnOnce(&World, TestClient) -> Vec<TestClient>) {
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
fn route_resumes_when_its_last_pressing_subscriber_drains() {
    check_route_resumes(|_, mut second| {
        second.credit(PRESSING);
        vec![second]
    });
}

#[test]
fn route_resumes_when_its_last_pressing_subscriber_disconnects() {
    check_route_resumes(|_, second| {
        drop(second);
        vec![]
    });
}

#[test]
fn route_resumes_when_its_last_pressing_subscriber_unsubscribes() {
    check_route_resumes(|_, mut second| {
        second.unsubscribe("test/news/all/second");
        vec![second]
    });
}

#[test]
fn route_resumes_when_its_last_pressing_subscriber_is_replaced() {
    check_route_resumes(|world, second| {
        vec![second, world.subscriber("test/news/all/second", WINDOW)]
    });
}

#[test]
fn route_resumes_when_its_last_pressing_subscriber_has_stopped() {
    check_route_resumes(|world, second| {
        world.pass_ms(300);
        vec![second]
    });
}

#[test]
fn route_stays_paused_while_the_subscriber_has_another_instance() {
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
fn a_rebound_route_starts_unpaused() {
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
    // The name has no subscriber that would release the route.
    sender.send(PRESSING);
    assert_eq!(sender.flows(), [true]);
    sender.bind("no name");
    assert_eq!(sender.flows(), [false]);
}

#[test]
fn senders_wait_for_slow_subscribers_but_not_for_stopped_ones() {
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
    // Between a quarter and a half is outstanding: no subscriber would press.
    world.pass_ms(300);
    assert_eq!(sender.flows(), [false]);
    // Senders do not wait for it again before it returns credit.
    sender.send(WINDOW);
    assert_eq!(sender.flows(), []);
    subscriber.credit(WINDOW);
    sender.send(WINDOW);
    assert_eq!(sender.flows(), [true]);
}

#[test]
fn a_pause_arrives_before_the_credit_of_its_message() {
    let world = World::new(Limits {
        credit_messages: 32,
        ..Limits::default()
    });
    let mut subscriber = world.subscriber("test/news/all/1", WINDOW);
    let mut sender = world.sender(NEWS);
    sender.send(16);
    assert_eq!(sender.next(), Some(RecordedOutput::Credit { messages: 16 }));
    subscriber.credit(15);
    sender.send(16);
    assert_eq!(sender.next(), Some(RecordedOutput::Credit { messages: 16 }));
    sender.send(16);
    let full = RecordedOutput::Flow {
        route: 1,
        full: true,
    };
    assert_eq!(sender.next(), Some(full));
    assert_eq!(sender.next(), Some(RecordedOutput::Credit { messages: 16 }));
}

/// A sender that obeys pauses, a pipe to the node and one back, and subscribers that return credit
/// in quarters of their windows.
struct Flood {
    world: World,
    sender: TestClient,
    /// The sender's remaining credit.
    credit: u32,
    is_paused: bool,
    to_send: u32,
    /// Messages sent but not yet read by the node.
    under_way: u32,
    subscribers: Vec<(TestClient, u32)>,
    /// Output of the node, read by the sender after that number of steps.
    way_back: VecDeque<RecordedOutput>,
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

    fn receive_flow(&mut self, count: u32) {
        self.way_back
            .extend(std::iter::from_fn(|| self.sender.next()));
        for given in self
            .way_back
            .drain(..(count as usize).min(self.way_back.len()))
        {
            match given {
                RecordedOutput::Flow { full, .. } => self.is_paused = full,
                RecordedOutput::Credit { messages } => self.credit += messages,
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
            assert_eq!(given, RecordedOutput::Message);
            *consumed += 1;
            if *consumed == WINDOW / 4 {
                subscriber.credit(std::mem::take(consumed));
            }
        }
    }

    /// Runs all parties until nothing is left to do. Returns whether all messages were sent.
    fn settle(&mut self) -> bool {
        for _ in 0..4 * (self.to_send + WINDOW) {
            self.send(1);
            self.arrive(1);
            self.receive_flow(u32::MAX);
            for index in 0..self.subscribers.len() {
                self.consume(index, 2);
            }
        }
        self.to_send == 0 && self.under_way == 0 && !self.is_paused
    }
}

#[test]
fn a_run_is_admitted_counted_and_paused_like_single_messages() {
    let outcome = |run_length| {
        let world = World::new(Limits::default());
        let mut subscribers = subscribers(&world, 3);
        let mut sender = world.sender(NEWS);
        sender.run_length = run_length;
        sender.send(5);
        sender.send(PRESSING);
        let mut flows = sender.flows();
        subscribers[0].credit(5 + PRESSING);
        // More than the window of those that returned no credit.
        sender.send(WINDOW);
        drop(subscribers.pop());
        sender.send(3);
        flows.extend(sender.flows());
        drop(subscribers);
        sender.send(9);
        flows.extend(sender.flows());
        let counts = [
            Counter::Sends,
            Counter::Delivered,
            Counter::Dropped,
            Counter::Undeliverable,
        ];
        (flows, counts.map(|counter| world.count(counter)))
    };
    let single = outcome(1);
    assert!(single.1.iter().all(|count| *count > 0), "{single:?}");
    for run_length in [2, 7, 32] {
        assert_eq!(outcome(run_length), single, "in runs of {run_length}");
    }
}

proptest! {
    #[test]
    fn one_way_flood_to_many_subscribers_is_lossless_and_never_hangs(
        subscriber_count in 1_usize..11,
        run_length in 1_usize..10,
        steps in prop::collection::vec((0_u8..4, 0_u32..40, 0_usize..10), 0..400),
    ) {
        let mut flood = Flood::new(subscriber_count, 2000);
        flood.sender.run_length = run_length;
        for (verb, count, index) in steps {
            match verb {
                0 => flood.send(count),
                1 => flood.arrive(count),
                2 => flood.receive_flow(count),
                _ => flood.consume(index, count),
            }
        }
        prop_assert!(flood.settle());
        prop_assert_eq!(flood.world.count(Counter::Dropped), 0);
        prop_assert_eq!(flood.world.count(Counter::Delivered), 2000 * subscriber_count as u64);
    }
}
