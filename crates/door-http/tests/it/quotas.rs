//! Quotas over HTTP: takes, settlements and policy changes.

mod append_charges;

use std::sync::Arc;

use access::Principal;
use door::{Gate, Pass, Refused, Role};
use journal::disk::simulated::{Call, Fault, Kind};
use serde_json::{Value, json};

use crate::{Answer, Door, client, serve_routes};

/// A bucket of 100 requests, a bucket of tokens, a budget, and slots.
pub(crate) fn limits() -> Value {
    json!([
        {"name": "agent", "match": "*/*/*", "unit": "requests", "capacity": 100, "refill": "10/s"},
        {"name": "tpm", "match": "*/*/*", "unit": "tokens", "capacity": 1000, "refill": "600/min"},
        {"name": "team", "match": "*/*", "unit": "usd_micros", "budget": 50, "every": "day", "warn": ["0.8"]},
        {"name": "session", "match": "*/*/*?run", "unit": "requests", "budget": 3, "every": "never"},
        {"name": "slots", "match": "*/*/*", "unit": "concurrency", "capacity": 2},
    ])
}

/// A door whose node keeps its quotas.
pub(crate) async fn open_durable() -> Door {
    Door::open().await
}

async fn open() -> Door {
    let door = open_durable().await;
    put(&door, limits()).await;
    door
}

async fn put(door: &Door, limits: Value) {
    let body = json!({"limits": limits, "reason": "a test"});
    let answer = door.ask("PUT", "/v1/policies", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn take(door: &Door, cost: Value) -> Answer {
    let body = json!({"subject": "acme/research/bot", "cost": cost});
    door.ask("POST", "/v1/take", &body).await
}

async fn remaining(door: &Door, limit: &str) -> Value {
    let seen = door.get("/v1/quota/acme/research/bot").await.json();
    let limits = seen["limits"].as_array().unwrap().clone();
    let found = limits.into_iter().find(|it| it["name"] == limit);
    found.unwrap()["remaining"].clone()
}

#[tokio::test]
async fn a_take_reports_remaining_quota_and_a_denial_when_to_retry() {
    let door = open().await;
    let answer = take(&door, json!({"requests": 60, "tokens": 10})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.text(),
        r#"{"allowed":true,"limits":[{"name":"agent","unit":"requests","remaining":40,"capacity":100,"reset_ms":6000},{"name":"tpm","unit":"tokens","remaining":990,"capacity":1000,"reset_ms":1000}]}"#
    );
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"agent\";q=100;w=10")
    );
    assert_eq!(answer.header("ratelimit"), Some("\"agent\";r=40;t=6"));
    let denied = take(&door, json!(52)).await;
    denied.problem(429, "throttled");
    assert_eq!(denied.header("retry-after"), Some("2"));
    assert_eq!(denied.header("ratelimit"), Some("\"agent\";r=40;t=2"));
    let json = denied.json();
    assert_eq!(json["violated-policies"], json!(["agent"]));
    assert_eq!((&json["have"], &json["need"]), (&json!(40), &json!(52)));
    assert_eq!(json["retry_ms"], 1200);
    assert_eq!(json["would_pass"], json!({"requests": 40}));
    assert_eq!(
        json["type"],
        "https://iana.org/assignments/http-problem-types#quota-exceeded"
    );
    // Nothing was taken, and the reported retry time is exact.
    door.pass_ms(1_199);
    assert_eq!(take(&door, json!(52)).await.status, 429);
    door.pass_ms(1);
    assert_eq!(take(&door, json!(52)).await.status, 200);
}

