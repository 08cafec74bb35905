//! Failures of commands: JSON for programs, hints for people.

use serde_json::Value;

use crate::support::{Ended, Place};

/// Returns the JSON document of a failure, and checks that the error is also on the standard error.
#[track_caller]
fn document(ended: &Ended, exit: i32, code: &str) -> Value {
    ended.expect(exit);
    let value = ended.json();
    let error = &value["error"];
    assert_eq!(error["code"], code, "{value:#}");
    let message = error["message"].as_str().unwrap();
    assert!(
        !message.is_empty() && ended.stderr.contains(message),
        "{}",
        ended.stderr
    );
    assert!(!error["hints"].as_array().unwrap().is_empty(), "{value:#}");
    value
}

#[test]
fn json_failures_of_connections_usage_and_locks_are_json() {
    let place = Place::new();
    let refused = place.run("agents --json --url tcp://127.0.0.1:1");
    document(&refused, 4, "unavailable");
    let unknown = place.run("agents --json --nonsense");
    document(&unknown, 2, "usage");
    let no_number = place.run("mailbox peek a/b/c --json --limit x");
    document(&no_number, 2, "usage");
    let bad_name = place.run("request a//b --json");
    document(&bad_name, 2, "usage");

    let node = place.serve("--data data");
    let locked = place.run("serve --json --data data --native-listen 127.0.0.1:0");
    let value = document(&locked, 4, "unavailable");
    let pid = node.pid().to_string();
    assert!(
        value["error"]["message"].as_str().unwrap().contains(&pid),
        "{value:#}"
    );
    node.stop().expect(0);
}

#[test]
fn json_failures_of_the_configuration_name_every_mistake() {
    let place = Place::new();
    place.write(
        "telpher.toml",
        "[native]\nlistn = 'x'\n[http]\nlisten = 'nowhere'\n",
    );
    let value = document(&place.run("config check --json"), 2, "usage");
    assert_eq!(value["errors"].as_array().unwrap().len(), 2, "{value:#}");
}

#[test]
fn a_failed_call_is_one_json_document() {
    let place = Place::new();
    let node = place.serve("--dev");
    let home = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let ended = home.run("request acme/demo/none hello --json");
    assert_eq!(ended.expect(3).json()["error"]["code"], "no_responder");
}

#[test]
fn usage_errors_are_plain_and_have_hints() {
    let place = Place::new();
    place.run("bench rcp").expect(2).shows_error(
        "unrecognized subcommand 'rcp'",
        "did you mean `telpher bench rpc`?",
    );
    place
        .run("mailbox peek a/b/c --limit x")
        .expect(2)
        .shows_error("a whole number is expected", "telpher mailbox peek --help");
    place
        .run("request")
        .expect(2)
        .shows_error("were not provided: <AGENT>", "usage: telpher request");
    place
        .run("agents --jsn")
        .expect(2)
        .shows_error("unexpected argument '--jsn'", "'--json'");
}
