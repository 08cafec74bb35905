//! `telpher conversation`: all commands, streamed answers, and kills of the node.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Node, Place, Running, free_port};

/// A node at fixed addresses, and a directory for its clients.
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
        self.place.serve_at(&self.address, "")
    }

    fn kill(&self, node: Node) -> Node {
        node.signal(Signal::KILL);
        node.end();
        self.serve()
    }

    /// Runs a command and returns its JSON output.
    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        let words = [&["conversation"], words, &["--json"]].concat();
        self.client.run_words(words).expect(0).json()
    }

    /// Runs a command and returns its text output.
    #[track_caller]
    fn text(&self, words: &[&str]) -> String {
        let words = [&["conversation"], words].concat();
        self.client.run_words(words).expect(0).stdout.clone()
    }

    fn tail(&self, words: &[&str]) -> Running {
        self.client
            .start([&["conversation", "tail", "--json", "--follow"], words].concat())
    }
}

/// Returns the next printed event.
#[track_caller]
fn event(tail: &mut Running) -> Value {
    let line = tail.line();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

fn seqs(messages: &Value) -> Vec<u64> {
    let messages = messages.as_array().unwrap();
    let seqs = messages.iter().map(|message| message["seq"].as_u64());
    seqs.map(Option::unwrap).collect()
}

#[test]
fn conversation_commands_append_show_and_deduplicate() {
    let home = Home::new();
    let _node = home.serve();
    let first = home.json(&[
        "append",
        "c-1",
        "Where is it?",
        "--from",
        "alice",
        "--id",
        "m-1",
    ]);
    assert_eq!(
        (&first["first_seq"], &first["deduplicated"]),
        (&1.into(), &0.into())
    );
    let again = home.text(&[
        "append",
        "c-1",
        "Where is it?",
        "--from",
        "alice",
        "--id",
        "m-1",
    ]);
    assert_eq!(again, "already stored as message 1\n");
    let answer = home.text(&[
        "append",
        "c-1",
        "On its\nway.",
        "--role",
        "assistant",
        "--expect",
        "1",
    ]);
    assert_eq!(answer, "appended as message 2\n");
    let shown = home.text(&["show", "c-1"]);
    let said = "\n1 user alice: Where is it?\n2 assistant: On its\n    way.\n";
    assert!(shown.ends_with(said), "{shown}");
    let page = home.json(&["show", "c-1", "--after", "1", "--limit", "5"]);
    assert_eq!(seqs(&page["messages"]), [2]);
    assert_eq!(page["conversation"]["head_seq"], 2);
    let window = home.json(&["context", "c-1", "--budget", "1000"]);
    assert_eq!(seqs(&window["messages"]), [1, 2]);
    let window = home.text(&["context", "c-1", "--policy", "last_n", "--n", "2"]);
    assert!(window.ends_with(&said[1..]), "{window}");
    assert_eq!(
        home.text(&["tail", "c-1", "-n", "1"]),
        "2 assistant: On its\n    way.\n"
    );
    assert_eq!(
        home.text(&["tail", "c-1", "--from", "1"]),
        "2 assistant: On its\n    way.\n"
    );
}

#[test]
fn conversation_errors_carry_a_hint() {
    let home = Home::new();
    let _node = home.serve();
    let run = |line: &str| home.client.run(&format!("conversation {line}"));
    run("append c-1 hi --id m-1").expect(0);
    run("append c-1 other --id m-1")
        .expect(1)
        .shows_error("id_reused", "another --id");
    run("append c-1 x --expect 7")
        .expect(1)
        .shows_error("conflict", "--expect 1");
    let conflict = run("append c-1 x --expect 7 --json");
    let error = &conflict.expect(1).json()["error"];
    assert_eq!(
        (&error["code"], &error["head_seq"]),
        (&"conflict".into(), &1.into())
    );
    run("show nowhere")
        .expect(3)
        .shows_error("not_found", "append nowhere TEXT");
    run("append a/b/c/d x")
        .expect(2)
        .shows_error("not the name of a conversation", "org/namespace/x");
    run("append c-1 x --metadata {a")
        .expect(2)
        .shows_error("--metadata", "single quotes");
    run("put c-1 --context-defaults {\"bugdet\":1}")
        .expect(2)
        .shows_error("`budget`", "");
    run("context c-1 --budget 1")
        .expect(1)
        .shows_error("over_budget", "--drop-first");
    run("context c-1")
        .expect(2)
        .shows_error("a budget is required", "");
    run("import c-1 no-such-file")
        .expect(3)
        .shows_error("no-such-file", "standard input");
    home.client.write(
        "bad.jsonl",
        "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":7}\n",
    );
    run("import c-1 bad.jsonl")
        .expect(2)
        .shows_error("line 2", "");
    run("delete c-1").expect(0);
    run("append c-1 x")
        .expect(3)
        .shows_error("gone", "choose another");
    let elsewhere = home.client.run("conversation list --url tcp://127.0.0.1:1");
    elsewhere
        .expect(4)
        .shows_error("127.0.0.1:1", "telpher serve");
}

