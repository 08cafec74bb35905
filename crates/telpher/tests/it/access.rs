//! Authorization by the names of a token: claims, subscriptions, takes, mailboxes and deletion.

use serde_json::{Value, json};

use crate::support::{Ended, Node, Place, eventually};

/// A node with tokens, and a directory for each of their bearers.
struct Home {
    place: Place,
    node: Node,
}

/// The bearer of a token.
struct Bearer {
    place: Place,
    token: String,
}

impl Bearer {
    fn run(&self, line: &str) -> Ended {
        self.place.run(line)
    }

    #[track_caller]
    fn denied(&self, line: &str, error: &str) {
        self.run(line)
            .expect(6)
            .shows_error(error, "telpher token bind");
    }
}

impl Home {
    fn new() -> Self {
        Self::with("")
    }

    fn with(config: &str) -> Self {
        let place = Place::new();
        place.write("telpher.toml", config);
        place.run("token add ops --role admin").expect(0);
        let node = place.serve("");
        Self { place, node }
    }

    fn bearer(&self, words: &str) -> Bearer {
        let added = self.place.run(&format!("token add {words}"));
        let token = added.expect(0).stdout.trim().to_owned();
        eventually("the token is known", || {
            self.node.get("/v1/agents", Some(&token)).0 == 200
        });
        let place = Place::new().with_variable("TELPHER_URL", self.node.url("native"));
        let place = place.with_variable("TELPHER_TOKEN", &token);
        Bearer { place, token }
    }

    fn admin(&self) -> Bearer {
        self.bearer("root --role admin")
    }

    /// Sends an HTTP request; returns the status and the body.
    fn ask(&self, bearer: &Bearer, method: &str, path: &str, body: Option<Value>) -> (u16, String) {
        let url = format!("{}{path}", self.node.url("http"));
        let mut script = format!(
            "curl -sS -w '\\n%{{http_code}}' -X {method} -H 'Authorization: Bearer {}' '{url}'",
            bearer.token
        );
        if let Some(body) = body {
            script += &format!(" -H 'Content-Type: application/json' -d '{body}'");
        }
        let done = self.place.shell(&script);
        let (body, status) = done.expect(0).stdout.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }
}

