//! Takes in bare frames: their answers, the timing and the order.

mod charges;

use model::ErrorCode;
use quota::Limit;
use quota_service::LimitConfig;
use wire::{
    Admitted, Costs, Flags, Kind, Outcome, Outcomes, Settle, TAKES_MAX, Take, Wait, encode_frame,
};

use crate::Bench;
use crate::agent::{Agent, Frame, tag};
use crate::durable_node::DurableNode;

fn bucket(name: &str, pattern: &str, unit: &str, capacity: u64, refill: &str) -> LimitConfig {
    LimitConfig {
        name: name.to_owned(),
        pattern: pattern.to_owned(),
        unit: unit.to_owned(),
        capacity: Some(capacity),
        refill: Some(refill.to_owned()),
        ..LimitConfig::default()
    }
}

fn limits(written: &[LimitConfig]) -> Vec<Limit> {
    written.iter().map(|one| one.read().unwrap()).collect()
}

fn bench(written: &[LimitConfig]) -> Bench {
    let bench = Bench::new();
    let quotas = bench.node.quotas();
    quotas.follow_configuration(limits(written)).unwrap();
    bench
}

/// What is asked; the costs are `tokens`.
#[derive(Clone, Copy, Default)]
struct TakeRequest<'a> {
    subject: &'a str,
    tokens: u64,
    hold_ms: Option<u32>,
    wait: Option<Wait>,
    id: Option<&'a str>,
}

impl TakeRequest<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut costs = Vec::new();
        Costs::encode("tokens", self.tokens, &mut costs);
        Take {
            subject: self.subject,
            hold_ms: self.hold_ms,
            wait: self.wait,
            id: self.id,
            costs: Costs::decode(&costs).unwrap(),
        }
        .encode(out);
    }
}

fn take_request(subject: &str, tokens: u64) -> TakeRequest<'_> {
    TakeRequest {
        subject,
        tokens,
        ..TakeRequest::default()
    }
}

async fn take(agent: &mut Agent, slot: u32, takes: &[TakeRequest<'_>]) {
    let write = |out: &mut Vec<u8>| takes.iter().for_each(|take| take.encode(out));
    agent
        .frame(|out| encode_frame(out, Kind::TAKE, Flags::NONE, 0, tag(slot), write))
        .await;
}

/// Each outcome in a few words.
fn outcome_texts(frame: &Frame) -> Vec<String> {
    assert_eq!(frame.header.kind, Kind::REPLY, "{frame:?}");
    let outcomes = Outcomes::decode(&frame.payload).unwrap();
    let names: Vec<_> = outcomes.limits().map(|(name, _)| name).collect();
    let outcome_texts = outcomes.iter().map(|outcome| match outcome {
        Outcome::Admitted(admitted) => {
            let left = |(name, have)| format!(" {name}={have}");
            let left: String = limit_states(&admitted, &names).map(left).collect();
            let repeat = if admitted.is_repeat { " again" } else { "" };
            format!("admitted{repeat}{left}")
        }
        Outcome::Denied(denied) => {
            let name = names[usize::from(denied.limit)];
            let (have, need) = (denied.have, denied.need);
            let exhausted = if denied.is_exhausted { " for good" } else { "" };
            format!(
                "denied by {name}{exhausted}: {have} of {need}, {:?}",
                denied.retry_after_ns
            )
        }
        Outcome::Refused { code, message } => format!("{code}: {message}"),
    });
    outcome_texts.collect()
}

fn limit_states<'a>(
    admitted: &Admitted<'a>,
    names: &'a [&'a str],
) -> impl Iterator<Item = (&'a str, i64)> {
    let states = admitted.limit_states();
    states.map(|one| (names[usize::from(one.limit)], one.have))
}

fn hold(frame: &Frame) -> u128 {
    let outcomes = Outcomes::decode(&frame.payload).unwrap();
    match outcomes.iter().next() {
        Some(Outcome::Admitted(admitted)) => admitted.hold.unwrap().id,
        other => panic!("{other:?}"),
    }
}

