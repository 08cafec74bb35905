//! Raw streams over HTTP.

use serde_json::{Value, json};

use crate::name_tokens::NameTokens;
use crate::{Door, Events, client};

const RECORDS: &str = "/v1/acme/demo/streams/log/records";

async fn append(door: &Door, query: &str, records: Value) -> crate::Answer {
    let path = format!("{RECORDS}{query}");
    door.ask("POST", &path, &json!({ "records": records }))
        .await
}

#[tokio::test]
async fn records_are_appended_and_read_as_json_and_as_bytes() {
    let door = Door::open().await;
    let batch = json!([{"body": "one \"1\""}, {"body_base64": "/wA="}]);
    let appended = append(&door, "", batch).await;
    assert_eq!(
        (appended.status, appended.json()),
        (201, json!({"first": 0, "next": 2}))
    );
    let raw = [("content-type", "application/octet-stream")];
    let appended = door.ask_with("POST", RECORDS, &raw, b"\xfethree").await;
    assert_eq!(
        (appended.status, appended.json()),
        (201, json!({"first": 2, "next": 3}))
    );
    let page = door.get(&format!("{RECORDS}?limit=2")).await.json();
    assert_eq!((&page["start"], &page["next"]), (&json!(0), &json!(3)));
    let records = page["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(
        (&records[0]["offset"], &records[0]["body"]),
        (&json!(0), &json!("one \"1\""))
    );
    assert_eq!(records[1]["body_base64"], "/wA=");
    let page = door.get(&format!("{RECORDS}?from=2")).await.json();
    assert_eq!(page["records"].as_array().unwrap().len(), 1);
    let record = door.get(&format!("{RECORDS}/2")).await;
    assert_eq!((record.status, &record.body[..]), (200, &b"\xfethree"[..]));
    assert_eq!(
        record.header("content-type"),
        Some("application/octet-stream")
    );
    let missing = door.get(&format!("{RECORDS}/3")).await;
    missing.problem(404, "not_found");
    assert_eq!(missing.json()["next"], 3);
    let nothing = door.get("/v1/streams/none/records").await.json();
    assert_eq!(nothing, json!({"start": 0, "next": 0, "records": []}));
}

#[tokio::test]
async fn an_append_with_a_wrong_expected_offset_is_refused() {
    let door = Door::open().await;
    let one = json!([{"body": "x"}]);
    assert_eq!(append(&door, "?expect=0", one.clone()).await.status, 201);
    let refused = append(&door, "?expect=0", one.clone()).await;
    refused.problem(412, "conflict");
    assert_eq!(refused.json()["next"], 1);
    assert_eq!(append(&door, "?expect=1", one).await.status, 201);
    for (records, path) in [
        (json!([{}]), Some("records[0]")),
        (
            json!([{"body": "x"}, {"body": "x", "body_base64": ""}]),
            Some("records[1]"),
        ),
        (json!([{"body_base64": "?"}]), Some("records[0]")),
        (json!([]), None),
    ] {
        let refused = append(&door, "", records).await;
        refused.problem(400, "invalid_argument");
        assert_eq!(refused.json()["path"].as_str(), path);
    }
    for query in ["?limit=0", "?limit=65537", "?offset=1"] {
        let refused = door.get(&format!("{RECORDS}{query}")).await;
        refused.problem(400, "invalid_argument");
    }
    let own = "/v1/telpher/system/streams/x/records";
    door.get(own).await.problem(400, "invalid_argument");
}

#[tokio::test]
async fn a_follower_gets_existing_and_new_records_and_resumes() {
    let door = Door::open().await;
    let path = "/v1/acme/demo/streams/log/follow";
    // It waits for a stream that does not exist.
    let mut events = door.events(path).await;
    append(&door, "", json!([{"body": "a\nb"}, {"body": "c"}])).await;
    for (id, body) in [("0", "a\nb"), ("1", "c")] {
        let event = events.next().await;
        assert_eq!((&*event.kind, &*event.id), ("record", id));
        assert_eq!(event.json()["body"], body);
    }
    append(&door, "", json!([{"body": "d"}])).await;
    assert_eq!(events.next().await.json()["body"], "d");
    let headers = [("accept", "text/event-stream"), ("last-event-id", "1")];
    let mut events = Events::open(door.address, path, &headers).await;
    assert_eq!(events.next().await.id, "2");
}

#[tokio::test]
async fn streams_are_listed_trimmed_and_deleted() {
    let door = Door::open().await;
    append(
        &door,
        "",
        json!([{"body": "a"}, {"body": "b"}, {"body": "c"}]),
    )
    .await;
    let stream = "/v1/acme/demo/streams/log";
    let expected = |start: u64| json!({"name": "acme/demo/log", "start": start, "next": 3});
    assert_eq!(door.get(stream).await.json(), expected(0));
    let trimmed = door
        .ask("POST", &format!("{stream}/trim"), &json!({"before": 2}))
        .await;
    assert_eq!((trimmed.status, trimmed.json()), (200, expected(2)));
    let list = door.get("/v1/acme/demo/streams?prefix=lo").await.json();
    assert_eq!(list, json!({"streams": [expected(2)]}));
    let list = door.get("/v1/acme/demo/streams?after=log").await.json();
    assert_eq!(list, json!({"streams": []}));
    assert_eq!(door.get("/v1/streams").await.json(), json!({"streams": []}));
    let gone = door.get(&format!("{RECORDS}?from=0")).await;
    gone.problem(400, "invalid_argument");
    assert_eq!(gone.json()["start"], 2);
    // Without a position, a read starts at the oldest record.
    assert_eq!(door.get(RECORDS).await.json()["records"][0]["body"], "c");
    let deleted = door.ask("DELETE", stream, &Value::Null).await;
    assert_eq!((deleted.status, deleted.json()), (200, expected(3)));
    assert_eq!(
        append(&door, "?expect=3", json!([{"body": "d"}]))
            .await
            .status,
        201
    );
    door.get("/v1/streams/none").await.problem(404, "not_found");
    let trim = json!({"before": 1});
    let missing = door.ask("POST", "/v1/streams/none/trim", &trim).await;
    missing.problem(404, "not_found");
}

#[tokio::test]
async fn only_a_token_for_the_name_deletes_records_of_a_stream() {
    let door = Door::open().await;
    let address = NameTokens::serve(&door).await;
    let ask = async |method: &str, path: &str, name: &str| {
        let bearer = format!("Bearer {name}");
        let headers = [
            ("content-type", "application/json"),
            ("authorization", &*bearer),
        ];
        let body = b"{\"before\":1}";
        client::ask(address, method, path, &headers, body).await
    };
    let headers = [("authorization", "Bearer acme/demo/bob")];
    let appended = client::ask(address, "POST", RECORDS, &headers, b"x").await;
    assert_eq!(appended.status, 201, "{appended:?}");
    let stream = "/v1/acme/demo/streams/log";
    let trim = format!("{stream}/trim");
    ask("POST", &trim, "acme/demo/bob")
        .await
        .problem(403, "denied");
    ask("DELETE", stream, "acme/demo/bob")
        .await
        .problem(403, "denied");
    assert_eq!(ask("POST", &trim, "acme/demo/log").await.status, 200);
    assert_eq!(ask("DELETE", stream, "acme/demo/log").await.status, 200);
}
