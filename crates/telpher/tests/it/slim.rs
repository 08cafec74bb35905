//! The SLIM listener, with applications on the original `slim-bindings` of PyPI.

use std::io::{PipeWriter, Write};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::slim_python::python;
use crate::support::{Node, Place, Running, eventually, free_port};
use crate::tls::write_certificates;

/// SLIM applications in a process, which runs sessions by name.
struct Applications {
    process: Running,
    input: PipeWriter,
}

impl Applications {
    /// `shown` has their credentials and trusted certificates.
    fn start(url: &str, shown: &serde_json::Value, names: &[&str]) -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../door-slim/tests/it/sessions.py");
        let (reader, input) = std::io::pipe().unwrap();
        let mut command = Command::new(python());
        command.arg(script).arg(url).args(names);
        command.env("CLIENT", shown.to_string()).stdin(reader);
        Self {
            process: Running::spawn(&mut command),
            input,
        }
    }

    #[track_caller]
    fn wait_for(&mut self, note: &str) {
        self.process.wait_for_note(note);
    }

    fn continue_script(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    fn end(self) {
        self.process.end().expect(0);
    }
}

fn run(node: &Node, shown: &serde_json::Value, names: &[&str]) {
    Applications::start(node.url("slim"), shown, names).end();
}

fn open() -> serde_json::Value {
    json!({})
}

#[test]
fn every_kind_of_session_runs() {
    let place = Place::new();
    let node = place.serve("");
    let kinds = [
        "point-to-point",
        "reliable",
        "mls",
        "reliable-mls",
        "group",
        "group-mls",
        "rpc",
    ];
    run(&node, &open(), &kinds);
    for counter in ["slim_malformed_messages", "slim_bad_macs", "dropped"] {
        assert_eq!(node.metric(&format!("telpher_{counter}_total")), 0);
    }
    node.stop().expect(0);
}

#[test]
fn a_session_survives_a_kill_of_the_node() {
    let place = Place::new();
    let flags = format!("--slim-listen 127.0.0.1:{}", free_port());
    let node = place.serve(&flags);
    let url = node.url("slim").to_owned();
    check_session_survives_kill(&url, &place, &flags, node);
}

/// Kills a node at which applications have a session, and restarts it with these flags.
fn check_session_survives_kill(url: &str, place: &Place, flags: &str, node: Node) {
    let mut applications = Applications::start(url, &open(), &["survives"]);
    applications.wait_for("end the node");
    let held = node.metric("telpher_subscriptions");
    node.signal(Signal::KILL);
    assert_eq!(node.end().status.code(), None);
    let node = place.serve(flags);
    eventually("the applications come back by themselves", || {
        node.metric("telpher_subscriptions") == held
    });
    applications.continue_script();
    applications.end();
}

/// Ends a node repeatedly while ten applications are connected, which reconnect every time.
fn check_reconnects(place: &Place, flags: &str, url: impl Fn(&Node) -> String, signals: &[Signal]) {
    let mut node = place.serve(flags);
    let mut applications = Applications::start(&url(&node), &open(), &["present"]);
    applications.wait_for("present");
    let held = node.metric("telpher_subscriptions");
    assert!(held >= 10, "{held}");
    for (round, signal) in signals.iter().enumerate() {
        node.signal(*signal);
        let ended = node.end();
        match *signal {
            Signal::TERM => ended.expect(0),
            _ => &ended,
        };
        node = place.serve(flags);
        eventually(&format!("all are back after round {round}"), || {
            node.metric("telpher_subscriptions") == held
        });
    }
    applications.continue_script();
    applications.end();
}

fn slim_url(node: &Node) -> String {
    node.url("slim").to_owned()
}

#[test]
fn slim_applications_reconnect_after_every_kill() {
    let place = Place::new();
    let flags = format!("--slim-listen 127.0.0.1:{}", free_port());
    check_reconnects(&place, &flags, slim_url, &[Signal::KILL; 6]);
}

#[test]
fn slim_applications_reconnect_after_every_sigterm() {
    let place = Place::new();
    let flags = format!("--slim-listen 127.0.0.1:{}", free_port());
    check_reconnects(&place, &flags, slim_url, &[Signal::TERM; 4]);
}

#[test]
fn slim_applications_on_a_unix_socket_reconnect() {
    let place = Place::new();
    let flags = format!("--slim-socket {}", place.path("slim.sock").display());
    let url = |node: &Node| node.url("slim_socket").to_owned();
    let signals = [Signal::KILL, Signal::TERM, Signal::KILL, Signal::TERM];
    check_reconnects(&place, &flags, url, &signals);
}

#[test]
fn slim_applications_on_websockets_reconnect() {
    let place = Place::new();
    let flags = format!("--slim-listen 127.0.0.1:{}", free_port());
    let signals = [Signal::TERM, Signal::KILL, Signal::TERM, Signal::KILL];
    check_reconnects(&place, &flags, websocket, &signals);
}

