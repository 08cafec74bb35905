//! HTTP requests in process, without a socket.

use door_http::{Answer, Local};
use serde_json::{Value, json};

use crate::{Door, text_batch};

async fn read_whole(mut answer: Answer) -> (Value, Vec<u8>) {
    let head = serde_json::from_slice(&answer.head()).unwrap();
    let mut body = Vec::new();
    while let Some(piece) = answer.next().await {
        let piece = piece.unwrap();
        assert!((1..=256 << 10).contains(&piece.len()));
        body.extend_from_slice(&piece);
    }
    (head, body)
}

#[tokio::test]
async fn in_process_requests_are_answered_like_requests_over_http() {
    let door = Door::open().await;
    let local = Local::new(
        door.node.clone(),
        std::sync::Arc::new(door::Open),
        Default::default(),
        &[],
        None,
    );
    let path = "/v1/conversations/c-1/messages";
    let ask =
        async |asked: Value| read_whole(local.ask(None, asked.to_string().as_bytes()).await).await;
    let batch = text_batch(&"x".repeat(600 << 10));
    let (head, body) = ask(json!({"method": "POST", "path": path, "body": batch})).await;
    assert_eq!(head["status"], 201, "{}", String::from_utf8_lossy(&body));
    assert_eq!(
        (&head["status"], &head["headers"]["etag"]),
        (&json!(201), &json!("\"1\""))
    );
    let tag = json!({"If-Match": "\"7\""});
    let refused = json!({"method": "POST", "path": path, "headers": tag, "body": text_batch("x")});
    let (head, body) = ask(refused).await;
    assert_eq!(head["status"], 412);
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap()["head_seq"],
        1
    );
    let (_, body) = ask(json!({"method": "GET", "path": path})).await;
    assert_eq!(body, door.get(path).await.body);
    let lines = json!({"content-type": "application/jsonl"});
    let text = "{\"role\":\"user\",\"content\":\"y\"}\n";
    let import = json!({"method": "POST", "path": "/v1/conversations/c-2/import",
        "headers": lines, "text": text});
    assert_eq!(ask(import).await.0["status"], 200);
}

#[tokio::test]
async fn invalid_in_process_requests_are_answered_400() {
    let door = Door::open().await;
    let local = Local::new(
        door.node.clone(),
        std::sync::Arc::new(door::Open),
        Default::default(),
        &[],
        None,
    );
    for (asked, expected) in [
        ("x", "malformed JSON"),
        (r#"{"method":"GET"}"#, "missing field `path`"),
        (r#"{"method":"GET","pth":"/"}"#, "is `path` meant?"),
        (r#"{"method":"G T","path":"/"}"#, "invalid request"),
        (r#"{"method":"GET","path":"/ x"}"#, "invalid request"),
        (
            r#"{"method":"GET","path":"/","headers":{"a b":"c"}}"#,
            "invalid request",
        ),
        (
            r#"{"method":"GET","path":"/","body":1,"text":"x"}"#,
            "cannot be combined",
        ),
    ] {
        let (head, body) = read_whole(local.ask(None, asked.as_bytes()).await).await;
        assert_eq!(head["status"], 400, "{asked}");
        let problem: Value = serde_json::from_slice(&body).unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{asked}: {detail}");
    }
}
