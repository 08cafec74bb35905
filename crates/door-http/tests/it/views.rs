//! Lists and inboxes.

use std::time::Duration;

use serde_json::{Value, json};
use views::{Options, ViewsLocation};

use crate::Door;

/// Views of a node that has no directory.
pub(crate) fn options() -> Options {
    Options {
        place: ViewsLocation::Memory,
        cache_size: 1 << 20,
        sync_interval: Duration::from_secs(10),
        watchers_max: 2,
        labels: message_json::labels,
    }
}

/// The path's page, and the ids in its list.
async fn page(door: &Door, path: &str) -> (Value, Vec<String>) {
    let answer = door.get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let page = answer.json();
    let list = page.get("conversations").or(page.get("lines")).unwrap();
    let ids = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned());
    (page.clone(), ids.collect())
}

async fn list(door: &Door, query: &str) -> Vec<String> {
    page(door, &format!("/v1/conversations?{query}")).await.1
}

async fn append_text_as(door: &Door, conversation: &str, from: &str, text: &str) {
    let path = format!("/v1/conversations/{conversation}/messages");
    let body = json!({"messages": [{"role": "user", "from": from, "content": text}]});
    let answer = door.ask("POST", &path, &body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    door.pass_ms(1);
}

#[tokio::test]
async fn conversations_are_listed_by_latest_activity() {
    let door = Door::open().await;
    assert_eq!(list(&door, "").await, [""; 0]);
    for conversation in ["a", "b", "c"] {
        append_text_as(&door, conversation, "", "hello").await;
    }
    assert_eq!(list(&door, "").await, ["c", "b", "a"]);
    append_text_as(&door, "a", "", "again").await;
    assert_eq!(list(&door, "").await, ["a", "c", "b"]);
    let (page, ids) = page(&door, "/v1/conversations?limit=1").await;
    assert_eq!(ids, ["a"]);
    assert_eq!(
        page["conversations"][0],
        json!({"id": "a", "name": "default/default/a", "head_seq": 2, "start_seq": 1,
            "active_at": "2023-11-14T22:13:20.003Z", "archived": false, "metadata": {}, "version": 0})
    );
    // Namespaces are apart.
    let other = "/v1/acme/lab/conversations";
    let body = json!({"messages": [{"role": "user", "content": "x"}]});
    door.ask("POST", &format!("{other}/z/messages"), &body)
        .await;
    assert_eq!(list(&door, "").await, ["a", "c", "b"]);
    assert_eq!(crate::views::page(&door, other).await.1, ["z"]);
}

/// While a walk goes on others write to, and make, conversations.
#[tokio::test]
async fn paging_repeats_no_conversation_and_skips_no_unchanged_one() {
    let door = Door::open().await;
    for number in 0..40 {
        append_text_as(&door, &format!("c{number}"), "", "x").await;
    }
    let mut dice = fastrand::Rng::with_seed(5);
    let (mut seen, mut touched) = (Vec::new(), Vec::new());
    let mut path = "/v1/conversations?limit=3".to_owned();
    loop {
        let (page, ids) = page(&door, &path).await;
        assert!(ids.len() <= 3);
        seen.extend(ids);
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/v1/conversations?limit=3&after={next}");
        for _ in 0..2 {
            let other = format!("c{}", dice.u32(..45));
            append_text_as(&door, &other, "", "y").await;
            touched.push(other);
        }
    }
    let mut once = seen.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), seen.len(), "{seen:?}");
    for number in 0..40 {
        let id = format!("c{number}");
        assert!(
            seen.contains(&id) || touched.contains(&id),
            "{id} was missed"
        );
    }
    assert!(touched.iter().any(|it| seen.contains(it)));
}

