//! Subscribers that read slowly or not at all.

use std::time::Duration;

use door_slim::Options;
use platform::Counter;
use slim::Name;

use crate::agent::{CARRIERS, Carrier};
use crate::{Agent, Bench, until};

#[tokio::test]
async fn a_stalled_subscriber_loses_only_its_own_copies() {
    for carrier in CARRIERS {
        stopped(carrier).await;
    }
}

async fn stopped(carrier: Carrier) {
    let options = Options {
        queue_size_max: 256 << 10,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut publisher = Agent::linked(&bench, "publisher", 1).await;
    // Its stream is never read.
    let stopped = Agent::subscribed_over(&bench, carrier, "stopped", 2).await;
    let mut reading = Agent::subscribed(&bench, "reading", 3).await;
    let payload = vec![7; 8 << 10];
    // A WebSocket has no window of its own: what the kernel holds for it comes first.
    let count = match carrier {
        Carrier::Grpc => 200,
        Carrier::WebSocket => 4000,
    };
    for _ in 0..count {
        publisher.publish(stopped.name(), 1, &payload);
    }
    publisher.publish(reading.name(), 1, b"through");
    assert_eq!(reading.received().await.payload, b"through");
    let (delivered, dropped) = (
        bench.count(Counter::Delivered),
        bench.count(Counter::Dropped),
    );
    assert_eq!(delivered + dropped, count + 1);
    assert!(dropped >= 100, "{dropped} were dropped");
    let queued = bench
        .node
        .messaging()
        .connections()
        .iter()
        .map(|it| it.queued_bytes)
        .max()
        .unwrap();
    assert!(queued <= 300 << 10, "{queued} bytes are queued");
    // An independent publisher reaches the other one as well.
    let mut other = Agent::linked(&bench, "other", 4).await;
    other.publish(reading.name(), 1, b"from another");
    assert_eq!(reading.received().await.payload, b"from another");
    drop(stopped);
}

#[tokio::test]
async fn a_slow_subscriber_gets_everything_at_its_own_pace() {
    for carrier in CARRIERS {
        slow(carrier).await;
    }
}

async fn slow(carrier: Carrier) {
    let options = Options {
        queue_size_max: 64 << 10,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut publisher = Agent::linked(&bench, "publisher", 1).await;
    let mut slow = Agent::subscribed_over(&bench, carrier, "slow", 2).await;
    let to = slow.name();
    let publishing = tokio::spawn(async move {
        for index in 0..400u32 {
            publisher.publish(to, 1, &[&index.to_le_bytes()[..], &[7; 4 << 10]].concat());
            publisher.has_sent().await;
        }
        publisher
    });
    for index in 0..400u32 {
        let received = slow.received().await;
        assert_eq!(received.payload[..4], index.to_le_bytes());
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.count(Counter::Dropped), 0);
    drop(publishing.await.unwrap());
}

#[tokio::test]
async fn slim_anycast_skips_an_instance_with_a_full_queue() {
    let options = Options {
        queue_size_max: 64 << 10,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut publisher = Agent::linked(&bench, "publisher", 1).await;
    let _stopped = Agent::subscribed(&bench, "worker", 2).await;
    let mut reading = Agent::subscribed(&bench, "worker", 3).await;
    let any = Name::new(["org", "ns", "worker"], None);
    let jobs = tokio::spawn(async move {
        for _ in 0..200 {
            publisher.publish(any, 1, &[7; 4 << 10]);
            publisher.has_sent().await;
        }
        publisher
    });
    // The stopped one takes what fits into its window and its queue, the other one the rest.
    for _ in 0..150 {
        reading.received().await;
    }
    drop(jobs.await.unwrap());
}

#[tokio::test]
async fn a_client_that_does_not_read_its_close_reason_is_cut_off() {
    for carrier in CARRIERS {
        cut_off(carrier).await;
    }
}

async fn cut_off(carrier: Carrier) {
    let options = Options {
        negotiation_timeout: Duration::from_millis(50),
        keepalive: Duration::from_millis(50),
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut publisher = Agent::linked(&bench, "publisher", 1).await;
    let stopped = Agent::subscribed_over(&bench, carrier, "stopped", 2).await;
    for _ in 0..100 {
        publisher.publish(stopped.name(), 1, &[7; 8 << 10]);
    }
    bench.counted(Counter::Delivered, 100).await;
    bench.node.messaging().close_all();
    until("both to have gone", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
    drop(stopped);
}
