//! The client commands, with text and with JSON output.

use crate::support::{Node, Place, STUCK};

/// Starts a node, and a directory in which client commands find it.
fn node() -> (Node, Place, Place) {
    let home = Place::new();
    let node = home.serve("");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    (node, home, place)
}

#[test]
fn a_request_prints_the_reply_and_nothing_else() {
    let (_node, _home, place) = node();
    let _echo = place.listen(["acme/demo/echo", "--echo"]);
    let ended = place.run("request acme/demo/echo hello");
    assert_eq!(ended.expect(0).stdout, "hello");
    assert_eq!(ended.stderr, "");
    let ended = place.run("request acme/demo/echo hello --json");
    let reply = ended.expect(0).json();
    assert_eq!(reply["reply"], "hello");
    assert!(reply["elapsed_us"].as_u64().unwrap() > 0);
    let ended = place.run("request acme/demo/echo hello --stream --json");
    assert_eq!(ended.expect(0).stdout, "{\"item\":\"hello\"}\n");
}

#[test]
fn a_body_is_read_from_standard_input_unchanged() {
    let (_node, _home, place) = node();
    let _echo = place.listen(["acme/demo/echo", "--echo", "--quiet"]);
    let ended = place.run_with_input("request acme/demo/echo -", b"two\nlines\n");
    assert_eq!(ended.expect(0).stdout, "two\nlines\n");
    let ended = place.run_with_input("request acme/demo/echo - --json", &[0xff, 0xfe]);
    assert_eq!(ended.expect(0).json()["reply_base64"], "//4=");
}

#[test]
fn send_prints_the_count_of_deliveries() {
    let (_node, _home, place) = node();
    let mut one = place.listen(["acme/demo/news/one"]);
    let mut two = place.listen(["acme/demo/news/two"]);
    let ended = place.run("send acme/demo/news/two hi --name acme/demo/me");
    assert_eq!(ended.expect(0).stdout, "delivered to 1\n");
    assert_eq!(two.line(), "message from acme/demo/me: hi\n");
    let ended = place.run("send --all acme/demo/news all --json");
    let receipt = ended.expect(0).json();
    assert_eq!(receipt, serde_json::json!({ "delivered": 2, "dropped": 0 }));
    for listener in [&mut one, &mut two] {
        assert!(listener.line().ends_with(": all\n"));
    }
}

#[test]
fn a_send_names_a_method() {
    let (_node, _home, place) = node();
    let mut listener = place.listen(["acme/demo/lamp"]);
    let ended = place.run("send acme/demo/lamp now --method on --name acme/demo/me");
    assert_eq!(ended.expect(0).stdout, "delivered to 1\n");
    assert_eq!(listener.line(), "message from acme/demo/me (on): now\n");
    let method = "m".repeat(300);
    let ended = place.run(&format!("send acme/demo/lamp now --method {method}"));
    ended
        .expect(2)
        .shows_error("a method name of 300 bytes", "");
}

#[test]
fn a_send_without_a_subscriber_is_not_found() {
    let (node, _home, place) = node();
    let ended = place.run("send acme/demo/nobody hi");
    ended
        .expect(3)
        .shows_error("`acme/demo/nobody` has no subscriber", "telpher agents");
    assert_eq!(ended.stdout, "delivered to 0\n");
    assert_eq!(node.metric("telpher_undeliverable_total"), 1);
}

#[test]
fn a_write_in_memory_is_accepted_with_and_without_a_subscriber() {
    let (_node, _home, place) = node();
    let ended = place.run("write acme/demo/inbox hi --durability memory");
    assert_eq!(ended.expect(0).stdout, "accepted, queued for 0\n");
    let mut inbox = place.listen(["acme/demo/inbox"]);
    let ended = place.run("write acme/demo/inbox hi --durability memory --json");
    assert_eq!(ended.expect(0).json()["copies"], 1);
    assert!(inbox.line().ends_with(": hi\n"));
}

