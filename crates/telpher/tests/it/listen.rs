//! `telpher listen`: acts as an agent.

use std::fs::File;

use serde_json::json;

use crate::support::{Node, Place, UNTIL_GO};

fn node() -> (Node, Place, Place) {
    let home = Place::new();
    let node = home.serve("");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    (node, home, place)
}

#[test]
fn a_message_is_printed_as_json_and_the_count_ends_it() {
    let (_node, _home, place) = node();
    let mut listener = place.listen(["acme/demo/news/one", "--count", "1", "--json"]);
    place
        .run("send acme/demo/news hi --name acme/demo/me")
        .expect(0);
    let message: serde_json::Value = serde_json::from_str(&listener.line()).unwrap();
    let expected = json!({
        "kind": "message", "source": "acme/demo/me", "name": "acme/demo/news/one", "method": "",
        "metadata": {}, "body": "hi",
    });
    assert_eq!(message, expected);
    listener.end().expect(0);
}

#[test]
fn control_characters_of_a_body_are_escaped() {
    let (_node, _home, place) = node();
    let mut listener = place.listen(["acme/demo/news"]);
    place
        .run_words(["send", "acme/demo/news", "a\nb\x1b[2J"])
        .expect(0);
    assert!(listener.line().ends_with(": a\\nb\\u{1b}[2J\n"));
}

#[test]
fn an_agent_that_only_prints_refuses_requests() {
    let (_node, _home, place) = node();
    let mut listener = place.listen(["acme/demo/printer"]);
    place
        .run("request acme/demo/printer hi --method greet")
        .expect(1)
        .shows_error("handler_error: this agent only prints messages", "");
    let line = listener.line();
    assert!(line.starts_with("request from connection:"), "{line}");
    assert!(line.ends_with(" (greet): hi\n"), "{line}");
}

#[test]
fn a_shell_command_answers_and_gets_the_source() {
    let (_node, _home, place) = node();
    let command =
        "tr a-z A-Z; printf ' %s %s %s' \"$TELPHER_SOURCE\" \"$TELPHER_METHOD\" \"$TELPHER_NAME\"";
    let _agent = place.listen(["acme/demo/upper/1", "--exec", command]);
    let ended = place.run("request acme/demo/upper hello --method shout --name acme/demo/me");
    let reply = "HELLO acme/demo/me shout acme/demo/upper/1";
    assert_eq!(ended.expect(0).stdout, reply);
}

#[test]
fn a_shell_command_runs_for_messages_too_and_its_output_is_printed() {
    let (_node, _home, place) = node();
    let mut agent = place.listen(["acme/demo/upper", "--exec", "tr a-z A-Z; echo", "--quiet"]);
    place.run("send acme/demo/upper hello").expect(0);
    assert_eq!(agent.line(), "HELLO\n");
}

#[test]
fn a_shell_command_that_fails_is_the_callers_error() {
    let (_node, _home, place) = node();
    let mut agent = place.listen(["acme/demo/broken", "--exec", "exit 3"]);
    place
        .run("request acme/demo/broken hi")
        .expect(1)
        .shows_error("handler_error: the command ended with exit status: 3", "");
    agent.wait_for_note("the command ended with exit status: 3");
}

#[test]
fn a_timed_out_shell_command_and_its_children_are_killed() {
    let (_node, _home, place) = node();
    let command = "sleep 1000 & echo $! > pid; wait";
    let _agent = place.listen(["acme/demo/slow", "--exec", command, "--timeout", "300ms"]);
    place
        .run("request acme/demo/slow hi")
        .expect(5)
        .shows_error("deadline_exceeded: the command was killed", "");
    let pid = std::fs::read_to_string(place.path("pid")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    crate::support::eventually("the sleep is gone", || {
        rustix::process::test_kill_process(pid).is_err() || is_zombie(pid)
    });
}

fn is_zombie(pid: rustix::process::Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    status.is_ok_and(|status| status.contains("State:\tZ"))
}

/// A shell command that answers at once, or for `wait` only once the file `go` exists.
fn waiter() -> String {
    format!("read word; if [ $word = wait ]; then {UNTIL_GO}; fi; echo $word")
}

#[test]
fn a_slow_request_does_not_delay_others() {
    let (_node, _home, place) = node();
    let mut agent = place.listen(["acme/demo/agent", "--exec", &waiter()]);
    let slow = place.start(["request", "acme/demo/agent", "wait", "--deadline", "1h"]);
    assert!(agent.line().ends_with(": wait\n"));
    for _ in 0..3 {
        assert_eq!(
            place.run("request acme/demo/agent quick").expect(0).stdout,
            "quick\n"
        );
    }
    File::create(place.path("go")).unwrap();
    assert_eq!(slow.end().expect(0).stdout, "wait\n");
}

#[test]
fn no_more_commands_run_than_are_allowed() {
    let (_node, _home, place) = node();
    let words = ["acme/demo/agent", "--concurrency", "1", "--exec", &waiter()];
    let mut agent = place.listen(words);
    let slow = place.start(["request", "acme/demo/agent", "wait", "--deadline", "1h"]);
    assert!(agent.line().ends_with(": wait\n"));
    place
        .run("request acme/demo/agent quick --deadline 300ms")
        .expect(5);
    File::create(place.path("go")).unwrap();
    assert_eq!(slow.end().expect(0).stdout, "wait\n");
    assert_eq!(
        place.run("request acme/demo/agent quick").expect(0).stdout,
        "quick\n"
    );
}

#[test]
fn listen_finishes_running_requests_after_sigterm() {
    let (_node, _home, place) = node();
    let mut agent = place.listen(["acme/demo/agent", "--exec", &waiter()]);
    let slow = place.start(["request", "acme/demo/agent", "wait", "--deadline", "1h"]);
    assert!(agent.line().ends_with(": wait\n"));
    agent.signal(rustix::process::Signal::TERM);
    crate::support::eventually("nobody is subscribed", || {
        place.run("request acme/demo/agent quick").code() == 3
    });
    File::create(place.path("go")).unwrap();
    assert_eq!(slow.end().expect(0).stdout, "wait\n");
    agent.end().expect(0);
}

#[test]
fn a_second_listener_replaces_the_same_instance() {
    let (_node, _home, place) = node();
    let first = place.listen(["acme/demo/echo/1", "--echo"]);
    let _second = place.listen(["acme/demo/echo/1", "--echo"]);
    first
        .end()
        .expect(1)
        .shows_error("the subscription ended: replaced", "telpher explain");
    assert_eq!(
        place.run("request acme/demo/echo hi").expect(0).stdout,
        "hi"
    );
}

#[test]
fn listening_on_a_name_of_the_node_is_denied() {
    let (_node, _home, place) = node();
    place
        .run("listen telpher/system/node --echo")
        .expect(6)
        .shows_error("denied: ", "");
}
