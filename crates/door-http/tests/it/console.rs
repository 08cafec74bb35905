//! The console and what it reads: its files, the history, consumer groups, the client, error codes.

use std::sync::Arc;

use http_api::{CheckDocument, Operations, OptionDocument};
use serde_json::{Value, json};
use topic_service::TopicRef;
use topics::groups::{Caller, Join, Mark, Protocol};

use crate::client::{self, Answer};
use crate::quotas::TwoTokens;
use crate::{Door, serve_routes};

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
    let door = billing().await;
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

/// A node whose group `billing` has read three of five records in partition 1 of `orders`, which has
/// two partitions.
async fn billing() -> Door {
    let door = Door::open().await;
    let new = json!({"name": "orders", "partitions": 2});
    assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
    for index in 0..5 {
        let record = json!([{"value": index.to_string(), "partition": 1}]);
        let appended = door.ask("POST", "/v1/topics/orders/records", &record).await;
        assert_eq!(appended.status, 200, "{appended:?}");
        door.pass_ms(1_000);
    }
    commit(&door, 3).await;
    door
}

async fn commit(door: &Door, offset: i64) {
    let caller = Caller {
        group: "billing",
        member: "",
        instance: None,
        generation: -1,
    };
    let mark = Mark {
        topic: "orders",
        partition: 1,
        offset,
        leader_epoch: -1,
        metadata: "",
    };
    let topics = door.node.topics().unwrap();
    assert!(topics.find(TopicRef::Name("orders")).is_some());
    topics.commit(caller, &[mark], None).await.unwrap();
}

const RESET: &str = "/v1/groups/billing/offsets";

/// Shows what a reset would change: the partition, the committed and the new offset, and both lags.
async fn preview(door: &Door, reset: Value) -> Vec<Value> {
    let mut body = reset;
    body["dry_run"] = json!(true);
    let answer = door.ask("POST", RESET, &body).await;
    assert_eq!(answer.status, 200, "{body}: {answer:?}");
    let answer = answer.json();
    assert_eq!(answer["dry_run"], true);
    let changes = answer["partitions"].as_array().unwrap().iter();
    let fields = [
        "partition",
        "committed",
        "offset",
        "lag_before",
        "lag_after",
    ];
    changes
        .map(|it| fields.iter().map(|field| it[field].clone()).collect())
        .collect()
}

/// Returns the group's offsets: partition and committed offset.
async fn offsets(door: &Door) -> Value {
    let group = door.get("/v1/groups/billing").await.json();
    let partitions = group["partitions"].as_array().unwrap().iter();
    partitions
        .map(|it| json!([it["partition"], it["committed"]]))
        .collect()
}

#[tokio::test]
async fn reset_of_offsets_is_shown_before_it_is_made() {
    let door = billing().await;
    let one = |offset: u64, lag: u64| vec![json!([1, 3, offset, 2, lag])];
    assert_eq!(preview(&door, json!({"to": "earliest"})).await, one(0, 5));
    assert_eq!(preview(&door, json!({"to": "latest"})).await, one(5, 0));
    assert_eq!(preview(&door, json!({"offset": 1})).await, one(1, 4));
    assert_eq!(preview(&door, json!({"shift": -2})).await, one(1, 4));
    let records = door
        .get("/v1/topics/orders/partitions/1/records?from=0")
        .await
        .json();
    let third = records["records"][2]["timestamp_ms"].as_u64().unwrap();
    let mut time = Vec::new();
    http_api::time::push_rfc3339(&mut time, third - 500);
    let time = String::from_utf8(time).unwrap();
    assert_eq!(preview(&door, json!({"time": time})).await, one(2, 3));
    let later = json!({"time": "2100-01-01T00:00:00Z"});
    assert_eq!(preview(&door, later).await, one(5, 0));
    let topic = json!({"topic": "orders", "to": "earliest"});
    let both = [json!([0, null, 0, null, 0]), json!([1, 3, 0, 2, 5])];
    assert_eq!(preview(&door, topic).await, both);
    let first = json!({"topic": "orders", "partitions": [0, 0], "to": "latest"});
    assert_eq!(preview(&door, first).await, [json!([0, null, 0, null, 0])]);
    assert_eq!(offsets(&door).await, json!([[1, 3]]), "nothing was changed");

    let made = door.ask("POST", RESET, &json!({"shift": -2})).await;
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(made.json()["dry_run"], false);
    assert_eq!(offsets(&door).await, json!([[1, 1]]));
    let topic = json!({"topic": "orders", "to": "latest"});
    assert_eq!(door.ask("POST", RESET, &topic).await.status, 200);
    assert_eq!(offsets(&door).await, json!([[0, 0], [1, 5]]));
    let new = json!({"topic": "orders", "to": "earliest"});
    let created = door.ask("POST", "/v1/groups/fresh/offsets", &new).await;
    assert_eq!(created.status, 200, "{created:?}");
    assert_eq!(door.get("/v1/groups/fresh").await.json()["state"], "Empty");
}

