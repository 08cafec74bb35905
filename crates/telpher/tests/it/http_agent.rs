//! The routes of the HTTP listener under the native name `telpher/system/http`.

use client::{Caller, Client};
use serde_json::{Value, json};

use crate::support::Place;

/// Sends a request and returns the head and the body of the answer.
async fn ask(caller: &Caller, asked: Value) -> (Value, Vec<u8>) {
    let mut items = caller.stream("request", asked.to_string());
    let head = items.next().await.unwrap().unwrap();
    let mut body = Vec::new();
    while let Some(piece) = items.next().await {
        body.extend_from_slice(&piece.unwrap());
    }
    (serde_json::from_slice(&head).unwrap(), body)
}

#[tokio::test]
async fn conversations_are_written_and_followed_over_the_native_protocol() {
    let place = Place::new();
    let node = place.serve("");
    let client = Client::builder().connect(node.url("native")).await.unwrap();
    let caller = client.caller("telpher/system/http").unwrap();
    let path = "/v1/conversations/c-1/messages";
    for text in ["one", "two"] {
        let batch = json!({"messages": [{"role": "user", "content": text}]});
        let (head, body) = ask(
            &caller,
            json!({"method": "POST", "path": path, "body": batch}),
        )
        .await;
        assert_eq!(head["status"], 201, "{}", String::from_utf8_lossy(&body));
    }
    let (status, page) = node.get(path, None);
    assert_eq!(status, 200);
    let (_, body) = ask(&caller, json!({"method": "GET", "path": path})).await;
    assert_eq!(String::from_utf8(body).unwrap(), page);
    // An event stream continues until it is cancelled.
    let asked = json!({"method": "GET", "path": path, "headers": {"accept": "text/event-stream"}});
    let mut items = caller.stream("request", asked.to_string());
    let head: Value = serde_json::from_slice(&items.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(head["headers"]["content-type"], "text/event-stream");
    let mut text = String::new();
    while !text.contains("event: head") {
        text += std::str::from_utf8(&items.next().await.unwrap().unwrap()).unwrap();
    }
    assert!(text.contains("\"text\":\"two\""), "{text}");
    let batch = json!({"messages": [{"role": "user", "content": "three"}]});
    ask(
        &caller,
        json!({"method": "POST", "path": path, "body": batch}),
    )
    .await;
    while !text.contains("\"text\":\"three\"") {
        text += std::str::from_utf8(&items.next().await.unwrap().unwrap()).unwrap();
    }
}
