//! The agents at work until the demo is interrupted, so that the console has something to show.

use std::time::Duration;

use client::topic::NewRecord;
use client::{CallError, Caller, Cast, ErrorCode, NewMessage};
use console::Failure;
use serde_json::json;
use tokio::time::MissedTickBehavior;

use super::agents::{CalculatorClient, Crew, FACTS};
use super::stage::{Stage, broken, demo_name};

/// Time between two rounds of work.
const PAUSE: Duration = Duration::from_millis(250);

/// The subject that takes a request from its quota in every round.
const PLANNER: &str = "acme/desk/planner";

/// Questions and answers of the conversation, which are repeated.
const TALK: [(&str, &str); 4] = [
    ("is there tea left?", "half a tin"),
    ("and who washes the cups?", "the writer does"),
    ("how long does it take?", "three minutes, not boiling"),
    ("then let us begin", "the kettle is on"),
];

/// Keeps the agents at work. Never returns without a failure.
pub(super) async fn work(stage: &Stage, crew: &mut Crew) -> Result<(), Failure> {
    let title = "The agents stay at work: look at them in the console. Ctrl-C ends the demo";
    stage.scene(title).await?;
    let mut rounds = tokio::time::interval(PAUSE);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_usize.. {
        rounds.tick().await;
        research(crew, round).await?;
        take(crew).await?;
        match round % 8 {
            0 => calculate(crew, round).await?,
            2 => recite(crew).await?,
            3 => talk(crew, round / 8).await?,
            4 => announce(crew).await?,
            5 => produce(crew, round).await?,
            6 => write(crew, round).await?,
            _ => {}
        }
    }
    Ok(())
}

fn caller(crew: &Crew, agent: &str) -> Result<Caller, Failure> {
    let name = demo_name(agent)?;
    crew.planner.caller(name.as_str()).map_err(broken)
}

async fn research(crew: &Crew, round: usize) -> Result<(), Failure> {
    let (topic, _) = FACTS[round % FACTS.len()];
    let researcher = caller(crew, "researcher")?;
    researcher.call("look_up", topic).await.map_err(broken)?;
    Ok(())
}

/// Takes a request from the quota of the planner, which has less than it needs.
async fn take(crew: &Crew) -> Result<(), Failure> {
    let take = client::quota::Take::of(PLANNER).cost("requests", 1);
    let outcome = crew.planner.quota().take(&take).await.map_err(broken)?;
    // A denied take is what the console is to show, too.
    drop(outcome);
    Ok(())
}

async fn calculate(crew: &Crew, round: usize) -> Result<(), Failure> {
    let calculator = CalculatorClient::new(caller(crew, "calculator")?);
    calculator.add(19, round as i64).await.map_err(broken)?;
    if !round.is_multiple_of(32) {
        return Ok(());
    }
    expected(calculator.divide(1, 0).await, ErrorCode::HandlerError)?;
    let oracle = caller(crew, "oracle")?.call("", "what is to come?").await;
    expected(oracle, ErrorCode::NoResponder)
}

async fn recite(crew: &Crew) -> Result<(), Failure> {
    let mut lines = caller(crew, "writer")?.stream("haiku", "");
    while let Some(line) = lines.next().await {
        line.map_err(broken)?;
    }
    Ok(())
}

/// Adds a question and its answer to the conversation.
async fn talk(crew: &Crew, turn: usize) -> Result<(), Failure> {
    let (question, answer) = TALK[turn % TALK.len()];
    let message = |role: &str, who: &str, text: &str| NewMessage {
        from: who.to_owned(),
        ..NewMessage::new(role, json!([{ "type": "text", "text": text }]).to_string())
    };
    let name = demo_name("tea-time")?;
    let tea = crew.planner.conversation(name.as_str()).map_err(broken)?;
    for message in [
        message("user", "planner", question),
        message("assistant", "writer", answer),
    ] {
        tea.append(&[message]).await.map_err(broken)?;
    }
    Ok(())
}

async fn announce(crew: &mut Crew) -> Result<(), Failure> {
    let news = demo_name("news")?;
    let sending = crew.planner.send_reported(&news, Cast::All, "tea is ready");
    sending.await.map_err(broken)?;
    for (_, reader) in &mut crew.readers {
        reader.next().await;
    }
    Ok(())
}

async fn produce(crew: &Crew, round: usize) -> Result<(), Failure> {
    let value = json!({ "cups": round % 5 + 1, "of": "tea" }).to_string();
    let record = NewRecord::keyed(format!("table-{}", round % 3), value);
    let topic = crew.planner.topic("orders");
    topic.append(&[record]).await.map_err(broken)?;
    Ok(())
}

/// Writes to the archive, which acknowledges, and now and then to the attic, which is away.
async fn write(crew: &mut Crew, round: usize) -> Result<(), Failure> {
    let archive = demo_name("archive")?;
    let body = format!("minutes of round {round}");
    crew.planner.write(&archive, body).await.map_err(broken)?;
    let envelope = crew.archive.next().await;
    let envelope = envelope.ok_or_else(|| broken("a subscription ended"))?;
    envelope.reply("").map_err(broken)?;
    if round % 64 == 6 {
        let attic = demo_name("attic")?;
        crew.planner
            .write(&attic, "an old hat")
            .await
            .map_err(broken)?;
    }
    Ok(())
}

/// Checks that a call failed as it should.
fn expected<T>(outcome: Result<T, CallError>, code: ErrorCode) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.code == code => Ok(()),
        Err(error) => Err(broken(error)),
        Ok(_) => Err(broken("a call succeeded that should have failed")),
    }
}