async fn settle(agent: &mut Agent, slot: u32, hold: u128, tokens: Option<u64>) -> Frame {
    let mut costs = Vec::new();
    if let Some(tokens) = tokens {
        Costs::encode("tokens", tokens, &mut costs);
    }
    let settle = Settle {
        hold,
        costs: tokens.map(|_| Costs::decode(&costs).unwrap()),
    };
    agent.frame(|out| settle.encode(tag(slot), out)).await;
    agent.next().await
}

#[tokio::test]
async fn takes_of_one_frame_are_decided_in_order_and_answered_together() {
    let org = bucket("org", "acme", "tokens", 100, "10/s");
    let each = bucket("each", "acme/*/*", "tokens", 60, "1/s");
    let bench = bench(&[org, each]);
    let mut agent = bench.agent("").await;
    let takes = [
        take_request("acme/x/a", 50),
        take_request("acme/x/a", 50),
        take_request("acme/x/b", 50),
        take_request("acme/x/c?run=7", 1),
        take_request("elsewhere/x/c", 1),
        take_request("nobody", 1),
        take_request("acme/x/d", 61),
        take_request("acme/x/d", 0),
    ];
    take(&mut agent, 0, &takes).await;
    let frame = agent.next().await;
    assert_eq!(frame.header.correlation, tag(0));
    assert_eq!(
        outcome_texts(&frame),
        [
            "admitted org=50 each=10",
            "denied by each: 10 of 50, Some(40000000000)",
            "admitted org=0 each=10",
            "denied by org: 0 of 1, Some(100000000)",
            "admitted",
            "invalid_argument: invalid subject: it has 1 parts, expected `org/namespace/agent`",
            "invalid_argument: 61 exceeds the capacity (60)",
            "invalid_argument: every cost of the take is 0",
        ]
    );
    bench.clock.advance_ms(100);
    take(&mut agent, 0, &[take_request("acme/x/c?run=7", 1)]).await;
    assert_eq!(
        outcome_texts(&agent.next().await),
        ["admitted org=0 each=59"]
    );
}

#[tokio::test]
async fn a_frame_that_cannot_be_decided_takes_nothing() {
    let bench = bench(&[bucket("org", "acme", "tokens", 5_000, "1/s")]);
    let mut agent = bench.agent("").await;
    take(&mut agent, 0, &[]).await;
    let code = agent.next().await.failure().code;
    assert_eq!(code, ErrorCode::InvalidArgument);
    take(
        &mut agent,
        0,
        &vec![take_request("acme/x/a", 1); TAKES_MAX + 1],
    )
    .await;
    assert_eq!(agent.next().await.failure().code, ErrorCode::TooLarge);
    let wait = Wait {
        wait_ms: 1_000,
        priority: 0,
    };
    let waiting = TakeRequest {
        wait: Some(wait),
        ..take_request("acme/x/a", 1)
    };
    take(&mut agent, 0, &[waiting, waiting]).await;
    let code = agent.next().await.failure().code;
    assert_eq!(code, ErrorCode::InvalidArgument);
    agent
        .frame(|out| wire::encode_peek("acme/x/a", tag(0), out))
        .await;
    assert_eq!(outcome_texts(&agent.next().await), ["admitted org=5000"]);
    take(&mut agent, 0, &vec![take_request("acme/x/a", 1); TAKES_MAX]).await;
    let outcome_texts = outcome_texts(&agent.next().await);
    assert_eq!(
        (outcome_texts.len(), &*outcome_texts[1_023]),
        (1_024, "admitted org=3976")
    );
}

#[tokio::test]
async fn truncated_take_frame_ends_the_connection_and_takes_nothing() {
    let bench = bench(&[bucket("org", "acme", "tokens", 100, "1/s")]);
    let mut broken = bench.agent("").await;
    let write = |out: &mut Vec<u8>| {
        take_request("acme/x/a", 10).encode(out);
        out.extend_from_slice(&[0, 9, 0, b'a']);
    };
    broken
        .frame(|out| encode_frame(out, Kind::TAKE, Flags::NONE, 0, tag(0), write))
        .await;
    assert_eq!(broken.next().await.failure().code, ErrorCode::Protocol);
    let mut agent = bench.agent("").await;
    take(&mut agent, 0, &[take_request("acme/x/a", 1)]).await;
    assert_eq!(outcome_texts(&agent.next().await), ["admitted org=99"]);
}

