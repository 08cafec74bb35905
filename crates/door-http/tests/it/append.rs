//! Appends: sequence numbers, retries and the expected head.

use serde_json::{Value, json};

use crate::{Door, text_batch};

const PATH: &str = "/v1/conversations/c-1/messages";

#[tokio::test]
async fn appended_messages_get_consecutive_sequence_numbers() {
    let door = Door::open().await;
    let first = door.ask("POST", PATH, &text_batch("one")).await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("etag"), Some("\"1\""));
    assert_eq!(first.header("content-type"), Some("application/json"));
    let batch = json!({"messages": [
        {"id": "a", "role": "user", "content": "two"},
        {"role": "assistant", "from": "bot", "parts": [], "tokens": 7, "metadata": {"x": 1}},
    ]});
    let second = door.ask("POST", PATH, &batch).await.json();
    let made = second["messages"][1]["id"].as_str().unwrap().to_owned();
    assert!(made.starts_with("m-"), "{made}");
    let expected = json!({
        "first_seq": 2, "last_seq": 3, "head_seq": 3, "deduplicated": 0,
        "messages": [{"seq": 2, "id": "a"}, {"seq": 3, "id": made}],
    });
    assert_eq!(second, expected);
    // The same conversation under its whole name.
    let whole = "/v1/default/default/conversations/c-1/messages";
    assert_eq!(
        door.ask("POST", whole, &text_batch("four")).await.json()["first_seq"],
        4
    );
}

#[tokio::test]
async fn a_retry_is_deduplicated_and_reuse_of_its_id_is_refused() {
    let door = Door::open().await;
    let batch = |text: &str| json!({"messages": [{"id": "m-1", "role": "user", "content": text}]});
    assert_eq!(door.ask("POST", PATH, &batch("hi")).await.status, 201);
    let again = door.ask("POST", PATH, &batch("hi")).await;
    assert_eq!(again.status, 200);
    let expected = json!({
        "first_seq": 1, "last_seq": 1, "head_seq": 1, "deduplicated": 1,
        "messages": [{"seq": 1, "id": "m-1"}],
    });
    assert_eq!(again.json(), expected);
    let other = door.ask("POST", PATH, &batch("something else")).await;
    other.problem(409, "id_reused");
    assert_eq!(
        (&other.json()["seq"], &other.json()["index"]),
        (&json!(1), &json!(0))
    );
}

#[tokio::test]
async fn an_idempotency_key_becomes_the_id_of_messages_without_one() {
    let door = Door::open().await;
    let headers = [
        ("content-type", "application/json"),
        ("idempotency-key", "\"k-1\""),
    ];
    let send = async |body: Value| {
        door.ask_with("POST", PATH, &headers, body.to_string().as_bytes())
            .await
    };
    assert_eq!(
        send(text_batch("hi")).await.json()["messages"][0]["id"],
        "k-1"
    );
    assert_eq!(send(text_batch("hi")).await.status, 200);
    let two = json!({"messages": [
        {"role": "user", "content": "a"}, {"id": "own", "role": "user", "content": "b"},
    ]});
    let placed = send(two).await.json();
    assert_eq!(placed["messages"][0]["id"], "k-1:0");
    assert_eq!(placed["messages"][1]["id"], "own");
    let odd = [
        ("content-type", "application/json"),
        ("idempotency-key", "a b"),
    ];
    let refused = door
        .ask_with("POST", PATH, &odd, text_batch("x").to_string().as_bytes())
        .await;
    refused.problem(400, "invalid_argument");
}

#[tokio::test]
async fn an_append_with_a_wrong_expected_head_is_a_conflict() {
    let door = Door::open().await;
    door.append_text("c-1", "one").await;
    let send = async |tag: &str, expect: Value| {
        let mut body = text_batch("next");
        body["expect"] = expect;
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        door.ask_with("POST", PATH, &headers, body.to_string().as_bytes())
            .await
    };
    let refused = send("\"0\"", Value::Null).await;
    refused.problem(412, "conflict");
    assert_eq!(refused.json()["head_seq"], 1);
    assert_eq!(send("\"1\"", json!(1)).await.status, 201);
    assert_eq!(send("2", Value::Null).await.status, 201);
    send("\"3\"", json!(4))
        .await
        .problem(400, "invalid_argument");
    send("*", Value::Null)
        .await
        .problem(400, "invalid_argument");
    send("W/\"3\"", Value::Null)
        .await
        .problem(400, "invalid_argument");
    let mut body = text_batch("next");
    body["expect"] = json!(9);
    door.ask("POST", PATH, &body).await.problem(412, "conflict");
    assert_eq!(door.append_text("c-1", "four").await, 4);
}

#[tokio::test]
async fn openai_shorthand_messages_are_expanded_into_parts() {
    let door = Door::open().await;
    let batch = json!({"messages": [
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": "é\n"},
    ]});
    assert_eq!(door.ask("POST", PATH, &batch).await.status, 201);
    let messages = door.get(PATH).await.json()["messages"].clone();
    assert_eq!(messages[0]["parts"][1]["id"], "c2");
    let result = json!([{"type": "tool_result", "tool_call_id": "c1", "content": "4"}]);
    assert_eq!(messages[1]["parts"], result);
    assert_eq!(messages[2]["parts"], json!([{"type": "text", "text": "x"}]));
    assert_eq!(
        messages[3]["parts"],
        json!([{"type": "text", "text": "é\n"}])
    );
}

#[tokio::test]
async fn concurrent_appends_lose_no_message_and_leave_no_gaps() {
    let door = Door::open().await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let address = door.address;
        tasks.spawn(async move {
            let headers = [("content-type", "application/json")];
            for number in 0..10 {
                let body = text_batch(&format!("{writer} {number}")).to_string();
                let sent = crate::client::ask(address, "POST", PATH, &headers, body.as_bytes());
                assert_eq!(sent.await.status, 201);
            }
        });
    }
    tasks.join_all().await;
    let page = door.get(PATH).await.json();
    let texts: Vec<_> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts.len(), 80);
    for writer in 0..8 {
        let own = texts
            .iter()
            .filter(|text| text.starts_with(&format!("{writer} ")));
        let expected: Vec<_> = (0..10).map(|number| format!("{writer} {number}")).collect();
        assert_eq!(own.cloned().collect::<Vec<_>>(), expected);
    }
}
