//! Context windows for a model.

use serde_json::{Value, json};

use crate::Door;

const PATH: &str = "/v1/conversations/c-1";

async fn append(door: &Door, messages: Value) {
    let path = format!("{PATH}/messages");
    let answer = door
        .ask("POST", &path, &json!({"messages": messages}))
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn window(door: &Door, query: &str) -> Value {
    let answer = door.get(&format!("{PATH}/context?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn seqs(window: &Value) -> Vec<u64> {
    let messages = window["messages"].as_array().unwrap();
    messages
        .iter()
        .filter_map(|message| message["seq"].as_u64())
        .collect()
}

/// A question of 10 tokens and an answer of 10.
fn turn(number: u32) -> Value {
    json!([
        {"role": "user", "content": format!("question {number}"), "tokens": 10},
        {"role": "assistant", "content": format!("answer {number}"), "tokens": 10},
    ])
}

#[tokio::test]
async fn a_window_holds_whole_turns_within_its_budget() {
    let door = Door::open().await;
    append(
        &door,
        json!([{"role": "system", "content": "Be kind.", "tokens": 5}]),
    )
    .await;
    for number in 0..10 {
        append(&door, turn(number)).await;
    }
    let all = window(&door, "budget=1000").await;
    assert_eq!((seqs(&all).len(), &all["tokens"]), (21, &json!(205)));
    assert_eq!(
        (&all["estimated"], &all["head_seq"]),
        (&json!(false), &json!(21))
    );
    let some = window(&door, "budget=65&step=0").await;
    assert_eq!(seqs(&some), [1, 16, 17, 18, 19, 20, 21]);
    assert_eq!(
        (&some["tokens"], &some["from_seq"]),
        (&json!(65), &json!(16))
    );
    assert_eq!(some["budget"], 65);
    let none = window(&door, "budget=45&keep=&step=0").await;
    assert_eq!(seqs(&none), [18, 19, 20, 21]);
    let last = window(&door, "policy=last_n&n=4&keep=").await;
    assert_eq!(seqs(&last), [18, 19, 20, 21]);
}

#[tokio::test]
async fn an_unchanged_window_is_answered_304() {
    let door = Door::open().await;
    append(&door, turn(1)).await;
    let path = format!("{PATH}/context?budget=100");
    let first = door.get(&path).await;
    let tag = first.header("etag").unwrap().to_owned();
    let again = door
        .ask_with("GET", &path, &[("if-none-match", &tag)], b"")
        .await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(again.header("etag"), Some(tag.as_str()));
    append(&door, turn(2)).await;
    let changed = door
        .ask_with("GET", &path, &[("if-none-match", &tag)], b"")
        .await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[tokio::test]
async fn tool_calls_stay_with_their_results_when_old_output_is_dropped() {
    let door = Door::open().await;
    let bulky = "x".repeat(4000);
    append(&door, json!([
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "parts": [
            {"type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {}},
            {"type": "tool-call", "toolCallId": "b", "toolName": "f", "input": {}}]},
        {"role": "tool", "parts": [{"type": "tool-result", "toolCallId": "a", "toolName": "f", "output": bulky}]},
        {"role": "tool", "parts": [{"type": "tool-result", "toolCallId": "b", "toolName": "f", "output": bulky}]},
        {"role": "assistant", "content": "fine"},
        {"role": "user", "content": "thanks"},
    ])).await;
    let query = "budget=300&drop_first=tool_output&keep_tool_turns=0&step=0";
    let cut = window(&door, query).await;
    assert!(cut["tokens"].as_u64().unwrap() <= 300, "{cut}");
    assert_eq!(
        (seqs(&cut), &cut["dropped"]),
        (vec![1, 2, 3, 4, 5, 6], &json!({"tool_output": 2}))
    );
    let result =
        json!({"type": "tool-result", "toolCallId": "b", "toolName": "f", "output": "[left out]"});
    assert_eq!(cut["messages"][3]["parts"][0], result);
    // Without leave to drop them, the turn goes as a whole.
    let cut = window(&door, "budget=300&step=0").await;
    assert_eq!(seqs(&cut), [6]);
}

#[tokio::test]
async fn a_turn_above_the_budget_is_refused_with_its_size() {
    let door = Door::open().await;
    append(
        &door,
        json!([{"role": "user", "content": "x", "tokens": 500}]),
    )
    .await;
    let answer = door.get(&format!("{PATH}/context?budget=100")).await;
    answer.problem(413, "over_budget");
    assert_eq!(
        (&answer.json()["seq"], &answer.json()["tokens"]),
        (&json!(1), &json!(500))
    );
    for (query, expected) in [
        ("budgt=1", "is `budget` meant?"),
        ("budget=x", "budget"),
        ("budget=10&policy=x", "there is no policy `x`"),
        ("", "`?budget=8000`"),
    ] {
        let detail = door
            .get(&format!("{PATH}/context?{query}"))
            .await
            .problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{query}: {detail}");
    }
}

#[tokio::test]
async fn a_summary_replaces_the_messages_it_covers() {
    let door = Door::open().await;
    for number in 0..3 {
        append(&door, turn(number)).await;
    }
    let path = format!("{PATH}/summary");
    door.get(&path).await.problem(404, "not_found");
    let message = json!({"role": "system", "parts": [{"type": "text", "text": "Earlier: …"}]});
    let summary = json!({"through_seq": 4, "message": message, "tokens": 7});
    assert_eq!(door.ask("PUT", &path, &summary).await.status, 204);
    assert_eq!(door.get(&path).await.json(), summary);
    let cut = window(&door, "budget=1000").await;
    assert_eq!((&cut["messages"][0], seqs(&cut)), (&message, vec![5, 6]));
    assert_eq!(
        (&cut["summary_seq"], &cut["tokens"]),
        (&json!(4), &json!(27))
    );
    let beyond = json!({"through_seq": 9, "message": {}});
    door.ask("PUT", &path, &beyond)
        .await
        .problem(400, "invalid_argument");
    door.ask("PUT", &path, &json!({"through_seq": 1}))
        .await
        .problem(400, "invalid_argument");
    let call =
        json!({"type": "tool-x", "toolCallId": "c", "state": "input-available", "input": {}});
    let dangling = json!({"through_seq": 1, "message": {"role": "assistant", "parts": [call]}});
    let detail = door
        .ask("PUT", &path, &dangling)
        .await
        .problem(400, "invalid_argument");
    assert!(detail.contains("without its result"), "{detail}");
    let wrong = json!({"through_seq": 1, "message": "x"});
    door.ask("PUT", &path, &wrong)
        .await
        .problem(400, "invalid_argument");
    assert_eq!(door.ask("DELETE", &path, &Value::Null).await.status, 204);
    assert_eq!(seqs(&window(&door, "budget=1000").await).len(), 6);
}

#[tokio::test]
async fn a_conversations_own_policy_is_used_and_may_be_overridden() {
    let door = Door::open().await;
    for number in 0..3 {
        append(&door, turn(number)).await;
    }
    let settings = json!({"context": {"policy": "last_n", "n": 2}});
    assert_eq!(door.ask("PUT", PATH, &settings).await.status, 200);
    assert_eq!(seqs(&window(&door, "").await), [5, 6]);
    assert_eq!(seqs(&window(&door, "n=4").await), [3, 4, 5, 6]);
    assert_eq!(
        seqs(&window(&door, "policy=budget&budget=100").await).len(),
        6
    );
}