#[tokio::test]
async fn reset_outside_of_a_partition_uses_its_nearest_offset() {
    let door = billing().await;
    let deleting = door.node.topics().unwrap();
    let topic = deleting.find(TopicRef::Name("orders")).unwrap();
    deleting.delete_records(&topic, 1, Some(2)).await.unwrap();
    for (reset, offset, clamped) in [
        (json!({"offset": 0}), 2, true),
        (json!({"offset": 2}), 2, false),
        (json!({"offset": 5}), 5, false),
        (json!({"offset": 900}), 5, true),
        (json!({"shift": -100}), 2, true),
        (json!({"shift": 1_i64 << 50}), 5, true),
        (json!({"to": "earliest"}), 2, false),
    ] {
        let mut body = reset.clone();
        body["dry_run"] = json!(true);
        let answer = door.ask("POST", RESET, &body).await.json();
        let change = &answer["partitions"][0];
        let found = (&change["offset"], &change["clamped"]);
        assert_eq!(found, (&json!(offset), &json!(clamped)), "{reset}");
    }
    // Retention has overtaken the group.
    commit(&door, 1).await;
    let lags = preview(&door, json!({"to": "latest"})).await;
    assert_eq!(lags, [json!([1, 1, 5, 3, 0])]);
}

#[tokio::test]
async fn reset_of_a_group_with_members_is_refused() {
    let door = billing().await;
    let topics = door.node.topics().unwrap();
    let _joining = topics.join(Join {
        group: "billing",
        member: "",
        instance: None,
        client_id: "client",
        client_host: "here",
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer",
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: Arc::from(&b"topics"[..]),
        }],
        topics: None,
        random: 0,
        identity_first: false,
        may_skip_assignment: false,
    });
    for dry_run in [true, false] {
        let body = json!({"to": "earliest", "dry_run": dry_run});
        let refused = door.ask("POST", RESET, &body).await;
        let detail = refused.problem(409, "conflict");
        assert!(
            detail.contains("has members (1, state PreparingRebalance)"),
            "{detail}"
        );
        assert!(detail.ends_with("stop its consumers"), "{detail}");
        assert_eq!(refused.json()["members"], 1);
    }
    assert_eq!(offsets(&door).await, json!([[1, 3]]));
}

