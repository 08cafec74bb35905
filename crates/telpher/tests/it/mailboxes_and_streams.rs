//! Mailboxes and streams, across kills of the node.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Node, Place, STUCK, eventually, free_port};

/// A node at a fixed address, and a directory for its clients.
struct Home {
    place: Place,
    address: String,
    client: Place,
}

impl Home {
    fn new() -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let url = format!("tcp://{address}");
        Self {
            place: Place::new(),
            address,
            client: Place::new().with_variable("TELPHER_URL", &url),
        }
    }

    fn serve(&self) -> Node {
        self.serve_with("")
    }

    fn serve_with(&self, flags: &str) -> Node {
        self.place.serve_at(&self.address, flags)
    }

    /// Kills the node with SIGKILL and restarts it.
    fn kill(&self, node: Node) -> Node {
        self.kill_and_serve(node, "")
    }

    fn kill_and_serve(&self, node: Node, flags: &str) -> Node {
        node.signal(Signal::KILL);
        node.end();
        self.serve_with(flags)
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        self.client.run(&format!("{line} --json")).expect(0).json()
    }

    fn messages(&self, name: &str) -> Vec<Value> {
        let value = self.json(&format!("mailbox peek {name}"));
        value["messages"].as_array().unwrap().clone()
    }

    fn dead_letters(&self, name: &str) -> Vec<Value> {
        let value = self.json(&format!("mailbox peek {name} --dead"));
        value["messages"].as_array().unwrap().clone()
    }
}

#[test]
fn a_written_message_waits_for_a_subscriber_and_is_removed_once_acknowledged() {
    let home = Home::new();
    let _node = home.serve();
    let stored = home.json("write acme/demo/worker job-7 --name acme/demo/boss");
    assert_eq!(stored["duplicate"], false);
    let messages = home.messages("acme/demo/worker");
    assert_eq!(
        (&messages[0]["body"], &messages[0]["deliveries"]),
        (&"job-7".into(), &0.into())
    );
    assert_eq!(messages[0]["sender"], "acme/demo/boss");
    let words = ["acme/demo/worker", "--count", "1", "--json"];
    let mut worker = home.client.listen(words);
    let message: Value = serde_json::from_str(&worker.line()).unwrap();
    assert_eq!(
        (&message["kind"], &message["body"]),
        (&"write".into(), &"job-7".into())
    );
    assert_eq!(
        (&message["delivery"], &message["source"]),
        (&1.into(), &"acme/demo/boss".into())
    );
    worker.end().expect(0);
    eventually("it was acknowledged", || {
        home.messages("acme/demo/worker").is_empty()
    });
}

#[test]
fn acked_writes_survive_kill9() {
    let home = Home::new();
    let mut node = home.serve();
    for number in 0..5 {
        home.client
            .run(&format!("write acme/demo/worker job-{number}"))
            .expect(0);
        node = home.kill(node);
    }
    let bodies: Vec<_> = home.messages("acme/demo/worker");
    let bodies: Vec<_> = bodies
        .iter()
        .map(|message| message["body"].clone())
        .collect();
    assert_eq!(bodies, ["job-0", "job-1", "job-2", "job-3", "job-4"]);
}

#[test]
fn a_retried_write_is_deduplicated_after_kill9_and_after_acknowledgement() {
    let home = Home::new();
    let node = home.serve();
    let write = "write acme/demo/worker hi --id 000000000000000000000000000000ff";
    let first = home.json(write);
    let node = home.kill(node);
    let again = home.json(write);
    assert_eq!(
        (&again["offset"], &again["duplicate"]),
        (&first["offset"], &true.into())
    );
    home.client
        .listen(["acme/demo/worker", "--count", "1"])
        .end()
        .expect(0);
    eventually("it was acknowledged", || {
        home.messages("acme/demo/worker").is_empty()
    });
    let _node = home.kill(node);
    assert_eq!(home.json(write)["duplicate"], true);
    assert_eq!(home.messages("acme/demo/worker").len(), 0);
}

#[test]
fn a_killed_subscribers_message_goes_to_the_next_with_its_count() {
    let home = Home::new();
    let _node = home.serve();
    home.client.run("write acme/demo/worker hi").expect(0);
    // The agent receives the message and never answers.
    let mut first = home.client.listen(["acme/demo/worker", "--exec", STUCK]);
    assert!(first.line().contains("hi"), "it was delivered");
    first.signal(Signal::KILL);
    drop(first);
    let mut second = home.client.listen(["acme/demo/worker", "--json"]);
    let message: Value = serde_json::from_str(&second.line()).unwrap();
    assert_eq!(
        (&message["body"], &message["delivery"]),
        (&"hi".into(), &2.into())
    );
}