#[tokio::test]
async fn an_inbox_counts_messages_of_others_after_the_read_cursor() {
    let door = Door::open().await;
    let long = "é".repeat(300);
    append_text_as(&door, "a", "alice", "one").await;
    append_text_as(&door, "a", "bob", "two").await;
    append_text_as(&door, "b", "bob", &long).await;
    append_text_as(&door, "a", "bob", "three").await;
    let (inbox, ids) = page(&door, "/v1/inbox/alice").await;
    assert_eq!(ids, ["a"]);
    let line = &inbox["lines"][0];
    assert_eq!(
        (&line["head_seq"], &line["read_seq"], &line["unread"]),
        (&json!(3), &json!(0), &json!(2))
    );
    let last = &line["last"];
    assert_eq!(
        (&last["from"], &last["text"], &last["role"]),
        (&json!("bob"), &json!("three"), &json!("user"))
    );
    let (inbox, ids) = page(&door, "/v1/inbox/bob").await;
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(inbox["lines"][0]["unread"], 1);
    assert_eq!(inbox["lines"][1]["unread"], 0);
    let text = inbox["lines"][1]["last"]["text"].as_str().unwrap();
    assert_eq!(text, "é".repeat(200));
    let (page_1, ids) = page(&door, "/v1/inbox/bob?limit=1").await;
    assert_eq!(ids, ["a"]);
    let next = page_1["next"].as_str().unwrap();
    let (page_2, ids) = page(&door, &format!("/v1/inbox/bob?limit=1&after={next}")).await;
    assert_eq!((ids, page_2.get("next")), (vec!["b".to_owned()], None));
    assert_eq!(page(&door, "/v1/inbox/bob?unread=true").await.1, ["a"]);
    assert_eq!(page(&door, "/v1/inbox/nobody").await.1, [""; 0]);
}

#[tokio::test]
async fn a_followed_inbox_sends_all_its_conversations_then_changes() {
    let door = Door::open().await;
    for number in 0..120 {
        append_text_as(&door, &format!("c{number}"), "alice", "x").await;
    }
    let mut events = door.events("/v1/inbox/alice").await;
    for number in (0..120).rev() {
        let event = events.next().await;
        assert_eq!(
            (&*event.kind, &event.json()["id"]),
            ("line", &json!(format!("c{number}")))
        );
    }
    assert_eq!(events.next().await.kind, "head");
    append_text_as(&door, "c7", "bob", "one").await;
    append_text_as(&door, "other", "bob", "one").await;
    append_text_as(&door, "c7", "bob", "two").await;
    door.tend();
    let event = events.next().await;
    assert_eq!(event.kind, "line");
    assert_eq!(
        (&event.json()["id"], &event.json()["unread"]),
        (&json!("c7"), &json!(2))
    );
    append_text_as(&door, "other", "alice", "two").await;
    door.tend();
    let event = events.next().await;
    assert_eq!(
        (&event.json()["id"], &event.json()["unread"]),
        (&json!("other"), &json!(1))
    );
}