#[tokio::test]
async fn invalid_resets_are_refused() {
    let door = billing().await;
    let fresh = "/v1/groups/fresh/offsets";
    for (path, body, status, code, expected) in [
        (RESET, json!({}), 400, "invalid_argument", "exactly one of"),
        (
            RESET,
            json!({"to": "latest", "shift": 1}),
            400,
            "invalid_argument",
            "exactly one of",
        ),
        (
            RESET,
            json!({"to": "middle"}),
            400,
            "invalid_argument",
            "`to`",
        ),
        (
            RESET,
            json!({"offset": -1}),
            400,
            "invalid_argument",
            "`offset`",
        ),
        (
            RESET,
            json!({"time": "noon"}),
            400,
            "invalid_argument",
            "`time`: must be a time",
        ),
        (
            RESET,
            json!({"partitions": [1], "to": "latest"}),
            400,
            "invalid_argument",
            "`topic` is required",
        ),
        (
            RESET,
            json!({"topic": "order", "to": "latest"}),
            404,
            "not_found",
            "is `orders` meant?",
        ),
        (
            RESET,
            json!({"topic": "orders", "partitions": [2], "to": "latest"}),
            404,
            "not_found",
            "no partition `2`",
        ),
        (
            RESET,
            json!({"topic": "orders", "shift": -1}),
            400,
            "invalid_argument",
            "no offset of partition 0",
        ),
        (
            fresh,
            json!({"to": "latest"}),
            404,
            "not_found",
            "no consumer group `fresh`",
        ),
    ] {
        let refused = door.ask("POST", path, &body).await;
        let detail = refused.problem(status, code);
        assert!(detail.contains(expected), "{body}: {detail}");
    }
    assert_eq!(offsets(&door).await, json!([[1, 3]]));
}

#[tokio::test]
async fn group_detail_has_only_its_own_offsets() {
    let door = billing().await;
    let other = json!({"topic": "orders", "to": "earliest"});
    let made = door.ask("POST", "/v1/groups/audit/offsets", &other).await;
    assert_eq!(made.status, 200);
    assert_eq!(offsets(&door).await, json!([[1, 3]]));
    let audit = door.get("/v1/groups/audit").await.json();
    let lags = audit["partitions"].as_array().unwrap().iter();
    let lags: Value = lags.map(|it| json!([it["partition"], it["lag"]])).collect();
    assert_eq!(lags, json!([[0, 0], [1, 5]]));
}

/// A process with one option and one failed check.
struct OneOption;

impl Operations for OneOption {
    fn configuration(&self) -> Vec<OptionDocument> {
        vec![OptionDocument {
            key: "http.listen",
            value: "127.0.0.1:1".to_owned(),
            default: "127.0.0.1:7401".to_owned(),
            layer: "option",
            origin: "--http-listen".to_owned(),
            variable: "TELPHER_HTTP_LISTEN".to_owned(),
            flag: "--http-listen".to_owned(),
            description: "Address of the listener.".to_owned(),
        }]
    }

    fn checks(&self) -> Vec<CheckDocument> {
        vec![CheckDocument {
            check: "room",
            verdict: "fail",
            detail: "1 B free".to_owned(),
            hints: vec!["free space".to_owned()],
            figures: json!({"free_bytes": 1}),
        }]
    }
}

#[tokio::test]
async fn only_an_administrator_reads_configuration_and_checks_and_resets_offsets() {
    let door = billing().await;
    let routes = door_http::routes(
        door.node.clone(),
        Arc::new(TwoTokens),
        Arc::default(),
        &[],
        Some(Arc::new(OneOption)),
    );
    let address = serve_routes(routes).await;
    let ask = async |method: &str, path: &str, token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        let body: &[u8] = match method {
            "POST" => b"{\"to\":\"earliest\",\"dry_run\":true}",
            _ => b"",
        };
        client::ask(address, method, path, &headers, body).await
    };
    for (method, path) in [
        ("GET", "/v1/config"),
        ("GET", "/v1/doctor"),
        ("POST", RESET),
    ] {
        let refused = ask(method, path, "agent").await;
        refused.problem(403, "denied");
        assert_eq!(ask(method, path, "admin").await.status, 200, "{path}");
    }
    let config = ask("GET", "/v1/config", "admin").await.json();
    assert_eq!(config["options"][0]["layer"], "option");
    let doctor = ask("GET", "/v1/doctor", "admin").await.json();
    assert_eq!(doctor["ok"], false);
    let checks = doctor["checks"].as_array().unwrap();
    assert_eq!(
        (&checks[0]["check"], &checks[0]["verdict"]),
        (&json!("node"), &json!("ok"))
    );
    assert!(checks[0].get("figures").is_none(), "{doctor}");
    assert_eq!(checks[1]["figures"], json!({"free_bytes": 1}));
}

