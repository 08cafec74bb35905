//! Topics over HTTP.

use std::sync::Arc;

use recordbatch::{Attributes, Builder, Compression, Producer, Template};
use serde_json::{Value, json};
use topic_service::{InitProducer, Topic, TopicRef, Topics};
use topics::{Claim, Ending};

use crate::{Answer, Door};

impl Door {
    fn topics(&self) -> Topics {
        self.node.topics().unwrap()
    }

    fn topic(&self, name: &str) -> Arc<Topic> {
        self.topics().find(TopicRef::Name(name)).unwrap()
    }

    async fn make(&self, name: &str, partitions: u32) {
        let new = json!({ "name": name, "partitions": partitions });
        let answer = self.ask("POST", "/v1/topics", &new).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    async fn put(&self, topic: &str, records: Value) -> Answer {
        let path = format!("/v1/topics/{topic}/records");
        self.ask("POST", &path, &records).await
    }

    /// Appends values to a partition, and says where the first one is.
    async fn put_values(&self, topic: &str, partition: u32, values: &[&str]) -> u64 {
        let records = values
            .iter()
            .map(|value| json!({ "value": value, "partition": partition }));
        let answer = self.put(topic, records.collect()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["records"][0]["offset"].as_u64().unwrap()
    }

    async fn page(&self, topic: &str, partition: u32, query: &str) -> Value {
        let path = format!("/v1/topics/{topic}/partitions/{partition}/records?{query}");
        let answer = self.get(&path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Appends a batch as a producer does.
    async fn produce(&self, topic: &str, batch: &[u8], transaction: Option<&str>) -> u64 {
        let mut producing = self.topics().producing();
        let placed = producing.append(&self.topic(topic), 0, batch, transaction);
        drop(producing);
        let placed = placed.unwrap();
        placed.durable.await.unwrap();
        placed.offset
    }
}

/// Values of a page, with their offsets.
fn values(page: &Value) -> Vec<(u64, String)> {
    let records = page["records"].as_array().unwrap().iter();
    let value = |record: &Value| match &record["value"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    records
        .map(|it| (it["offset"].as_u64().unwrap(), value(it)))
        .collect()
}

fn pairs(from: u64, values: &[&str]) -> Vec<(u64, String)> {
    (from..)
        .zip(values.iter().map(|it| (*it).to_owned()))
        .collect()
}

#[tokio::test]
async fn topic_is_created_described_altered_and_deleted_over_http() {
    let door = Door::open().await;
    let new = json!({"name": "orders", "partitions": 2, "configs": {"retention.ms": 86_400_000}});
    let made = door.ask("POST", "/v1/topics", &new).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(
        (&made["name"], &made["partitions"]),
        (&json!("orders"), &json!(2))
    );
    assert_eq!(made["configs"], json!({"retention.ms": "86400000"}));
    assert_eq!(made["effective"]["cleanup.policy"], "delete");
    let nothing = json!({"partition": 1, "start": 0, "end": 0, "committed_end": 0, "size": 0});
    assert_eq!(made["state"][1], nothing);
    assert_eq!(door.get("/v1/topics/orders").await.json(), made);

    let change =
        json!({"partitions": 3, "configs": {"retention.ms": null, "cleanup.policy": "compact"}});
    let changed = door.ask("PATCH", "/v1/topics/orders", &change).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let changed = changed.json();
    assert_eq!(
        (&changed["id"], &changed["partitions"]),
        (&made["id"], &json!(3))
    );
    assert_eq!(changed["configs"], json!({"cleanup.policy": "compact"}));

    door.make("other", 1).await;
    let names = |list: Value| {
        let topics = list["topics"].as_array().unwrap().clone();
        topics
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let all = door.get("/v1/topics").await.json();
    assert_eq!(names(all), ["orders", "other"]);
    assert_eq!(
        names(door.get("/v1/topics?prefix=ot").await.json()),
        ["other"]
    );
    let first = door.get("/v1/topics?limit=1").await.json();
    assert_eq!(
        (&first["next"], names(first.clone())),
        (&json!("orders"), vec!["orders".into()])
    );
    let rest = door.get("/v1/topics?after=orders").await.json();
    assert_eq!(
        (rest.get("next"), names(rest.clone())),
        (None, vec!["other".into()])
    );

    let deleted = door.ask("DELETE", "/v1/topics/orders", &Value::Null).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    let gone = door
        .get("/v1/topics/orders")
        .await
        .problem(404, "not_found");
    assert_eq!(gone, "there is no topic `orders`");
    door.ask("DELETE", "/v1/topics/orders", &Value::Null)
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn invalid_topics_and_topic_changes_are_refused_with_the_reason() {
    let door = Door::open().await;
    door.make("t", 2).await;
    let mut wrong = Vec::new();
    for (method, path, body, code, detail) in [
        (
            "POST",
            "",
            json!({"name": "a b"}),
            "invalid_argument",
            "invalid character ' ' in the topic name",
        ),
        (
            "POST",
            "",
            json!({"name": "t"}),
            "conflict",
            "topic `t` already exists",
        ),
        (
            "POST",
            "",
            json!({"nam": "x"}),
            "invalid_argument",
            "`nam`: there is no field `nam`; is `name`",
        ),
        (
            "POST",
            "",
            json!({"name": "x", "partitions": 0}),
            "invalid_argument",
            "0 partitions:",
        ),
        (
            "POST",
            "",
            json!({"name": "x", "partitions": 1_000_000}),
            "denied",
            "too many partitions: ",
        ),
        (
            "POST",
            "",
            json!({"name": "x", "configs": {"retention.m": 1}}),
            "invalid_argument",
            "unknown topic config `retention.m`",
        ),
        (
            "PATCH",
            "/t",
            json!({"partitions": 1}),
            "invalid_argument",
            "1 partitions:",
        ),
        (
            "PATCH",
            "/t",
            json!({"configs": {"retention.ms": []}}),
            "invalid_argument",
            "`configs.retention.ms`: must be a string, a number",
        ),
        (
            "PATCH",
            "/t",
            json!({"partitions": 5, "configs": {"retention.ms": "x"}}),
            "invalid_argument",
            "invalid value `x` of retention.ms",
        ),
        (
            "GET",
            "/tt",
            Value::Null,
            "not_found",
            "there is no topic `tt`; is `t` meant?",
        ),
        (
            "GET",
            "/t/partitions/2/records",
            Value::Null,
            "not_found",
            "`t` has no partition `2`: it has 0 to 1",
        ),
        (
            "GET",
            "/t/partitions/x/follow",
            Value::Null,
            "not_found",
            "`t` has no partition `x`: it has 0 to 1",
        ),
        (
            "GET",
            "/t/partitions/0/records?from=1",
            Value::Null,
            "invalid_argument",
            "offset 1 is not between 0 and 0",
        ),
        (
            "GET",
            "/t/partitions/0/records?from=x",
            Value::Null,
            "invalid_argument",
            "the query: ",
        ),
        (
            "GET",
            "/t/partitions/0/records?limit=0",
            Value::Null,
            "invalid_argument",
            "`limit` must be from 1 to 10000",
        ),
        (
            "GET",
            "/t/partitions/0/records?max_wait_ms=60001",
            Value::Null,
            "invalid_argument",
            "`max_wait_ms` must be at most",
        ),
        (
            "GET",
            "/t/partitions/0/records?form=1",
            Value::Null,
            "invalid_argument",
            "the query: there is no field `form`; is `from` meant?",
        ),
        (
            "POST",
            "/t/records",
            json!([]),
            "invalid_argument",
            "1 to 10000 records",
        ),
        (
            "POST",
            "/t/records",
            json!([{"key": "k"}]),
            "invalid_argument",
            "`[0]`: missing field `value`",
        ),
        (
            "POST",
            "/t/records",
            json!([{"value": {"base64": "?"}}]),
            "invalid_argument",
            "`[0].value`: invalid base64",
        ),
        (
            "POST",
            "/t/records",
            json!([{"value": 1}, {"value": 1, "partition": 2}]),
            "not_found",
            "record 1: no partition 2",
        ),
        (
            "POST",
            "/t/records",
            json!([{"value": 1, "headers": 7}]),
            "invalid_argument",
            "`[0].headers`: ",
        ),
        (
            "POST",
            "/a%20b/records",
            json!([{"value": 1}]),
            "invalid_argument",
            "invalid character ' ' in the topic name",
        ),
    ] {
        let answer = door.ask(method, &format!("/v1/topics{path}"), &body).await;
        let told = answer.json();
        assert_eq!(told["code"], code, "{method} {path} {body}: {told}");
        let told = told["detail"].as_str().unwrap();
        if !told.starts_with(detail) {
            wrong.push(format!("{method} {path} {body}: {told}, not {detail}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(door.get("/v1/topics/t").await.json()["partitions"], 2);
    assert_eq!(door.page("t", 0, "").await["end"], 0);
}

#[tokio::test]
async fn records_are_read_as_they_were_appended() {
    let door = Door::open().await;
    door.make("t", 1).await;
    let records = json!([
        {"key": "k", "value": {"total": 12.50}, "headers": [["trace", "7f3"], ["none", null]]},
        {"value": "text", "headers": [["twice", "a"], ["twice", {"base64": "/w=="}]]},
        {"key": {"base64": "AP8="}, "value": {"base64": "/w=="}},
        {"key": "k", "value": null},
        {"value": 42, "headers": {"an": "object"}},
    ]);
    let appended = door.put("t", records).await;
    assert_eq!(appended.status, 200, "{appended:?}");
    let places: Vec<_> = (0..5)
        .map(|at| json!({"partition": 0, "offset": at}))
        .collect();
    assert_eq!(appended.json(), json!({ "records": places }));

    let mut page = door.page("t", 0, "").await;
    for record in page["records"].as_array_mut().unwrap() {
        let at = record
            .as_object_mut()
            .unwrap()
            .remove("timestamp_ms")
            .unwrap();
        assert!(at.as_i64().is_some_and(|at| at >= 0), "{at}");
    }
    let shown = json!([
        {"offset": 0, "key": "k", "value": {"total": 12.50}, "headers": [["trace", "7f3"], ["none", null]]},
        {"offset": 1, "value": "text", "headers": [["twice", "a"], ["twice", {"base64": "/w=="}]]},
        {"offset": 2, "key": {"base64": "AP8="}, "value": {"base64": "/w=="}},
        {"offset": 3, "key": "k", "value": null},
        {"offset": 4, "value": "42", "headers": [["an", "object"]]},
    ]);
    assert_eq!(
        page,
        json!({"records": shown, "next": 5, "start": 0, "end": 5})
    );
    let part = door.page("t", 0, "from=1&limit=2").await;
    assert_eq!(
        values(&part),
        [
            (1, "text".into()),
            (2, json!({"base64": "/w=="}).to_string())
        ]
    );
    assert_eq!((&part["next"], &part["end"]), (&json!(3), &json!(5)));
    assert_eq!(door.page("t", 0, "from=latest").await["next"], 5);
}

#[tokio::test]
async fn keyed_records_get_the_partition_that_kafkas_clients_choose() {
    let door = Door::open().await;
    // The hashes are those that the Java client's own test names.
    let keyed: [(&str, i32); 4] = [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("abc", 479_470_107),
    ];
    let records: Vec<_> = keyed
        .iter()
        .map(|(key, _)| json!({"key": key, "value": 1}))
        .collect();
    let appended = door.put("made-by-itself", json!(records)).await.json();
    for ((key, hash), place) in keyed.iter().zip(appended["records"].as_array().unwrap()) {
        assert_eq!(place["partition"], (hash & 0x7fff_ffff) % 3, "{key}");
    }
    // Those without one stay together.
    let keyless: Vec<_> = (0..20).map(|value| json!({ "value": value })).collect();
    let appended = door.put("made-by-itself", json!(keyless)).await.json();
    let places = appended["records"].as_array().unwrap();
    assert!(
        places
            .iter()
            .all(|it| it["partition"] == places[0]["partition"]),
        "{places:?}"
    );
}

#[tokio::test]
async fn an_append_spans_several_batches_and_an_oversized_record_refuses_all() {
    let door = Door::open().await;
    let new = json!({"name": "t", "partitions": 1, "configs": {"max.message.bytes": 1000}});
    assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
    let value = "x".repeat(300);
    let records: Vec<_> = (0..10).map(|_| json!({ "value": value })).collect();
    let appended = door.put("t", json!(records)).await.json();
    let offsets: Vec<_> = appended["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["offset"].clone())
        .collect();
    assert_eq!(offsets, (0..10).map(Value::from).collect::<Vec<_>>());
    let large = "x".repeat(1000);
    let refused = door
        .put("t", json!([{"value": "a"}, {"value": large}]))
        .await;
    let detail = refused.problem(413, "too_large");
    assert!(
        detail.starts_with("record 1: a batch with this record has 1"),
        "{detail}"
    );
    assert_eq!(refused.json()["index"], 1);
    assert_eq!(door.page("t", 0, "").await["end"], 10);
}

#[tokio::test]
async fn a_record_without_a_key_is_refused_by_a_compacted_topic() {
    let door = Door::open().await;
    let new = json!({"name": "t", "partitions": 1, "configs": {"cleanup.policy": "compact"}});
    assert_eq!(door.ask("POST", "/v1/topics", &new).await.status, 201);
    let detail = door
        .put("t", json!([{"key": "k", "value": 1}, {"value": 1}]))
        .await
        .problem(400, "invalid_argument");
    assert_eq!(
        detail,
        "record 1: a record of a compacted topic needs a key"
    );
    assert_eq!(door.page("t", 0, "").await["end"], 0);
}

#[tokio::test]
async fn batches_of_every_compression_are_read() {
    let door = Door::open().await;
    door.make("t", 1).await;
    let mut expected = Vec::new();
    for compression in Compression::ALL {
        let mut builder = Builder::new();
        let mut bytes = Vec::new();
        for index in 0..50 {
            let value = format!("{compression:?}-{index}");
            builder.push(1, Some(b"k"), Some(value.as_bytes()), &[]);
            expected.push(value);
        }
        builder.finish_compressed(&Template::default(), compression, &mut bytes);
        door.produce("t", &bytes, None).await;
    }
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    let page = door.page("t", 0, "limit=1000").await;
    assert_eq!(values(&page), pairs(0, &expected));
    // In any pieces, also from within a batch.
    let mut next = 0;
    while next < 250 {
        let page = door.page("t", 0, &format!("from={next}&limit=7")).await;
        let until = expected.len().min(next as usize + 7);
        assert_eq!(values(&page), pairs(next, &expected[next as usize..until]));
        next = page["next"].as_u64().unwrap();
    }
}

#[tokio::test]
async fn decompression_bombs_and_invalid_records_are_reported_and_can_be_skipped() {
    let door = Door::open().await;
    door.make("t", 1).await;
    door.put_values("t", 0, &["before"]).await;
    let mut builder = Builder::new();
    builder.push(1, None, Some(&vec![0; 65 << 20]), &[]);
    let mut bomb = Vec::new();
    builder.finish_compressed(&Template::default(), Compression::Zstd, &mut bomb);
    assert!(bomb.len() < 100_000);
    door.produce("t", &bomb, None).await;
    builder.push(1, None, Some(b"damaged"), &[]);
    let mut damaged = Vec::new();
    builder.finish_compressed(&Template::default(), Compression::Gzip, &mut damaged);
    damaged[61..].fill(7);
    let crc = crc32c::crc32c(&damaged[21..]);
    damaged[17..21].copy_from_slice(&crc.to_be_bytes());
    door.produce("t", &damaged, None).await;
    door.put_values("t", 0, &["behind"]).await;

    // Readable records are returned; reading on reports the first unreadable batch.
    let page = door.page("t", 0, "").await;
    assert_eq!(
        (values(&page), &page["next"]),
        (pairs(0, &["before"]), &json!(1))
    );
    let path = "/v1/topics/t/partitions/0/records?from=";
    let refused = door.get(&format!("{path}1")).await;
    let detail = refused.problem(413, "too_large");
    assert!(
        detail.starts_with("the batch at offset 1 has more than"),
        "{detail}"
    );
    assert_eq!(refused.json()["next"], 2);
    let refused = door.get(&format!("{path}2")).await;
    let detail = refused.problem(500, "internal");
    assert_eq!(detail, "the batch at offset 2 has an invalid record");
    assert_eq!(refused.json()["next"], 3);
    assert_eq!(
        values(&door.page("t", 0, "from=3").await),
        pairs(3, &["behind"])
    );
}

#[tokio::test]
async fn aborted_records_and_transaction_markers_are_not_read() {
    let door = Door::open().await;
    door.make("t", 1).await;
    let topics = door.topics();
    let init = InitProducer {
        name: Some("tx"),
        timeout_ms: 60_000,
        expected: None,
    };
    let producer = topics.init_producer(&init).await.unwrap();
    let claim = Claim {
        name: "tx",
        producer: producer.producer,
        epoch: producer.epoch,
    };
    let place = (door.topic("t"), 0);
    for (sequence, (value, ending)) in [
        ("taken back", Ending::Abort),
        ("kept", Ending::Commit),
        ("taken back too", Ending::Abort),
    ]
    .into_iter()
    .enumerate()
    {
        topics
            .add_partitions(&claim, std::slice::from_ref(&place))
            .await
            .unwrap();
        let mut builder = Builder::new();
        builder.push(1, None, Some(value.as_bytes()), &[]);
        let template = Template {
            attributes: Attributes::default().transactional(),
            producer: Some(Producer {
                id: producer.producer.0,
                epoch: producer.epoch,
                sequence: sequence as i32,
            }),
            ..Template::default()
        };
        let mut bytes = Vec::new();
        builder.finish(&template, &mut bytes);
        door.produce("t", &bytes, Some("tx")).await;
        // The transaction is still open.
        let open = door.page("t", 0, "").await;
        assert_eq!(open["end"], 3 * sequence, "{open}");
        assert!(!open.to_string().contains("taken back"), "{open}");
        topics.end_transaction(&claim, ending).await.unwrap();
        door.put_values("t", 0, &["between"]).await;
    }
    let page = door.page("t", 0, "").await;
    let shown = [(2, "between"), (3, "kept"), (5, "between"), (8, "between")];
    assert_eq!(
        values(&page),
        shown.map(|(at, value)| (at, value.to_owned()))
    );
    assert_eq!(page["next"], 9);
    // A page ends where there is nothing left, though its records are not shown.
    let page = door.page("t", 0, "from=6&limit=1").await;
    assert_eq!(
        (values(&page), &page["next"]),
        (vec![(8, "between".into())], &json!(9))
    );
}

#[tokio::test]
async fn a_long_poll_returns_records_when_they_are_appended() {
    let door = Door::open().await;
    door.make("t", 1).await;
    let (page, at) = tokio::join!(
        door.page("t", 0, "max_wait_ms=20000"),
        door.put_values("t", 0, &["a", "b"]),
    );
    assert_eq!((values(&page), at), (pairs(0, &["a", "b"]), 0));
    // Nothing comes.
    let page = door.page("t", 0, "from=2&max_wait_ms=10").await;
    assert_eq!((values(&page), &page["next"]), (Vec::new(), &json!(2)));
}

#[tokio::test]
async fn a_partition_is_followed_without_gaps_and_resumed_by_last_event_id() {
    let door = Door::open().await;
    door.make("t", 2).await;
    door.put_values("t", 1, &["0", "1", "2"]).await;
    let path = "/v1/topics/t/partitions/1/follow";
    let mut events = door.events(path).await;
    for offset in 0..3_u64 {
        let event = events.next().await;
        assert_eq!(
            (&*event.kind, event.id.clone()),
            ("record", offset.to_string())
        );
        assert_eq!(event.json()["value"], offset.to_string());
    }
    for offset in 3..40_u64 {
        door.put_values("t", 1, &[&format!("{offset}")]).await;
        let event = events.next().await;
        assert_eq!(
            (event.id.clone(), &event.json()["value"]),
            (offset.to_string(), &json!(offset.to_string()))
        );
    }
    let headers = [("last-event-id", "37")];
    let mut again = crate::Events::open(door.address, path, &headers).await;
    assert_eq!(
        (again.next().await.id, again.next().await.id),
        ("38".into(), "39".into())
    );
    let mut newest = door.events(&format!("{path}?from=latest")).await;
    door.put("t", json!([{"value": "{\r\n\"a\":\n1}", "partition": 1}]))
        .await;
    let event = newest.next().await;
    assert_eq!(
        (event.id.as_str(), event.json()["value"].clone()),
        ("40", json!({"a": 1}))
    );
    let refused = door
        .ask_with("GET", path, &[("last-event-id", "x")], b"")
        .await;
    refused.problem(400, "invalid_argument");
}

#[tokio::test]
async fn reading_trimmed_records_is_refused_with_the_log_start() {
    let door = Door::open().await;
    door.make("t", 1).await;
    door.put_values("t", 0, &["a", "b", "c"]).await;
    let topic = door.topic("t");
    door.topics()
        .delete_records(&topic, 0, Some(2))
        .await
        .unwrap();
    assert_eq!(values(&door.page("t", 0, "").await), pairs(2, &["c"]));
    let refused = door.get("/v1/topics/t/partitions/0/records?from=1").await;
    refused.problem(410, "trimmed");
    assert_eq!(
        (&refused.json()["start"], &refused.json()["end"]),
        (&json!(2), &json!(3))
    );
    let mut events = door.events("/v1/topics/t/partitions/0/follow?from=1").await;
    let event = events.next().await;
    assert_eq!((&*event.kind, &event.json()["start"]), ("error", &json!(2)));
}

const EVENTS: &str = "default.default.conversations";

impl Door {
    /// Everything that the topic of conversations shows, by its offsets, partition after partition.
    async fn events_shown(&self) -> Vec<(u64, Value)> {
        let mut shown = Vec::new();
        let partitions =
            self.get(&format!("/v1/topics/{EVENTS}")).await.json()["partitions"].as_u64();
        for partition in 0..partitions.unwrap() as u32 {
            let page = self.page(EVENTS, partition, "limit=10000").await;
            assert_eq!(page["next"], page["end"]);
            for record in page["records"].as_array().unwrap() {
                assert_eq!(record["key"], record["value"]["conversation"]);
                shown.push((record["offset"].as_u64().unwrap(), record["value"].clone()));
            }
        }
        shown
    }
}

#[tokio::test]
async fn events_of_conversations_are_a_read_only_topic() {
    let door = Door::open().await;
    door.get(&format!("/v1/topics/{EVENTS}"))
        .await
        .problem(404, "not_found");
    for number in 0..10 {
        door.append_text("c-1", &format!("one {number}")).await;
        door.append_text("c-2", &format!("two {number}")).await;
    }
    let listed = door.get("/v1/topics").await.json();
    assert_eq!(listed["topics"][0]["name"], EVENTS);
    let shown = door.events_shown().await;
    for (conversation, text) in [
        ("default/default/c-1", "one"),
        ("default/default/c-2", "two"),
    ] {
        let of = shown
            .iter()
            .filter(|(_, it)| it["conversation"] == conversation);
        let messages: Vec<_> = of.filter(|(_, it)| it["event"] == "message").collect();
        assert_eq!(messages.len(), 10);
        for (number, (offset, event)) in messages.iter().enumerate() {
            let message = &event["message"];
            assert_eq!(
                (&message["seq"], &message["event"]),
                (&json!(number + 1), &json!(offset))
            );
            assert!(
                message["parts"]
                    .to_string()
                    .contains(&format!("{text} {number}"))
            );
        }
    }
    for (method, path, body) in [
        (
            "POST",
            format!("/v1/topics/{EVENTS}/records"),
            json!([{"value": 1}]),
        ),
        (
            "POST",
            "/v1/topics".to_owned(),
            json!({"name": "other.space.conversations"}),
        ),
        (
            "PATCH",
            format!("/v1/topics/{EVENTS}"),
            json!({"partitions": 100}),
        ),
        ("DELETE", format!("/v1/topics/{EVENTS}"), Value::Null),
    ] {
        let detail = door.ask(method, &path, &body).await.problem(403, "denied");
        assert!(
            detail.contains("can only be read"),
            "{method} {path}: {detail}"
        );
    }
}

#[tokio::test]
async fn conversation_events_are_followed_live_and_erased_ones_skipped() {
    let door = Door::open().await;
    door.append_text("c-1", "first").await;
    let shown = door.events_shown().await;
    assert_eq!(shown.len(), 1);
    let topic = door.get(&format!("/v1/topics/{EVENTS}")).await.json();
    let state = topic["state"].as_array().unwrap();
    let partition = state.iter().position(|it| it["end"] == 1).unwrap();
    let path = format!("/v1/topics/{EVENTS}/partitions/{partition}/follow");
    let mut events = door.events(&path).await;
    for number in 1..=50_u64 {
        if number > 1 {
            door.append_text("c-1", &number.to_string()).await;
        }
        let event = events.next().await;
        assert_eq!(event.id, (number - 1).to_string());
        assert_eq!(event.json()["value"]["message"]["seq"], number);
    }
    let erased = door
        .ask("DELETE", "/v1/conversations/c-1", &Value::Null)
        .await;
    assert!((200..300).contains(&erased.status), "{erased:?}");
    let event = events.next().await.json();
    assert_eq!(
        event["value"],
        json!({"event": "erased", "conversation": "default/default/c-1"})
    );
    // Its messages have offsets, and no records any more.
    assert_eq!(door.events_shown().await, [(50, event["value"].clone())]);
    let page = door.page(EVENTS, partition as u32, "from=7&limit=1").await;
    assert_eq!(
        (page["records"][0]["offset"].as_u64(), &page["next"]),
        (Some(50), &json!(51))
    );
}
