//! A conversation as JSON lines.

use serde_json::{Value, json};

use crate::Door;

const JSONL: [(&str, &str); 1] = [("content-type", "application/jsonl")];

#[tokio::test]
async fn what_comes_out_goes_in_and_comes_out_the_same() {
    let door = Door::open().await;
    let messages: Vec<_> = (0..700)
        .map(|number| {
            json!({
                "id": format!("m-{number}"), "role": "user", "from": "alice",
                "parts": [{"type": "text", "text": format!("é\n{number}")}],
                "metadata": if number % 2 == 0 { json!({"n": number}) } else { json!({}) },
            })
        })
        .collect();
    for batch in messages.chunks(256) {
        let body = json!({"messages": batch});
        assert_eq!(
            door.ask("POST", "/v1/conversations/c-1/messages", &body)
                .await
                .status,
            201
        );
    }
    let exported = door.get("/v1/conversations/c-1/export").await;
    assert_eq!(exported.header("content-type"), Some("application/jsonl"));
    let lines: Vec<_> = exported.text().lines().collect();
    assert_eq!(lines.len(), 701);
    let first: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(first["conversation"]["head_seq"], 700);
    let import = "/v1/acme/team/conversations/c-9/import";
    let imported = door.ask_with("POST", import, &JSONL, &exported.body).await;
    assert_eq!(
        imported.json(),
        json!({"appended": 700, "deduplicated": 0, "head_seq": 700})
    );
    // Once more does nothing.
    let again = door.ask_with("POST", import, &JSONL, &exported.body).await;
    assert_eq!(
        again.json(),
        json!({"appended": 0, "deduplicated": 700, "head_seq": 700})
    );
    let second = door.get("/v1/acme/team/conversations/c-9/export").await;
    let without_event = |line: &str| {
        let mut message: Value = serde_json::from_str(line).unwrap();
        message.as_object_mut().unwrap().remove("event");
        message
    };
    let second: Vec<_> = second.text().lines().skip(1).map(without_event).collect();
    let first: Vec<_> = lines[1..].iter().map(|line| without_event(line)).collect();
    assert_eq!(second, first);
}

#[tokio::test]
async fn a_line_that_is_wrong_is_told() {
    let door = Door::open().await;
    let import = "/v1/conversations/c-1/import";
    let good = r#"{"role":"user","content":"x"}"#;
    for (line, expected) in [
        ("{\"role\":\"user\"", "malformed JSON"),
        ("{\"rol\":\"user\"}", "is `role` meant?"),
        ("{\"role\":\"user\",\"parts\":{}}", "parts is no array"),
        ("{\"role\":\"U\",\"content\":\"x\"}", "a role has"),
    ] {
        let body = format!("{good}\n\n{line}\n{good}\n");
        let answer = door.ask_with("POST", import, &JSONL, body.as_bytes()).await;
        let detail = answer.problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{line}: {detail}");
        assert_eq!(answer.json()["line"], 3, "{line}");
    }
    let headers = [("content-type", "text/csv")];
    door.ask_with("POST", import, &headers, b"a,b")
        .await
        .problem(415, "invalid_argument");
    door.get("/v1/conversations/c-1/export")
        .await
        .problem(404, "not_found");
}