#[test]
fn conversations_are_listed_copied_exported_and_imported() {
    let home = Home::new();
    let _node = home.serve();
    for (name, user) in [
        ("a/b/c-1", "alice"),
        ("a/b/c-2", "bob"),
        ("a/b/c-3", "alice"),
    ] {
        home.text(&["append", name, "hello", "--from", user]);
        let metadata = json!({ "user": user, "price": 1.50 }).to_string();
        home.text(&["put", name, "--metadata", &metadata]);
    }
    let of_alice = ["list", "--in", "a/b", "--metadata", "user=alice"];
    let listed = home.json(&of_alice);
    let ids = |listed: &Value, key: &str| {
        let entries = listed[key].as_array().unwrap().iter();
        entries
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&listed, "conversations"), ["c-3", "c-1"]);
    assert!(home.text(&of_alice).starts_with("ID   HEAD  ACTIVE"));
    let first = home
        .client
        .run("conversation list --in a/b --limit 1 --json");
    assert_eq!(ids(&first.expect(0).json(), "conversations"), ["c-3"]);
    assert!(first.stderr.contains("there are more"), "{}", first.stderr);
    home.text(&["append", "a/b/c-1", "and?", "--from", "bob"]);
    let inbox = home.json(&["inbox", "alice", "--in", "a/b", "--unread"]);
    assert_eq!(ids(&inbox, "lines"), ["c-1"]);
    assert_eq!(inbox["lines"][0]["last"]["text"], "and?");

    let kept = home.json(&["put", "a/b/c-2", "--keep-last", "7", "--keep-bytes", "5000"]);
    assert_eq!(
        (&kept["keep_last"], &kept["keep_bytes"]),
        (&7.into(), &5000.into())
    );
    assert_eq!(kept["metadata"]["user"], "bob");
    let copy = home.json(&["fork", "a/b/c-1", "c-1b", "--at", "1"]);
    assert_eq!(
        (&copy["head_seq"], &copy["name"]),
        (&1.into(), &"a/b/c-1b".into())
    );
    let exported = home.text(&["export", "a/b/c-1"]);
    assert_eq!(exported.lines().count(), 3);
    let import = || {
        let words = "conversation import other --json";
        home.client
            .run_with_input(words, exported.as_bytes())
            .expect(0)
            .json()
    };
    assert_eq!(
        import(),
        json!({ "appended": 2, "deduplicated": 0, "head_seq": 2 })
    );
    assert_eq!(
        import(),
        json!({ "appended": 0, "deduplicated": 2, "head_seq": 2 })
    );
    let again = home.text(&["export", "other"]);
    let without_place = |text: &str| {
        let messages = text.lines().skip(1).map(|line| {
            let mut message: Value = serde_json::from_str(line).unwrap();
            let members = message.as_object_mut().unwrap();
            members.remove("at");
            members.remove("event");
            message
        });
        messages.collect::<Vec<_>>()
    };
    assert_eq!(without_place(&again), without_place(&exported));
}

