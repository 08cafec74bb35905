//! Quotas: messages are counted, and a halted client sends none.

use std::sync::Arc;

use access::Pattern;
use access::tokens::{ENTROPY_SIZE, Token};
use door::{Gate, Pass, Refused, Role};
use model::ErrorCode;
use platform::Counter;
use quota::Prefix;
use quota_service::{By, LimitConfig};

use crate::{Agent, Bench, until};

const BY: By<'static> = By {
    who: "root",
    reason: "a test",
};

fn limit(bench: &Bench, capacity: u64, refill: &str) {
    let sends = LimitConfig {
        name: "sends".to_owned(),
        pattern: "*/*/*".to_owned(),
        unit: "sends".to_owned(),
        capacity: Some(capacity),
        refill: Some(refill.to_owned()),
        ..LimitConfig::default()
    };
    let limits = vec![sends.read().unwrap()];
    let quotas = bench.node.quotas();
    quotas.follow_configuration(limits).unwrap();
}

async fn refused(bench: &Bench, code: ErrorCode, count: u64) {
    let counters = bench.node.counters();
    until("messages to be refused", || {
        counters.failures(code) == count
    })
    .await;
}

#[tokio::test]
async fn messages_beyond_a_limit_that_does_not_refill_are_dropped() {
    let bench = Bench::new().await;
    let mut a = Agent::subscribed(&bench, "a", 1).await;
    let b = Agent::subscribed(&bench, "b", 2).await;
    limit(&bench, 3, "0/s");
    for _ in 0..5 {
        a.publish(b.name(), 1, b"hello");
    }
    refused(&bench, ErrorCode::Throttled, 2).await;
    bench.counted(Counter::Delivered, 3).await;
}

#[tokio::test]
async fn a_sender_over_its_limit_is_delayed_and_loses_no_message() {
    let bench = Bench::new().await;
    let mut a = Agent::subscribed(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    limit(&bench, 1, "100/s");
    for index in 0..20_u8 {
        a.publish(b.name(), 1, &[index]);
    }
    // None is lost.
    for index in 0..20_u8 {
        assert_eq!(b.received().await.payload, [index]);
    }
    assert_eq!(bench.node.counters().failures(ErrorCode::Throttled), 0);
}

#[tokio::test]
async fn a_halted_client_sends_nothing_until_it_is_resumed() {
    let bench = Bench::new().await;
    let mut a = Agent::subscribed(&bench, "a", 1).await;
    let mut b = Agent::subscribed(&bench, "b", 2).await;
    let prefix = Prefix {
        name: "default",
        run: "",
    };
    let _halted = bench.node.quotas().halt(prefix, BY).unwrap();
    a.publish(b.name(), 1, b"halted");
    refused(&bench, ErrorCode::Denied, 1).await;
    let _resumed = bench.node.quotas().resume(prefix, BY).unwrap();
    a.publish(b.name(), 1, b"resumed");
    assert_eq!(b.received().await.payload, b"resumed");
}

/// Admits the bearer of one token, which is bound to `org/ns/a`.
struct BoundToken;

impl Gate for BoundToken {
    fn admit(&self, _: &str) -> Result<Pass, Refused> {
        let names: [Pattern; 1] = ["org/ns/a".parse().unwrap()];
        let names = Some(names.into());
        let (_, token) = Token::generate("bound", Role::Agent, names, 0, &[1; ENTROPY_SIZE]);
        Ok(Pass::of_token(Arc::new(token)))
    }
}

#[tokio::test]
async fn a_token_subscribes_and_speaks_under_its_own_names_only() {
    let (options, limits) = (door_slim::Options::default(), messaging::Limits::default());
    let bench = Bench::with(options, limits, Arc::new(BoundToken)).await;
    let open = Agent::open_with(&bench, "Bearer secret").await;
    let mut own = open.negotiated("a", 1).await;
    assert_eq!(own.subscribe(own.name()).await, None);
    let open = Agent::open_with(&bench, "Bearer secret").await;
    let mut foreign = open.negotiated("b", 2).await;
    assert!(foreign.subscribe(foreign.name()).await.is_some());
    foreign.publish(own.name(), 1, b"as b");
    bench.counted(Counter::SlimForbidden, 2).await;
    let open = Agent::open_with(&bench, "Bearer secret").await;
    let mut other = open.negotiated("a", 3).await;
    other.publish(own.name(), 1, b"as a");
    assert_eq!(own.received().await.payload, b"as a");
}
