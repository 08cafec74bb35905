//! Streamed answers and windows against the AI SDK itself: `ai` as npm has it, on its own Node.

mod package;

use message_json::chunks::{Assembled, Assembly, Sizes};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Door;
use package::Package;

/// Chunks of every kind, alone and together.
const CASES: &str = include_str!("../../../../compat/ai/cases.json");

#[derive(Deserialize)]
struct Case {
    name: String,
    chunks: Vec<Value>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(CASES).unwrap()
}

/// The parts and metadata that the node should make of a message of the SDK, without the `error`
/// that the node adds. Metadata other than objects are stored as a `value`.
fn expected(message: &Value) -> (Value, Value) {
    let metadata = match &message["metadata"] {
        Value::Null => json!({}),
        Value::Object(fields) => json!(fields),
        other => json!({"value": other}),
    };
    match &message["parts"] {
        Value::Null => (json!([]), metadata),
        parts => (parts.clone(), metadata),
    }
}

fn assembled(message: &Assembled) -> (Value, Value) {
    let parts = serde_json::from_str(&message.parts).unwrap();
    let metadata = match &*message.metadata {
        "" => json!({}),
        metadata => without_error(serde_json::from_str(metadata).unwrap()),
    };
    (parts, metadata)
}

fn without_error(mut metadata: Value) -> Value {
    if let Value::Object(fields) = &mut metadata {
        fields.remove("error");
    }
    metadata
}

