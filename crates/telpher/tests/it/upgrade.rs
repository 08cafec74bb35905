//! Data directories of earlier storage formats.
//!
//! Each archive in `fixtures` was written by a build of that format and is never written again. It
//! has a data directory `data` of a node that was killed, its `telpher.toml`, a `backup` of it, and
//! `answers.json`: commands, and their output before the node was killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kafka::{init_producer_id, offset_fetch};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::Value;

use crate::kafka::client::{Client, good};
use crate::support::{Node, Place};

/// The storage format of this build.
pub(crate) const FORMAT: u32 = 3;

/// Nothing expires, however old the fixtures are.
const FLAGS: &str = "--config telpher.toml --mailbox-ttl 3650d --topics-retention 3650d \
                     --topics-group-offsets-kept 3650d --topics-producer-silence 365d \
                     --topics-transactional-id-expiration 365d";

/// A command and its output before the node was killed.
#[derive(Deserialize)]
struct Answer {
    words: Vec<String>,
    status: i32,
    stdout: String,
}

/// Unpacks a fixture.
fn unpacked(format: u32) -> Place {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let archive = fixtures.join(format!("format_{format}.tar.gz"));
    place
        .shell(&format!("tar -xzf '{}'", archive.display()))
        .expect(0);
    place
}

fn serve(place: &Place, data: &str) -> Node {
    place.serve(&format!("--data {data} {FLAGS}"))
}

fn client(node: &Node) -> Place {
    Place::new().with_variable("TELPHER_URL", node.url("native"))
}

/// Returns whether a JSON value is that of an older build, apart from members that it did not have.
fn has_all(found: &Value, recorded: &Value) -> bool {
    match (found, recorded) {
        (Value::Object(found), Value::Object(recorded)) => recorded
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|it| has_all(it, value))),
        (Value::Array(found), Value::Array(recorded)) => {
            let is_as_long = found.len() == recorded.len();
            is_as_long && found.iter().zip(recorded).all(|(it, was)| has_all(it, was))
        }
        _ => found == recorded,
    }
}

/// Checks that the node answers as the node that has written the fixture.
#[track_caller]
fn assert_answers(place: &Place, node: &Node) {
    let answers = std::fs::read(place.path("answers.json")).unwrap();
    let answers: Vec<Answer> = serde_json::from_slice(&answers).unwrap();
    assert!(answers.len() > 40);
    let client = client(node);
    for answer in answers {
        let ended = client.run_words(&answer.words);
        assert_eq!(ended.code(), answer.status, "{:?}", answer.words);
        let recorded = serde_json::from_str::<Value>(&answer.stdout);
        let is_as_before = match (serde_json::from_str(&ended.stdout), recorded) {
            (Ok(found), Ok(recorded)) => has_all(&found, &recorded),
            _ => ended.stdout == answer.stdout,
        };
        let (words, found, before) = (&answer.words, &ended.stdout, &answer.stdout);
        assert!(is_as_before, "{words:?}: {found}\nbefore: {before}");
    }
    let mut client = Client::connect(node).unwrap();
    let request = offset_fetch::Request {
        group_id: "readers".to_owned(),
        topics: Some(vec![offset_fetch::Topic {
            name: "orders".to_owned(),
            partition_indexes: (0..5).collect(),
        }]),
        ..offset_fetch::Request::default()
    };
    let response = client.ask(5, &request).unwrap();
    let partitions = response.topics[0].partitions.iter();
    let offsets: BTreeMap<_, _> = partitions
        .map(|it| (it.partition_index, it.committed_offset))
        .collect();
    assert_eq!(offsets, (0..5).map(|it| (it, i64::from(it) + 3)).collect());
}

/// Checks that the node ends the transaction that was open when the node was killed, and knows its
/// producer.
#[track_caller]
fn assert_producer_is_known(node: &Node) {
    let mut client = Client::connect(node).unwrap();
    let request = init_producer_id::Request {
        transactional_id: Some("copy-1".to_owned()),
        transaction_timeout_ms: 60_000,
        ..init_producer_id::Request::default()
    };
    crate::support::eventually("the transaction ends", || {
        let response = client.ask(4, &request).unwrap();
        good(response.error_code).is_ok() && response.producer_epoch > 0
    });
}

/// The shard and the number of each stream that has a name.
type Streams = BTreeMap<(String, String), (u64, u64)>;

