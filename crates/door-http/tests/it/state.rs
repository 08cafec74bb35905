//! The state of a conversation: metadata, settings, cursors, forks and erasure.

use serde_json::{Value, json};

use crate::{Door, text_batch};

const PATH: &str = "/v1/conversations/c-1";

#[tokio::test]
async fn a_conversation_is_created_read_and_changed() {
    let door = Door::open().await;
    door.get(PATH).await.problem(404, "not_found");
    let created = door
        .ask(
            "PUT",
            PATH,
            &json!({"metadata": {"user": "alice"}, "ttl_s": 60}),
        )
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    let view = created.json();
    assert_eq!(view["name"], "default/default/c-1");
    assert_eq!(
        (&view["head_seq"], &view["archived"]),
        (&json!(0), &json!(false))
    );
    assert_eq!((&view["ttl_s"], &view["version"]), (&json!(60), &json!(1)));
    // What is not said stays.
    let changed = door
        .ask("PUT", PATH, &json!({"context": {"budget": 500}}))
        .await;
    assert_eq!(
        (changed.status, changed.header("etag")),
        (200, Some("\"2\""))
    );
    let view = door.get(PATH).await.json();
    assert_eq!(view, changed.json());
    assert_eq!(
        (&view["metadata"], &view["ttl_s"]),
        (&json!({"user": "alice"}), &json!(60))
    );
    assert_eq!(
        (&view["context"]["budget"], &view["context"]["policy"]),
        (&json!(500), &json!("budget"))
    );
    let kept = json!({"keep_last": 100, "keep_bytes": 1_000_000});
    let view = door.ask("PUT", PATH, &kept).await.json();
    assert_eq!(
        (&view["keep_last"], &view["keep_bytes"], &view["ttl_s"]),
        (&json!(100), &json!(1_000_000), &json!(60))
    );
    // A body may be left out.
    assert_eq!(
        door.ask("PUT", "/v1/conversations/c-2", &Value::Null)
            .await
            .status,
        201
    );
    // A conversation that was begun by a message is there too.
    door.append_text("c-3", "hi").await;
    assert_eq!(door.get("/v1/conversations/c-3").await.json()["version"], 0);
}

