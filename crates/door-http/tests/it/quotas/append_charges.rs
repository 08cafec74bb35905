//! Appended bytes are charged to the client: by POST, WebSocket and import.

use journal::disk::simulated::{Call, Fault, Kind};
use serde_json::{Value, json};

use super::open_durable;
use crate::socket::Socket;
use crate::{Answer, Door};

const JSONL: [(&str, &str); 1] = [("content-type", "application/jsonl")];
const LINE: &str = r#"{"role":"user","content":"some bytes of text"}"#;

async fn open() -> Door {
    let door = open_durable().await;
    let limit = json!({
        "limits": [{"name": "said", "match": "default/default/*", "unit": "appended_bytes",
            "capacity": 1000, "refill": "1/h", "durability": "sync"}],
        "reason": "a test",
    });
    let answer = door.ask("PUT", "/v1/policies", &limit).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    door
}

/// Remaining quota of the default subject.
async fn remaining_quota(door: &Door) -> u64 {
    let seen = door.get("/v1/quota/default/default/anonymous").await.json();
    seen["limits"][0]["remaining"].as_u64().unwrap()
}

/// What the line says, as a command of a socket.
fn command() -> Value {
    let message: Value = serde_json::from_str(LINE).unwrap();
    json!({"op": "append", "ref": 1, "conv": "c-2", "messages": [message]})
}

async fn post(door: &Door) -> Answer {
    let body = format!("{{\"messages\":[{LINE}]}}");
    let headers = [("content-type", "application/json")];
    let path = "/v1/conversations/c-1/messages";
    door.ask_with("POST", path, &headers, body.as_bytes()).await
}

async fn import(door: &Door, lines: &str) -> Answer {
    let path = "/v1/conversations/c-3/import";
    door.ask_with("POST", path, &JSONL, lines.as_bytes()).await
}

async fn import_all(door: &Door) -> Answer {
    let lines = format!("{{\"conversation\":{{\"name\":\"default/default/c-4\"}}}}\n{LINE}\n");
    door.ask_with("POST", "/v1/import", &JSONL, lines.as_bytes())
        .await
}

#[tokio::test]
async fn posts_websocket_appends_and_imports_are_charged_the_same() {
    let door = open().await;
    assert_eq!(post(&door).await.status, 201);
    let cost = 1_000 - remaining_quota(&door).await;
    assert!(cost >= 18, "{cost}");
    let mut socket = Socket::open(&door).await;
    socket.send(&command()).await;
    assert_eq!(socket.next().await["op"], "ack");
    assert_eq!(remaining_quota(&door).await, 1_000 - 2 * cost);
    let imported = import(&door, LINE).await;
    assert_eq!(imported.status, 200, "{}", imported.text());
    assert_eq!(remaining_quota(&door).await, 1_000 - 3 * cost);
    let imported = import_all(&door).await;
    assert_eq!(imported.status, 200, "{}", imported.text());
    assert_eq!(remaining_quota(&door).await, 1_000 - 4 * cost);
}

#[tokio::test]
async fn posts_websocket_appends_and_imports_over_the_limit_append_nothing() {
    let door = open().await;
    let mut socket = Socket::open(&door).await;
    // More than there ever is.
    let all = std::iter::repeat_n(LINE, 200)
        .collect::<Vec<_>>()
        .join("\n");
    let refused = import(&door, &all).await;
    assert_eq!(refused.status, 413, "{}", refused.text());
    assert_eq!(refused.json()["line"], 1);
    assert_eq!(remaining_quota(&door).await, 1_000);
    while post(&door).await.status == 201 {}
    let remaining = remaining_quota(&door).await;
    socket.send(&command()).await;
    let told = socket.next().await;
    assert_eq!(
        (&told["op"], &told["ref"], &told["code"]),
        (&json!("error"), &json!(1), &json!("throttled")),
        "{told}"
    );
    assert!(told["retry_ms"].as_u64().unwrap() > 0, "{told}");
    let denied = import(&door, LINE).await;
    denied.problem(429, "throttled");
    assert_eq!(denied.json()["line"], 1);
    let denied = import_all(&door).await;
    denied.problem(429, "throttled");
    assert_eq!(denied.json()["line"], 2);
    assert_eq!(remaining_quota(&door).await, remaining);
    for name in ["c-2", "c-3"] {
        let path = format!("/v1/conversations/{name}");
        assert_eq!(door.get(&path).await.status, 404, "{name}");
    }
}

#[tokio::test]
async fn an_append_fails_if_its_charge_is_not_synced() {
    for way in ["post", "socket", "import"] {
        let door = open().await;
        let mut socket = Socket::open(&door).await;
        door.disk
            .fail_once(Fault::Broken, |call: &Call<'_>| call.kind == Kind::SyncData);
        let told = match way {
            "post" => post(&door).await.json(),
            "import" => import(&door, LINE).await.json(),
            _ => {
                socket.send(&command()).await;
                socket.next().await
            }
        };
        // It is appended before the disk says that it fails, or not at all.
        let code = told["code"].as_str();
        assert!(
            matches!(code, Some("unconfirmed" | "unavailable")),
            "{way}: {told}"
        );
        assert_eq!(told["status"], 503, "{way}: {told}");
    }
}
