//! `telpher quota`: all commands.

use serde_json::{Value, json};

use crate::support::{Ended, Node, Place};

const LIMITS: &str = r#"
[[limit]]
name = "calls"
match = "*/*/*"
unit = "requests"
capacity = 100
refill = "1/h"
warn = ["0.5"]

[[limit]]
name = "spend"
match = "acme"
unit = "usd_micros"
budget = 1000
every = "never"
durability = "sync"
"#;

/// A node with limits, and a client.
struct Home {
    node: Node,
    client: Place,
    _place: Place,
}

impl Home {
    fn new() -> Self {
        let place = Place::new();
        place.write("telpher.toml", LIMITS);
        let node = place.serve("");
        let client = Place::new().with_variable("TELPHER_URL", node.url("native"));
        Self {
            node,
            client,
            _place: place,
        }
    }

    fn run(&self, words: &[&str]) -> Ended {
        self.client.run_words([&["quota"], words].concat())
    }

    /// Runs a command and returns its JSON output.
    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        self.run(&[words, &["--json"]].concat()).expect(0).json()
    }

    #[track_caller]
    fn remaining(&self, subject: &str) -> Value {
        self.json(&["peek", subject])["limits"][0]["remaining"].clone()
    }
}

#[test]
fn a_denied_take_exits_with_status_7() {
    let home = Home::new();
    let admitted = home.json(&["take", "acme/x/a", "40", "usd_micros=900"]);
    assert_eq!(admitted["allowed"], true);
    let remaining = |limit: &Value| limit["remaining"].clone();
    let limits = admitted["limits"].as_array().unwrap();
    let remaining: Vec<_> = limits.iter().map(remaining).collect();
    assert_eq!(remaining, [json!(60), json!(100)]);
    home.run(&["take", "acme/x/a", "61"]).expect(7).shows_error(
        "limit `calls` has 60 requests left, the take needs 61",
        "the take can pass after",
    );
    let denied = home.run(&["take", "acme/x/a", "usd_micros=101", "--json"]);
    let denied = denied.expect(7).json();
    assert_eq!(
        (&denied["allowed"], &denied["exhausted"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(denied["would_pass"], 100);
    assert_eq!(home.remaining("acme/x/a"), 60);
    assert_eq!(
        home.remaining("acme/x/a/i-1"),
        60,
        "an instance is its agent"
    );
    let told = home.run(&["peek", "acme/x/a"]).expect(0).stdout.clone();
    assert!(told.starts_with("LIMIT  LEFT"), "{told}");
    home.run(&["take", "acme/x/a", "101"])
        .expect(2)
        .shows_error("exceeds the capacity", "telpher quota --help");
    home.run(&["take", "nobody", "1"]).expect(2);
    home.run(&["take", "acme/x/a", "many"]).expect(2);
}

#[test]
fn a_hold_is_settled_and_an_id_repeats_nothing() {
    let home = Home::new();
    let take = ["take", "acme/x/a", "30", "--hold", "1m", "--id", "t-1"];
    let first = home.json(&take);
    let again = home.json(&take);
    assert_eq!(
        (&again["hold"], &again["repeat"]),
        (&first["hold"], &json!(true))
    );
    let hold = first["hold"].as_str().unwrap();
    assert_eq!(
        home.json(&["settle", hold, "requests=10"]),
        json!({ "settled": true })
    );
    assert_eq!(
        home.json(&["settle", hold, "requests=10"]),
        json!({ "settled": false })
    );
    assert_eq!(home.remaining("acme/x/a"), 90);
    let held = home.json(&["take", "acme/x/a", "30", "--hold", "1m"]);
    home.run(&["settle", held["hold"].as_str().unwrap(), "--cancel"])
        .expect(0);
    assert_eq!(home.remaining("acme/x/a"), 90);
    home.run(&["settle", "7"]).expect(2);
}

#[test]
fn limits_are_changed_while_the_node_runs() {
    let home = Home::new();
    let because = ["--reason", "a test"];
    let done = |words: &[&str]| home.json(&[words, &because].concat());
    done(&["set", "calls", "acme/x/a", "--capacity", "500"]);
    assert_eq!(home.remaining("acme/x/a"), 500);
    done(&["unset", "calls", "acme/x/a"]);
    assert_eq!(home.remaining("acme/x/a"), 100);
    done(&["set", "calls", "acme/x/b", "--grant", "25", "--for", "1h"]);
    assert_eq!(home.remaining("acme/x/b"), 125);
    home.json(&["take", "acme/x/a", "70"]);
    done(&["reset", "acme/x/a"]);
    assert_eq!(home.remaining("acme/x/a"), 100);
    done(&["halt", "acme/x"]);
    home.run(&["take", "acme/x/a", "1"])
        .expect(6)
        .shows_error("`acme/x` is halted: a test", "telpher quota resume");
    done(&["resume", "acme/x"]);
    home.json(&["take", "acme/x/a", "1"]);
    done(&["factor", "calls", "0.5", "--for", "10m"]);
    home.run(&["factor", "nothing", "0.5", "--reason", "a test"])
        .expect(3)
        .shows_error("nothing", "telpher quota policies");
    let mut policies = home.json(&["policies"]);
    assert_eq!(policies["limits"][0]["factor_now"], "1/2");
    policies["limits"][0]["capacity"] = json!(40);
    home.client.write("limits.json", &policies.to_string());
    done(&["policies", "--set", "limits.json"]);
    home.run(&[
        "policies",
        "--set",
        "limits.json",
        "--reason",
        "the same once more",
    ])
    .expect(1)
    .shows_error("conflict", "read them again");
    let now = home.json(&["policies"]);
    assert_eq!(now["limits"][0]["capacity"], 40);
    assert_eq!(home.remaining("acme/y/b"), 40);
    home.run(&["policies", "--set", "missing.json", "--reason", "a test"])
        .expect(2);
}

#[test]
fn watch_prints_denials_and_thresholds_as_they_happen() {
    let home = Home::new();
    let words = ["quota", "watch", "--json", "--limit", "2"];
    let mut watching = home.client.start(words);
    watching.wait_for_note("watching");
    home.json(&["take", "acme/x/a", "60"]);
    home.run(&["take", "acme/x/a", "60"]).expect(7);
    let mut event = || serde_json::from_str::<Value>(&watching.line()).unwrap();
    let crossed = event();
    assert_eq!(crossed["event"], "threshold");
    assert_eq!(crossed["data"]["limit"], "calls");
    let denied = event();
    assert_eq!(denied["event"], "denied");
    assert_eq!(denied["data"]["about"], "acme/x/a");
    watching.end().expect(0);
    let top = home.json(&["top", "--by", "denied"]);
    assert_eq!(top["rows"][0]["name"], "acme/x/a");
    assert_eq!(top["rows"][0]["count"], 1);
    let top = home.json(&["top"]);
    assert_eq!(top["rows"][0]["count"], 60);
    drop(home.node);
}

#[test]
fn usage_is_shown_by_day_subject_and_limit() {
    let home = Home::new();
    home.json(&["take", "acme/x/a", "40", "usd_micros=300"]);
    home.json(&["take", "acme/x/b", "5", "usd_micros=200"]);
    let held = home.json(&["take", "acme/x/b", "30", "--hold", "1m"]);
    home.json(&["settle", held["hold"].as_str().unwrap(), "requests=7"]);
    let row = |limit: &str, unit: &str, subject: &str, amount: u64, takes: u64| json!({"limit": limit, "unit": unit, "subject": subject, "amount": amount, "takes": takes});
    let rows = [
        row("calls", "requests", "acme/x/a", 40, 1),
        row("calls", "requests", "acme/x/b", 12, 2),
        row("spend", "usd_micros", "acme/x/a", 300, 1),
        row("spend", "usd_micros", "acme/x/b", 200, 1),
    ];
    let by_subject = home.json(&["usage", "--by", "subject"]);
    assert_eq!(by_subject["rows"], json!(rows));
    assert_eq!(by_subject["other_subjects"], false);
    let mut by_day = home.json(&["usage"]);
    let (to, mut days) = (by_day["to"].clone(), Vec::new());
    for row in by_day["rows"].as_array_mut().unwrap() {
        days.push(row.as_object_mut().unwrap().remove("day").unwrap());
    }
    assert_eq!(by_day["rows"], json!(rows));
    assert_eq!(days, vec![to; 4]);
    let told = home
        .run(&["usage", "--by", "limit"])
        .expect(0)
        .stdout
        .clone();
    let lines: Vec<_> = told
        .lines()
        .map(|it| it.split_whitespace().collect::<Vec<_>>())
        .collect();
    let expected: [&[&str]; 3] = [
        &["LIMIT", "UNIT", "AMOUNT", "TAKES"],
        &["calls", "requests", "52", "3"],
        &["spend", "usd_micros", "500", "2"],
    ];
    assert_eq!(lines, expected.map(<[_]>::to_vec));
    let words = [
        "usage",
        "--by",
        "subject",
        "--limit",
        "spend",
        "--subject",
        "acme/*/b",
        "--csv",
    ];
    assert_eq!(
        home.run(&words).expect(0).stdout,
        "limit,unit,subject,amount,takes\nspend,usd_micros,acme/x/b,200,1\n"
    );
    let empty = home
        .run(&["usage", "--to", "2026-01-31"])
        .expect(0)
        .stdout
        .clone();
    assert_eq!(empty, "no usage from 2026-01-02 to 2026-01-31\n");
    home.run(&["usage", "--from", "yesterday"])
        .expect(2)
        .shows_error("`from` is `yesterday`", "telpher quota --help");
    home.run(&["usage", "--csv", "--json"]).expect(2);
}

#[test]
fn administration_is_not_charged_and_works_during_a_halt() {
    let place = Place::new();
    place.write(
        "telpher.toml",
        "[[limit]]\nname = 'snd'\nmatch = '*/*/*'\nunit = 'sends'\ncapacity = 1\nrefill = '1/h'\n",
    );
    let node = place.serve("");
    let client = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let looks = [
        "agents",
        "connections",
        "streams",
        "mailbox list",
        "quota policies",
        "topic list",
    ];
    for look in looks {
        client.run(look).expect(0);
    }
    // None of these used the only send that the limit allows.
    client.run("send acme/x/nobody hi").expect(3);
    client
        .run("send acme/x/nobody hi")
        .expect(7)
        .shows_error("is over limit `snd`", "");
    client.run("quota halt default --reason test").expect(0);
    for look in looks {
        client.run(look).expect(0);
    }
    client
        .run("send acme/x/nobody hi")
        .expect(6)
        .shows_error("`default` is halted: test", "");
    client.run("quota resume default --reason test").expect(0);
    client
        .run("quota reset default/default/anonymous --reason test")
        .expect(0);
    client.run("send acme/x/nobody hi").expect(3);
    node.stop().expect(0);
}