#[test]
fn any_agent_answers_a_ping() {
    let (_node, _home, place) = node();
    let _echo = place.listen(["acme/demo/echo", "--echo"]);
    let _printer = place.listen(["acme/demo/printer"]);
    for agent in ["acme/demo/echo", "acme/demo/printer", "telpher/system/node"] {
        let ended = place.run(&format!("ping {agent} -c 3 -i 0s"));
        let lines: Vec<_> = ended.expect(0).stdout.lines().collect();
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(
            lines[..3].iter().all(|line| line.ends_with(" ms")),
            "{lines:?}"
        );
        assert_eq!(lines[3], format!("{agent}: 3 sent, 3 answered"));
        assert!(lines[4].starts_with("min/mean/p50/p99/max = "), "{lines:?}");
    }
    let ping = place.run("ping acme/demo/echo -c 10 -i 0s --json").json();
    assert_eq!((&ping["sent"], &ping["answered"]), (&10.into(), &10.into()));
    assert_eq!(ping["round_trips_ms"].as_array().unwrap().len(), 10);
    let figure = |key: &str| ping[key].as_f64().unwrap();
    assert!(figure("min_ms") > 0.0 && figure("min_ms") <= figure("mean_ms"));
    assert!(figure("p50_ms") <= figure("p99_ms") && figure("p99_ms") <= figure("max_ms"));
}

#[test]
fn a_ping_without_a_responder_fails() {
    let (_node, _home, place) = node();
    let ended = place.run("ping acme/demo/nobody -c 2 -i 0s");
    ended
        .expect(3)
        .shows_error("no_responder", "telpher agents");
    assert!(
        ended.stdout.contains("2 sent, 0 answered\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn agents_lists_delivered_dropped_and_undeliverable_counts() {
    let (_node, _home, place) = node();
    let mut listener = place.listen(["acme/demo/news/one"]);
    place.run("send acme/demo/news hi").expect(0);
    listener.line();
    let table = place.run("agents").expect(0).stdout.clone();
    let lines: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0][0], "NAME");
    assert_eq!(lines.len(), 2, "{table}");
    let [
        name,
        protocol,
        instance,
        _,
        delivered,
        dropped,
        undeliverable,
    ] = lines[1][..]
    else {
        panic!("{table}")
    };
    assert_eq!(
        (name, protocol, instance),
        ("acme/demo/news", "native", "one")
    );
    assert_eq!((delivered, dropped, undeliverable), ("1", "0", "0"));
    let all = place.run("agents --all").expect(0).stdout.clone();
    assert!(all.contains("telpher/system/node"), "{all}");
    let json = place.run("agents --json").expect(0).json();
    assert_eq!(json["agents"][0]["instances"][0]["delivered"], 1);
}

#[test]
fn undeliverable_names_are_listed_after_their_sender_disconnects() {
    let (_node, _home, place) = node();
    for _ in 0..2 {
        place.run("send acme/demo/nobody hi").expect(3);
    }
    place.run("request acme/demo/no-one hi").expect(3);
    let table = place.run("agents").expect(0).stdout.clone();
    let lines: Vec<Vec<_>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = [
        ["acme/demo/no-one", "native", "(none)", "-", "0", "0", "1"],
        ["acme/demo/nobody", "native", "(none)", "-", "0", "0", "2"],
    ];
    assert_eq!(lines, expected, "{table}");
    let json = place.run("agents --json").expect(0).json();
    assert_eq!(json["agents"][1]["undeliverable"], 2);
}

#[test]
fn connections_command_lists_names_and_omits_its_own_connection() {
    let (_node, _home, place) = node();
    let _listener = place.listen(["acme/demo/news", "--name", "acme/demo/ada"]);
    let table = place.run("connections").expect(0).stdout.clone();
    // The connection of the listener, and that of the command itself.
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(
        table.lines().nth(1).unwrap().contains("acme/demo/ada"),
        "{table}"
    );
    let all = place.run("connections --all").expect(0).stdout.clone();
    assert!(all.contains("telpher/system/node"), "{all}");
    let json = place.run("connections --json").expect(0).json();
    assert_eq!(json["connections"].as_array().unwrap().len(), 3);
}

