//! The console and what it reads: its files, the history, consumer groups, the client, error codes.

use serde_json::json;
use topic_service::TopicRef;
use topics::groups::{Caller, Mark};

use crate::Door;
use crate::client::{self, Answer};

impl Door {
    async fn file(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        client::ask(self.address, "GET", path, headers, b"").await
    }
}

#[tokio::test]
async fn console_is_served_with_strict_policy_and_immutable_files() {
    let door = Door::open().await;
    let moved = door.file("/ui", &[]).await;
    assert_eq!(
        (moved.status, moved.header("location")),
        (308, Some("/ui/"))
    );
    let page = door.file("/ui/", &[]).await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let script = page.text().split("src=\"").nth(1).unwrap();
    let script = script.split('"').next().unwrap();
    let compressed = [("accept-encoding", "gzip, deflate, br")];
    let file = door.file(&format!("/ui/{script}"), &compressed).await;
    assert_eq!(file.status, 200);
    assert_eq!(file.header("content-encoding"), Some("gzip"));
    assert!(file.header("cache-control").unwrap().contains("immutable"));
    assert_eq!(door.file("/ui/app.js", &[]).await.status, 404);
}

#[tokio::test]
async fn link_of_foreign_page_opens_console_but_nothing_else() {
    let door = Door::open().await;
    let visit = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert_eq!(door.file("/ui/", &visit).await.status, 200);
    assert_eq!(door.file("/v1/agents", &visit).await.status, 403);
    let framed = [visit[0], visit[1], ("sec-fetch-dest", "iframe")];
    assert_eq!(door.file("/ui/", &framed).await.status, 403);
}

#[tokio::test]
async fn history_has_one_value_per_series_and_sample() {
    let door = Door::open().await;
    let empty = door.get("/v1/history").await.json();
    assert_eq!(empty["time_unix_ms"], json!([]));
    for _ in 0..4 {
        door.node.record_sample(node::ProcessReading::default());
        door.get("/v1/agents").await;
        door.pass_ms(5_000);
    }
    let history = door.get("/v1/history").await.json();
    assert_eq!(history["interval_ms"], 5_000);
    assert_eq!(history["time_unix_ms"].as_array().unwrap().len(), 3);
    for (name, values) in history["series"].as_object().unwrap() {
        assert_eq!(values.as_array().unwrap().len(), 3, "{name}");
    }
    assert!(history["series"]["http_requests"][1].as_f64().unwrap() > 0.0);
    assert!(history["series"]["http_p99_ms"][1].as_f64().unwrap() > 0.0);
    let newest = door.get("/v1/history?last=1").await.json();
    assert_eq!(newest["time_unix_ms"][0], history["time_unix_ms"][2]);
    for query in ["last=0", "last=721"] {
        let refused = door.get(&format!("/v1/history?{query}")).await;
        refused.problem(400, "invalid_argument");
    }
}

#[tokio::test]
async fn groups_have_lag_by_topic_and_partition() {
    let door = Door::open().await;
    let new = json!({"name": "orders", "partitions": 2});
    assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
    let records = (0..5).map(|index| json!({"value": index.to_string(), "partition": 1}));
    let records = records.collect();
    let appended = door
        .ask("POST", "/v1/topics/orders/records", &records)
        .await;
    assert_eq!(appended.status, 200, "{appended:?}");
    let topics = door.node.topics().unwrap();
    assert!(topics.find(TopicRef::Name("orders")).is_some());
    let caller = Caller {
        group: "billing",
        member: "",
        instance: None,
        generation: -1,
    };
    let mark = Mark {
        topic: "orders",
        partition: 1,
        offset: 3,
        leader_epoch: -1,
        metadata: "",
    };
    topics.commit(caller, &[mark], None).await.unwrap();
    let list = door.get("/v1/groups").await.json();
    let group = &list["groups"][0];
    assert_eq!(group["group"], "billing", "{list}");
    assert_eq!(group["state"], "Empty");
    assert_eq!(
        (&group["lag"], &group["topics"]),
        (&json!(2), &json!({"orders": 2}))
    );
    let detail = door.get("/v1/groups/billing").await.json();
    let position = json!({"topic": "orders", "partition": 1, "committed": 3, "end": 5, "lag": 2});
    assert_eq!(detail["partitions"], json!([position]));
    let none = door.get("/v1/groups?prefix=x").await.json();
    assert_eq!(none, json!({"groups": []}));
    door.get("/v1/groups/none").await.problem(404, "not_found");
    let refused = door.get("/v1/groups?limit=0").await;
    refused.problem(400, "invalid_argument");
}

#[tokio::test]
async fn client_without_token_is_administrator_of_open_node() {
    let door = Door::open().await;
    let who = door.get("/v1/whoami").await.json();
    assert_eq!(who["role"], "admin");
    assert_eq!(who["name"], "default/default/anonymous");
    assert!(who.get("token").is_none(), "{who}");
}

#[tokio::test]
async fn errors_list_every_code() {
    let door = Door::open().await;
    let list = door.get("/v1/errors").await.json();
    let errors = list["errors"].as_array().unwrap();
    assert_eq!(errors.len(), model::ErrorCode::ALL.len());
    let unconfirmed = errors
        .iter()
        .find(|it| it["code"] == "unconfirmed")
        .unwrap();
    assert_eq!(unconfirmed["executed"], "unknown");
    assert_eq!(unconfirmed["retry"], "may_duplicate");
}
