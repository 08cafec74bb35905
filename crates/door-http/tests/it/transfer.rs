//! Export and import of a conversation as JSON lines.

use serde_json::{Value, json};

use crate::Door;

const JSONL: [(&str, &str); 1] = [("content-type", "application/jsonl")];

#[tokio::test]
async fn an_imported_conversation_exports_the_same_messages() {
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
async fn an_import_with_an_invalid_line_is_refused_with_its_number() {
    let door = Door::open().await;
    let import = "/v1/conversations/c-1/import";
    let good = r#"{"role":"user","content":"x"}"#;
    for (line, expected) in [
        ("{\"role\":\"user\"", "malformed JSON"),
        ("{\"rol\":\"user\"}", "is `role` meant?"),
        ("{\"role\":\"user\",\"parts\":{}}", "parts is not an array"),
        ("{\"role\":\"U\",\"content\":\"x\"}", "invalid role"),
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

/// The lines of an export without what is each conversation's own.
fn lines(text: &str) -> Vec<Value> {
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("event");
        if let Some(conversation) = line.get_mut("conversation") {
            for own in ["name", "version", "created_at"] {
                conversation.as_object_mut().unwrap().remove(own);
            }
        }
        line
    };
    text.lines().map(line).collect()
}

#[tokio::test]
async fn random_conversations_survive_export_and_import_unchanged() {
    let door = Door::open().await;
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..20 {
        let from = format!("/v1/conversations/from-{round}");
        let settings = json!({
            "metadata": {"round": round, "é": [1.50, null]},
            "participants": ["alice", "bob"],
            "ttl_s": rng.u32(1_000..9_999),
            "context": {"budget": rng.u32(100..9_999), "keep": ["system"]},
            "archived": false,
        });
        door.ask("PUT", &from, &settings).await;
        for number in 0..rng.u32(1..20) {
            door.pass_ms(rng.u64(0..100_000));
            let text = "é\n\"".repeat(rng.usize(0..100));
            if rng.bool() {
                let body = json!({"messages": [{
                    "role": "user", "content": text, "tokens": rng.bool().then_some(number),
                    "metadata": {"n": number},
                }]});
                let path = format!("{from}/messages");
                assert_eq!(door.ask("POST", &path, &body).await.status, 201);
                continue;
            }
            let end = ["{\"type\":\"finish\"}", "{\"type\":\"abort\"}", ""][rng.usize(0..3)];
            let body = format!(
                "{}\n{}\n{end}\n",
                crate::answer::START,
                crate::answer::chunk(&text)
            );
            let path = format!("{from}/messages/a-{number}/stream");
            let answer = door.ask_with("POST", &path, &JSONL, body.as_bytes()).await;
            assert_eq!(answer.status, 201, "{}", answer.text());
        }
        let cursor = json!({"seq": 1});
        door.ask("PUT", &format!("{from}/cursors/alice"), &cursor)
            .await;
        if rng.bool() {
            door.ask("PATCH", &from, &json!({"archived": true})).await;
        }
        let first = door.get(&format!("{from}/export")).await;
        let to = format!("/v1/conversations/to-{round}");
        door.pass_ms(1_000_000);
        for is_again in [false, true] {
            let path = format!("{to}/import");
            let answer = door.ask_with("POST", &path, &JSONL, &first.body).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let done = answer.json();
            let count = (first.text().lines().count() - 1) as u64;
            assert_eq!(done["head_seq"], count);
            let which = if is_again { "deduplicated" } else { "appended" };
            assert_eq!(done[which], count, "{done}");
            let second = door.get(&format!("{to}/export")).await;
            assert_eq!(lines(second.text()), lines(first.text()), "{round}");
        }
    }
}

#[tokio::test]
async fn an_import_preserves_status_and_time_of_messages() {
    let door = Door::open().await;
    let import = "/v1/conversations/c-1/import";
    let body = r#"{"role":"user","content":"x","id":"m","status":"stopped","at":"2020-02-29T12:00:00.5Z"}"#;
    door.ask_with("POST", import, &JSONL, body.as_bytes()).await;
    let page = door.get("/v1/conversations/c-1/messages").await.json();
    let message = &page["messages"][0];
    assert_eq!(message["status"], "stopped");
    assert_eq!(message["at"], "2020-02-29T12:00:00.500Z");
    for (member, expected) in [
        (r#""status":"stoped""#, "is `stopped` meant?"),
        (r#""at":"yesterday""#, "must be a time like"),
    ] {
        let body = format!(r#"{{"role":"user","content":"x",{member}}}"#);
        let answer = door.ask_with("POST", import, &JSONL, body.as_bytes()).await;
        let detail = answer.problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{detail}");
        assert_eq!(answer.json()["line"], 1);
    }
}

#[tokio::test]
async fn an_import_restores_summaries_and_fork_origins() {
    let door = Door::open().await;
    for text in ["one", "two", "three"] {
        door.append_text("c-1", text).await;
    }
    door.pass_ms(5_000);
    let fork = json!({"id": "c-2", "at_seq": 3});
    let answer = door.ask("POST", "/v1/conversations/c-1/fork", &fork).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let summary = json!({"through_seq": 2, "message": {"role": "user", "content": "so far"}});
    let path = "/v1/conversations/c-2/summary";
    assert_eq!(door.ask("PUT", path, &summary).await.status, 204);
    let exported = door.get("/v1/conversations/c-2/export").await;
    let import = "/v1/acme/team/conversations/c-9/import";
    let mut versions = Vec::new();
    for _ in 0..2 {
        let imported = door.ask_with("POST", import, &JSONL, &exported.body).await;
        assert_eq!(imported.json()["head_seq"], 3, "{}", imported.text());
        let copy = door.get("/v1/acme/team/conversations/c-9").await.json();
        assert_eq!(
            copy["forked_from"],
            json!({"conversation": "default/default/c-1", "seq": 3})
        );
        versions.push(copy["version"].clone());
    }
    // What is there already is not changed again.
    assert_eq!(versions[0], versions[1]);
    let path = "/v1/acme/team/conversations/c-9/summary";
    assert_eq!(
        door.get(path).await.json(),
        door.get("/v1/conversations/c-2/summary").await.json()
    );
    let context = "/v1/acme/team/conversations/c-9/context?budget=1000";
    assert_eq!(door.get(context).await.json()["summary_seq"], 2);
}

#[tokio::test]
async fn a_fork_preserves_the_times_of_its_messages() {
    let door = Door::open().await;
    door.append_text("c-1", "one").await;
    door.pass_ms(60_000);
    let fork = json!({"id": "c-2", "at_seq": 1});
    let answer = door.ask("POST", "/v1/conversations/c-1/fork", &fork).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    door.pass_ms(60_000);
    let fork = json!({"id": "c-3", "at_seq": 1});
    let answer = door.ask("POST", "/v1/conversations/c-2/fork", &fork).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let at = async |id: &str| {
        let page = door.get(&format!("/v1/conversations/{id}/messages")).await;
        page.json()["messages"][0]["at"].clone()
    };
    let first = at("c-1").await;
    assert_eq!((at("c-2").await, at("c-3").await), (first.clone(), first));
}