#[test]
fn message_is_redelivered_after_a_kill_before_its_acknowledgement() {
    let home = Home::new();
    let node = home.serve();
    home.client.run("write acme/demo/worker hi").expect(0);
    let mut worker = home.client.listen(["acme/demo/worker", "--exec", STUCK]);
    assert!(worker.line().contains("hi"));
    eventually("the delivery is on disk", || {
        home.messages("acme/demo/worker")[0]["deliveries"] == 1
    });
    let _node = home.kill(node);
    drop(worker);
    let mut worker = home.client.listen(["acme/demo/worker", "--json"]);
    let message: Value = serde_json::from_str(&worker.line()).unwrap();
    assert_eq!(message["body"], "hi");
    eventually("it was acknowledged", || {
        home.messages("acme/demo/worker").is_empty()
    });
}

#[test]
fn message_of_a_failed_listen_command_is_redelivered() {
    let home = Home::new();
    let _node = home.serve();
    home.client.run("write acme/demo/worker hi").expect(0);
    let command = "[ -e failed ] || { touch failed; exit 1; }";
    let mut worker = home
        .client
        .listen(["acme/demo/worker", "--exec", command, "--json"]);
    for delivery in [1, 2] {
        let message: Value = serde_json::from_str(&worker.line()).unwrap();
        assert_eq!(message["delivery"], delivery);
    }
    eventually("it was acknowledged", || {
        home.messages("acme/demo/worker").is_empty()
    });
}

#[test]
fn dead_letters_survive_kill9_and_can_be_retried() {
    let home = Home::new();
    let once = "--mailbox-deliveries-max 1";
    let node = home.serve_with(once);
    home.client.run("write acme/demo/worker hi").expect(0);
    home.client.run("write acme/demo/worker ho").expect(0);
    // The agent refuses one of the messages.
    let command = "[ \"$(cat)\" = ho ]";
    let worker = home
        .client
        .listen(["acme/demo/worker", "--exec", command, "--json"]);
    eventually("one is dead, and the other is done with", || {
        let mailbox = &home.json("mailbox list")["mailboxes"][0];
        (&mailbox["messages"], &mailbox["dead"]) == (&0.into(), &1.into())
    });
    drop(worker);
    let node = home.kill_and_serve(node, once);
    assert_eq!(home.messages("acme/demo/worker").len(), 0);
    let dead = &home.dead_letters("acme/demo/worker")[0];
    assert_eq!(
        (&dead["body"], &dead["state"], &dead["cause"]),
        (&"hi".into(), &"dead".into(), &"refused".into())
    );
    let retry = format!("mailbox retry acme/demo/worker {}", dead["offset"]);
    assert_eq!(home.client.run(&retry).expect(0).stdout, "redelivered 1\n");
    home.client
        .run(&retry)
        .expect(3)
        .shows_error("has no dead letter at", "peek acme/demo/worker --dead");
    assert_eq!(home.messages("acme/demo/worker").len(), 1);
    let words = ["acme/demo/worker", "--count", "1", "--json"];
    let mut worker = home.client.listen(words);
    let message: Value = serde_json::from_str(&worker.line()).unwrap();
    assert_eq!(
        (&message["body"], &message["delivery"]),
        (&"hi".into(), &2.into())
    );
    worker.end().expect(0);
    eventually("it was acknowledged", || {
        home.messages("acme/demo/worker").is_empty()
    });
    let _node = home.kill_and_serve(node, once);
    assert_eq!(home.dead_letters("acme/demo/worker").len(), 0);
}

#[test]
fn purging_dead_letters_leaves_waiting_messages() {
    let home = Home::new();
    let _node = home.serve_with("--mailbox-deliveries-max 1");
    home.client.run("write acme/demo/worker hi").expect(0);
    let worker = home.client.listen(["acme/demo/worker", "--exec", "exit 1"]);
    eventually("it is dead", || {
        home.dead_letters("acme/demo/worker").len() == 1
    });
    drop(worker);
    home.client.run("write acme/demo/worker ho").expect(0);
    let purge = "mailbox purge acme/demo/worker --dead";
    assert_eq!(home.client.run(purge).expect(0).stdout, "removed 1\n");
    assert_eq!(home.messages("acme/demo/worker").len(), 1);
    let all = home.client.run("mailbox retry acme/demo/worker --all");
    assert_eq!(all.expect(0).stdout, "redelivered 0\n");
    home.client.run("mailbox retry acme/demo/worker").expect(2);
}

