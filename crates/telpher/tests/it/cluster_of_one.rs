//! A node that begins a cluster, is its only member, and leaves it again with its data.

use kafka::metadata;

use crate::kafka::client::Client;
use crate::support::{Ended, Node, Place, eventually, free_port};

struct Ports {
    flags: String,
    native: String,
}

impl Ports {
    fn new() -> Ports {
        let [native, http, kafka, link] = [(); 4].map(|()| free_port());
        Ports {
            flags: format!(
                "--http-listen 127.0.0.1:{http} --kafka-listen 127.0.0.1:{kafka} \
                 --cluster-listen 127.0.0.1:{link}"
            ),
            native: format!("127.0.0.1:{native}"),
        }
    }

    fn init(&self, place: &Place) -> serde_json::Value {
        let line = format!(
            "cluster init --json --data data --native-listen {} {}",
            self.native, self.flags
        );
        place.run(&line).expect(0).json()
    }

    fn serve(&self, place: &Place) -> Node {
        place.serve_member(&self.native, &format!("--data data {}", self.flags))
    }
}

/// Runs a command line at a node, again while the node does not serve: a member that a busy machine
/// delays for more than its lease closes its services for a moment.
fn run_at(place: &Place, node: &Node, line: &str) -> Ended {
    let line = format!("{line} --url {}", node.url("native"));
    let mut ended = place.run(&line);
    eventually("the node serves", || {
        let is_away = ["cannot connect", "moved", "no member leads"];
        if is_away.iter().any(|it| ended.stderr.contains(it)) {
            ended = place.run(&line);
            return false;
        }
        true
    });
    ended
}

fn append(place: &Place, node: &Node, text: &str) {
    run_at(place, node, &format!("append acme/demo/log {text}")).expect(0);
}

fn records(place: &Place, node: &Node) -> String {
    let read = run_at(place, node, "read acme/demo/log");
    read.expect(0).stdout.clone()
}

/// Returns the leader epoch of the partition of a topic, which is created if there is none.
fn epoch(node: &Node) -> i32 {
    let request = metadata::Request {
        topics: Some(vec![metadata::TopicRequest {
            name: Some("epochs".to_owned()),
            ..metadata::TopicRequest::default()
        }]),
        allow_auto_topic_creation: true,
        ..metadata::Request::default()
    };
    let mut epoch = None;
    eventually("the topic has a leader", || {
        let asked = Client::connect(node).and_then(|mut client| client.ask(9, &request));
        let topic = asked.ok().and_then(|it| it.topics.into_iter().next());
        epoch = topic.and_then(|it| it.partitions.first().map(|it| it.leader_epoch));
        epoch.is_some()
    });
    epoch.unwrap()
}

#[test]
fn last_member_leaves_with_its_data_and_can_begin_again() {
    let place = Place::new();
    let ports = Ports::new();
    let node = place.serve("--data data");
    append(&place, &node, "alone");
    let first = epoch(&node);
    node.stop().expect(0);

    let begun = ports.init(&place);
    assert_eq!(begun["id"], 1);
    let node = ports.serve(&place);
    append(&place, &node, "member");
    let refused = run_at(&place, &node, "conversation append c-1 hello");
    let error = &refused.stderr;
    assert!(error.contains("topics and streams only"), "{error}");
    let second = epoch(&node);
    assert!(second > first, "{second} after {first}");
    let added = run_at(&place, &node, "cluster add --json");
    let command = added.expect(0).json()["command"].to_string();
    let link = begun["link"].as_str().unwrap();
    assert!(command.contains(&format!("--join {link}")), "{command}");
    let in_use = place.run("cluster leave --data data");
    assert_ne!(in_use.code(), 0, "the node runs");
    node.stop().expect(0);

    let left = place.run("cluster leave --json --data data");
    assert_eq!(left.expect(0).json()["cluster"], begun["cluster"]);
    assert!(!place.path("data/cluster.key").exists());
    let again = place.run("cluster leave --data data");
    again
        .expect(2)
        .shows_error("is no member of a cluster", "--data");
    let node = place.serve("--data data");
    assert_eq!(records(&place, &node), "0 alone\n1 member\n");
    append(&place, &node, "again");
    let third = epoch(&node);
    assert!(third > second, "{third} after {second}");
    node.stop().expect(0);

    let begun = ports.init(&place);
    assert_eq!(begun["id"], 2, "an id never comes back");
    let node = ports.serve(&place);
    assert_eq!(records(&place, &node), "0 alone\n1 member\n2 again\n");
    let fourth = epoch(&node);
    assert!(fourth > third, "{fourth} after {third}");
    node.stop().expect(0);
    place.run("cluster leave --data data").expect(0);
    let node = place.serve("--data data");
    run_at(&place, &node, "conversation append c-1 hello").expect(0);
    node.stop().expect(0);
    let refused = place.run("cluster init --data data");
    refused
        .expect(2)
        .shows_error("conversation default/default/c-1", "another data directory");
}