#[tokio::test]
async fn a_hold_is_settled_once_and_a_repetition_takes_nothing() {
    let bench = bench(&[bucket("org", "acme", "tokens", 100, "1/s")]);
    let mut agent = bench.agent("").await;
    let held = TakeRequest {
        hold_ms: Some(60_000),
        id: Some("t1"),
        ..take_request("acme/x/a", 40)
    };
    take(&mut agent, 0, &[held]).await;
    let first = agent.next().await;
    assert_eq!(outcome_texts(&first), ["admitted org=60"]);
    take(&mut agent, 0, &[held]).await;
    let again = agent.next().await;
    assert_eq!(outcome_texts(&again), ["admitted again org=60"]);
    assert_eq!(hold(&again), hold(&first));
    let was_held = async |agent: &mut Agent, tokens| {
        let frame = settle(agent, 0, hold(&first), tokens).await;
        wire::decode_settled(&frame.payload).unwrap()
    };
    assert!(was_held(&mut agent, Some(130)).await);
    assert!(!was_held(&mut agent, Some(130)).await, "it ended before");
    assert!(!was_held(&mut agent, None).await);
    take(&mut agent, 0, &[take_request("acme/x/a", 1)]).await;
    let outcome_texts = outcome_texts(&agent.next().await);
    assert_eq!(
        outcome_texts,
        ["denied by org: -30 of 1, Some(31000000000)"]
    );
}

#[tokio::test]
async fn a_spent_budget_denies_takes_for_good() {
    let budget = LimitConfig {
        budget: Some(10),
        every: Some("never".to_owned()),
        capacity: None,
        refill: None,
        ..bucket("spend", "acme", "tokens", 0, "")
    };
    let bench = bench(&[budget]);
    let mut agent = bench.agent("").await;
    take(
        &mut agent,
        0,
        &[take_request("acme/x/a", 10), take_request("acme/x/a", 1)],
    )
    .await;
    let outcome_texts = outcome_texts(&agent.next().await);
    assert_eq!(outcome_texts[0], "admitted spend=0");
    assert_eq!(outcome_texts[1], "denied by spend for good: 0 of 1, None");
}

#[tokio::test]
async fn a_take_waits_until_a_hold_is_released() {
    let slots = LimitConfig {
        refill: None,
        ..bucket("slots", "acme", "concurrency", 1, "")
    };
    let bench = bench(&[slots]);
    let mut agent = bench.agent("").await;
    let one = |out: &mut Vec<u8>, wait: Option<Wait>| {
        let mut costs = Vec::new();
        Costs::encode("concurrency", 1, &mut costs);
        Take {
            subject: "acme/x/a",
            hold_ms: Some(3_600_000),
            wait,
            id: None,
            costs: Costs::decode(&costs).unwrap(),
        }
        .encode(out);
    };
    let wait = Some(Wait {
        wait_ms: 3_600_000,
        priority: 0,
    });
    let ask = async |agent: &mut Agent, slot, wait| {
        let write = |out: &mut Vec<u8>| one(out, wait);
        agent
            .frame(|out| encode_frame(out, Kind::TAKE, Flags::NONE, 0, tag(slot), write))
            .await;
    };
    ask(&mut agent, 0, None).await;
    let first = agent.next().await;
    ask(&mut agent, 1, wait).await;
    ask(&mut agent, 2, wait).await;
    agent.expect_nothing().await;
    // A cancelled take takes nothing and is answered with Cancelled.
    agent.frame(|out| wire::encode_cancel(tag(1), out)).await;
    let cancelled = agent.next().await;
    assert_eq!(cancelled.header.correlation, tag(1));
    assert_eq!(cancelled.failure().code, ErrorCode::Cancelled);
    let mut other = bench.agent("").await;
    settle(&mut other, 0, hold(&first), None).await;
    let third = agent.next().await;
    assert_eq!(third.header.correlation, tag(2));
    assert_eq!(outcome_texts(&third), ["admitted slots=0"]);
    // A connection that is gone waits for nothing.
    ask(&mut other, 0, wait).await;
    other.expect_nothing().await;
    drop(other);
    settle(&mut agent, 0, hold(&third), None).await;
    ask(&mut agent, 0, wait).await;
    assert_eq!(outcome_texts(&agent.next().await), ["admitted slots=0"]);
}