#[test]
fn a_full_mailbox_is_busy_with_a_hint() {
    let home = Home::new();
    let _node = home.serve_with("--mailbox-messages-max 2");
    for _ in 0..2 {
        home.client.run("write acme/demo/worker hi").expect(0);
    }
    home.client
        .run("write acme/demo/worker hi")
        .expect(4)
        .shows_error("busy: ", "telpher mailbox peek acme/demo/worker");
}

#[test]
fn a_message_expires_after_its_ttl() {
    let home = Home::new();
    let _node = home.serve();
    home.client
        .run("write acme/demo/worker hi --ttl 1ms")
        .expect(0);
    eventually("it has expired", || {
        home.messages("acme/demo/worker").is_empty()
    });
}

#[test]
fn mailbox_commands_list_peek_acknowledge_and_purge() {
    let home = Home::new();
    let _node = home.serve();
    for body in ["one", "two", "three"] {
        home.client
            .run(&format!("write acme/demo/worker {body}"))
            .expect(0);
    }
    let list = home.json("mailbox list acme/");
    assert_eq!(list["mailboxes"][0]["name"], "acme/demo/worker");
    assert_eq!(list["mailboxes"][0]["messages"], 3);
    assert_eq!(
        home.json("mailbox list other/")["mailboxes"],
        serde_json::json!([])
    );
    let offset = home.messages("acme/demo/worker")[1]["offset"].clone();
    let ack = format!("mailbox ack acme/demo/worker {offset}");
    assert_eq!(home.client.run(&ack).expect(0).stdout, "acknowledged\n");
    home.client
        .run(&ack)
        .expect(3)
        .shows_error("has no message at offset", "telpher mailbox peek");
    let left = home
        .client
        .run("mailbox peek acme/demo/worker")
        .expect(0)
        .stdout
        .clone();
    assert!(
        left.contains("one") && !left.contains("two") && left.contains("three"),
        "{left}"
    );
    assert_eq!(
        home.client
            .run("mailbox purge acme/demo/worker")
            .expect(0)
            .stdout,
        "removed 2\n"
    );
    assert_eq!(home.messages("acme/demo/worker").len(), 0);
    home.client
        .run("mailbox peek acme/demo/nobody")
        .expect(3)
        .shows_error("no mailbox `acme/demo/nobody`", "check the name");
}

#[test]
fn records_are_appended_read_and_followed_across_a_kill() {
    let home = Home::new();
    let node = home.serve();
    let appended = home.json("append acme/demo/log one");
    assert_eq!(
        (&appended["first"], &appended["next"]),
        (&0.into(), &1.into())
    );
    let ended = home
        .client
        .run_with_input("append acme/demo/log --lines -", b"two\nthree\n");
    assert_eq!(ended.expect(0).stdout, "appended 2 at 1\n");
    let node = home.kill(node);
    let read = home.client.run("read acme/demo/log");
    assert_eq!(read.expect(0).stdout, "0 one\n1 two\n2 three\n");
    assert_eq!(
        home.client
            .run("read acme/demo/log --from 2 --raw")
            .expect(0)
            .stdout,
        "three"
    );
    let streams = home.json("streams");
    let expected = serde_json::json!([{ "name": "acme/demo/log", "start": 0, "next": 3 }]);
    assert_eq!(streams["streams"], expected);

    let words = [
        "read",
        "acme/demo/log",
        "--from",
        "2",
        "--follow",
        "--count",
        "3",
    ];
    let mut follower = home.client.start(words);
    assert_eq!(follower.line(), "2 three\n");
    home.client.run("append acme/demo/log four").expect(0);
    assert_eq!(follower.line(), "3 four\n");
    // The follower continues after the restart.
    let _node = home.kill(node);
    home.client.run("append acme/demo/log five").expect(0);
    assert_eq!(follower.line(), "4 five\n");
    follower.end().expect(0);
}

#[test]
fn an_append_with_a_wrong_expected_end_is_refused_with_a_hint() {
    let home = Home::new();
    let _node = home.serve();
    home.client
        .run("append acme/demo/log one --expect 0")
        .expect(0);
    home.client
        .run("append acme/demo/log two --expect 0")
        .expect(1)
        .shows_error("conflict: the stream ends at 1", "--expect 1");
    home.client
        .run("append acme/demo/log two --expect 1")
        .expect(0);
    assert_eq!(
        home.client.run("read acme/demo/log").expect(0).stdout,
        "0 one\n1 two\n"
    );
}