#[tokio::test]
async fn node_without_a_process_of_its_own_has_no_configuration() {
    let door = Door::open().await;
    for path in ["/v1/config", "/v1/doctor"] {
        door.get(path).await.problem(501, "unsupported");
    }
}

#[tokio::test]
async fn members_of_the_cluster_are_listed_with_the_one_that_answers() {
    let alone = Door::open().await.get("/v1/cluster").await.json();
    assert_eq!(
        (&alone["clustered"], &alone["node"]),
        (&json!(false), &json!(1))
    );
    let cluster = Door::of_cluster().await.get("/v1/cluster").await.json();
    assert_eq!(
        (&cluster["clustered"], &cluster["node"]),
        (&json!(true), &json!(1))
    );
    let second = json!({"id": 2, "name": "node-2", "http": "node-2:7401"});
    assert_eq!(cluster["members"][1], second);
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

#[tokio::test]
async fn topic_shows_the_partitions_that_were_asked_for_and_totals_of_all() {
    let door = Door::open().await;
    let new = json!({"name": "wide", "partitions": 5});
    assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
    let records = (0..5).map(|index| json!({"value": "x", "partition": index}));
    let records = records.collect();
    let appended = door.ask("POST", "/v1/topics/wide/records", &records).await;
    assert_eq!(appended.status, 200, "{appended:?}");
    let page = door.get("/v1/topics/wide?from=3&limit=1").await.json();
    let state = page["state"].as_array().unwrap();
    assert_eq!((state.len(), &state[0]["partition"]), (1, &json!(3)));
    assert_eq!(
        (&page["records"], &page["partitions"]),
        (&json!(5), &json!(5))
    );
    let all = door.get("/v1/topics/wide").await.json();
    assert_eq!(all["state"].as_array().unwrap().len(), 5);
    assert_eq!(all["size"], page["size"]);
}

#[tokio::test]
async fn group_shows_its_largest_lags_and_lists_can_be_of_one_topic() {
    let door = Door::open().await;
    let topics = door.node.topics().unwrap();
    for name in ["one", "two"] {
        let new = json!({"name": name, "partitions": 2});
        assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
        let records = (0..4).map(|index| json!({"value": "x", "partition": index % 2}));
        let records = records.collect();
        let path = format!("/v1/topics/{name}/records");
        assert_eq!(door.ask("POST", &path, &records).await.status, 200);
    }
    let commits = [
        ("both", "one", 0, 1),
        ("both", "two", 1, 0),
        ("first", "one", 0, 2),
    ];
    for (group, topic, partition, offset) in commits {
        let caller = Caller {
            group,
            member: "",
            instance: None,
            generation: -1,
        };
        let mark = Mark {
            topic,
            partition,
            offset,
            leader_epoch: -1,
            metadata: "",
        };
        topics.commit(caller, &[mark], None).await.unwrap();
    }
    let detail = door.get("/v1/groups/both?limit=1").await.json();
    assert_eq!(
        (&detail["lag"], &detail["partition_count"]),
        (&json!(3), &json!(2))
    );
    let partitions = detail["partitions"].as_array().unwrap();
    assert_eq!(
        (partitions.len(), &partitions[0]["topic"]),
        (1, &json!("two"))
    );
    let list = door.get("/v1/groups?topic=two").await.json();
    let groups = list["groups"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0]["group"]), (1, &json!("both")));
    assert_eq!(groups[0]["topics"], json!({"two": 2}));
    let all = door.get("/v1/groups").await.json();
    assert_eq!(all["groups"][0]["topic_count"], 2);
    assert_eq!(all["groups"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn page_with_a_size_limit_has_sizes_of_larger_records() {
    let door = Door::open().await;
    let new = json!({"name": "large", "partitions": 1});
    assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
    let large = "x".repeat(50_000);
    let records = json!([{"value": large, "key": "k"}, {"value": "small"}]);
    let appended = door.ask("POST", "/v1/topics/large/records", &records).await;
    assert_eq!(appended.status, 200, "{appended:?}");
    let path = "/v1/topics/large/partitions/0/records";
    let page = door.get(&format!("{path}?max_bytes=4096")).await;
    assert!(page.body.len() < 4_096, "{}", page.body.len());
    let page = page.json();
    assert_eq!(page["records"][0]["omitted_bytes"], 50_001);
    assert_eq!(page["records"][0].get("value"), None);
    assert_eq!(page["records"][1]["value"], "small");
    let whole = door.get(&format!("{path}?limit=1")).await.json();
    assert_eq!(whole["records"][0]["value"].as_str().unwrap().len(), 50_000);
    for bytes in ["1023", "4194305"] {
        let refused = door.get(&format!("{path}?max_bytes={bytes}")).await;
        refused.problem(400, "invalid_argument");
    }
}

#[tokio::test]
async fn page_of_messages_ends_at_its_size_limit() {
    let door = Door::open().await;
    let text = "x".repeat(10_000);
    for _ in 0..5 {
        door.append_text("chat", &text).await;
    }
    let path = "/v1/conversations/chat/messages";
    let page = door.get(&format!("{path}?last=50&max_bytes=25000")).await;
    let messages = page.json()["messages"].as_array().unwrap().clone();
    assert!((1..=2).contains(&messages.len()), "{}", messages.len());
    assert_eq!(messages.last().unwrap()["seq"], 5);
    let one = door
        .get(&format!("{path}?last=50&max_bytes=1"))
        .await
        .json();
    assert_eq!(one["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn newest_changes_of_the_audit_are_read_at_once() {
    let door = Door::open().await;
    for index in 0..4 {
        let halt = json!({"prefix": format!("a/b/c{index}"), "reason": "x"});
        assert_eq!(door.ask("POST", "/v1/halt", &halt).await.status, 200);
    }
    let all = door.get("/v1/audit").await.json();
    let newest = door.get("/v1/audit?last=2").await.json();
    let count = all["changes"].as_array().unwrap().len();
    assert_eq!(
        newest["changes"].as_array().unwrap()[..],
        all["changes"].as_array().unwrap()[count - 2..]
    );
    assert_eq!(newest["next"], all["next"]);
    let refused = door.get("/v1/audit?last=2&from=1").await;
    refused.problem(400, "invalid_argument");
}

#[tokio::test]
async fn clients_that_accept_an_age_share_an_answer() {
    let door = Door::open().await;
    let create = async |name: &str| {
        let new = json!({"name": name, "partitions": 1});
        assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
    };
    let shared = async |path: &str| door.file(path, &[("cache-control", "max-age=1")]).await;
    let count = |answer: &Answer| answer.json()["topics"].as_array().unwrap().len();
    create("one").await;
    assert_eq!(count(&shared("/v1/topics").await), 1);
    create("two").await;
    let again = shared("/v1/topics").await;
    assert_eq!((count(&again), again.header("age")), (1, Some("0")));
    assert_eq!(again.header("content-type"), Some("application/json"));
    // Other clients get an answer of their own, and so does another query.
    assert_eq!(count(&door.get("/v1/topics").await), 2);
    assert_eq!(count(&shared("/v1/topics?limit=9").await), 2);
    door.pass_ms(1_000);
    assert_eq!(count(&shared("/v1/topics").await), 2);
    // An error is not shared, and neither are records.
    shared("/v1/topics/three").await.problem(404, "not_found");
    create("three").await;
    assert_eq!(shared("/v1/topics/three").await.status, 200);
    let records = "/v1/topics/three/partitions/0/records";
    assert_eq!(shared(records).await.header("age"), None);
}