#[tokio::test]
async fn a_spent_budget_is_403_and_a_cost_above_capacity_400() {
    let door = open().await;
    let spent = take(&door, json!({"usd_micros": 50})).await;
    assert_eq!(spent.status, 200, "{}", spent.text());
    take(&door, json!({"usd_micros": 1}))
        .await
        .problem(403, "denied");
    let above = take(&door, json!(101)).await;
    let detail = above.problem(400, "invalid_argument");
    assert_eq!(detail, "101 exceeds the capacity (100)");
    assert_eq!(above.header("retry-after"), None);
    assert_eq!(
        (&above.json()["limit"], &above.json()["capacity"]),
        (&json!("agent"), &json!(100))
    );
    // In a run there is a budget more.
    let in_run = json!({"subject": "acme/research/bot", "run": "7", "cost": 3});
    assert_eq!(door.ask("POST", "/v1/take", &in_run).await.status, 200);
    let again = json!({"subject": "acme/research/bot?run=7"});
    let denied = door.ask("POST", "/v1/take", &again).await;
    denied.problem(403, "denied");
    assert_eq!(
        (&denied.json()["limit"], &denied.json()["retry_ms"]),
        (&json!("session"), &Value::Null)
    );
}

#[tokio::test]
async fn an_invalid_take_is_refused_with_the_reason_and_takes_nothing() {
    let door = open().await;
    for (body, expected) in [
        ("", "malformed JSON"),
        ("{", "malformed JSON"),
        ("[]", "1 to 1024"),
        (r#"{"subject":7}"#, "`subject`"),
        (r#"{"subject":"acme/bot"}"#, "it has 2 parts"),
        (r#"{"subject":"a/b/*"}"#, "a part of a subject"),
        (r#"{"subject":"a/b/c?x=1"}"#, "`subject`"),
        (r#"{"subject":"a/b/c","cots":1}"#, "is `cost` meant?"),
        (
            r#"{"subject":"a/b/c","cost":0}"#,
            "every cost of the take is 0",
        ),
        (r#"{"subject":"a/b/c","cost":-1}"#, "`cost`"),
        (r#"{"subject":"a/b/c","cost":1.5}"#, "`cost`"),
        (
            r#"{"subject":"a/b/c","cost":{"tokens":"1"}}"#,
            "`cost`: `tokens`: invalid type: string \"1\", expected a whole number from 0",
        ),
        (
            r#"{"subject":"a/b/c","cost":9007199254740993}"#,
            "exceeds the maximum",
        ),
        (
            r#"{"subject":"a/b/c","cost":{"gpu":1}}"#,
            "no limit counts `gpu`",
        ),
        (r#"{"subject":"a/b/c","hold":"long"}"#, "`hold`"),
        (
            r#"{"subject":"a/b/c","hold":"48h"}"#,
            "a hold of 172800s is longer than quota.hold_max (86400s)",
        ),
        (
            r#"{"subject":"a/b/c","hold":"0s"}"#,
            "a hold of 0s is too short",
        ),
        ("7", "expected an object"),
        (r#"{"subject":"a/b/c","wait":"1h"}"#, "at most 10m"),
        (r#"{"subject":"a/b/c?run=1","run":"2"}"#, "`run`"),
        (
            r#"{"subject":"a/b/c","cost":{"concurrency":1}}"#,
            "take it with a hold",
        ),
        (r#"{"subject":"a/b/c","id":""}"#, "1 to 255 bytes"),
        (r#"[{"subject":"a/b/c"},{"subject":"a/b"}]"#, "take 1: "),
        (
            r#"[{"subject":"a/b/c","wait":"1s"}]"#,
            "only a single take can wait",
        ),
    ] {
        let headers = [("content-type", "application/json")];
        let answer = door
            .ask_with("POST", "/v1/take", &headers, body.as_bytes())
            .await;
        let detail = answer.problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{body}: {detail}");
        // Hyper's part of the door says the same.
        let chunked = [headers[0], ("transfer-encoding", "chunked")];
        let bytes = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let bytes = if body.is_empty() {
            "0\r\n\r\n".to_owned()
        } else {
            bytes
        };
        let behind = door
            .ask_with("POST", "/v1/take", &chunked, bytes.as_bytes())
            .await;
        assert_eq!(
            (behind.status, behind.json()),
            (400, answer.json()),
            "{body}"
        );
    }
    let seen = door.get("/v1/quota/a/b/c").await.json();
    assert_eq!(seen["limits"][0]["remaining"], 100);
}

#[tokio::test]
async fn many_takes_are_answered_in_order() {
    let door = open().await;
    let takes: Vec<_> = [60, 60, 500, 40]
        .iter()
        .map(|cost| json!({"subject": "acme/research/bot", "cost": cost}))
        .collect();
    let answer = door.ask("POST", "/v1/take", &json!(takes)).await;
    assert_eq!(answer.status, 200);
    let answers = answer.json();
    let status = |index: usize| answers[index]["status"].as_u64();
    assert_eq!(answers[0]["allowed"], true);
    assert_eq!((status(1), status(2)), (Some(429), Some(400)));
    assert_eq!(answers[3]["limits"][0]["remaining"], 0);
    let many: Vec<_> = (0..1_025).map(|_| json!({"subject": "a/b/c"})).collect();
    let answer = door.ask("POST", "/v1/take", &json!(many)).await;
    answer.problem(400, "invalid_argument");
}

#[tokio::test]
async fn hold_settles_once_and_repeated_take_id_takes_once_over_http() {
    let door = open().await;
    let body = json!({"subject": "acme/research/bot", "cost": {"tokens": 800, "concurrency": 1},
        "hold": "90s", "id": "call-1"});
    let first = door.ask("POST", "/v1/take", &body).await.json();
    let again = door.ask("POST", "/v1/take", &body).await.json();
    assert_eq!(
        (&again["repeated"], &again["hold"]),
        (&json!(true), &first["hold"])
    );
    assert_eq!(remaining(&door, "tpm").await, 200);
    assert_eq!(first["hold"].as_str().unwrap().len(), 32);
    let ends_ms = first["hold_ends_ms"].as_u64().unwrap();
    assert!((1..=90_000).contains(&ends_ms), "{ends_ms}");
    let other = json!({"subject": "acme/research/bot", "cost": {"tokens": 1}, "id": "call-1"});
    let reused = door.ask("POST", "/v1/take", &other).await;
    let detail = reused.problem(409, "id_reused");
    assert!(detail.contains("different costs"), "{detail}");
    let settle = json!({"hold": first["hold"], "cost": {"tokens": 300}});
    let settled = door.ask("POST", "/v1/settle", &settle).await;
    assert_eq!(settled.json()["settled"], true, "{}", settled.text());
    assert_eq!(remaining(&door, "tpm").await, 700);
    assert_eq!(remaining(&door, "slots").await, 2);
    let settled = door.ask("POST", "/v1/settle", &settle).await;
    assert_eq!(settled.json(), json!({"settled": false}));
    for (hold, cost) in [
        ("x", json!(1)),
        ("00000000000000zz", json!({})),
        ("", json!(1)),
    ] {
        let answer = door
            .ask("POST", "/v1/settle", &json!({"hold": hold, "cost": cost}))
            .await;
        answer.problem(400, "invalid_argument");
    }
}

#[tokio::test]
async fn a_take_waits_until_a_hold_is_settled() {
    let door = open().await;
    let slots = json!({"subject": "acme/research/bot", "cost": {"concurrency": 2}, "hold": "90s"});
    let held = door.ask("POST", "/v1/take", &slots).await.json();
    let mut waiting = slots.clone();
    waiting["wait"] = json!("5m");
    let parked = async { door.ask("POST", "/v1/take", &waiting).await };
    let settle = async {
        // Nobody overtakes who waits: a take that does not is told of him by being denied first.
        let body = json!({"hold": held["hold"], "cost": {}});
        while door.node.quotas().waiting_count() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(door.ask("POST", "/v1/settle", &body).await.status, 200);
    };
    let (answer, ()) = tokio::join!(parked, settle);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(remaining(&door, "slots").await, 0);
}

#[tokio::test]
async fn policy_changes_apply_at_once_and_are_audited() {
    let door = open().await;
    let seen = door.get("/v1/policies").await;
    assert_eq!(seen.header("etag"), Some("\"1\""));
    assert_eq!(seen.json()["limits"][0]["refill"], "10/s");
    let body = json!({"limits": limits(), "reason": "again"});
    let headers = [("content-type", "application/json"), ("if-match", "\"7\"")];
    let conflict = door
        .ask_with("PUT", "/v1/policies", &headers, body.to_string().as_bytes())
        .await;
    conflict.problem(412, "conflict");
    assert_eq!(conflict.json()["version"], 1);
    let wrong = json!({"limits": [
        {"name": "a", "match": "a//b", "unit": "requests", "capacity": 1, "refill": "1/s"},
        {"name": "b", "match": "*", "unit": "Req", "capacity": 1, "refill": "x"}], "reason": ""});
    let wrong = door.ask("PUT", "/v1/policies", &wrong).await;
    wrong.problem(400, "invalid_argument");
    assert_eq!(wrong.json()["mistakes"].as_array().map(Vec::len), Some(3));

    let put = json!({"limit": "agent", "prefix": "acme/research/bot", "capacity": 500, "for": "1h",
        "reason": "a demo"});
    assert_eq!(door.ask("PUT", "/v1/overrides", &put).await.status, 200);
    assert_eq!(remaining(&door, "agent").await, 500);
    let listed = door.get("/v1/overrides").await.json();
    assert_eq!(listed["overrides"][0]["prefix"], "acme/research/bot");
    let query = "limit=agent&prefix=acme/research/bot&reason=over";
    let path = format!("/v1/overrides?{query}");
    assert_eq!(door.ask("DELETE", &path, &Value::Null).await.status, 200);
    door.ask("DELETE", &path, &Value::Null)
        .await
        .problem(404, "not_found");

    take(&door, json!(100)).await;
    let reset = json!({"subject": "acme/research/bot", "reason": "a bug"});
    assert_eq!(door.ask("POST", "/v1/reset", &reset).await.status, 200);
    assert_eq!(remaining(&door, "agent").await, 100);

    let factor = json!({"factor": 0.5, "for": "10m", "reason": "the provider is slow"});
    assert_eq!(
        door.ask("PUT", "/v1/factors/agent", &factor).await.status,
        200
    );
    assert_eq!(
        door.get("/v1/policies").await.json()["limits"][0]["factor_now"],
        "1/2"
    );
    door.ask("PUT", "/v1/factors/nobody", &factor)
        .await
        .problem(404, "not_found");

    let halt = json!({"prefix": "acme/research", "reason": "it loops"});
    assert_eq!(door.ask("POST", "/v1/halt", &halt).await.status, 200);
    let halted = take(&door, json!(1)).await;
    assert!(halted.problem(403, "denied").contains("it loops"));
    assert_eq!(
        door.get("/v1/halts").await.json()["halts"]["acme/research"]["reason"],
        "it loops"
    );
    assert_eq!(door.ask("POST", "/v1/resume", &halt).await.status, 200);
    assert_eq!(take(&door, json!(1)).await.status, 200);

    let audit = door.get("/v1/audit").await.json();
    let changes = audit["changes"].as_array().unwrap();
    let what: Vec<_> = changes
        .iter()
        .map(|it| it["what"].as_str().unwrap().split(' ').next().unwrap())
        .collect();
    let expected = [
        "policies",
        "override",
        "override-cleared",
        "reset",
        "factor",
        "halt",
        "resume",
    ];
    assert_eq!(what, expected);
    assert_eq!(changes[3]["reason"], "a bug");
    let rest = door.get("/v1/audit?from=5&count=1").await.json();
    assert_eq!(
        (&rest["changes"][0]["number"], &rest["next"]),
        (&json!(5), &json!(6))
    );
}

#[tokio::test]
async fn changes_to_an_unknown_limit_are_refused_and_not_audited() {
    let door = open().await;
    let version = door.get("/v1/policies").await.json()["version"].clone();
    let audited = door.get("/v1/audit").await.json();
    let change = json!({"limit": "none", "prefix": "a/b/c", "capacity": 1, "reason": "x"});
    let reset = json!({"limit": "none", "prefix": "a/b/c", "reason": "x"});
    let factor = json!({"factor": 0.5, "reason": "x"});
    let delete = "/v1/overrides?limit=none&prefix=a/b/c&reason=x";
    for (method, path, body) in [
        ("PUT", "/v1/factors/none", &factor),
        ("PUT", "/v1/overrides", &change),
        ("POST", "/v1/reset", &reset),
        ("DELETE", delete, &Value::Null),
    ] {
        let answer = door.ask(method, path, body).await;
        let detail = answer.problem(404, "not_found");
        assert_eq!(detail, "there is no limit `none`", "{method} {path}");
    }
    // Nor is a bucket that a limit does not have.
    let foreign = json!({"limit": "team", "prefix": "a/b/c", "capacity": 1, "reason": "x"});
    let answer = door.ask("PUT", "/v1/overrides", &foreign).await;
    let detail = answer.problem(400, "invalid_argument");
    assert!(detail.contains("its pattern is `*/*`"), "{detail}");
    assert_eq!(door.get("/v1/policies").await.json()["version"], version);
    assert_eq!(door.get("/v1/audit").await.json(), audited);
}

#[tokio::test]
async fn quota_events_are_watched_and_resumed_by_last_event_id() {
    let door = open().await;
    let mut events = door.events("/v1/watch").await;
    take(&door, json!({"usd_micros": 45})).await;
    let warned = events.next().await;
    assert_eq!(warned.kind, "threshold");
    assert_eq!(
        (&warned.json()["limit"], &warned.json()["share"]),
        (&json!("team"), &json!(0.8))
    );
    take(&door, json!({"usd_micros": 45})).await;
    let denied = events.next().await;
    assert_eq!(
        (denied.kind.as_str(), &denied.json()["about"]),
        ("denied", &json!("acme/research/bot"))
    );
    let headers = [("last-event-id", warned.id.as_str())];
    let mut later = client::Events::open(door.address, "/v1/watch", &headers).await;
    assert_eq!(later.next().await, denied);
    let top = door.get("/v1/top?by=denied&count=5").await.json();
    assert_eq!(
        top["rows"],
        json!([{"name": "acme/research/bot", "limit": null, "count": 1}])
    );
    let top = door.get("/v1/top?by=taken").await.json();
    assert_eq!(
        top["rows"][0],
        json!({"name": "acme/research", "limit": "team", "count": 45})
    );
}

#[tokio::test]
async fn outcomes_of_takes_are_counted_in_metrics() {
    let door = open().await;
    let slot = json!({"subject": "acme/research/bot", "cost": {"concurrency": 1}, "hold": "90s"});
    door.ask("POST", "/v1/take", &slot).await;
    for cost in [100, 1, 101] {
        take(&door, json!(cost)).await;
    }
    let halt = json!({"prefix": "acme", "reason": "x"});
    door.ask("POST", "/v1/halt", &halt).await;
    take(&door, json!(1)).await;
    let metrics = door.get("/metrics").await;
    for line in [
        "telpher_quota_takes_total{outcome=\"admitted\"} 2",
        "telpher_quota_takes_total{outcome=\"denied\"} 1",
        "telpher_quota_takes_total{outcome=\"refused\"} 1",
        "telpher_quota_takes_total{outcome=\"halted\"} 1",
        "telpher_quota_admitted_total{limit=\"agent\"} 1",
        "telpher_quota_admitted_total{limit=\"slots\"} 1",
        "telpher_quota_admitted_total{limit=\"tpm\"} 0",
        "telpher_quota_denied_total{limit=\"agent\"} 1",
        "telpher_quota_denied_total{limit=\"tpm\"} 0",
        "telpher_quota_buckets_evicted_total 0",
        "telpher_quota_buckets_refused_total 0",
        "telpher_quota_buckets 2",
        "telpher_quota_holds 1",
        "telpher_quota_waiting 0",
    ] {
        assert!(metrics.text().lines().any(|it| it == line), "{line}");
    }
}

#[tokio::test]
async fn a_removed_limit_has_no_label_but_total_denials_stay_counted() {
    let door = open().await;
    for cost in [100, 1] {
        take(&door, json!(cost)).await;
    }
    put(&door, json!([])).await;
    let metrics = door.get("/metrics").await;
    let denied = "telpher_quota_takes_total{outcome=\"denied\"} 1";
    assert!(metrics.text().lines().any(|line| line == denied));
    assert!(!metrics.text().contains("limit=\"agent\""));
    // One that comes back begins anew.
    put(&door, limits()).await;
    let metrics = door.get("/metrics").await;
    let begun = "telpher_quota_denied_total{limit=\"agent\"} 0";
    assert!(metrics.text().lines().any(|line| line == begun));
}

#[tokio::test]
async fn evicted_and_refused_buckets_are_counted_in_metrics() {
    let options = quota_service::Options {
        subjects_max: 64,
        ..quota_service::Options::default()
    };
    let quotas = node::QuotaParts {
        options,
        ..node::QuotaParts::default()
    };
    let door = Door::with_quotas(quotas).await;
    let agent = json!([
        {"name": "agent", "match": "*/*/*", "unit": "requests", "capacity": 1000, "refill": "1/s"},
    ]);
    put(&door, agent).await;
    let take_all = async |of: std::ops::Range<u32>| {
        for number in of {
            let body = json!({"subject": format!("acme/research/bot-{number}")});
            assert_eq!(door.ask("POST", "/v1/take", &body).await.status, 200);
        }
    };
    let counted = async || {
        let metrics = door.get("/metrics").await;
        ["buckets", "buckets_evicted_total", "buckets_refused_total"].map(|name| {
            let name = format!("telpher_quota_{name} ");
            let line = metrics.text().lines().find(|line| line.starts_with(&name));
            line.unwrap()[name.len()..].parse::<u64>().unwrap()
        })
    };
    take_all(0..200).await;
    let [buckets, evicted, refused] = counted().await;
    // One is shared, and who has none of its own takes from that.
    assert_eq!((buckets - 1 + refused, evicted), (200, 0));
    assert!(buckets <= 65 && refused > 0);
    // What is full again and on its way to the disk makes room.
    door.pass_ms(1_000_000);
    door.node.quotas().flush_all();
    take_all(200..400).await;
    let [_, evicted, _] = counted().await;
    assert!(evicted > 0);
}

#[tokio::test]
async fn usage_is_listed_by_day_subject_and_limit() {
    let door = open().await;
    take(&door, json!({"requests": 60, "usd_micros": 7})).await;
    door.pass_ms(1_000);
    let other = json!({"subject": "acme/sales/bot?run=7", "cost": {"requests": 2}});
    assert_eq!(door.ask("POST", "/v1/take", &other).await.status, 200);
    let usage = async |query: &str| door.get(&format!("/v1/usage{query}")).await.json();
    let all = usage("").await;
    let (from, day) = (&all["from"], &all["to"]);
    let row = |limit: &str, unit: &str, subject: &str, amount: u64| {
        json!({"day": day, "limit": limit, "unit": unit, "subject": subject, "amount": amount,
               "takes": 1})
    };
    let rows = [
        row("agent", "requests", "acme/research/bot", 60),
        row("agent", "requests", "acme/sales/bot", 2),
        row("session", "requests", "acme/sales/bot", 2),
        row("team", "usd_micros", "acme/research/bot", 7),
    ];
    assert_eq!(
        all,
        json!({"from": from, "to": day, "by": "day", "rows": rows, "other_subjects": false})
    );
    // Pages give the same rows.
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = usage(&format!("?count=3{after}")).await;
        paged.extend(page["rows"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={}", next.replace(';', "%3B"));
    }
    assert_eq!(paged, rows);
    let selected = usage("?by=subject&limit=agent&subject=acme/sales").await;
    assert_eq!(
        selected["rows"],
        json!([{"limit": "agent", "unit": "requests", "subject": "acme/sales/bot", "amount": 2,
                "takes": 1}])
    );
    let by_limit = usage("?by=limit&limit=agent").await;
    assert_eq!(
        by_limit["rows"],
        json!([{"limit": "agent", "unit": "requests", "amount": 62, "takes": 2}])
    );
    for (query, expected) in [
        ("?from=yesterday", "`from` is `yesterday`: use a day like"),
        (
            "?from=2026-11-30&to=2026-11-29",
            "(2026-11-30) is after `to` (2026-11-29)",
        ),
        ("?count=0", "`count` is 0: use 1 to 10000"),
        ("?by=agent", "unknown variant `agent`"),
        ("?subject=a/b/c/d", "`subject`: invalid pattern"),
        (
            "?subject=*/*/*?run",
            "usage of runs counts as that of their agent",
        ),
        ("?after=x", "use `next` of the previous page"),
        ("?day=2026-11-30", "day"),
    ] {
        let refused = door.get(&format!("/v1/usage{query}")).await;
        let detail = refused.problem(400, "invalid_argument");
        assert!(detail.contains(expected), "{query}: {detail}");
    }
}

#[tokio::test]
async fn other_subjects_are_counted_together_and_the_answer_says_so() {
    let options = quota_service::Options {
        usage_rows_max: 1,
        ..quota_service::Options::default()
    };
    let quotas = node::QuotaParts {
        options,
        ..node::QuotaParts::default()
    };
    let door = Door::with_quotas(quotas).await;
    put(&door, limits()).await;
    for agent in ["a", "b", "c"] {
        let body = json!({"subject": format!("acme/x/{agent}"), "cost": 5});
        assert_eq!(door.ask("POST", "/v1/take", &body).await.status, 200);
        door.node.quotas().sweep();
    }
    let usage = door.get("/v1/usage?by=subject").await.json();
    assert_eq!(usage["other_subjects"], true);
    let row = |subject: Value, amount: u64, takes: u64| {
        json!({"limit": "agent", "unit": "requests", "subject": subject, "amount": amount,
               "takes": takes})
    };
    let expected = [row(Value::Null, 10, 2), row(json!("acme/x/a"), 5, 1)];
    assert_eq!(usage["rows"], json!(expected));
}

/// Knows an agent and an administrator.
pub(crate) struct TwoTokens;

impl Gate for TwoTokens {
    fn admit(&self, token: &str) -> Result<Pass, Refused> {
        let role = match token {
            "agent" => Role::Agent,
            "admin" => Role::Admin,
            "" => return Err(Refused::Missing),
            _ => return Err(Refused::Unknown),
        };
        Ok(Pass::new(Principal::anonymous(role)))
    }
}

#[tokio::test]
async fn only_an_administrator_changes_quotas() {
    let door = open().await;
    let routes = door_http::routes(
        door.node.clone(),
        Arc::new(TwoTokens),
        Arc::default(),
        &[],
        None,
    );
    let address = serve_routes(routes).await;
    let halt = json!({"prefix": "acme", "reason": "x"}).to_string();
    let take = json!({"subject": "a/b/c"}).to_string();
    let ask = async |path: &str, token: &str, body: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        client::ask(address, "POST", path, &headers, body.as_bytes())
            .await
            .status
    };
    assert_eq!(ask("/v1/take", "agent", &take).await, 200);
    assert_eq!(ask("/v1/take", "stranger", &take).await, 401);
    assert_eq!(
        client::ask(address, "POST", "/v1/take", &[], take.as_bytes())
            .await
            .status,
        401
    );
    for path in ["/v1/halt", "/v1/resume", "/v1/reset"] {
        assert_eq!(ask(path, "agent", &halt).await, 403, "{path}");
    }
    assert_eq!(ask("/v1/halt", "admin", &halt).await, 200);
    let local = door_http::Local::new(
        door.node.clone(),
        Arc::new(TwoTokens),
        Arc::default(),
        &[],
        None,
    );
    for (headers, status) in [
        (json!({}), 401),
        (json!({"authorization": "Bearer agent"}), 403),
        (json!({"authorization": "Bearer admin"}), 200),
    ] {
        let asked = json!({"method": "POST", "path": "/v1/resume", "headers": headers,
            "body": {"prefix": "acme", "reason": "x"}});
        let answer = local.ask(None, asked.to_string().as_bytes()).await;
        let head: Value = serde_json::from_slice(&answer.head()).unwrap();
        assert_eq!(head["status"], status);
    }
}

#[tokio::test]
async fn sync_takes_and_halts_are_refused_if_the_journal_fails() {
    let door = open_durable().await;
    put(
        &door,
        json!([{"name": "money", "match": "*/*/*", "unit": "usd_micros", "budget": 100,
        "every": "never", "durability": "sync"}]),
    )
    .await;
    let taken = take(&door, json!({"usd_micros": 1})).await;
    assert_eq!(taken.status, 200, "{}", taken.text());
    door.disk
        .fail_once(Fault::Broken, |call: &Call<'_>| call.kind == Kind::SyncData);
    take(&door, json!({"usd_micros": 1}))
        .await
        .problem(503, "unconfirmed");
    take(&door, json!({"usd_micros": 1}))
        .await
        .problem(503, "unavailable");
    let halt = json!({"prefix": "acme", "reason": "x"});
    let answer = door.ask("POST", "/v1/halt", &halt).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    // A change that could not be kept was not made.
    assert_eq!(door.get("/v1/halts").await.json()["halts"], json!({}));
}

#[tokio::test]
async fn appended_bytes_are_charged_to_the_client() {
    let door = open_durable().await;
    let limit = json!([{
        "name": "said", "match": "default/default/*", "unit": "appended_bytes", "capacity": 100, "refill": "10/s",
    }]);
    put(&door, limit).await;
    let path = "/v1/conversations/c-1/messages";
    let text_batch = crate::text_batch(&"x".repeat(40));
    assert_eq!(door.ask("POST", path, &text_batch).await.status, 201);
    let denied = door.ask("POST", path, &text_batch).await;
    denied.problem(429, "throttled");
    let retry_ms = denied.json()["retry_ms"].as_u64().unwrap();
    let retry_s = retry_ms.div_ceil(1_000).to_string();
    assert_eq!(denied.header("retry-after"), Some(&*retry_s));
    assert!((1_000..10_000).contains(&retry_ms), "{retry_ms}");
    // Nothing of it was done.
    let read = door.get(path).await.json();
    assert_eq!(read["messages"].as_array().unwrap().len(), 1, "{read}");
}

#[tokio::test]
async fn a_halted_client_may_read_but_not_delete() {
    let door = open().await;
    let halt = json!({"prefix": "default", "reason": "a test"});
    assert_eq!(door.ask("POST", "/v1/halt", &halt).await.status, 200);
    let paths = ["/v1/conversations/c", "/v1/topics/t"];
    for path in paths {
        let refused = door.ask_with("DELETE", path, &[], b"").await;
        let detail = refused.problem(403, "denied");
        assert_eq!(detail, "`default` is halted: a test", "{path}");
        assert_ne!(door.get(path).await.status, 403, "{path}");
    }
    assert_eq!(door.ask("POST", "/v1/resume", &halt).await.status, 200);
    for path in paths {
        let answer = door.ask_with("DELETE", path, &[], b"").await;
        assert_ne!(answer.status, 403, "{path}");
    }
}
