//! The scenes of the demo.

use std::time::Duration;

use client::{CallError, Caller, Cast, ConnectionState, ErrorCode, RetryPolicy, Subscription};
use console::Failure;
use serve::Embedded;
use tokio::time::Instant;

use crate::commands::version::IS_OPTIMIZED;

use super::agents::{CalculatorClient, Crew, FACTS, subscribe};
use super::sleeper::Sleeper;
use super::stage::{Stage, broken, demo_name, short};

fn caller(crew: &Crew, agent: &str) -> Result<Caller, Failure> {
    crew.planner
        .caller(demo_name(agent)?.as_str())
        .map_err(broken)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Scene: calls are distributed to two instances of one name.
pub(super) async fn anycast(stage: &Stage, crew: &Crew) -> Result<(), Failure> {
    stage
        .scene("One name, two instances: calls go to each in turn")
        .await?;
    let researcher = caller(crew, "researcher")?;
    for (topic, _) in FACTS {
        let what = format!("look_up {topic}");
        stage.says("planner", "researcher", &what).await?;
        let answer = researcher.call("look_up", topic).await.map_err(broken)?;
        let answer = text(&answer);
        let (who, fact) = answer.split_once(": ").unwrap_or(("researcher", &answer));
        stage.says(who, "planner", fact).await?;
    }
    Ok(())
}

/// Scene: typed calls with a Rust trait as the interface.
pub(super) async fn typed_calls(stage: &Stage, crew: &Crew) -> Result<(), Failure> {
    stage
        .scene("Typed calls: a Rust trait is the interface")
        .await?;
    let calculator = CalculatorClient::new(caller(crew, "calculator")?);
    stage.says("planner", "calculator", "add(19, 23)").await?;
    let sum = calculator.add(19, 23).await.map_err(broken)?;
    stage
        .says("calculator", "planner", &sum.to_string())
        .await?;
    stage.says("planner", "calculator", "divide(1, 0)").await?;
    let error = expect_error(calculator.divide(1, 0).await)?;
    stage.says("calculator", "planner", &brief(&error)).await
}

/// Scene: a call with any number of replies.
pub(super) async fn streaming(stage: &Stage, crew: &Crew) -> Result<(), Failure> {
    stage
        .scene("Streaming: any number of replies to one call")
        .await?;
    stage.says("planner", "writer", "haiku").await?;
    let mut lines = caller(crew, "writer")?.stream("haiku", "");
    while let Some(line) = lines.next().await {
        let line = text(&line.map_err(broken)?);
        stage.says("writer", "planner", &line).await?;
    }
    Ok(())
}

/// Scene: a message to every subscriber.
pub(super) async fn multicast(stage: &Stage, crew: &mut Crew) -> Result<(), Failure> {
    stage
        .scene("Multicast: one send, a copy for every subscriber")
        .await?;
    stage.says("planner", "news", "tea is ready").await?;
    let news = demo_name("news")?;
    let sending = crew.planner.send_reported(&news, Cast::All, "tea is ready");
    let receipt = sending.await.map_err(broken)?;
    for (name, reader) in &mut crew.readers {
        let what = format!("received: {}", next(reader).await?);
        stage.remarks(name, &what).await?;
    }
    let what = format!(
        "delivered to {}, dropped by {}",
        receipt.delivered, receipt.dropped
    );
    stage.says("node", "planner", &what).await
}

/// Scene: durable writes.
pub(super) async fn write(stage: &Stage, crew: &mut Crew) -> Result<(), Failure> {
    stage
        .scene("Write: on disk before it is acknowledged, with or without a subscriber")
        .await?;
    for (agent, body) in [("archive", "minutes of the meeting"), ATTIC] {
        stage.says("planner", agent, body).await?;
        let name = demo_name(agent)?;
        let start = Instant::now();
        let written = crew.planner.write(&name, body).await.map_err(broken)?;
        let took = short(start.elapsed());
        let what = format!(
            "on disk, message {} for {agent}, after {took}",
            written.offset
        );
        stage.says("node", "planner", &what).await?;
    }
    let kept = format!("received: {}", take(&mut crew.archive).await?);
    stage.remarks("archive", &kept).await
}

/// The agent and the body of a write without a subscriber.
const ATTIC: (&str, &str) = ("attic", "an old hat");

/// Scene: a message that was written before the node's crash is delivered.
pub(super) async fn still_there(stage: &Stage, node: &Embedded) -> Result<(), Failure> {
    stage
        .scene("A message that was written before the crash is delivered to a new subscriber")
        .await?;
    let (agent, body) = ATTIC;
    let mut attic = subscribe(&node.unix, agent).await?;
    let kept = take(&mut attic).await?;
    if kept != body {
        return Err(broken(format!("{agent} was given: {kept}")));
    }
    stage.remarks(agent, &format!("received: {kept}")).await
}

/// Scene: errors that are reported at once.
pub(super) async fn no_responder(stage: &Stage, crew: &Crew) -> Result<(), Failure> {
    stage
        .scene("No responder: reported at once, not by a timeout")
        .await?;
    for (agent, method) in [("oracle", ""), ("writer", "haikoo")] {
        let what = match method {
            "" => "what is to come?",
            method => method,
        };
        stage.says("planner", agent, what).await?;
        let callee = caller(crew, agent)?;
        let start = Instant::now();
        let error = expect_error(callee.call(method, what).await)?;
        let took = short(start.elapsed());
        let who = match error.code {
            ErrorCode::UnknownMethod => agent,
            _ => "node",
        };
        let what = format!("{}, after {took}", brief(&error));
        stage.says(who, "planner", &what).await?;
    }
    Ok(())
}

const CALLS: usize = 3;

/// Scene: the outcome of calls whose responder is killed.
pub(super) async fn killed_agent(
    stage: &Stage,
    crew: &Crew,
    node: &Embedded,
) -> Result<(), Failure> {
    stage
        .scene("An agent is killed: its calls end as unconfirmed")
        .await?;
    let sleeper = Sleeper::start(&node.tcp).await?;
    let what = format!("{CALLS} calls in flight (it is process {})", sleeper.pid());
    stage.says("planner", "sleeper", &what).await?;
    let callee = caller(crew, "sleeper")?;
    let calls = tokio::spawn(async move { callee.call_batch("", ["zzz"; CALLS]).await });
    in_flight(crew, CALLS).await;
    let pid = sleeper.pid();
    stage.remarks("demo", &format!("kill -9 {pid}")).await?;
    let start = Instant::now();
    sleeper.kill().await?;
    let outcomes = calls.await.map_err(broken)?;
    let took = short(start.elapsed());
    for outcome in outcomes {
        let error = expect_error(outcome)?;
        if error.code != ErrorCode::Unconfirmed {
            return Err(broken(error));
        }
        stage.says("node", "planner", &brief(&error)).await?;
    }
    let what = format!("{took} after the kill; each call may have been executed or not");
    stage.remarks("demo", &what).await
}

/// Scene: agents reconnect after a crash of the node.
pub(super) async fn restarted_node(
    stage: &Stage,
    crew: &Crew,
    node: &mut Embedded,
) -> Result<(), Failure> {
    stage
        .scene("The node crashes and restarts: agents reconnect and subscribe again")
        .await?;
    node.crash().await;
    // A call before the connection is lost would end as unconfirmed.
    let is_lost = |state: &ConnectionState| !matches!(state, ConnectionState::Connected { .. });
    crew.planner.events().wait_for(is_lost).await;
    stage.remarks("node", "crashed").await?;
    let researcher = caller(crew, "researcher")?;
    stage
        .says(
            "planner",
            "researcher",
            "look_up tapirs (and waits for a connection)",
        )
        .await?;
    let start = Instant::now();
    let asking = tokio::spawn(async move {
        // Retried until a researcher has reconnected as well.
        let policy = RetryPolicy::attempts(1000).pauses(Duration::from_millis(2), MS_50);
        let answer = researcher.call("look_up", "tapirs").retry(policy).await;
        answer.map(|answer| (answer, start.elapsed()))
    });
    node.restart().await?;
    let what = format!("listens on {} again", node.tcp);
    stage.remarks("node", &what).await?;
    let (answer, took) = asking.await.map_err(broken)?.map_err(broken)?;
    let (answer, took) = (text(&answer), short(took));
    let (who, fact) = answer.split_once(": ").unwrap_or(("researcher", &answer));
    let what = format!("{fact} ({took} after the call)");
    stage.says(who, "planner", &what).await
}

const MS_50: Duration = Duration::from_millis(50);

const WARM_UP: usize = 200;
const ROUND_TRIPS: usize = 2000;

/// Scene: the latency of sequential round trips.
pub(super) async fn how_fast(stage: &Stage, crew: &Crew) -> Result<(), Failure> {
    stage.scene("How fast was that?").await?;
    let researcher = caller(crew, "researcher/ada")?;
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for index in 0..WARM_UP + ROUND_TRIPS {
        let start = Instant::now();
        let call = researcher.call("echo", "0123456789abcdef");
        let policy = RetryPolicy::attempts(1000).pauses(Duration::from_millis(2), MS_50);
        call.retry(policy).await.map_err(broken)?;
        if index >= WARM_UP {
            times.push(start.elapsed());
        }
    }
    times.sort();
    let percentile = |percent: usize| short(times[(times.len() - 1) * percent / 100]);
    let what = format!(
        "{ROUND_TRIPS} round trips of 16 bytes through the node, one at a time: p50 {}, p99 {}",
        percentile(50),
        percentile(99),
    );
    stage.remarks("planner", &what).await?;
    if IS_OPTIMIZED {
        return Ok(());
    }
    let what =
        "this program was built without optimization; `cargo build --release` makes it faster";
    stage.remarks("demo", what).await
}

/// Waits until the planner has `count` calls in flight.
async fn in_flight(crew: &Crew, count: usize) {
    while crew.planner.in_flight() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn next(subscription: &mut Subscription) -> Result<String, Failure> {
    let envelope = subscription.next().await;
    let envelope = envelope.ok_or_else(|| broken("a subscription ended"))?;
    Ok(text(&envelope.body))
}

/// Returns the next message of a mailbox and acknowledges it.
async fn take(subscription: &mut Subscription) -> Result<String, Failure> {
    let envelope = subscription.next().await;
    let envelope = envelope.ok_or_else(|| broken("a subscription ended"))?;
    let body = text(&envelope.body);
    envelope.reply("").map_err(broken)?;
    Ok(body)
}

fn expect_error<T>(outcome: Result<T, CallError>) -> Result<CallError, Failure> {
    match outcome {
        Ok(_) => Err(broken("a call succeeded that should have failed")),
        Err(error) => Ok(error),
    }
}

fn brief(error: &CallError) -> String {
    format!("{}: {}", error.code, error.message)
}