#[tokio::test]
async fn followed_inboxes_are_limited_and_disconnecting_frees_one() {
    let door = Door::open().await;
    let first = door.events("/v1/inbox/a").await;
    let _second = door.events("/v1/inbox/a").await;
    let headers = [("accept", "text/event-stream")];
    let refused = door.ask_with("GET", "/v1/inbox/b", &headers, b"").await;
    assert!(
        refused
            .problem(503, "busy")
            .contains("too many watched inboxes (limit 2")
    );
    drop(first);
    // The door finds out when it writes to the connection that is gone.
    loop {
        append_text_as(&door, "c", "a", "x").await;
        door.tend();
        let answer = door
            .ask_with("GET", "/v1/inbox/b?limit=0", &headers, b"")
            .await;
        assert_eq!(answer.status, 400);
        if door.can_follow("b") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn invalid_list_and_inbox_queries_are_refused_by_field() {
    let door = Door::open().await;
    for (path, expected) in [
        (
            "/v1/conversations?limit=0",
            "`limit`: must be from 1 to 1000, not 0",
        ),
        ("/v1/conversations?limit=x", "not x"),
        ("/v1/conversations?after=x", "`after`: invalid cursor"),
        (
            "/v1/conversations?archived=maybe",
            "`archived`: must be `true`",
        ),
        (
            "/v1/conversations?limt=1",
            "there is no field `limt`; is `limit` meant?",
        ),
        (
            "/v1/conversations?metadata.=1",
            "there is no field `metadata.`",
        ),
        (
            "/v1/conversations?unread=true",
            "there is no field `unread`",
        ),
        ("/v1/inbox/a?metadata.x=1", "there is no field `metadata.x`"),
        (
            "/v1/inbox/a?unread=1",
            "`unread`: must be `true` or `false`",
        ),
        ("/v1/inbox/a%0ab", "a participant's name"),
        ("/v1/a%2Fb/c/conversations", "is not a namespace"),
    ] {
        let detail = door.get(path).await.problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{path}: {detail}");
    }
}

async fn put(door: &Door, conversation: &str, settings: Value) {
    let path = format!("/v1/conversations/{conversation}");
    let answer = door.ask("PUT", &path, &settings).await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    door.pass_ms(1);
}

#[tokio::test]
async fn conversations_are_filtered_by_metadata_and_archived_state() {
    let door = Door::open().await;
    put(
        &door,
        "a",
        json!({"metadata": {"user": "alice", "team": {"id": 7}}}),
    )
    .await;
    put(
        &door,
        "b",
        json!({"metadata": {"user": "bob", "tags": ["x", "y"]}}),
    )
    .await;
    put(
        &door,
        "c",
        json!({"metadata": {"user": "alice", "tags": ["x"]}}),
    )
    .await;
    assert_eq!(list(&door, "metadata.user=alice").await, ["c", "a"]);
    assert_eq!(list(&door, "metadata.tags=x").await, ["c", "b"]);
    assert_eq!(
        list(&door, "metadata.tags=x&metadata.user=alice").await,
        ["c"]
    );
    assert_eq!(list(&door, "metadata.team.id=7").await, ["a"]);
    assert_eq!(list(&door, "metadata.user=ali").await, [""; 0]);
    put(&door, "c", json!({"archived": true})).await;
    assert_eq!(list(&door, "metadata.user=alice").await, ["a"]);
    assert_eq!(
        list(&door, "metadata.user=alice&archived=true").await,
        ["c"]
    );
    assert_eq!(list(&door, "archived=any").await, ["c", "b", "a"]);
    let patch = json!({"metadata": {"user": "carol"}});
    door.ask("PATCH", "/v1/conversations/a", &patch).await;
    assert_eq!(list(&door, "metadata.user=alice").await, [""; 0]);
    let (page, _) = page(&door, "/v1/conversations?metadata.user=carol").await;
    let metadata = &page["conversations"][0]["metadata"];
    assert_eq!(*metadata, json!({"user": "carol", "team": {"id": 7}}));
    door.ask("DELETE", "/v1/conversations/a", &Value::Null)
        .await;
    assert_eq!(list(&door, "metadata.user=carol").await, [""; 0]);
}

#[tokio::test]
async fn a_conversation_is_in_the_inboxes_of_its_current_participants() {
    let door = Door::open().await;
    put(
        &door,
        "a",
        json!({"participants": ["alice", "acme/lab/bot"]}),
    )
    .await;
    append_text_as(&door, "a", "bob", "hello").await;
    let (inbox, ids) = page(&door, "/v1/inbox/acme%2Flab%2Fbot").await;
    assert_eq!(
        (ids, &inbox["lines"][0]["unread"]),
        (vec!["a".to_owned()], &json!(1))
    );
    let cursor = "/v1/conversations/a/cursors/alice";
    door.ask("PUT", cursor, &json!({"seq": 1})).await;
    let (inbox, _) = page(&door, "/v1/inbox/alice").await;
    let line = &inbox["lines"][0];
    assert_eq!((&line["read_seq"], &line["unread"]), (&json!(1), &json!(0)));
    put(&door, "a", json!({"participants": []})).await;
    assert_eq!(page(&door, "/v1/inbox/acme%2Flab%2Fbot").await.1, [""; 0]);
    // A read mark stays.
    assert_eq!(page(&door, "/v1/inbox/alice").await.1, ["a"]);
    let refused = door
        .ask("PUT", "/v1/conversations/a", &json!({"participants": [""]}))
        .await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn expired_conversation_is_answered_410_and_not_listed() {
    let door = Door::open().await;
    put(&door, "a", json!({"ttl_s": 10})).await;
    append_text_as(&door, "a", "alice", "x").await;
    door.pass_ms(9_000);
    assert_eq!(list(&door, "").await, ["a"]);
    door.pass_ms(1_000);
    assert_eq!(list(&door, "").await, [""; 0]);
    door.get("/v1/conversations/a").await.problem(410, "gone");
    let text_batch = crate::text_batch("y");
    let path = "/v1/conversations/a/messages";
    door.ask("POST", path, &text_batch)
        .await
        .problem(410, "gone");
    door.get(path).await.problem(410, "gone");
}

#[tokio::test]
async fn readiness_and_lag_of_views_are_metrics() {
    let door = Door::open().await;
    let metric = async |name: &str| {
        let answer = door.get("/metrics").await;
        let text = answer.text();
        let line = text.lines().find(|it| it.split(' ').next() == Some(name));
        let value = line
            .unwrap_or_else(|| panic!("no {name}: {text}"))
            .rsplit(' ')
            .next();
        value.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(
        metric("telpher_views_ready").await,
        0,
        "nothing was looked at"
    );
    put(&door, "a", json!({"ttl_s": 10})).await;
    door.tend();
    assert_eq!(metric("telpher_views_ready").await, 1);
    assert_eq!(metric("telpher_views_lag_events").await, 0);
    assert!(metric("telpher_view_updates_total").await > 0);
}

#[tokio::test]
async fn an_export_is_imported_into_another_namespace_and_twice_without_duplicates() {
    let door = Door::open().await;
    for number in 0..230 {
        append_text_as(
            &door,
            &format!("c{number}"),
            "alice",
            &format!("text {number}"),
        )
        .await;
    }
    let about = json!({"metadata": {"user": "al \"ice\""}, "ttl_s": 99, "participants": ["dave"],
        "context": {"budget": 77}});
    put(&door, "c7", about).await;
    append_text_as(&door, "c7", "bob", "more").await;
    door.ask(
        "PUT",
        "/v1/conversations/c7/cursors/alice",
        &json!({"seq": 1}),
    )
    .await;
    put(&door, "c7", json!({"archived": true})).await;
    let all = door.get("/v1/export").await;
    assert_eq!(all.header("content-type"), Some("application/jsonl"));
    assert_eq!(all.text().lines().count(), 2 * 230 + 1);
    let one = door.get("/v1/export?metadata.user=al%20%22ice%22").await;
    assert_eq!(one.text().lines().count(), 3);
    let headers = [("content-type", "application/jsonl")];
    let import = |body: Vec<u8>| async {
        let path = "/v1/acme/lab/import";
        let body = body;
        door.ask_with("POST", path, &headers, &body).await
    };
    for (appended, deduplicated) in [(231, 0), (0, 231)] {
        let answer = import(all.body.clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let expected =
            json!({"conversations": 230, "appended": appended, "deduplicated": deduplicated});
        assert_eq!(answer.json(), expected);
    }
    let copy = door.get("/v1/acme/lab/conversations/c7").await.json();
    let original = door.get("/v1/conversations/c7").await.json();
    for key in [
        "metadata",
        "ttl_s",
        "participants",
        "context",
        "archived",
        "cursors",
        "head_seq",
    ] {
        assert_eq!(copy[key], original[key], "{key}");
    }
    assert_eq!(copy["archived"], true);
    let lines = page(&door, "/v1/acme/lab/inbox/alice?archived=true")
        .await
        .0;
    assert_eq!(lines["lines"][0]["unread"], 1);
    let messages = |path: &str| {
        let path = path.to_owned();
        let door = &door;
        async move {
            let mut page = door.get(&path).await.json();
            let list = page["messages"].as_array_mut().unwrap();
            for message in list.iter_mut() {
                message
                    .as_object_mut()
                    .unwrap()
                    .retain(|key, _| key != "event" && key != "at");
            }
            page["messages"].clone()
        }
    };
    assert_eq!(
        messages("/v1/acme/lab/conversations/c7/messages").await,
        messages("/v1/conversations/c7/messages").await
    );
}

#[tokio::test]
async fn an_invalid_import_is_refused_with_its_line_number() {
    let door = Door::open().await;
    let headers = [("content-type", "application/jsonl")];
    for (body, line, expected) in [
        (r#"{"role":"user","content":"x"}"#, 1, "precedes the first"),
        ("\n{\"conversation\":{\"name\":\"a b\"}}", 2, "name"),
        (
            "{\"conversation\":{\"name\":\"a\",\"ttl_s\":\"x\"}}",
            1,
            "ttl_s",
        ),
        (
            "{\"conversation\":{\"name\":\"a\"}}\n{\"role\":\"user\",\"contnt\":\"x\"}",
            2,
            "contnt",
        ),
    ] {
        let answer = door
            .ask_with("POST", "/v1/import", &headers, body.as_bytes())
            .await;
        let detail = answer.problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{detail}");
        assert_eq!(answer.json()["line"], line, "{body}");
    }
    let detail = door
        .get("/v1/export?limit=1")
        .await
        .problem(400, "invalid_argument");
    assert!(detail.contains("`limit`"), "{detail}");
}
