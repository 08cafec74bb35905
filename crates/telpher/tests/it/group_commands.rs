//! `telpher group`: consumer groups of kcat, whose offsets are reset from the command line.

use serde_json::{Value, json};

use crate::support::{Ended, Node, Place, eventually};

/// A node with a topic of five records, and a client.
struct Home {
    place: Place,
    node: Node,
}

impl Home {
    fn new() -> Self {
        let place = Place::new();
        let node = place.serve("");
        let home = Self { place, node };
        home.run("topic create orders --partitions 1").expect(0);
        for record in 0..5 {
            let line = format!("topic produce orders record-{record}");
            home.run(&line).expect(0);
        }
        home
    }

    fn run(&self, line: &str) -> Ended {
        self.place
            .run(&format!("{line} --url {}", self.node.url("native")))
    }

    fn json(&self, line: &str) -> Value {
        self.run(&format!("{line} --json")).expect(0).json()
    }

    /// Returns the options of kcat for a member of the group.
    fn member(&self) -> String {
        let broker = self.node.url("kafka");
        format!("-b {broker} -G billing -X auto.offset.reset=earliest -u -q orders")
    }
}

#[test]
fn offsets_are_shown_and_reset_and_a_consumer_continues_there() {
    let home = Home::new();
    let reset = "group reset-offsets billing --topic orders";
    let shown = home.run(&format!("{reset} --to-offset 3 --dry-run"));
    assert_eq!(
        shown.expect(0).stdout,
        "TOPIC   PARTITION  PRESENT  NEW  LAG  CHANGE\n\
         orders          0  -          3    2  -\n\
         dry run: 1 offset of billing would be reset\n"
    );
    home.run("group describe billing").expect(3).shows_error(
        "not_found: there is no consumer group `billing`",
        "`telpher group list` lists the groups, `telpher topic list` the topics",
    );
    home.run(&format!("{reset} --to-offset 3")).expect(0);
    let group = home.json("group describe billing");
    let position = json!({"topic": "orders", "partition": 0, "committed": 3, "end": 5, "lag": 2});
    assert_eq!(group["partitions"], json!([position]));
    let moved = home.json("group reset-offsets billing --shift-by -2");
    assert_eq!(moved["partitions"][0]["offset"], 1);
    let read = home.place.shell(&format!("kcat -c 4 {}", home.member()));
    let expected = "record-1\nrecord-2\nrecord-3\nrecord-4\n";
    assert_eq!(read.expect(0).stdout, expected);
    let list = home.json("group list");
    assert_eq!(list["groups"][0]["group"], "billing", "{list}");
    let described = home.run("group describe billing");
    let described = &described.expect(0).stdout;
    assert!(described.starts_with("billing\n  state "), "{described}");
    home.node.stop().expect(0);
}

#[test]
fn offsets_of_a_group_with_a_consumer_are_not_reset() {
    let home = Home::new();
    let consumer = format!("exec kcat {}", home.member());
    let mut consumer = home.place.start_shell(&consumer);
    assert_eq!(consumer.line(), "record-0\n");
    for dry_run in ["", " --dry-run"] {
        let refused = home.run(&format!("group reset-offsets billing --to-latest{dry_run}"));
        let error = &refused.expect(1).stderr;
        assert!(error.contains("conflict: the consumer group `billing` has members (1"));
        assert!(error.contains("hint: `telpher group describe billing` shows the members"));
    }
    consumer.stop();
    eventually("the group has no members", || {
        home.json("group describe billing")["members"] == json!([])
    });
    let made = home.json("group reset-offsets billing --topic orders --to-latest");
    assert_eq!(made["partitions"][0]["lag_after"], 0);
    home.node.stop().expect(0);
}

#[test]
fn a_reset_needs_one_position() {
    let place = Place::new();
    for line in [
        "group reset-offsets billing",
        "group reset-offsets billing --to-latest --to-earliest",
        "group reset-offsets billing --to-latest --partition 1",
    ] {
        place.run(line).expect(2);
    }
}