/// A streamed answer: an HTTP request whose body has not ended.
struct Answer(TcpStream);

impl Answer {
    fn begin(node: &Node, path: &str) -> Self {
        let mut stream = TcpStream::connect(node.address("http")).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        Self(stream)
    }

    fn chunk(&mut self, chunk: &Value) {
        let line = format!("{chunk}\n");
        write!(self.0, "{:x}\r\n{line}\r\n", line.len()).unwrap();
    }

    fn text(&mut self, text: &str) {
        self.chunk(&json!({ "type": "text-delta", "id": "t", "delta": text }));
    }

    /// Ends the body and returns the node's answer.
    fn end(mut self) -> String {
        self.chunk(&json!({ "type": "finish" }));
        self.0.write_all(b"0\r\n\r\n").unwrap();
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// Reads events up to the piece of an answer with `text`.
#[track_caller]
fn wait_for_delta(tail: &mut Running, text: &str) -> Value {
    loop {
        let event = event(tail);
        if event["data"]["chunk"]["delta"] == text {
            return event;
        }
        assert_ne!(event["event"], "message", "{event}");
    }
}

#[test]
fn tail_shows_a_streamed_answer_while_it_is_written() {
    let home = Home::new();
    let node = home.serve();
    home.text(&["append", "c-1", "Where is it?"]);
    let mut tail = home.tail(&["c-1", "-n", "0", "--count", "1"]);
    let mut for_people = home.client.start([
        "conversation",
        "tail",
        "c-1",
        "--follow",
        "-n",
        "0",
        "--count",
        "1",
    ]);
    assert_eq!(event(&mut tail)["event"], "head");
    let mut answer = Answer::begin(&node, "/v1/conversations/c-1/messages/a-1/stream?from=bot");
    answer.chunk(&json!({ "type": "text-start", "id": "t" }));
    answer.text("It is on");
    let delta = wait_for_delta(&mut tail, "It is on");
    assert_eq!(delta["data"]["mid"], "a-1");
    // A new watcher gets the part of the answer that exists.
    let mut late = home.tail(&["c-1", "--from", "1", "--count", "1"]);
    wait_for_delta(&mut late, "It is on");
    answer.text(" its way.");
    wait_for_delta(&mut tail, " its way.");
    let answer = answer.end();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    for mut tail in [tail, late] {
        let message = loop {
            let event = event(&mut tail);
            if event["event"] == "message" {
                break event;
            }
        };
        assert_eq!(message["data"]["parts"][0]["text"], "It is on its way.");
        assert_eq!(
            (&message["data"]["seq"], &message["data"]["from"]),
            (&2.into(), &"bot".into())
        );
        tail.end().expect(0);
    }
    let line = for_people.line();
    assert!(
        line.starts_with("~ a-1: It is on its way.") || line.starts_with("2 assistant"),
        "{line}"
    );
    for_people.end().expect(0);
}

#[test]
fn a_conversation_tail_resumes_after_kill9_within_a_streamed_answer() {
    let home = Home::new();
    let node = home.serve();
    home.text(&["append", "c-1", "Where is it?"]);
    let mut tail = home.tail(&["c-1", "--count", "4"]);
    let mut answer = Answer::begin(&node, "/v1/conversations/c-1/messages/a-1/stream");
    answer.chunk(&json!({ "type": "text-start", "id": "t" }));
    let words: Vec<_> = (0..20).map(|word| format!("word{word} ")).collect();
    let mut seen = vec![event(&mut tail)];
    for word in &words {
        answer.text(word);
        loop {
            let next = event(&mut tail);
            let is_it = next["data"]["chunk"]["delta"] == **word;
            seen.push(next);
            if is_it {
                break;
            }
        }
    }
    let node = home.kill(node);
    tail.wait_for_note("connection lost; waiting");
    home.text(&["append", "c-1", "Are you there?", "--id", "m-3"]);
    let _node = home.kill(node);
    // A retry finds the messages that were acknowledged before the kill.
    let again = home.json(&["append", "c-1", "Are you there?", "--id", "m-3"]);
    assert_eq!(
        (&again["deduplicated"], &again["last_seq"]),
        (&1.into(), &3.into())
    );
    home.text(&["append", "c-1", "Hello?"]);
    let rest = tail.end();
    let rest = rest
        .expect(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    seen.extend(rest);
    let messages: Vec<_> = seen
        .iter()
        .filter(|event| event["event"] == "message")
        .collect();
    let numbers: Vec<_> = messages.iter().map(|event| &event["data"]["seq"]).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let answer = &messages[1]["data"];
    assert_eq!(
        (&answer["status"], &answer["id"]),
        (&"interrupted".into(), &"a-1".into())
    );
    let text = answer["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(words.concat().starts_with(text), "{text}");
    let indices = seen.iter().filter(|event| event["event"] == "delta");
    let indices: Vec<_> = indices
        .map(|event| event["data"]["index"].as_u64().unwrap())
        .collect();
    let expected: Vec<_> = (0..=words.len() as u64).collect();
    assert_eq!(indices, expected, "each piece once, in order");
}

#[test]
fn acked_messages_survive_kill9_without_gaps_or_duplicates() {
    let home = Home::new();
    let mut node = home.serve();
    for number in 1..=4 {
        let (id, text) = (format!("m-{number}"), format!("message {number}"));
        let expect = (number - 1).to_string();
        home.text(&["append", "c-1", &text, "--id", &id, "--expect", &expect]);
        node = home.kill(node);
    }
    let shown = home.json(&["show", "c-1"]);
    assert_eq!(seqs(&shown["messages"]), [1, 2, 3, 4]);
    assert_eq!(shown["conversation"]["head_seq"], 4);
}

#[test]
fn one_message_is_shown_and_a_conversation_is_cleared() {
    let home = Home::new();
    let _node = home.serve();
    home.text(&["append", "c-1", "Hello", "--from", "alice", "--id", "m-1"]);
    assert_eq!(
        home.text(&["message", "c-1", "m-1"]),
        "1 user alice: Hello\n"
    );
    let run = |line: &str| home.client.run(&format!("conversation {line}"));
    run("message c-1 m-2")
        .expect(3)
        .shows_error("not_found", "");
    run("clear c-1 --expect 2")
        .expect(1)
        .shows_error("conflict", "--expect 1");
    let cleared = home.json(&["clear", "c-1", "--expect", "1"]);
    assert_eq!(
        (&cleared["head_seq"], &cleared["cleared_seq"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        home.text(&["append", "c-1", "Again"]),
        "appended as message 2\n"
    );
    assert!(home.text(&["show", "c-1"]).ends_with("\n2 user: Again\n"));
}

#[test]
fn newest_messages_are_retracted() {
    let home = Home::new();
    let _node = home.serve();
    for text in ["One", "Two", "Three"] {
        home.text(&["append", "c-1", text]);
    }
    let run = |line: &str| home.client.run(&format!("conversation {line}"));
    run("retract c-1 --expect 2 --last 1")
        .expect(1)
        .shows_error("conflict", "--expect 3");
    run("retract c-1 --expect 3").expect(2);
    assert_eq!(
        home.text(&["retract", "c-1", "--expect", "3", "--last", "2"]),
        "retracted 2 messages: numbers 2 to 4 have none now\n"
    );
    let nothing = home.json(&["retract", "c-1", "--expect", "4", "--after", "1"]);
    assert_eq!(nothing, json!({"count": 0, "head_seq": 4}));
    home.text(&["append", "c-1", "Four", "--expect", "4"]);
    assert!(
        home.text(&["show", "c-1"])
            .ends_with("\n1 user: One\n5 user: Four\n")
    );
}
