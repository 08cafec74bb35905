//! `telpher topic`: the same topics from the command line and from kcat.

use serde_json::{Value, json};

use crate::support::{Ended, Node, Place};

/// A node and a client.
struct Home {
    place: Place,
    node: Node,
}

impl Home {
    fn new() -> Self {
        let place = Place::new();
        let node = place.serve("");
        Self { place, node }
    }

    fn run(&self, words: &[&str], input: &str) -> Ended {
        self.place.write("input", input);
        let words: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let (words, url) = (words.join(" "), self.node.url("native"));
        let telpher = env!("CARGO_BIN_EXE_telpher");
        self.place
            .shell(&format!("{telpher} topic {words} --url {url} < input"))
    }

    #[track_caller]
    fn text(&self, words: &[&str]) -> String {
        self.run(words, "").expect(0).stdout.clone()
    }

    /// Runs a command and returns its JSON lines.
    #[track_caller]
    fn lines(&self, words: &[&str]) -> Vec<Value> {
        let words = [words, &["--json"]].concat();
        let text = self.text(&words);
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn a_topic_is_created_produced_to_consumed_and_deleted() {
    let home = Home::new();
    let made = home.text(&[
        "create",
        "orders",
        "--partitions",
        "2",
        "--config",
        "retention.ms=86400000",
    ]);
    assert!(made.starts_with("orders\n  id "), "{made}");
    assert!(
        made.contains("configuration: retention.ms=86400000\n"),
        "{made}"
    );
    let produced = home.text(&[
        "produce",
        "orders",
        "two books",
        "--key",
        "21",
        "--header",
        "trace=7f3",
    ]);
    assert_eq!(produced, "1 record in orders\n");
    let lines = home.run(
        &["produce", "orders", "--key-separator=:"],
        "21:a pen\nx:an ink: blue\n",
    );
    assert_eq!(lines.expect(0).stdout, "2 records in orders\n");
    let described = home
        .run(&["describe", "orders", "--json"], "")
        .expect(0)
        .json();
    let ends: Vec<_> = described["state"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["end"].as_u64().unwrap())
        .collect();
    assert_eq!((ends.len(), ends.iter().sum::<u64>()), (2, 3));

    let read = home.lines(&["consume", "orders"]);
    let first = read.iter().find(|it| it["value"] == "two books").unwrap();
    assert_eq!(
        (&first["partition"], &first["offset"], &first["key"]),
        (&json!(0), &json!(0), &json!("21"))
    );
    assert_eq!(first["headers"], json!([{"name": "trace", "value": "7f3"}]));
    let mut values: Vec<_> = read
        .iter()
        .map(|it| it["value"].as_str().unwrap())
        .collect();
    values.sort_unstable();
    assert_eq!(values, ["a pen", "an ink: blue", "two books"]);
    let human = home.text(&["consume", "orders", "--partition", "0", "--max", "1"]);
    assert_eq!(human, "0:0 21: two books\n");
    let raw = home.text(&[
        "consume",
        "orders",
        "--partition",
        "0",
        "--from",
        "1",
        "--raw",
        "--key-separator",
    ]);
    assert!(raw.starts_with("21\ta pen\n"), "{raw}");

    let list = home.text(&["list"]);
    assert!(list.contains("orders"), "{list}");
    let altered = home.text(&[
        "alter",
        "orders",
        "--partitions",
        "3",
        "--reset",
        "retention.ms",
    ]);
    assert!(altered.contains("configuration: -\n"), "{altered}");
    assert_eq!(home.text(&["delete", "orders"]), "deleted orders\n");
    home.run(&["describe", "orders"], "").expect(3).shows_error(
        "not_found: there is no topic `orders`",
        "`telpher topic list` lists the topics; `telpher topic create orders` creates this one",
    );
    home.node.stop().expect(0);
}

#[test]
fn the_command_line_and_kcat_consume_each_others_records() {
    let home = Home::new();
    let lines: String = (0..2_500)
        .map(|number| format!("k{}\t{number}\n", number % 7))
        .collect();
    let produced = home.run(&["produce", "numbers", "--key-separator"], &lines);
    assert_eq!(produced.expect(0).stdout, "2500 records in numbers\n");
    let broker = home.node.url("kafka");
    let seen = home.place.shell(&format!(
        "kcat -b {broker} -C -t numbers -o beginning -e -q -u -K '\t'"
    ));
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&seen.expect(0).stdout), sorted(&lines));
    // kcat's partitioner agrees: later records are in the partition of their key.
    home.place.write("more", "k3\tbehind\n");
    let more = "-P -t numbers -K '\t' -X topic.partitioner=murmur2_random -z zstd < more";
    home.place
        .shell(&format!("kcat -b {broker} {more}"))
        .expect(0);
    let read = home.lines(&["consume", "numbers"]);
    assert_eq!(read.len(), 2_501);
    let of_key: Vec<_> = read.iter().filter(|it| it["key"] == "k3").collect();
    assert!(
        of_key
            .iter()
            .all(|it| it["partition"] == of_key[0]["partition"])
    );
    assert_eq!(of_key.last().unwrap()["value"], "behind");
    home.node.stop().expect(0);
}

