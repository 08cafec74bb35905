//! The routes of the HTTP listener under the native name `telpher/system/http`.

use std::pin::pin;
use std::task::Poll;

use client::{Caller, Client, Replies};
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

/// A chunk of a streamed answer, as a line.
fn delta(text: &str) -> String {
    let chunk = json!({"type": "text-delta", "id": "t", "delta": text});
    format!("{chunk}\n")
}

const OPENING: &str = "{\"type\":\"text-start\",\"id\":\"t\"}\n";

/// Sends the request of a stream. Its first item comes when the upload has ended.
async fn begin(items: &mut Replies<String>) {
    std::future::poll_fn(|cx| {
        assert!(pin!(items.next()).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

fn answer_of(id: &str) -> Value {
    let path = format!("/v1/conversations/c-1/messages/{id}/stream?from=bot");
    json!({"method": "POST", "path": path, "upload": id})
}

/// Waits until the conversation has a message with this id, and returns it.
async fn stored(caller: &Caller, id: &str) -> Value {
    loop {
        let path = format!("/v1/conversations/c-1/messages/{id}");
        let (head, body) = ask(caller, json!({"method": "GET", "path": path})).await;
        if head["status"] == 200 {
            return serde_json::from_slice(&body).unwrap();
        }
        let text = String::from_utf8_lossy(&body);
        assert_eq!(head["status"], 404, "{text}");
    }
}

/// Waits until the answer is being streamed.
async fn streaming(caller: &Caller, id: &str) {
    let path = "/v1/conversations/c-1";
    loop {
        let (_, body) = ask(caller, json!({"method": "GET", "path": path})).await;
        if String::from_utf8_lossy(&body).contains(&format!("\"mid\":\"{id}\"")) {
            return;
        }
    }
}

#[tokio::test]
async fn answer_is_streamed_over_the_native_protocol() {
    let place = Place::new();
    let node = place.serve("");
    let connect = async || {
        let client = Client::builder().connect(node.url("native")).await.unwrap();
        client.caller("telpher/system/http").unwrap()
    };
    let (author, reader) = (connect().await, connect().await);
    let batch = json!({"messages": [{"role": "user", "content": "hi"}]});
    let path = "/v1/conversations/c-1/messages";
    ask(
        &reader,
        json!({"method": "POST", "path": path, "body": batch}),
    )
    .await;
    let asked = json!({"method": "GET", "path": path, "headers": {"accept": "text/event-stream"}});
    let mut watched = reader.stream("request", asked.to_string());

    // The whole answer, whose pieces are not waited for.
    let piece = |id: &str, text: &str, end: bool| {
        json!({"upload": id, "text": text, "end": end}).to_string()
    };
    let answer = ask(&author, answer_of("a-1"));
    let pieces = async {
        let first = author.call("upload", piece("a-1", OPENING, false));
        let second = author.call("upload", piece("a-1", &delta("Hel"), false));
        let third = author.call("upload", piece("a-1", &delta("lo"), false));
        let last = author.call("upload", piece("a-1", "{\"type\":\"finish\"}\n", true));
        let (first, second, third, last) = tokio::join!(first, second, third, last);
        for reply in [first, second, third, last] {
            assert!(reply.unwrap().is_empty());
        }
    };
    let ((head, body), ()) = tokio::join!(answer, pieces);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&head["status"], &body["status"]),
        (&json!(201), &json!("complete"))
    );
    assert_eq!(stored(&reader, "a-1").await["parts"][0]["text"], "Hello");
    let mut text = String::new();
    while !text.contains("event: closed") && !text.contains("\"text\":\"Hello\"") {
        text += std::str::from_utf8(&watched.next().await.unwrap().unwrap()).unwrap();
    }
    let gone = author.call("upload", piece("a-1", OPENING, false)).await;
    assert_eq!(gone.unwrap_err().code, client::ErrorCode::Gone);

    // Another client stops it.
    let answer = ask(&author, answer_of("a-2"));
    let stopping = async {
        author
            .call("upload", piece("a-2", OPENING, false))
            .await
            .unwrap();
        author
            .call("upload", piece("a-2", &delta("par"), false))
            .await
            .unwrap();
        streaming(&reader, "a-2").await;
        let stop = "/v1/conversations/c-1/messages/a-2/stop";
        let (head, _) = ask(&reader, json!({"method": "POST", "path": stop})).await;
        assert_eq!(head["status"], 202);
    };
    let ((_, body), ()) = tokio::join!(answer, stopping);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["status"], "stopped");

    // The author's connection is lost: nothing drives it any more.
    let url = node.url("native").to_owned();
    let lose = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let items = runtime.block_on(async {
            let client = Client::builder().connect(&url).await.unwrap();
            let lost = client.caller("telpher/system/http").unwrap();
            let mut items = lost.stream("request", answer_of("a-3").to_string());
            begin(&mut items).await;
            for text in [OPENING, &delta("half")] {
                let piece = json!({"upload": "a-3", "text": text}).to_string();
                lost.call("upload", piece).await.unwrap();
            }
            streaming(&lost, "a-3").await;
            items
        });
        drop(runtime);
        drop(items);
    };
    tokio::task::spawn_blocking(lose).await.unwrap();
    let message = stored(&reader, "a-3").await;
    assert_eq!(message["status"], "interrupted");

    // The author cancels the call.
    let mut items = author.stream("request", answer_of("a-4").to_string());
    begin(&mut items).await;
    author
        .call("upload", piece("a-4", OPENING, false))
        .await
        .unwrap();
    author
        .call("upload", piece("a-4", &delta("half"), false))
        .await
        .unwrap();
    streaming(&reader, "a-4").await;
    drop(items);
    let message = stored(&reader, "a-4").await;
    assert_eq!(message["status"], "interrupted");
}

#[tokio::test]
async fn uploads_are_limited_to_their_connection() {
    let place = Place::new();
    let node = place.serve("");
    let connect = async || {
        let client = Client::builder().connect(node.url("native")).await.unwrap();
        client.caller("telpher/system/http").unwrap()
    };
    let (author, other) = (connect().await, connect().await);
    let mut open = author.stream("request", answer_of("a-1").to_string());
    begin(&mut open).await;
    let piece = json!({"upload": "a-1", "text": OPENING}).to_string();
    author.call("upload", piece.clone()).await.unwrap();
    let refused = other.call("upload", piece).await.unwrap_err();
    assert_eq!(refused.code, client::ErrorCode::Gone);
    let (head, _) = ask(&author, answer_of("a-1")).await;
    assert_eq!(head["status"], 409);
    let both = json!({"method": "POST", "path": "/v1/conversations/c-1/messages", "upload": "u", "text": ""});
    assert_eq!(ask(&author, both).await.0["status"], 400);
    for name in ["", &"x".repeat(129)] {
        let asked = json!({"method": "POST", "path": "/", "upload": name});
        assert_eq!(ask(&author, asked).await.0["status"], 400);
    }
    let end = json!({"upload": "a-1", "end": true}).to_string();
    author.call("upload", end).await.unwrap();
    let head: Value = serde_json::from_slice(&open.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(head["status"], 201);
}