#[tokio::test]
async fn put_stores_metadata_byte_for_byte_and_patch_merges_them() {
    let door = Door::open().await;
    door.ask("PATCH", PATH, &json!({"metadata": {}}))
        .await
        .problem(404, "not_found");
    let body = br#"{"metadata":{ "n" : 1.50, "a":{"x":1,"y":2}}}"#;
    let headers = [("content-type", "application/json")];
    let put = door.ask_with("PUT", PATH, &headers, body).await;
    assert!(
        put.text()
            .contains(r#""metadata":{ "n" : 1.50, "a":{"x":1,"y":2}}"#),
        "{}",
        put.text()
    );
    let patch = json!({"metadata": {"a": {"x": null, "z": 3}}});
    let patched = door.ask("PATCH", PATH, &patch).await;
    assert!(
        patched
            .text()
            .contains(r#""metadata":{"n":1.50,"a":{"y":2,"z":3}}"#),
        "{}",
        patched.text()
    );
    // Many at once: each is merged into the one before.
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let address = door.address;
        tasks.spawn(async move {
            let body = json!({"metadata": {format!("k{number}"): number}}).to_string();
            let headers = [("content-type", "application/json")];
            crate::client::ask(address, "PATCH", PATH, &headers, body.as_bytes())
                .await
                .status
        });
    }
    assert!(
        tasks
            .join_all()
            .await
            .into_iter()
            .all(|status| status == 200)
    );
    let metadata = door.get(PATH).await.json()["metadata"].clone();
    assert_eq!(metadata.as_object().unwrap().len(), 10, "{metadata}");
}

#[tokio::test]
async fn a_change_with_a_wrong_expected_version_is_a_conflict() {
    let door = Door::open().await;
    door.ask("PUT", PATH, &json!({"metadata": {"a": 1}})).await;
    let put = async |tag: &str| {
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        door.ask_with("PUT", PATH, &headers, br#"{"archived":true}"#)
            .await
    };
    let refused = put("\"0\"").await;
    refused.problem(412, "conflict");
    assert_eq!(refused.json()["version"], 1);
    assert_eq!(put("\"1\"").await.json()["archived"], true);
    let refused = door
        .ask("POST", &format!("{PATH}/messages"), &text_batch("x"))
        .await;
    refused.problem(409, "conflict");
    assert_eq!(
        door.ask("PATCH", PATH, &json!({"archived": false}))
            .await
            .status,
        200
    );
    door.append_text("c-1", "x").await;
}

#[tokio::test]
async fn erased_conversation_is_answered_410_and_followers_get_an_error() {
    let door = Door::open().await;
    door.ask("DELETE", PATH, &Value::Null)
        .await
        .problem(404, "not_found");
    door.append_text("c-1", "secret").await;
    let mut events = door.follow("c-1", "0").await;
    events.messages(0, 1).await;
    assert_eq!(door.ask("DELETE", PATH, &Value::Null).await.status, 204);
    let messages = format!("{PATH}/messages");
    door.get(PATH).await.problem(410, "gone");
    door.get(&messages).await.problem(410, "gone");
    door.ask("POST", &messages, &text_batch("x"))
        .await
        .problem(410, "gone");
    door.ask("PUT", PATH, &json!({})).await.problem(410, "gone");
    door.ask("DELETE", PATH, &Value::Null)
        .await
        .problem(410, "gone");
    door.get(&format!("{PATH}/context?budget=10"))
        .await
        .problem(410, "gone");
    // Followers get an event.
    loop {
        let event = events.next().await;
        if event.kind == "error" {
            assert_eq!(event.json()["code"], "gone");
            break;
        }
    }
}

#[tokio::test]
async fn cursors_only_move_forward() {
    let door = Door::open().await;
    for _ in 0..3 {
        door.append_text("c-1", "x").await;
    }
    let path = format!("{PATH}/cursors/al%20ice");
    let moved = door.ask("PUT", &path, &json!({"seq": 2})).await;
    assert_eq!((moved.status, moved.json()), (200, json!({"seq": 2})));
    assert_eq!(
        door.ask("PUT", &path, &json!({"seq": 1})).await.json(),
        json!({"seq": 2})
    );
    door.ask("PUT", &path, &json!({"seq": 4}))
        .await
        .problem(400, "invalid_argument");
    door.ask("PUT", &path, &json!({"sq": 4}))
        .await
        .problem(400, "invalid_argument");
    assert_eq!(door.get(PATH).await.json()["cursors"], json!({"al ice": 2}));
    let path = "/v1/conversations/none/cursors/a";
    door.ask("PUT", path, &json!({"seq": 0}))
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn appends_to_a_fork_leave_the_original_unchanged() {
    let door = Door::open().await;
    for number in 1..=4 {
        door.append_text("c-1", &number.to_string()).await;
    }
    let path = format!("{PATH}/fork");
    let copy = door
        .ask("POST", &path, &json!({"id": "c-2", "at_seq": 3}))
        .await;
    assert_eq!(copy.status, 201, "{}", copy.text());
    assert_eq!(
        copy.json()["forked_from"],
        json!({"conversation": "default/default/c-1", "seq": 3})
    );
    assert_eq!(door.append_text("c-2", "another 4").await, 4);
    let texts = async |id: &str| {
        let page = door
            .get(&format!("/v1/conversations/{id}/messages"))
            .await
            .json();
        let messages = page["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|it| it["parts"][0]["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts("c-2").await, ["1", "2", "3", "another 4"]);
    assert_eq!(texts("c-1").await, ["1", "2", "3", "4"]);
    door.ask("POST", &path, &json!({"id": "a/b"}))
        .await
        .problem(400, "invalid_argument");
    door.ask("POST", &path, &json!({"id": "c-3", "at_seq": 9}))
        .await
        .problem(400, "invalid_argument");
    door.append_text("c-4", "other").await;
    door.ask("POST", &path, &json!({"id": "c-4"}))
        .await
        .problem(409, "conflict");
}

#[tokio::test]
async fn invalid_settings_are_refused_with_the_path_of_the_field() {
    let door = Door::open().await;
    for (body, expected) in [
        (json!({"metdata": {}}), "is `metadata` meant?"),
        (
            json!({"metadata": []}),
            "`metadata`: metadata must be a JSON object",
        ),
        (json!({"ttl_s": -1}), "`ttl_s`"),
        (json!({"ttl_s": u64::MAX}), "`ttl_s`: too large"),
        (
            json!({"context": {"budgt": 1}}),
            "`context.budgt`: there is no field `budgt`; is `budget`",
        ),
        (
            json!({"context": {"policy": "lastn"}}),
            "there is no policy `lastn`; is `last_n` meant?",
        ),
        (
            json!({"context": {"drop_first": ["tools"]}}),
            "there is no kind of part `tools`",
        ),
        (
            json!({"context": {"step": 3}}),
            "`step` is a fraction of the budget",
        ),
        (
            json!({"context": {"keep": ["user"]}}),
            "`context`: only the roles",
        ),
        (json!({"context": {"n": 3}}), "`n` requires the policy"),
        (
            json!({"context": {"budget": 10, "reserve": 10}}),
            "must be less than the budget",
        ),
    ] {
        let detail = door
            .ask("PUT", PATH, &body)
            .await
            .problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{body}: {detail}");
    }
    let large = json!({"metadata": {"a": "x".repeat(20 << 10)}});
    door.ask("PUT", PATH, &large)
        .await
        .problem(413, "too_large");
    door.get(PATH).await.problem(404, "not_found");
}

#[tokio::test]
async fn cleared_conversation_keeps_its_name_and_its_numbering() {
    let door = Door::open().await;
    for text in ["1", "2", "3"] {
        door.append_text("c-1", text).await;
    }
    let mut events = door.follow("c-1", "3").await;
    assert_eq!(events.next().await.data, r#"{"head_seq":3}"#);
    let path = format!("{PATH}/clear");
    let headers = [("if-match", "\"2\"")];
    let refused = door.ask_with("POST", &path, &headers, b"").await;
    assert_eq!(refused.json()["head_seq"], 3);
    refused.problem(412, "conflict");
    let headers = [("if-match", "\"3\"")];
    let cleared = door.ask_with("POST", &path, &headers, b"").await;
    assert_eq!(cleared.status, 200, "{}", cleared.text());
    let shown = cleared.json();
    assert_eq!(
        (
            &shown["head_seq"],
            &shown["start_seq"],
            &shown["cleared_seq"]
        ),
        (&json!(3), &json!(4), &json!(3))
    );
    let told = events.next().await;
    assert_eq!(
        (&*told.kind, &*told.data),
        ("cleared", r#"{"cleared_seq":3}"#)
    );
    let window = door.get(&format!("{PATH}/context?budget=1000")).await;
    assert_eq!(window.json()["messages"], json!([]), "{}", window.text());
    let listed = door.get("/v1/conversations").await.json();
    let entry = &listed["conversations"][0];
    assert_eq!(
        (&entry["head_seq"], &entry["start_seq"]),
        (&json!(3), &json!(4)),
        "{listed}"
    );
    let cursor = format!("{PATH}/cursors/bob");
    door.ask("PUT", &cursor, &json!({"seq": 1})).await;
    let inbox = door.get("/v1/inbox/bob").await.json();
    assert_eq!(inbox["lines"][0]["unread"], 0, "{inbox}");
    door.ask("POST", &format!("{PATH}/fork"), &json!({"id": "c-2"}))
        .await
        .problem(410, "trimmed");
    assert_eq!(door.append_text("c-1", "4").await, 4);
    let page = door.get(&format!("{PATH}/messages?after=0")).await.json();
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
    assert_eq!(page["messages"][0]["seq"], 4);
    door.ask_with("POST", "/v1/conversations/none/clear", &[], b"")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn newest_messages_are_retracted_over_http() {
    let door = Door::open().await;
    for text in ["1", "2", "3"] {
        door.append_text("c-1", text).await;
    }
    let mut events = door.follow("c-1", "3").await;
    assert_eq!(events.next().await.data, r#"{"head_seq":3}"#);
    let cursor = format!("{PATH}/cursors/bob");
    door.ask("PUT", &cursor, &json!({"seq": 1})).await;
    let path = format!("{PATH}/retract");
    for wrong in [
        json!({"last": 1}),
        json!({"expect": 3}),
        json!({"expect": 3, "last": 0}),
        json!({"expect": 3, "last": 1, "after": 1}),
        json!({"expect": 3, "last": 1, "id": "a/b"}),
        json!({"expect": 3, "first": 1}),
    ] {
        door.ask("POST", &path, &wrong)
            .await
            .problem(400, "invalid_argument");
    }
    let refused = door
        .ask("POST", &path, &json!({"expect": 2, "last": 1}))
        .await;
    assert_eq!(refused.json()["head_seq"], 3);
    refused.problem(412, "conflict");
    for _ in 0..2 {
        let undo = json!({"expect": 3, "last": 2, "id": "undo-1"});
        let retracted = door.ask("POST", &path, &undo).await;
        assert_eq!(retracted.status, 200, "{}", retracted.text());
        assert_eq!(
            retracted.json(),
            json!({"count": 2, "first_seq": 2, "last_seq": 4, "head_seq": 4})
        );
    }
    let told = events.next().await;
    assert_eq!(
        (&*told.kind, &*told.data, &*told.id),
        ("retracted", r#"{"first_seq":2,"last_seq":4}"#, "4")
    );
    let headers = [
        ("content-type", "application/json"),
        ("if-match", "\"4\""),
        ("idempotency-key", "undo-2"),
    ];
    let body = json!({"after": 1}).to_string();
    let nothing = door
        .ask_with("POST", &path, &headers, body.as_bytes())
        .await;
    assert_eq!(nothing.json(), json!({"count": 0, "head_seq": 4}));
    let inbox = door.get("/v1/inbox/bob").await.json();
    assert_eq!(inbox["lines"][0]["unread"], 0, "{inbox}");
    assert_eq!(inbox["lines"][0]["last"]["text"], "1", "{inbox}");
    assert_eq!(door.append_text("c-1", "4").await, 5);
    let inbox = door.get("/v1/inbox/bob").await.json();
    assert_eq!(inbox["lines"][0]["unread"], 1, "{inbox}");
    let page = door.get(&format!("{PATH}/messages?after=0")).await.json();
    let seqs: Vec<_> = page["messages"].as_array().unwrap().iter().collect();
    let seqs: Vec<_> = seqs.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 5]);
    let exported = door.get(&format!("{PATH}/export")).await;
    assert_eq!(exported.text().lines().count(), 3, "{}", exported.text());
    door.ask("PUT", PATH, &json!({"archived": true})).await;
    door.ask("POST", &path, &json!({"expect": 5, "last": 1}))
        .await
        .problem(409, "conflict");
    let last = json!({"expect": 1, "last": 1});
    door.ask("POST", "/v1/conversations/none/retract", &last)
        .await
        .problem(404, "not_found");
}