#[test]
fn read_follow_waits_for_a_stream_that_does_not_exist() {
    let home = Home::new();
    let _node = home.serve();
    home.client
        .run("read acme/demo/log")
        .expect(3)
        .shows_error("not_found: no stream `acme/demo/log`", "check the name");
    let mut follower = home
        .client
        .start(["read", "acme/demo/log", "--follow", "--count", "1"]);
    home.client.run("append acme/demo/other x").expect(0);
    home.client.run("append acme/demo/log one").expect(0);
    assert_eq!(follower.line(), "0 one\n");
    follower.end().expect(0);
}

#[test]
fn offsets_continue_after_a_stream_is_trimmed_or_deleted() {
    let home = Home::new();
    let node = home.serve();
    let stream = "acme/demo/log";
    let lines = b"zero\none\ntwo\nthree\n";
    home.client
        .run_with_input(&format!("append {stream} --lines -"), lines)
        .expect(0);
    let trimmed = home.json(&format!("stream trim {stream} --before 2"));
    let expected = serde_json::json!({ "name": stream, "start": 2, "next": 4 });
    assert_eq!(trimmed, expected);
    let read = |home: &Home| home.client.run(&format!("read {stream}"));
    assert_eq!(read(&home).expect(0).stdout, "2 two\n3 three\n");
    let deleted = home.client.run(&format!("stream delete {stream}"));
    let told = "acme/demo/log starts at 4 and ends at 4\n";
    assert_eq!(deleted.expect(0).stdout, told);
    let _node = home.kill(node);
    assert_eq!(read(&home).expect(0).stdout, "");
    home.client.run(&format!("append {stream} four")).expect(0);
    assert_eq!(read(&home).expect(0).stdout, "4 four\n");
    home.client
        .run("stream delete acme/demo/none")
        .expect(3)
        .shows_error("no stream `acme/demo/none`", "");
}

#[test]
fn records_above_stream_retention_size_are_deleted() {
    let place = Place::new();
    let node = place.serve("");
    let append = |node: &Node, body: &str| {
        let url = node.url("native");
        place
            .run(&format!("append acme/demo/log {body} --url {url}"))
            .expect(0);
    };
    for _ in 0..20 {
        append(&node, &"x".repeat(100));
    }
    node.stop().expect(0);
    let node = place.serve("--stream-retention-size 500B");
    let start = || {
        let url = node.url("native");
        let streams = place.run(&format!("streams --json --url {url}")).json();
        streams["streams"][0]["start"].as_u64().unwrap()
    };
    eventually("old records are deleted", || start() > 0);
    assert!((14..=16).contains(&start()), "{}", start());
}

#[test]
fn names_per_namespace_are_limited() {
    let place = Place::new();
    let node = place.serve("--namespace-names-max 2");
    let url = node.url("native");
    let run = |line: &str| place.run(&format!("{line} --url {url}"));
    run("append acme/demo/one x").expect(0);
    run("write acme/demo/two x").expect(0);
    for line in ["append acme/demo/three x", "write acme/demo/three x"] {
        run(line)
            .expect(6)
            .shows_error("has too many names (limit 2, `namespace.names_max`)", "");
    }
    run("append acme/demo/one x").expect(0);
    run("append acme/other/one x").expect(0);
    assert_eq!(node.metric("telpher_names_refused_total"), 2);
}

#[test]
fn partition_limit_counts_partitions_of_deleted_topics() {
    let place = Place::new();
    let node = place.serve("--namespace-names-max 4 --topics-partitions-max 3");
    let url = node.url("native");
    let run = |line: &str| place.run(&format!("{line} --url {url}"));
    run("topic create one --partitions 4")
        .expect(6)
        .shows_error(
            "too many partitions: 3 more can be created (limit 3, `topics.partitions_max`)",
            "",
        );
    run("topic create one --partitions 3").expect(0);
    run("topic delete one").expect(0);
    run("topic create two --partitions 2")
        .expect(6)
        .shows_error(
            "those of deleted topics included (limit 4, `namespace.names_max`)",
            "",
        );
    run("topic create two --partitions 1").expect(0);
    let answer = place.shell(&format!(
        "curl -s -w '%{{http_code}}' -H 'content-type: application/json' \
         -d '{{\"name\": \"three\", \"partitions\": 1}}' {}/v1/topics",
        node.url("http")
    ));
    assert!(answer.stdout.ends_with("403"), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("namespace.names_max"),
        "{}",
        answer.stdout
    );
    assert_eq!(node.metric("telpher_names_refused_total"), 2);
}