#[test]
fn new_records_are_followed() {
    let home = Home::new();
    home.run(&["produce", "t", "before"], "").expect(0);
    let url = home.node.url("native");
    let words = [
        "topic", "consume", "t", "--follow", "--max", "4", "--raw", "--url", url,
    ];
    let mut follower = home.place.start(words);
    assert_eq!(follower.line(), "before\n");
    for value in ["a", "b", "c"] {
        home.run(&["produce", "t", value], "").expect(0);
        assert_eq!(follower.line(), format!("{value}\n"));
    }
    assert!(follower.end().status.success());
    home.node.stop().expect(0);
}

#[test]
fn errors_have_a_hint() {
    let home = Home::new();
    home.run(&["create", "t"], "").expect(0);
    home.run(&["create", "t"], "").expect(1).shows_error(
        "conflict: topic `t` already exists",
        "`telpher topic describe t` shows the topic",
    );
    home.run(&["consume", "t", "--from", "7"], "")
        .expect(2)
        .shows_error("an offset needs a partition", "--partition N selects one");
    home.run(&["produce", "t", "--key-separator"], "no tab\n")
        .expect(2)
        .shows_error(
            "the line \"no tab\" has no separator \"\\t\"",
            "--key-separator=TEXT sets the text between key and value",
        );
    home.run(&["consume", "tt"], "").expect(3).shows_error(
        "not_found: there is no topic `tt`; is `t` meant?",
        "`telpher topic list` lists the topics; `telpher topic create tt` creates this one",
    );
    home.node.stop().expect(0);
}

#[test]
fn the_conversation_topic_is_read_only_and_survives_kill9_for_groups() {
    let place = Place::new();
    let say = |node: &Node, from: u32, count: u32| {
        let messages: Vec<_> = (from..from + count)
            .map(|it| json!({"role": "user", "content": it.to_string()}))
            .collect();
        let body = json!({ "messages": messages }).to_string();
        place.write("messages", &body);
        let http = node.url("http");
        let ask =
            format!("curl -sf {http}/v1/acme/demo/conversations/c-1/messages --json @messages");
        place.shell(&ask).expect(0);
    };
    let read = |node: &Node, count: u32| {
        let broker = node.url("kafka");
        let words = format!(
            "-G readers -c {count} -q -X auto.offset.reset=earliest acme.demo.conversations"
        );
        let seen = place.shell(&format!("kcat -b {broker} {words}"));
        let lines = seen.expect(0).stdout.lines();
        let seq = |line: &str| {
            serde_json::from_str::<Value>(line).unwrap()["message"]["seq"]
                .as_u64()
                .unwrap()
        };
        lines.map(seq).collect::<Vec<_>>()
    };
    let node = place.serve("");
    say(&node, 1, 20);
    assert_eq!(read(&node, 20), (1..=20).collect::<Vec<_>>());
    node.signal(rustix::process::Signal::KILL);
    node.end();
    let node = place.serve("");
    say(&node, 21, 10);
    assert_eq!(read(&node, 10), (21..=30).collect::<Vec<_>>());
    let broker = node.url("kafka");
    place.write("input", "x\n");
    let produced = place.shell(&format!(
        "kcat -b {broker} -P -t acme.demo.conversations < input"
    ));
    assert!(!produced.status.success(), "{}", produced.stderr);
    assert!(
        produced.stderr.contains("Invalid topic"),
        "{}",
        produced.stderr
    );
    node.stop().expect(0);
}
