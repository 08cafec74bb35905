//! Windows stay within their token budget, including the placeholders for dropped parts.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Door;

const PATH: &str = "/v1/conversations/c-1";

/// Conversations that are made up.
const SEEDS: u64 = 25;

#[derive(Deserialize)]
struct Window {
    messages: Vec<Sent>,
    tokens: u64,
    dropped: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Sent {
    parts: Box<RawValue>,
}

impl Window {
    /// What it costs as the node itself estimates it.
    fn cost(&self) -> u64 {
        let sizes = self.messages.iter().map(|sent| sent.parts.get().len());
        sizes.map(|size| size.div_ceil(4).max(1) as u64).sum()
    }
}

fn word(random: &mut fastrand::Rng, sizes: std::ops::Range<usize>) -> String {
    let size = random.usize(sizes);
    (0..size).map(|_| random.alphanumeric()).collect()
}

/// A call's id, mostly short.
fn call_id(random: &mut fastrand::Rng) -> String {
    match random.u8(0..4) {
        0 => word(random, 60..400),
        _ => word(random, 1..60),
    }
}

/// Something that fills a part: large or small, deep or flat, with any number of small fields.
fn bulk(random: &mut fastrand::Rng) -> Value {
    match random.u8(0..5) {
        0 => json!(word(random, 0..90)),
        1 => json!(word(random, 300..2_000)),
        2 => (0..random.u8(0..60)).map(|_| word(random, 0..12)).collect(),
        3 => json!({"type": "json", "value": word(random, 100..900)}),
        _ => {
            let fields = (0..random.u8(0..40)).map(|_| (word(random, 1..20), json!(1)));
            Value::Object(fields.collect())
        }
    }
}

/// Fields that the node does not know.
fn with_extras(mut part: Value, random: &mut fastrand::Rng) -> Value {
    for _ in 0..random.u8(0..4) {
        part[word(random, 1..50)] = bulk(random);
    }
    part
}

/// A turn: a question, an answer with calls, their results.
fn turn(random: &mut fastrand::Rng) -> Vec<Value> {
    let mut turn = vec![json!({"role": "user", "content": word(random, 1..80)})];
    let mut parts = vec![json!({"type": "text", "text": word(random, 1..600)})];
    let mut results = Vec::new();
    for _ in 0..random.u8(0..4) {
        let (id, name) = (call_id(random), word(random, 1..100));
        let (call, result) = match random.u8(0..4) {
            0 => (
                json!({"type": "tool-call", "toolCallId": id, "toolName": name, "input": bulk(random)}),
                json!({"type": "tool-result", "toolCallId": id, "toolName": name, "output": bulk(random)}),
            ),
            1 => (
                json!({"type": "function", "id": id, "function": {"name": name, "arguments": bulk(random)}}),
                json!({"tool_call_id": id, "content": bulk(random)}),
            ),
            2 => (
                json!({"type": "tool_use", "id": id, "name": name, "input": bulk(random)}),
                json!({"type": "tool_result", "tool_use_id": id, "content": bulk(random)}),
            ),
            _ => {
                let kind = format!("tool-{name}");
                let state = "output-available";
                let (input, output) = (bulk(random), bulk(random));
                parts.push(json!({"type": kind, "toolCallId": id, "state": state, "input": input, "output": output}));
                continue;
            }
        };
        parts.push(with_extras(call, random));
        results.push(with_extras(result, random));
    }
    for kind in ["reasoning", "data-x", "file", "source", "unheard-of"] {
        if random.u8(0..4) == 0 {
            parts.push(with_extras(
                json!({"type": kind, "text": word(random, 0..500)}),
                random,
            ));
        }
    }
    turn.push(json!({"role": "assistant", "parts": parts}));
    if !results.is_empty() {
        turn.push(json!({"role": "tool", "parts": results}));
    }
    turn
}

#[tokio::test]
async fn windows_with_placeholders_for_old_parts_stay_within_the_budget() {
    let mut replaced = 0;
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let door = Door::open().await;
        let messages: Vec<Value> = (0..20).flat_map(|_| turn(&mut random)).collect();
        let path = format!("{PATH}/messages");
        let answer = door
            .ask("POST", &path, &json!({"messages": messages}))
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        for budget in [500, 1_000, 2_000, 4_000, 8_000, 16_000] {
            for kinds in [
                "tool_call,tool_output",
                "reasoning,tool_call,tool_output,file,source,data,other",
            ] {
                let keep = random.u8(0..3);
                let query = format!("budget={budget}&drop_first={kinds}&keep_tool_turns={keep}");
                let answer = door.get(&format!("{PATH}/context?{query}")).await;
                if answer.status == 413 {
                    continue;
                }
                assert_eq!(answer.status, 200, "{}", answer.text());
                let window: Window = serde_json::from_slice(&answer.body).unwrap();
                assert!(window.tokens <= budget, "{seed}: {query}");
                let cost = window.cost();
                assert!(
                    cost <= window.tokens,
                    "{seed}: {query}: {cost} > {}",
                    window.tokens
                );
                replaced += window.dropped.len();
            }
        }
    }
    assert!(replaced > 100, "{replaced}");
}