#[test]
fn a_claimed_name_must_match_the_patterns_of_the_token() {
    let home = Home::new();
    let mallory = home.bearer("mallory");
    let pay = home.bearer("pay --for acme/pay/*");
    let free = home.bearer("free --for */*/*");
    let reason = "the token `mallory` may not use the name `acme/x/one`";
    mallory.denied("write acme/box/a hi --name acme/x/one", reason);
    let reason = "(allowed: acme/pay/*)";
    pay.denied("write acme/box/a hi --name default/default/pay", reason);
    let reason = "names of `telpher/` belong to the node itself";
    free.denied("write acme/box/a hi --name telpher/system/node", reason);

    mallory.run("write acme/box/a hi").expect(0);
    mallory.run("write acme/box/a hi --name mallory").expect(0);
    pay.run("write acme/box/a hi").expect(0);
    pay.run("write acme/box/a hi --name acme/pay/one").expect(0);
    free.run("write acme/box/a hi --name acme/x/one").expect(0);
    // Receivers see the proven name.
    let peeked = free.run("mailbox peek acme/box/a --json").expect(0).json();
    let senders: Vec<_> = peeked["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["sender"].as_str().unwrap())
        .collect();
    let expected = [
        "default/default/mallory",
        "default/default/mallory",
        "acme/pay/pay",
        "acme/pay/one",
        "acme/x/one",
    ];
    assert_eq!(senders, expected);
}

#[test]
fn without_tokens_any_name_but_the_nodes_own_may_be_claimed() {
    let place = Place::new();
    let node = place.serve("");
    let client = Place::new().with_variable("TELPHER_URL", node.url("native"));
    client
        .run("write acme/box/a hi --name acme/x/one")
        .expect(0);
    client.run("mailbox purge acme/box/a").expect(0);
    client
        .run("write acme/box/a hi --name telpher/system/node")
        .expect(6)
        .shows_error("names of `telpher/` belong to the node itself", "");
}

#[test]
fn mailboxes_and_subscriptions_require_a_token_for_their_name() {
    let home = Home::new();
    let mallory = home.bearer("mallory");
    let pay = home.bearer("pay --for acme/pay/*");
    let admin = home.admin();
    mallory.run("write acme/pay/box hi").expect(0);
    let reason = "may not use the name `acme/pay/box`";
    for line in [
        "listen acme/pay/box",
        "mailbox peek acme/pay/box",
        "mailbox purge acme/pay/box",
        "mailbox retry acme/pay/box 0",
        "mailbox ack acme/pay/box 0",
    ] {
        mallory.denied(line, reason);
    }
    mallory.run("mailbox list").expect(0);
    for bearer in [&pay, &admin] {
        let peeked = bearer
            .run("mailbox peek acme/pay/box --json")
            .expect(0)
            .json();
        assert_eq!(peeked["messages"].as_array().unwrap().len(), 1);
    }
    let purged = pay
        .run("mailbox purge acme/pay/box")
        .expect(0)
        .stdout
        .clone();
    assert_eq!(purged, "removed 1\n");
    pay.place.listen(["acme/pay/box"]);
    mallory.place.listen(["mallory"]);
}

#[test]
fn conversations_topics_and_webhooks_are_deleted_under_their_name() {
    let home = Home::new();
    let mallory = home.bearer("mallory");
    let pay = home.bearer("pay --for acme/pay/* --for default/default/orders");
    let admin = home.admin();
    let said = json!({"messages": [{"role": "user", "content": "hi"}]});
    for id in ["one", "two"] {
        let path = format!("/v1/acme/pay/conversations/{id}/messages");
        assert_eq!(home.ask(&mallory, "POST", &path, Some(said.clone())).0, 201);
    }
    for topic in ["orders", "others"] {
        let topic = json!({"name": topic, "partitions": 1});
        assert_eq!(home.ask(&mallory, "POST", "/v1/topics", Some(topic)).0, 201);
    }
    let delete = |bearer: &Bearer, path: &str| home.ask(bearer, "DELETE", path, None);
    let one = "/v1/acme/pay/conversations/one";
    for path in [one, "/v1/topics/orders", "/v1/acme/pay/agents/bot"] {
        let (status, body) = delete(&mallory, path);
        assert_eq!(status, 403, "{path}: {body}");
        assert!(body.contains("may not use the name"), "{body}");
    }
    let settings = json!({"url": "http://127.0.0.1:9/"});
    let agent = "/v1/acme/pay/agents/bot";
    assert_eq!(
        home.ask(&mallory, "PUT", agent, Some(settings.clone())).0,
        403
    );
    assert_eq!(home.ask(&pay, "PUT", agent, Some(settings)).0, 201);
    let change = json!({"configs": {"retention.ms": 1}});
    let topic = "/v1/topics/orders";
    assert_eq!(
        home.ask(&mallory, "PATCH", topic, Some(change.clone())).0,
        403
    );
    assert_eq!(home.ask(&pay, "PATCH", topic, Some(change)).0, 200);
    assert_eq!(delete(&pay, one).0, 204);
    assert_eq!(delete(&pay, topic).0, 204);
    assert_eq!(delete(&pay, agent).0, 204);
    assert_eq!(delete(&pay, "/v1/topics/others").0, 403);
    assert_eq!(delete(&admin, "/v1/topics/others").0, 204);
    // The command line uses the same routes over the native protocol.
    mallory.run("conversation delete acme/pay/two").expect(6);
    admin.run("conversation delete acme/pay/two").expect(0);
}

const LIMIT: &str = "[[limit]]\nname = \"said\"\nmatch = \"*/*/*\"\nunit = \"appended_bytes\"\n\
                     capacity = 1000\nrefill = \"1/h\"\n\
                     [[limit]]\nname = \"calls\"\nmatch = \"*/*/*\"\nunit = \"requests\"\n\
                     capacity = 10\nrefill = \"1/h\"\n";

#[test]
fn quota_is_taken_for_the_names_of_the_token_only() {
    let home = Home::with(LIMIT);
    let mallory = home.bearer("mallory");
    let pay = home.bearer("pay --for acme/pay/*");
    let take = |bearer: &Bearer, subject: &str| {
        let take = json!({"subject": subject, "cost": 1});
        home.ask(bearer, "POST", "/v1/take", Some(take)).0
    };
    assert_eq!(take(&mallory, "default/default/mallory"), 200);
    assert_eq!(take(&mallory, "default/default/victim"), 403);
    assert_eq!(take(&pay, "acme/pay/one"), 200);
    assert_eq!(take(&pay, "acme/pays/one"), 403);
    let many = json!([
        {"subject": "acme/pay/two", "cost": 1},
        {"subject": "acme/x/two", "cost": 1},
    ]);
    assert_eq!(home.ask(&pay, "POST", "/v1/take", Some(many)).0, 403);
    assert_eq!(take(&home.admin(), "default/default/victim"), 200);
    pay.run("quota take acme/pay/one 1").expect(0);
    pay.run("quota take acme/x/one 1")
        .expect(6)
        .shows_error("may not use the name `acme/x/one`", "");
    let left = home.ask(&pay, "GET", "/v1/quota/acme/pay/two", None).1;
    let left: Value = serde_json::from_str(&left).unwrap();
    assert_eq!(
        left["limits"][1]["remaining"], 10,
        "nothing of it was taken: {left}"
    );
}

#[test]
fn a_token_sees_the_usage_of_its_own_names() {
    let home = Home::with(LIMIT);
    let mallory = home.bearer("mallory");
    let pay = home.bearer("pay --for acme/pay/*");
    let free = home.bearer("free --for */*/*");
    let admin = home.admin();
    for subject in ["acme/pay/one", "default/default/mallory"] {
        let take = json!({"subject": subject, "cost": 1});
        assert_eq!(home.ask(&admin, "POST", "/v1/take", Some(take)).0, 200);
    }
    let seen = |bearer: &Bearer, query: &str| {
        let (status, usage) = home.ask(bearer, "GET", &format!("/v1/usage{query}"), None);
        assert_eq!(status, 200, "{usage}");
        let usage: Value = serde_json::from_str(&usage).unwrap();
        let rows = usage["rows"].as_array().unwrap().iter();
        rows.filter(|row| row["unit"] == "requests")
            .map(|row| (row["subject"].clone(), row["amount"].clone()))
            .collect::<Vec<_>>()
    };
    let row = |subject: &str| (json!(subject), json!(1));
    let all = [row("acme/pay/one"), row("default/default/mallory")];
    assert_eq!(seen(&admin, ""), all);
    assert_eq!(seen(&free, ""), all);
    assert_eq!(seen(&pay, ""), all[..1]);
    assert_eq!(seen(&mallory, ""), all[1..]);
    assert_eq!(seen(&pay, "?subject=default/default/mallory"), []);
    assert_eq!(seen(&pay, "?by=limit"), [(Value::Null, json!(1))]);
    let shown = pay.run("quota usage --json").expect(0).json();
    assert_eq!(shown["rows"].as_array().unwrap().len(), 1, "{shown}");
    let (status, _) = home.node.get("/v1/usage", None);
    assert_eq!(status, 401);
}

#[test]
fn http_requests_over_native_are_charged_to_the_callers_name() {
    let home = Home::with(LIMIT);
    let mallory = home.bearer("mallory");
    let admin = home.admin();
    let left = |subject: &str| {
        let (_, seen) = home.ask(&admin, "GET", &format!("/v1/quota/{subject}"), None);
        let seen: Value = serde_json::from_str(&seen).unwrap();
        seen["limits"][0]["remaining"].as_u64().unwrap()
    };
    let said = json!({"messages": [{"role": "user", "content": "hello"}]});
    let path = "/v1/conversations/c-1/messages";
    assert_eq!(home.ask(&mallory, "POST", path, Some(said)).0, 201);
    let cost = 1_000 - left("default/default/mallory");
    assert!(cost > 0);
    mallory.run("conversation append c-1 hello").expect(0);
    assert_eq!(left("default/default/mallory"), 1_000 - 2 * cost);
    assert_eq!(left("default/default/anonymous"), 1_000);
}

#[test]
fn a_halt_of_a_name_blocks_its_token_on_every_protocol() {
    let home = Home::with(LIMIT);
    let pay = home.bearer("pay --for acme/pay/*");
    let admin = home.admin();
    admin.run("quota halt acme/pay --reason loops").expect(0);
    let said = json!({"messages": [{"role": "user", "content": "hello"}]});
    let path = "/v1/conversations/c-1/messages";
    let (status, body) = home.ask(&pay, "POST", path, Some(said.clone()));
    assert_eq!((status, body.contains("halted")), (403, true), "{body}");
    pay.run("write acme/box/a hi").expect(6);
    pay.run("write acme/box/a hi --name acme/pay/two").expect(6);
    admin.run("quota resume acme/pay --reason mended").expect(0);
    assert_eq!(home.ask(&pay, "POST", path, Some(said)).0, 201);
}

#[test]
fn a_halt_of_a_tokens_own_name_blocks_all_its_names() {
    let home = Home::with(LIMIT);
    let free = home.bearer("free --for default/default/free --for acme/*/*");
    let other = home.bearer("other --for acme/*/*");
    let admin = home.admin();
    free.run("append acme/log/a entry --name acme/x/one")
        .expect(0);
    free.run("append acme/log/b entry --name acme/x/one")
        .expect(0);
    admin
        .run("quota halt default/default/free --reason loops")
        .expect(0);
    let halted = "`default/default/free` is halted: loops";
    for line in [
        "send acme/box/a hi --name acme/x/one",
        "write acme/box/a hi --name acme/x/one",
        "append acme/log/a entry --name acme/x/one",
        "quota take acme/x/one 1 --name acme/x/one",
        "conversation append c-1 hello --name acme/x/one",
        "stream delete acme/log/a --name acme/x/one",
        "stream trim acme/log/a --before 1 --name acme/x/one",
        "mailbox purge acme/box/a --name acme/x/one",
    ] {
        let ended = free.run(line);
        ended.expect(6);
        assert!(ended.stderr.contains(halted), "{line}: {}", ended.stderr);
    }
    let take = json!({"subject": "acme/x/one", "cost": 1});
    let (status, body) = home.ask(&free, "POST", "/v1/take", Some(take));
    assert_eq!((status, body.contains(halted)), (403, true), "{body}");
    let produce = |name: &str| {
        let bootstrap = home.node.ready["kafka"].as_str().unwrap();
        home.place.shell(&format!(
            "echo hi | kcat -P -b {bootstrap} -t t -m 10 -X security.protocol=SASL_PLAINTEXT \
             -X sasl.mechanism=PLAIN -X sasl.username={name} -X sasl.password={}",
            free.token
        ))
    };
    assert_ne!(produce("acme/x/one").code(), 0);
    // Others under the same names go on.
    other
        .run("append acme/log/b entry --name acme/x/one")
        .expect(0);
    admin
        .run("quota resume default/default/free --reason mended")
        .expect(0);
    free.run("stream delete acme/log/a --name acme/x/one")
        .expect(0);
    assert_eq!(produce("acme/x/one").code(), 0);
    // A halt of a namespace is one of the names in it.
    admin
        .run("quota halt default/default --reason all")
        .expect(0);
    free.run("append acme/log/b entry --name acme/x/one")
        .expect(0);
}

#[test]
fn administration_commands_need_an_administrators_token() {
    let home = Home::with(LIMIT);
    let admin = home.admin();
    let agent = home.bearer("agent");
    let limits = admin.run("quota policies").expect(0).stdout.clone();
    admin.place.write("limits.json", &limits);
    agent.place.write("limits.json", &limits);
    for line in [
        "quota set calls acme/pay/one --capacity 5 --reason x",
        "quota unset calls acme/pay/one --reason x",
        "quota reset acme/pay/one --reason x",
        "quota factor calls 0.5 --reason x",
        "quota halt acme/pay --reason x",
        "quota resume acme/pay --reason x",
        "quota policies --set limits.json --reason x",
        "kafka user list",
    ] {
        agent
            .run(line)
            .expect(6)
            .shows_error("an administrator's token is required", "");
        admin.run(line).expect(0);
    }
    let add = |bearer: &Bearer| {
        bearer
            .place
            .run_with_input("kafka user add ann", b"secret\n")
    };
    add(&agent).expect(6);
    add(&admin).expect(0);
    agent.run("kafka user delete ann").expect(6);
    admin.run("kafka user delete ann").expect(0);
    let backup = home.place.path("copy");
    let backup = format!("backup {}", backup.display());
    agent.run(&backup).expect(6);
    admin.run(&backup).expect(0);
}

/// A token file of version 0.1.0.
const EARLIER: &str = include_str!("../../../access/src/tokens/fixtures/version_1.toml");
const EARLIER_TOKEN: &str = "tlp_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

#[test]
fn version_1_token_may_use_every_name_until_bound() {
    let place = Place::new();
    std::fs::create_dir(place.path("telpher-data")).unwrap();
    place.write("telpher-data/tokens.toml", EARLIER);
    place
        .run("doctor")
        .stdout
        .lines()
        .find(|line| line.starts_with("warn") && line.contains("`builder` may use every name"))
        .unwrap();
    let node = place.serve("");
    let client = Place::new()
        .with_variable("TELPHER_URL", node.url("native"))
        .with_variable("TELPHER_TOKEN", EARLIER_TOKEN);
    client
        .run("write acme/box/a hi --name acme/x/one")
        .expect(0);
    place.run("token bind builder --for acme/pay/*").expect(0);
    let claims = || client.run("write acme/box/a hi --name acme/x/one").code();
    eventually("the token is bound", || claims() == 6);
    client
        .run("write acme/box/a hi --name acme/pay/one")
        .expect(0);
    let stderr = node.stop().expect(0).stderr.clone();
    let warns = |line: &str| {
        line.contains("WARN") && line.contains("builder") && line.contains("telpher token bind")
    };
    assert!(stderr.lines().any(warns), "{stderr}");
}

#[test]
fn token_name_patterns_are_listed_and_validated() {
    let place = Place::new();
    place
        .run("token add pay --for acme/pay/* --for bot")
        .expect(0);
    let listed = place.run("token list --json").expect(0).json();
    let names = json!(["acme/pay/*", "default/default/bot"]);
    assert_eq!(listed["tokens"][0]["for"], names);
    place.run("token bind pay").expect(0);
    let listed = place.run("token list --json").expect(0).json();
    assert_eq!(listed["tokens"][0]["for"], json!(["default/default/pay"]));
    for pattern in ["acme/pay", "telpher/*/*", "a/b/c*"] {
        place.run(&format!("token add x --for {pattern}")).expect(2);
    }
    place
        .run("token bind pya --for a/b/c")
        .expect(3)
        .shows_error("no token `pya`", "`pay`");
    place.run("token add any --for */*/*").expect(0);
    let told = place.run("doctor").stdout;
    let warns = |line: &str| line.starts_with("warn") && line.contains("`any` may use every name");
    assert!(told.lines().any(warns), "{told}");
}