#[test]
fn a_stopped_subscriber_does_not_block_calls_to_others() {
    let place = Place::new();
    let node = place.serve("--slim-queue-size-max 64KiB");
    let mut applications = Applications::start(node.url("slim"), &open(), &["stopped"]);
    applications.wait_for("stopped");
    eventually("the stopped one is full", || {
        node.metric("telpher_dropped_total") > 0
    });
    applications.continue_script();
    applications.wait_for("others went on");
    applications.end();
}

#[test]
fn a_message_above_the_limit_is_skipped_and_counted() {
    let place = Place::new();
    let node = place.serve("--slim-message-size-max 64KiB");
    run(&node, &open(), &["oversize"]);
    assert_eq!(node.metric("telpher_oversize_frames_total"), 1);
}

#[test]
fn undeliverable_slim_messages_are_counted_by_name() {
    let place = Place::new();
    let node = place.serve("");
    run(&node, &open(), &["nobody"]);
    let missed = node.metric(r#"telpher_slim_undeliverable_total{name="org/ns/nobody"}"#);
    assert!(missed > 0);
    let url = node.url("native");
    let shown = place.run(&format!("agents --json --url {url}"));
    let shown = shown.expect(0).json();
    let agents = shown["agents"].as_array().unwrap();
    let of = |name: &str| agents.iter().find(|agent| agent["name"] == name);
    assert_eq!(of("org/ns/nobody").unwrap()["undeliverable"], missed);
}

#[test]
fn subscribers_are_listed_with_delivery_counts() {
    let place = Place::new();
    let node = place.serve("");
    let mut applications = Applications::start(node.url("slim"), &open(), &["survives"]);
    applications.wait_for("end the node");
    let url = node.url("native");
    let shown = place.run(&format!("agents --url {url}"));
    let table = &shown.expect(0).stdout;
    let of = |start: &str| table.lines().find(|line| line.starts_with(start)).unwrap();
    for name in ["org/ns/caller", "org/ns/echo"] {
        let cells: Vec<_> = of(name).split_whitespace().collect();
        let [_, protocol, instance, remote, delivered, dropped, _] = cells[..] else {
            panic!("{table}")
        };
        assert_eq!(protocol, "slim", "{table}");
        assert_eq!(instance.len(), 36, "{table}");
        assert!(remote.starts_with("127.0.0.1:"), "{table}");
        assert!(delivered.parse::<u64>().unwrap() > 0, "{table}");
        assert_eq!(dropped, "0", "{table}");
    }
    applications.continue_script();
    applications.end();
}

/// Returns the URL of the listener for WebSockets.
fn websocket(node: &Node) -> String {
    node.url("slim").replacen("http", "ws", 1)
}

#[test]
fn sessions_work_over_a_websocket() {
    let place = Place::new();
    let node = place.serve("");
    let kinds = [
        "point-to-point",
        "reliable",
        "mls",
        "group",
        "group-mls",
        "rpc",
    ];
    Applications::start(&websocket(&node), &open(), &kinds).end();
    let counters = [
        "slim_malformed_messages",
        "slim_bad_macs",
        "protocol_errors",
        "dropped",
    ];
    let counted = counters.map(|counter| node.metric(&format!("telpher_{counter}_total")));
    let ended = node.stop();
    assert_eq!(counted, [0; 4], "{counters:?}: {}", ended.stderr);
    ended.expect(0);
}

#[test]
fn a_session_over_a_websocket_survives_a_kill_of_the_node() {
    let place = Place::new();
    let flags = format!("--slim-listen 127.0.0.1:{}", free_port());
    let node = place.serve(&flags);
    check_session_survives_kill(&websocket(&node), &place, &flags, node);
}

#[test]
fn slim_sessions_run_over_a_unix_socket() {
    let place = Place::new();
    let path = place.path("slim.sock");
    let node = place.serve(&format!("--slim-socket {}", path.display()));
    assert_eq!(
        node.ready["slim_socket"],
        format!("unix://{}", path.display())
    );
    Applications::start(node.url("slim_socket"), &open(), &["point-to-point"]).end();
    node.stop().expect(0);
    assert!(!path.exists());
}

#[test]
fn a_client_certificate_can_be_required() {
    let place = Place::new();
    write_certificates(&place, "authority.pem");
    let file = |name: &str| place.path(name).display().to_string();
    let trusting = json!({ "authorities": file("authority.pem") });
    let mut certified = trusting.clone();
    certified["certificate"] = file("chain.pem").into();
    certified["key"] = file("key.pem").into();
    let flags = "--tls-certificate chain.pem --tls-key key.pem";
    let node = place.serve(flags);
    run(&node, &trusting, &["point-to-point"]);
    Applications::start(&websocket(&node), &trusting, &["point-to-point"]).end();
    node.stop().expect(0);
    let node = place.serve(&format!("{flags} --slim-client-authorities authority.pem"));
    run(&node, &trusting, &["refused"]);
    run(&node, &certified, &["point-to-point"]);
    Applications::start(&websocket(&node), &certified, &["point-to-point"]).end();
    node.stop().expect(0);
}

#[test]
fn authorities_of_clients_need_tls_and_certificates() {
    let place = Place::new();
    write_certificates(&place, "authority.pem");
    place
        .run("config check --slim-client-authorities authority.pem")
        .expect(2)
        .shows_error("`tls.certificate` is not", "--tls-certificate");
    place.write("empty.pem", "nothing");
    let tls = "--tls-certificate chain.pem --tls-key key.pem";
    place
        .run(&format!(
            "config check {tls} --slim-client-authorities empty.pem"
        ))
        .expect(2)
        .shows_error("empty.pem", "PEM");
}

/// A token of that name for all names, and the file that it was written to.
fn token(place: &Place, name: &str) -> (String, String) {
    token_for(place, name, "*/*/*")
}

fn token_for(place: &Place, name: &str, names: &str) -> (String, String) {
    let shown = place.run(&format!("token add {name} --for {names}"));
    let token = shown.expect(0).stdout.trim().to_owned();
    place.write(name, &token);
    (token, place.path(name).display().to_string())
}

#[test]
fn a_token_is_accepted_as_bearer_and_as_password() {
    let place = Place::new();
    let (token, token_file) = token(&place, "billing");
    let node = place.serve("");
    run(&node, &open(), &["refused"]);
    let by_name = |name: &str| json!({ "user": name, "password": token });
    run(
        &node,
        &json!({ "token_file": token_file }),
        &["point-to-point"],
    );
    run(&node, &by_name("billing"), &["point-to-point"]);
    for shown in [json!({ "token_file": token_file }), by_name("billing")] {
        Applications::start(&websocket(&node), &shown, &["point-to-point"]).end();
    }
    run(&node, &by_name("somebody"), &["refused"]);
    let wrong = json!({ "user": "billing", "password": "tlp_wrong" });
    run(&node, &wrong, &["refused"]);
    assert!(metric_with(&node, &token, "telpher_unauthenticated_total") >= 3);
}

#[test]
fn a_token_subscribes_and_speaks_under_its_own_names_only() {
    let place = Place::new();
    let (token, inside) = token_for(&place, "inside", "org/ns/*");
    let (_, outside) = token_for(&place, "outside", "org/other/*");
    let node = place.serve("");
    let shown = |file: &str| json!({ "token_file": file });
    run(&node, &shown(&inside), &["point-to-point"]);
    let forbidden = || metric_with(&node, &token, "telpher_slim_forbidden_total");
    assert_eq!(forbidden(), 0);
    run(&node, &shown(&outside), &["refused"]);
    assert!(forbidden() > 0);
}

fn metric_with(node: &Node, token: &str, name: &str) -> u64 {
    let (_, text) = node.get("/metrics", Some(token));
    let line = text.lines().find(|line| line.starts_with(name));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

const SECRET: &str = "a-secret-of-at-least-32-characters!!";

#[test]
fn with_a_jwt_key_every_client_needs_a_jwt_or_token() {
    let place = Place::new();
    place.write("jwt.key", SECRET);
    let claims = "--slim-jwt-issuer us --slim-jwt-audience slim";
    let node = place.serve(&format!("--slim-jwt-key jwt.key {claims}"));
    let jwt = |secret: &str| json!({ "secret": secret, "subject": "billing" });
    run(&node, &open(), &["refused"]);
    run(&node, &jwt(SECRET), &["point-to-point"]);
    run(
        &node,
        &jwt("another-secret-of-32-characters!!"),
        &["refused"],
    );
}

#[test]
fn slim_rules_authorize_subscribe_and_send_by_subject() {
    let place = Place::new();
    place.write("jwt.key", SECRET);
    let rules = "[slim]\nrules = '''\nsubscribe org/ns alice,bob\nsend org/ns alice\n'''\n";
    place.write("telpher.toml", rules);
    let node = place.serve("--slim-jwt-key jwt.key");
    let of = |subject: &str| json!({ "secret": SECRET, "subject": subject });
    run(&node, &of("alice"), &["point-to-point", "group"]);
    assert_eq!(node.metric("telpher_slim_forbidden_total"), 0);
    run(&node, &of("bob"), &["unheard"]);
    let forbidden = node.metric("telpher_slim_forbidden_total");
    assert!(forbidden > 0);
    run(&node, &of("carol"), &["refused"]);
    assert!(node.metric("telpher_slim_forbidden_total") > forbidden);
}

#[test]
fn an_invalid_slim_configuration_is_refused_at_the_start() {
    let place = Place::new();
    place.write("short.key", "short");
    for (flags, error, hint) in [
        (
            "--slim-jwt-key nowhere.key",
            "nowhere.key",
            "--slim-jwt-key",
        ),
        (
            "--slim-jwt-key short.key",
            "at least 32 are needed",
            "--slim-jwt-key",
        ),
        (
            "--slim-jwt-issuer us",
            "`slim.jwt_key` is not",
            "--slim-jwt-key",
        ),
    ] {
        for command in ["config check", "serve"] {
            let ended = place.run(&format!("{command} {flags}"));
            ended.expect(2).shows_error(error, hint);
        }
    }
    let rules = ["config", "check", "--slim-rules", "subscribe acme"];
    let ended = place.run_words(rules);
    let said = &ended.expect(2).stderr;
    assert!(said.contains("is not a rule"), "{said}");
}