#[tokio::test(start_paused = true)]
async fn a_take_that_cannot_pass_within_its_wait_is_denied_at_once() {
    let bench = bench(&[bucket("org", "acme", "tokens", 10, "1/s")]);
    let mut agent = bench.agent("").await;
    let waiting = TakeRequest {
        wait: Some(Wait {
            wait_ms: 2_500,
            priority: 0,
        }),
        ..take_request("acme/x/a", 10)
    };
    take(&mut agent, 0, &[waiting]).await;
    assert_eq!(outcome_texts(&agent.next().await), ["admitted org=0"]);
    // It would have to wait for ten seconds: it is told at once.
    take(&mut agent, 0, &[waiting]).await;
    let told_at_once = outcome_texts(&agent.next().await);
    assert_eq!(told_at_once, ["denied by org: 0 of 10, Some(10000000000)"]);
    bench.clock.advance_ms(8_000);
    take(&mut agent, 0, &[waiting]).await;
    agent.expect_nothing().await;
    bench.clock.advance_ms(2_000);
    assert_eq!(outcome_texts(&agent.next().await), ["admitted org=0"]);
}

#[tokio::test]
async fn take_from_a_sync_limit_is_answered_once_durable() {
    let mut durable_node = DurableNode::new();
    let money = LimitConfig {
        durability: Some("sync".to_owned()),
        ..bucket("money", "acme", "tokens", 100, "1/s")
    };
    let free = bucket("free", "free", "tokens", 100, "1/s");
    let limits = limits(&[money, free]);
    let node = &durable_node.bench.node;
    node.quotas().follow_configuration(limits).unwrap();
    durable_node.sync();
    let mut agent = durable_node.bench.agent("").await;
    let held = TakeRequest {
        hold_ms: Some(60_000),
        ..take_request("acme/x/a", 40)
    };
    take(&mut agent, 0, &[held, take_request("free/x/a", 1)]).await;
    take(&mut agent, 1, &[take_request("free/x/a", 1)]).await;
    let frame = agent.next().await;
    assert_eq!(
        frame.header.correlation,
        tag(1),
        "what is free waits for nothing"
    );
    agent.expect_nothing().await;
    durable_node.sync();
    let first = agent.next().await;
    assert_eq!(first.header.correlation, tag(0));
    assert_eq!(
        outcome_texts(&first),
        ["admitted money=60", "admitted free=99"]
    );
    let end = Settle {
        hold: hold(&first),
        costs: None,
    };
    agent.frame(|out| end.encode(tag(0), out)).await;
    agent.expect_nothing().await;
    durable_node.sync();
    let settled = agent.next().await;
    assert_eq!(wire::decode_settled(&settled.payload), Ok(true));
    // The disk fails: the outcome of the take is unknown.
    take(&mut agent, 0, &[take_request("acme/x/a", 1)]).await;
    agent.expect_nothing().await;
    durable_node
        .disk
        .fail_always(journal::disk::simulated::Fault::Broken, |_| true);
    durable_node.sync();
    let failure = agent.next().await;
    assert_eq!(failure.failure().code, ErrorCode::Unconfirmed);
    assert!(failure.failure().sent);
    take(&mut agent, 0, &[take_request("acme/x/a", 1)]).await;
    let outcome_texts = outcome_texts(&agent.next().await);
    assert!(
        outcome_texts[0].starts_with("unavailable: "),
        "{outcome_texts:?}"
    );
}
