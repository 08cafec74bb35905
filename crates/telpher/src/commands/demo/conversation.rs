//! The scenes of a conversation: appended, watched, and read again after the node's restart.

use client::{Conversation, Message, NewMessage};
use console::Failure;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::agents::Crew;
use super::stage::{Stage, broken, demo_name, short};

/// Role, author and text of the messages, in order.
const MESSAGES: [(&str, &str, &str); 3] = [
    ("user", "planner", "which tea do we drink?"),
    ("assistant", "writer", "the one that is left"),
    ("user", "planner", "two cups, then"),
];

/// Scene: numbered messages, a repeated message and a conflict.
pub(super) async fn append_and_watch(stage: &Stage, crew: &Crew) -> Result<(), Failure> {
    stage
        .scene("A conversation: numbered messages on disk, no duplicates, live watchers")
        .await?;
    let tea = tea(crew)?;
    let mut watch = tea.follow(0);
    let mut last = None;
    for (expected, (role, who, text)) in (0..).zip(MESSAGES) {
        stage.says(who, "tea-time", text).await?;
        let message = message(role, who, text);
        let start = Instant::now();
        let appended = tea.append_expecting(expected, std::slice::from_ref(&message));
        let appended = appended.await.map_err(broken)?;
        let what = format!(
            "on disk, number {} of tea-time, after {}",
            appended.last,
            short(start.elapsed())
        );
        stage.says("node", who, &what).await?;
        let seen = watch.next().await;
        let seen = seen.ok_or_else(|| broken("a conversation ended"))?;
        let what = format!("receives: {}", shown(&seen.map_err(broken)?)?);
        stage.remarks("eve", &what).await?;
        last = Some(message);
    }
    let again: Vec<_> = last.into_iter().collect();
    stage
        .says(
            "planner",
            "tea-time",
            "two cups, then (repeated with the same id)",
        )
        .await?;
    let repeated = tea.append(&again).await.map_err(broken)?;
    if repeated.deduplicated != 1 {
        return Err(broken("a repeated message was appended"));
    }
    let what = format!(
        "stored already as number {}; not appended again",
        repeated.last
    );
    stage.says("node", "planner", &what).await?;
    let late = message("assistant", "writer", "or three?");
    stage
        .says(
            "writer",
            "tea-time",
            "or three? (if message 2 is the newest)",
        )
        .await?;
    match tea.append_expecting(2, &[late]).await {
        Ok(_) => Err(broken("an append succeeded that should have failed")),
        Err(error) => {
            let what = format!("{}: {}", error.code, error.message);
            stage.says("node", "writer", &what).await
        }
    }
}

/// Scene: the whole conversation is read after the restart.
pub(super) async fn still_there(stage: &Stage, crew: &Crew) -> Result<(), Failure> {
    let page = tea(crew)?.read(0).await.map_err(broken)?;
    let numbers: Vec<_> = page.messages.iter().map(|message| message.seq).collect();
    if numbers != [1, 2, 3] || page.head != 3 {
        return Err(broken(format!("tea-time has the messages {numbers:?}")));
    }
    for message in &page.messages {
        stage.remarks("tea-time", &shown(message)?).await?;
    }
    Ok(())
}

fn tea(crew: &Crew) -> Result<Conversation, Failure> {
    let name = demo_name("tea-time")?;
    crew.planner.conversation(name.as_str()).map_err(broken)
}

fn message(role: &str, who: &str, text: &str) -> NewMessage {
    let parts = json!([{ "type": "text", "text": text }]);
    NewMessage {
        from: who.to_owned(),
        ..NewMessage::new(role, parts.to_string())
    }
}

/// Formats a message: number, author and text.
fn shown(message: &Message) -> Result<String, Failure> {
    let parts: Value = serde_json::from_slice(&message.parts).map_err(broken)?;
    let text = parts[0]["text"].as_str().unwrap_or_default();
    Ok(format!("{} {}: {text}", message.seq, message.from))
}