#[test]
fn an_answer_is_the_message_of_the_ai_sdk_at_every_chunk() {
    let mut package = Package::start();
    let sizes = Sizes {
        parts_max: 1 << 20,
        metadata_max: 16 << 10,
    };
    let (mut wrong, mut prefixes) = (Vec::new(), 0);
    for Case { name, chunks } in cases() {
        let messages = package
            .ask(&json!({"op": "prefixes", "chunks": chunks}))
            .unwrap();
        let messages = messages.as_array().unwrap();
        let mut assembly = Assembly::new(sizes);
        for (count, message) in messages.iter().enumerate() {
            if let Some(last) = count.checked_sub(1) {
                assembly.push(&chunks[last].to_string()).unwrap();
            }
            prefixes += 1;
            let (found, expected) = (assembled(&assembly.message()), expected(message));
            if found != expected {
                wrong.push(format!(
                    "{name}, {count} chunks: {found:?}, not {expected:?}"
                ));
                break;
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "of {prefixes} prefixes:\n{}",
        wrong.join("\n")
    );
}

#[tokio::test]
async fn a_stored_answer_is_the_message_of_the_ai_sdk() {
    let door = Door::open().await;
    let mut package = Package::start();
    for (number, Case { name, chunks }) in cases().into_iter().enumerate() {
        let path = format!("/v1/conversations/c-{number}/messages");
        let lines: Vec<String> = chunks.iter().map(Value::to_string).collect();
        let jsonl = [("content-type", "application/jsonl")];
        let stream = format!("{path}/a-1/stream");
        let answer = door
            .ask_with("POST", &stream, &jsonl, lines.join("\n").as_bytes())
            .await;
        assert_eq!(answer.status, 201, "{name}: {}", answer.text());
        let mut stored = door.get(&path).await.json()["messages"][0].take();
        let messages = package
            .ask(&json!({"op": "prefixes", "chunks": chunks}))
            .unwrap();
        let last = messages.as_array().unwrap().last().unwrap();
        let stored = (
            stored["parts"].take(),
            without_error(stored["metadata"].take()),
        );
        assert_eq!(stored, expected(last), "{name}");
    }
}

/// A message as an application of the AI SDK may store it, with unanswered tool calls.
fn message(rng: &mut fastrand::Rng, number: usize) -> Value {
    let words = |rng: &mut fastrand::Rng| "word ".repeat(rng.usize(1..60));
    if number.is_multiple_of(2) || rng.u8(..) < 20 {
        return json!({"role": "user", "parts": [{"type": "text", "text": words(rng)}]});
    }
    let mut parts = vec![json!({"type": "step-start"})];
    for call in 0..rng.usize(0..4) {
        let state = rng.choice([
            "input-streaming",
            "input-available",
            "approval-requested",
            "approval-responded",
            "output-available",
            "output-available",
            "output-available",
            "output-error",
            "output-denied",
        ]);
        let mut part = json!({"type": "tool-search", "toolCallId": format!("c-{number}-{call}"),
            "state": state, "input": {"query": words(rng)}});
        if rng.bool() {
            part["type"] = json!("dynamic-tool");
            part["toolName"] = json!("search");
        }
        match state {
            Some("output-available") => part["output"] = json!(words(rng).repeat(rng.usize(1..9))),
            Some("output-error") => part["errorText"] = json!("no"),
            Some("approval-requested") => part["approval"] = json!({"id": "p"}),
            Some("approval-responded") => {
                part["approval"] = json!({"id": "p", "approved": rng.bool()});
            }
            Some("output-denied") => part["approval"] = json!({"id": "p", "approved": false}),
            _ => {}
        }
        parts.push(part);
        match rng.u8(0..3) {
            0 => parts.push(json!({"type": "step-start"})),
            1 => parts.push(json!({"type": "reasoning", "text": words(rng), "state": "done"})),
            _ => {}
        }
    }
    if rng.bool() || parts.len() == 1 {
        parts.push(json!({"type": "text", "text": words(rng), "state": "done"}));
    }
    json!({"role": "assistant", "parts": parts})
}

#[tokio::test]
async fn the_ai_sdk_accepts_every_window_despite_unanswered_tool_calls() {
    let door = Door::open().await;
    let mut package = Package::start();
    let mut rng = fastrand::Rng::with_seed(42);
    let (mut windows, mut dropped) = (0, 0);
    for history in 0..25 {
        let path = format!("/v1/conversations/h-{history}");
        let messages: Vec<_> = (0..40).map(|number| message(&mut rng, number)).collect();
        let batch = json!({"messages": messages});
        let answer = door.ask("POST", &format!("{path}/messages"), &batch).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        for query in [
            "budget=100000",
            "budget=1500",
            "budget=1500&drop_first=tool_output,reasoning&keep_tool_turns=1",
            "policy=last_n&n=9",
            "policy=skip_parts&n=20&drop_first=tool_call,reasoning",
        ] {
            let answer = door.get(&format!("{path}/context?{query}")).await;
            if answer.status == 413 {
                continue;
            }
            let window = answer.json();
            windows += 1;
            dropped += window["dropped"]["tool_call"].as_u64().unwrap_or(0);
            let messages = &window["messages"];
            let sent = package.ask(&json!({"op": "window", "messages": messages}));
            assert_eq!(sent, Ok(json!(true)), "{history} {query}: {messages}");
        }
    }
    assert!(
        windows > 100 && dropped > 200,
        "{windows} windows, {dropped} calls"
    );
}

#[tokio::test]
async fn ai_sdk_accepts_the_window_after_an_interrupted_tool_call() {
    let door = Door::open().await;
    let mut package = Package::start();
    door.append_text("c-1", "What is the weather?").await;
    let chunks = [
        json!({"type": "start-step"}),
        json!({"type": "text-start", "id": "t"}),
        json!({"type": "text-delta", "id": "t", "delta": "Let me look."}),
        json!({"type": "tool-input-available", "toolCallId": "a", "toolName": "x", "input": {}}),
        json!({"type": "tool-input-available", "toolCallId": "b", "toolName": "x", "input": {}}),
        json!({"type": "tool-output-available", "toolCallId": "a", "output": "sun"}),
    ];
    let lines: Vec<String> = chunks.iter().map(Value::to_string).collect();
    let path = "/v1/conversations/c-1/messages/a-1/stream";
    let jsonl = [("content-type", "application/jsonl")];
    let answer = door
        .ask_with("POST", path, &jsonl, lines.join("\n").as_bytes())
        .await;
    assert_eq!(answer.json()["status"], "interrupted");
    door.append_text("c-1", "And?").await;
    let window = door
        .get("/v1/conversations/c-1/context?budget=1000")
        .await
        .json();
    assert_eq!(window["dropped"], json!({"tool_call": 1}));
    let parts = window["messages"][1]["parts"].as_array().unwrap();
    let kept: Vec<_> = parts
        .iter()
        .filter_map(|part| part.get("toolCallId"))
        .collect();
    assert_eq!(kept, ["a"]);
    let sent = package.ask(&json!({"op": "window", "messages": window["messages"]}));
    assert_eq!(sent, Ok(json!(true)));
}

#[tokio::test]
async fn node_fetch_streams_answers_of_the_ai_sdk_without_a_failure() {
    const COUNT: usize = 200;
    let door = Door::open().await;
    let url = format!("http://{}/v1/conversations/c-1/messages", door.address);
    let asked = json!({"op": "stream", "url": url, "count": COUNT});
    let answers = tokio::task::spawn_blocking(move || Package::start().ask(&asked));
    let answers = answers.await.unwrap().unwrap();
    assert_eq!(answers, json!(vec!["201 complete"; COUNT]));
}