#[test]
fn commands_work_over_a_unix_socket() {
    let (node, home, _) = node();
    let path = home.path(node.address("socket"));
    let place = Place::new().with_variable("TELPHER_URL", &format!("unix://{}", path.display()));
    let _echo = place.listen(["acme/demo/echo", "--echo"]);
    assert_eq!(
        place.run("request acme/demo/echo hello").expect(0).stdout,
        "hello"
    );
    let table = place.run("connections").expect(0).stdout.clone();
    assert!(table.contains("unix"), "{table}");
}

#[test]
fn each_failed_request_has_its_exit_status_and_json_error() {
    let (_node, _home, place) = node();
    let _stuck = place.listen(["acme/demo/stuck", "--exec", STUCK]);
    let _broken = place.listen(["acme/demo/broken", "--exec", "exit 3"]);
    let cases = [
        ("acme/demo/nobody", 3, "no_responder", "no", "safe"),
        ("acme/demo/broken", 1, "handler_error", "yes", "never"),
        (
            "acme/demo/stuck --deadline 200ms",
            5,
            "deadline_exceeded",
            "",
            "may_duplicate",
        ),
    ];
    for (words, status, code, sent, retry) in cases {
        let ended = place.run(&format!("request {words} --json"));
        let error = &ended.expect(status).json()["error"];
        assert_eq!(error["code"], code);
        assert_eq!(error["retry"], retry);
        assert!(sent.is_empty() || error["sent"] == sent, "{error}");
        ended.shows_error(&format!("{code}: "), "");
    }
    let ended = place.run("request acme/demo/nobody hi");
    ended
        .expect(3)
        .shows_error("no_responder: ", "telpher listen acme/demo/nobody --echo");
    assert_eq!(ended.stdout, "");
}

#[test]
fn an_unreachable_node_is_unavailable_with_a_hint() {
    let place = Place::new();
    let ended = place.run("request acme/demo/echo hi --url tcp://127.0.0.1:1");
    ended
        .expect(4)
        .shows_error("cannot connect to tcp://127.0.0.1:1", "telpher serve --dev");
    let ended = place.run("agents --url unix:///nowhere/at.all");
    ended
        .expect(4)
        .shows_error("unix:///nowhere/at.all", "--url");
}

#[test]
fn an_invalid_command_line_is_a_usage_error() {
    let (_node, _home, place) = node();
    for command in ["send", "request", "write"] {
        place
            .run_words([command, "not/a name/x", "body"])
            .expect(2)
            .shows_error("`not/a name/x` contains ' '", "org/namespace/agent");
    }
    place
        .run("listen a/b")
        .expect(2)
        .shows_error("`a/b` has 2 parts", "a name is");
    place
        .run("ping a//b")
        .expect(2)
        .shows_error("empty part", "a name is");
    place
        .run("agents --url nonsense")
        .expect(2)
        .shows_error("nonsense", "tcp://HOST:PORT");
    place
        .run("agents --name a/b")
        .expect(2)
        .shows_error("`a/b`", "a name is");
    place.run("request a --deadline 5").expect(2);
    place.run("listen a --echo --exec true").expect(2);
    place
        .run("agents --tls-authorities nowhere.pem")
        .expect(2)
        .shows_error("nowhere.pem", "PEM");
}

#[test]
fn a_missing_or_unknown_token_is_refused_and_a_valid_one_accepted() {
    let home = Place::new();
    let token = home
        .run("token add tester --for */*/*")
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    let node = home.serve("");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    place
        .run("agents")
        .expect(6)
        .shows_error("a token is required", "--token");
    place
        .run("agents --token tlp_wrong")
        .expect(6)
        .shows_error("unknown or revoked", "telpher token add");
    place.run(&format!("agents --token {token}")).expect(0);
    let place = place.with_variable("TELPHER_TOKEN", &token);
    place.run("agents").expect(0);
    let (_, text) = node.get("/metrics", Some(&token));
    assert!(
        text.contains("\ntelpher_unauthenticated_total 2\n"),
        "{text}"
    );
}
