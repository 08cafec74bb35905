//! Clients that do not read: they lose their own traffic only.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wire::{Cast, Correlation, Credit, Flags, Kind, Payload};

use crate::native::OWN;
use crate::native::agent::{Agent, Pair, tag};
use crate::support::{Node, Place, eventually};

const BODY_SIZE: usize = 16 << 10;

/// One of two subscribers is stopped while a publisher continues to send to both. The other one
/// gets everything, the node's memory stays small, and other traffic is answered. The latencies of
/// that traffic with and without the stopped subscriber are printed.
#[test]
fn a_stopped_subscriber_does_not_slow_other_clients() {
    let place = Place::new();
    let node = place.serve("");
    let before_kib = node.resident_kib();
    let mut healthy = Agent::connect(&node);
    healthy.hello("", "");
    healthy.subscribe("test/news/all/healthy");
    let mut publisher = Agent::connect(&node);
    publisher.hello("", "");
    publisher.bind(1, "test/news/all", Cast::All);
    let mut pair = Pair::new(&node);

    let without = publish(&mut publisher, &mut healthy, &mut pair);
    let sleeper = PausableListener::start(&place, &node);
    sleeper.stop();
    let with = publish(&mut publisher, &mut healthy, &mut pair);
    let (message, call) = (without.message, without.call);
    println!("p99 without the stopped one: message {message:?}, call beside it {call:?}");
    let (message, call) = (with.message, with.call);
    println!("p99 with the stopped one:    message {message:?}, call beside it {call:?}");

    let dropped = node.metric("telpher_dropped_total");
    assert!(dropped > 0, "the sleeper's window never filled");
    let grown_kib = node.resident_kib().saturating_sub(before_kib);
    println!("{dropped} copies dropped, the node grew by {grown_kib} KiB");
    assert!(grown_kib < 64 << 10, "the node grew by {grown_kib} KiB");
    pair.exchange();
}

/// A `telpher listen` that can be stopped; killed on drop.
struct PausableListener(Child);

impl PausableListener {
    fn start(place: &Place, node: &Node) -> Self {
        let before = node.metric("telpher_subscriptions");
        let words = [
            "listen",
            "--url",
            node.url("native"),
            "test/news/all/sleeper",
        ];
        let mut command = place.command(words);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let sleeper = Self(command.spawn().unwrap());
        eventually("the sleeper is subscribed", || {
            node.metric("telpher_subscriptions") == before + 1
        });
        sleeper
    }

    fn stop(&self) {
        kill_process(Pid::from_child(&self.0), Signal::STOP).unwrap();
    }
}