/// Inspects a directory, and returns its streams.
#[track_caller]
fn streams(place: &Place, data: &str, format: u32) -> Streams {
    let found = place.run(&format!("inspect {data} --json"));
    let found = found.expect(0).json();
    assert_eq!(
        (&found["whole"], &found["format_version"]),
        (&true.into(), &format.into())
    );
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let streams = found["streams"].as_array().unwrap().iter();
    let named = streams.filter(|it| it["stream"].as_u64().unwrap() < 1 << 32);
    let named = named.filter(|it| it["kind"].is_string() && it["kind"] != "directory");
    let streams: Streams = named
        .map(|it| {
            let number = (
                it["shard"].as_u64().unwrap(),
                it["stream"].as_u64().unwrap(),
            );
            ((text(&it["kind"]), text(&it["name"])), number)
        })
        .collect();
    let numbers: BTreeMap<_, _> = streams.values().map(|(shard, it)| (it, shard)).collect();
    assert_eq!(numbers.len(), streams.len(), "a number has one stream");
    streams
}

/// Writes to existing names and to new ones.
#[track_caller]
fn write_more(node: &Node) {
    let client = client(node);
    for number in 0..20 {
        for line in [
            format!("append acme/new/log-{number} x"),
            format!("write acme/new/worker-{number} x"),
            format!("conversation append acme/new/c-{number} x"),
            format!("conversation append more-{number}/new/c x"),
        ] {
            client.run(&line).expect(0);
        }
    }
    for line in [
        "append acme/demo/log-1 more",
        "write acme/demo/worker-1 more",
        "conversation append acme/support/c-2 more",
        "topic produce orders more",
        "topic create later --partitions 7",
        "topic produce later first",
        "quota take acme/x/a usd_micros=1",
    ] {
        client.run(line).expect(0);
    }
}

#[test]
fn data_of_format_1_is_upgraded_and_answers_as_before() {
    let place = unpacked(1);
    let old = streams(&place, "data", 1);
    assert!(old.len() > 40, "{}", old.len());
    let node = serve(&place, "data");
    assert_answers(&place, &node);
    let ended = node.stop();
    let log = &ended.expect(0).stderr;
    for text in [
        "cannot be undone",
        "`telpher backup`",
        "upgraded to format 2",
    ] {
        assert!(log.contains(text), "{text}: {log}");
    }
    assert_eq!(streams(&place, "data", FORMAT), old);
    let node = serve(&place, "data");
    assert_answers(&place, &node);
    assert_producer_is_known(&node);
    write_more(&node);
    let ended = node.stop();
    let log = &ended.expect(0).stderr;
    assert!(!log.contains("upgrade"), "{log}");
    let new = streams(&place, "data", FORMAT);
    assert!(new.len() > old.len() + 80, "{} of {}", new.len(), old.len());
    for (name, number) in &old {
        assert_eq!(new.get(name), Some(number), "{name:?}");
    }
    let old_max = old.values().map(|(_, number)| number).max();
    let mut added = new.iter().filter(|(name, _)| !old.contains_key(*name));
    assert!(added.all(|(_, (_, number))| Some(number) > old_max));
}

#[test]
fn upgrade_of_format_1_survives_kill9() {
    let place = unpacked(1);
    let old = streams(&place, "data", 1);
    for delay_ms in (0..120).step_by(6) {
        let line = format!(
            "serve --data data --native-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 \
             --kafka-listen 127.0.0.1:0 --slim-listen 127.0.0.1:0 --journal-reserve 0B {FLAGS}"
        );
        let node = place.start(line.split_whitespace());
        std::thread::sleep(Duration::from_millis(delay_ms));
        node.signal(Signal::KILL);
        node.end();
    }
    let node = serve(&place, "data");
    assert_answers(&place, &node);
    node.stop().expect(0);
    assert_eq!(streams(&place, "data", FORMAT), old);
}

#[test]
fn backups_of_both_formats_are_restored() {
    let place = unpacked(1);
    let old = streams(&place, "backup", 1);
    let node = serve(&place, "backup");
    assert_answers(&place, &node);
    let url = node.url("native").to_owned();
    place.run(&format!("backup copy --url {url}")).expect(0);
    node.signal(Signal::KILL);
    drop(node);
    assert_eq!(streams(&place, "copy", FORMAT), old);
    let node = serve(&place, "copy");
    assert_answers(&place, &node);
    assert_producer_is_known(&node);
    write_more(&node);
    node.stop().expect(0);
}

#[test]
fn data_of_format_2_answers_as_before() {
    let place = unpacked(2);
    let old = streams(&place, "data", 2);
    assert_eq!(streams(&place, "backup", 2), old);
    for data in ["data", "backup"] {
        let node = serve(&place, data);
        assert_answers(&place, &node);
        assert_producer_is_known(&node);
        write_more(&node);
        node.stop().expect(0);
        let new = streams(&place, data, FORMAT);
        for (name, number) in &old {
            assert_eq!(new.get(name), Some(number), "{name:?}");
        }
    }
}
