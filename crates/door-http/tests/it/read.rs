//! Pages of messages.

use serde_json::{Value, json};

use crate::Door;

const PATH: &str = "/v1/conversations/c-1/messages";

async fn seqs(door: &Door, query: &str) -> Vec<u64> {
    let answer = door.get(&format!("{PATH}?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let page = answer.json();
    let messages = page["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| message["seq"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_go_forward_backward_and_to_the_end() {
    let door = Door::open().await;
    for number in 1..=7 {
        assert_eq!(door.append_text("c-1", &format!("{number}")).await, number);
    }
    assert_eq!(seqs(&door, "").await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(seqs(&door, "limit=2").await, [1, 2]);
    assert_eq!(seqs(&door, "after=2&limit=3").await, [3, 4, 5]);
    assert_eq!(seqs(&door, "after=7").await, [0_u64; 0]);
    assert_eq!(seqs(&door, "before=5&limit=2").await, [3, 4]);
    assert_eq!(seqs(&door, "before=99&limit=1").await, [7]);
    assert_eq!(seqs(&door, "last=3").await, [5, 6, 7]);
    let page = door.get(&format!("{PATH}?last=1")).await.json();
    assert_eq!(
        (&page["head_seq"], &page["start_seq"]),
        (&json!(7), &json!(1))
    );
    assert_eq!(door.ask("HEAD", PATH, &Value::Null).await.status, 200);
}

#[tokio::test]
async fn message_is_read_back_byte_for_byte() {
    let door = Door::open().await;
    let parts = r#"[ {"type":"text", "text":"\u00e9 \ud83d\ude00\/"} ,{"n":1.50e3,"a":[],"z":0,"b":1e400}]"#;
    let metadata = "{ \"b\" : 12345678901234567890123,\n \"a\":null}";
    let body = format!(
        r#"{{"messages":[{{"id":"m-1","role":"user","from":"al \"ice\"","parts":{parts},"metadata":{metadata}}}]}}"#
    );
    let headers = [("content-type", "application/json; charset=utf-8")];
    let appended = door.ask_with("POST", PATH, &headers, body.as_bytes()).await;
    assert_eq!(appended.status, 201, "{}", appended.text());
    let page = door.get(PATH).await;
    let tokens = parts.len().div_ceil(4);
    let expected = format!(
        r#"{{"messages":[{{"seq":1,"id":"m-1","role":"user","from":"al \"ice\"","parts":{parts},"tokens":{tokens},"estimated":true,"at":"2023-11-14T22:13:20.000Z","metadata":{metadata},"event":0}}],"head_seq":1,"start_seq":1}}"#
    );
    assert_eq!(page.text(), expected);
    // In an event each line of it is a field, and the value is the same.
    let mut events = door.follow("c-1", "0").await;
    let message = events.next().await;
    assert_eq!(message.data, expected[13..expected.len() - 29]);
}

#[tokio::test]
async fn missing_conversations_and_invalid_read_queries_are_refused() {
    let door = Door::open().await;
    door.get(PATH).await.problem(404, "not_found");
    for (query, expected) in [
        (
            "after=1&before=2",
            "`after`, `before` and `last` cannot be combined",
        ),
        ("last=3&limit=2", "`last` and `limit` cannot be combined"),
        ("limit=0", "`limit` must be from 1 to 1000, not 0"),
        ("last=5000", "`limit` must be from 1 to 1000, not 5000"),
        ("limt=5", "there is no field `limt`; is `limit` meant?"),
        ("after=x", "the query: after: invalid digit"),
        ("after=-1", "the query: after: invalid digit"),
    ] {
        let detail = door
            .get(&format!("{PATH}?{query}"))
            .await
            .problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{query}: {detail}");
    }
}

#[tokio::test]
async fn one_message_is_read_by_its_id() {
    let door = Door::open().await;
    let path = format!("{PATH}/m-2");
    door.get(&path).await.problem(404, "not_found");
    let body = json!({"messages": [
        {"id": "m-1", "role": "user", "content": "one"},
        {"id": "m-2", "role": "user", "content": "two"},
    ]});
    assert_eq!(door.ask("POST", PATH, &body).await.status, 201);
    let message = door.get(&path).await;
    assert_eq!(message.status, 200, "{}", message.text());
    let page = door.get(&format!("{PATH}?after=1")).await.json();
    assert_eq!(message.json(), page["messages"][0]);
    let detail = door
        .get(&format!("{PATH}/m-3"))
        .await
        .problem(404, "not_found");
    assert_eq!(detail, "the conversation has no message `m-3`");
}
