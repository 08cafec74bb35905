//! The Kafka door, by a client that no one here wrote: kcat, which is librdkafka.

use rustix::process::Signal;

use crate::support::{Ended, Node, Place};

/// Runs kcat against a node, with what it is to read.
fn kcat(place: &Place, node: &Node, words: &str, input: &str) -> Ended {
    place.write("input", input);
    let broker = node.url("kafka");
    place.shell(&format!("kcat -b {broker} {words} < input"))
}

/// Everything in a topic, by value.
fn values(place: &Place, node: &Node, flags: &str) -> Vec<String> {
    let words = format!("{flags} -C -t letters -o beginning -e -q -u");
    let ended = kcat(place, node, &words, "");
    let mut values: Vec<_> = ended.expect(0).stdout.lines().map(str::to_owned).collect();
    values.sort();
    values
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let place = Place::new();
    let node = place.serve("");
    for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let words = format!("-P -t letters -z {compression}");
        kcat(&place, &node, &words, "a\nb\nc\n").expect(0);
    }
    let produced = values(&place, &node, "");
    assert_eq!(produced.concat(), "aaaaabbbbbccccc");
    node.signal(Signal::KILL);
    assert_eq!(node.end().status.code(), None);
    let node = place.serve("");
    assert_eq!(values(&place, &node, ""), produced);
    node.stop().expect(0);
}

#[test]
fn a_group_goes_on_where_it_was_after_a_kill() {
    let place = Place::new();
    let node = place.serve("");
    let read = |node: &Node, count: usize| {
        let words = format!("-G group -c {count} -q -X auto.offset.reset=earliest letters");
        let ended = kcat(&place, node, &words, "");
        ended.expect(0).stdout.lines().count()
    };
    kcat(&place, &node, "-P -t letters -p 0", "a\nb\nc\n").expect(0);
    assert_eq!(read(&node, 3), 3);
    node.signal(Signal::KILL);
    node.end();
    let node = place.serve("");
    kcat(&place, &node, "-P -t letters -p 0", "d\n").expect(0);
    let words = "-G group -c 1 -q -X auto.offset.reset=earliest letters";
    let ended = kcat(&place, &node, words, "");
    assert_eq!(ended.expect(0).stdout, "d\n");
    node.stop().expect(0);
}

#[test]
fn a_node_that_ends_waits_for_nobody_who_only_listens() {
    let place = Place::new();
    let node = place.serve("");
    kcat(&place, &node, "-P -t letters", "a\n").expect(0);
    let broker = node.url("kafka");
    let line = format!("exec kcat -b {broker} -C -t letters -u");
    let mut listener = place.start_shell(&line);
    assert_eq!(listener.line(), "a\n");
    node.stop().expect(0);
}