impl Drop for PausableListener {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The 99th percentiles of latencies.
struct Percentiles {
    message: Duration,
    call: Duration,
}

/// Publishes 4,000 messages to all subscribers, checks that the reading subscriber gets them in
/// order, and makes calls in between. Both are timed.
fn publish(publisher: &mut Agent, healthy: &mut Agent, pair: &mut Pair) -> Percentiles {
    const MESSAGES: u32 = 4000;
    let (mut messages, mut calls) = (Vec::new(), Vec::new());
    for index in 0..MESSAGES {
        let mut body = vec![0; BODY_SIZE];
        body[..4].copy_from_slice(&index.to_le_bytes());
        let start = Instant::now();
        publisher.message(Kind::SEND, Flags::NONE, 1, Correlation::NONE, &body);
        let frame = healthy.next().unwrap();
        messages.push(start.elapsed());
        assert_eq!(frame.header.kind, Kind::SEND);
        assert_eq!(frame.body()[..4], index.to_le_bytes());
        if index % 16 == 15 {
            let credit = Credit {
                messages: 16,
                bytes: 16 * BODY_SIZE as u64,
            };
            healthy.frame(|out| credit.encode(Correlation::NONE, out));
        }
        if index % 10 == 9 {
            let start = Instant::now();
            pair.exchange();
            calls.push(start.elapsed());
        }
    }
    Percentiles {
        message: p99(&mut messages),
        call: p99(&mut calls),
    }
}

fn p99(times: &mut [Duration]) -> Duration {
    times.sort();
    times[(times.len() - 1) * 99 / 100]
}

/// A client announces a huge window, subscribes and never reads: copies to it are dropped above the
/// limit of the node's queue for one connection.
#[test]
fn a_subscriber_that_never_reads_is_bounded_by_its_queue() {
    let place = Place::new();
    let node = place.serve("--native-queue-size-max 1MiB");
    let before_kib = node.resident_kib();
    let mut greedy = Agent::connect(&node);
    greedy.hello_with_credit(u32::MAX, u64::MAX);
    greedy.subscribe("test/news/all");
    let mut pair = Pair::new(&node);
    let mut publisher = Agent::connect(&node);
    publisher.hello("", "");
    publisher.bind(1, "test/news/all", Cast::Any);
    let body = vec![0; BODY_SIZE];
    let mut sent = 0;
    eventually("copies are dropped", || {
        for _ in 0..100 {
            publisher.message(Kind::SEND, Flags::NONE, 1, Correlation::NONE, &body);
        }
        sent += 100;
        pair.exchange();
        node.metric("telpher_dropped_total") > 0
    });
    let grown_kib = node.resident_kib().saturating_sub(before_kib);
    println!("{sent} messages of 16 KiB sent, the node grew by {grown_kib} KiB");
    assert!(grown_kib < 32 << 10, "the node grew by {grown_kib} KiB");
}

/// A caller sends requests and never reads the answers: the node stops reading from it.
#[test]
fn node_stops_reading_from_a_caller_that_never_reads() {
    const BATCH: u32 = 1000;
    let place = Place::new();
    let node = place.serve("");
    let mut pair = Pair::new(&node);
    let before_kib = node.resident_kib();
    let mut greedy = Agent::connect(&node);
    greedy.hello("", "");
    greedy.bind(1, "test/pair/nobody", Cast::Any);
    let mut asked = 0;
    let is_taken = |asked: u32, greedy: &mut Agent| {
        let mut bytes = Vec::new();
        for slot in 0..BATCH {
            let payload = Payload::body(b"anybody there?");
            let at = Correlation {
                slot,
                generation: 1 + asked / BATCH,
            };
            payload.encode(Kind::REQUEST, Flags::NONE, 1, at, &mut bytes);
        }
        greedy.try_write(&bytes)
    };
    // The sockets' buffers are much smaller than all requests.
    while asked < 10_000_000 && is_taken(asked, &mut greedy) {
        asked += BATCH;
        if asked.is_multiple_of(100 * BATCH) {
            pair.exchange();
        }
    }
    assert!(asked < 10_000_000, "the node reads whatever it is sent");
    pair.exchange();
    let grown_kib = node.resident_kib().saturating_sub(before_kib);
    println!("{asked} requests were taken, the node grew by {grown_kib} KiB");
    assert!(grown_kib < 32 << 10, "the node grew by {grown_kib} KiB");
    drop(greedy);
    eventually("its connection is closed", || {
        node.metric("telpher_connections") == 2 + OWN
    });
    pair.exchange();
}

/// A caller sends a thousand requests and reads none of the large answers: the node closes its
/// connection, and the responder continues.
#[test]
fn a_caller_that_leaves_its_answers_unread_is_closed() {
    let place = Place::new();
    let node = place.serve("--native-queue-size-max 1MiB");
    let mut pair = Pair::new(&node);
    let before_kib = node.resident_kib();
    let mut responder = Agent::connect(&node);
    responder.hello("", "");
    responder.subscribe("test/big/answers");
    let mut greedy = Agent::connect(&node);
    greedy.hello("", "");
    greedy.bind(1, "test/big/answers", Cast::Any);
    for slot in 0..1000 {
        greedy.message(Kind::REQUEST, Flags::NONE, 1, tag(slot), b"");
    }
    // All requests are delivered before the first is answered, because a closed connection ends its
    // requests and drops its queued answers.
    let requests: Vec<_> = (0..1000).map(|_| responder.next().unwrap()).collect();
    let body = vec![0; 64 << 10];
    for request in requests {
        assert_eq!(request.header.kind, Kind::REQUEST);
        let call = request.header.correlation;
        responder.message(Kind::REPLY, Flags::NONE, 0, call, &body);
    }
    eventually("its connection is closed", || {
        node.metric("telpher_connections") == 3 + OWN
    });
    pair.exchange();
    let grown_kib = node.resident_kib().saturating_sub(before_kib);
    println!("the node grew by {grown_kib} KiB");
    assert!(grown_kib < 64 << 10, "the node grew by {grown_kib} KiB");
}
