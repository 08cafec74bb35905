//! The Kafka listener, with the original kcat (librdkafka).

pub(crate) mod client;
mod cluster;
mod copy;
mod kill9;
mod old_records;
mod rebalance;

use rustix::process::Signal;

use crate::support::{Ended, Node, Place};
use crate::tls::write_certificates;

/// Runs kcat against a node, with an input.
fn kcat(place: &Place, node: &Node, words: &str, input: &str) -> Ended {
    place.write("input", input);
    let broker = node.url("kafka");
    place.shell(&format!("kcat -b {broker} {words} < input"))
}

/// Returns the values of all records of a topic.
fn values(place: &Place, node: &Node, flags: &str) -> Vec<String> {
    let words = format!("{flags} -C -t letters -o beginning -e -q -u");
    let ended = kcat(place, node, &words, "");
    let mut values: Vec<_> = ended.expect(0).stdout.lines().map(str::to_owned).collect();
    values.sort();
    values
}

#[test]
fn acked_records_survive_a_kill() {
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
fn a_group_continues_at_its_offsets_after_a_kill() {
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
fn shutdown_does_not_wait_for_idle_consumers() {
    let place = Place::new();
    let node = place.serve("");
    kcat(&place, &node, "-P -t letters", "a\n").expect(0);
    let broker = node.url("kafka");
    let line = format!("exec kcat -b {broker} -C -t letters -u");
    let mut listener = place.start_shell(&line);
    assert_eq!(listener.line(), "a\n");
    node.stop().expect(0);
}

/// A node with users of `telpher kafka user`.
fn users(place: &Place, node: &Node, words: &str, input: &str) -> Ended {
    let url = node.url("native");
    place.run_with_input(&format!("kafka user {words} --url {url}"), input.as_bytes())
}

#[test]
fn a_user_authenticates_only_with_its_password() {
    let place = Place::new();
    let node = place.serve("");
    kcat(&place, &node, "-P -t letters", "a\n").expect(0);
    let added = users(&place, &node, "add ann", "open-sesame\n");
    assert!(added.expect(0).stdout.contains("first user"));
    let listed = users(&place, &node, "list", "");
    assert_eq!(
        listed.expect(0).stdout,
        "ann  SCRAM-SHA-256 SCRAM-SHA-512\n"
    );
    assert!(!kcat(&place, &node, "-L -m 3", "").status.success());
    let login = |node: &Node, mechanism: &str, password: &str| {
        place.write("login", &format!("sasl.password={password}\n"));
        let words = format!(
            "-F login -X security.protocol=sasl_plaintext -X sasl.mechanism={mechanism} \
             -X sasl.username=ann -L -m 3"
        );
        kcat(&place, node, &words, "")
    };
    let secret = "open-sesame";
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"] {
        let seen = login(&node, mechanism, secret);
        assert!(seen.expect(0).stdout.contains("letters"), "{mechanism}");
        let refused = login(&node, mechanism, "secret");
        assert!(!refused.status.success(), "{mechanism}");
    }
    node.signal(Signal::KILL);
    node.end();
    let node = place.serve("");
    login(&node, "SCRAM-SHA-256", secret).expect(0);
    let added = users(&place, &node, "add ann", "another\n");
    assert_eq!(added.expect(0).stdout, "user `ann` added\n");
    assert!(!login(&node, "SCRAM-SHA-512", secret).status.success());
    login(&node, "SCRAM-SHA-512", "another").expect(0);
    users(&place, &node, "delete ann", "").expect(0);
    users(&place, &node, "delete ann", "").expect(3);
    kcat(&place, &node, "-L", "").expect(0);
    node.stop().expect(0);
}

#[test]
fn an_empty_password_is_refused() {
    let place = Place::new();
    let node = place.serve("");
    users(&place, &node, "add ann", "")
        .expect(2)
        .shows_error("the password is empty", "standard input");
    assert_eq!(users(&place, &node, "list", "").expect(0).stdout, "");
    node.stop().expect(0);
}

#[test]
fn kafka_clients_that_trust_the_authority_can_connect() {
    let place = Place::new();
    write_certificates(&place, "authority.pem");
    let node = place.serve("--tls-certificate chain.pem --tls-key key.pem");
    let tls = "-X security.protocol=ssl -X ssl.ca.location";
    kcat(
        &place,
        &node,
        &format!("{tls}=authority.pem -P -t letters"),
        "a\nb\n",
    )
    .expect(0);
    let read = values(&place, &node, &format!("{tls}=authority.pem"));
    assert_eq!(read, ["a", "b"]);
    // A client that trusts another authority, or none, cannot connect.
    let other = Place::new();
    write_certificates(&other, "other.pem");
    let stranger = std::fs::read_to_string(other.path("other.pem")).unwrap();
    place.write("other.pem", &stranger);
    for words in [format!("{tls}=other.pem -L -m 3"), "-L -m 3".to_owned()] {
        assert!(!kcat(&place, &node, &words, "").status.success(), "{words}");
    }
    node.stop().expect(0);
}

#[test]
fn requests_of_kafka_clients_are_in_the_metrics() {
    let place = Place::new();
    let node = place.serve("--topics-partitions 1");
    kcat(&place, &node, "-P -t letters", "a\nb\nc\n").expect(0);
    let words = "-G readers -c 3 -q -X auto.offset.reset=earliest letters";
    assert_eq!(
        kcat(&place, &node, words, "")
            .expect(0)
            .stdout
            .lines()
            .count(),
        3
    );
    // There are no records after the end.
    kcat(&place, &node, "-C -t letters -p 0 -o 1000 -e -q", "").expect(0);
    let url = node.url("http");
    let text = place.shell(&format!("curl -sf {url}/metrics"));
    let text = &text.expect(0).stdout;
    let value = |name: &str| {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.parse::<f64>().unwrap()
    };
    for api in [
        "ApiVersions",
        "Metadata",
        "Produce",
        "Fetch",
        "JoinGroup",
        "OffsetCommit",
    ] {
        let name = format!("telpher_kafka_requests_total{{api=\"{api}\"}}");
        assert!(value(&name) >= 1.0, "{name}");
    }
    assert_eq!(
        value("telpher_kafka_requests_total{api=\"DeleteTopics\"}"),
        0.0
    );
    let errors = "telpher_kafka_errors_total{code=\"1\",name=\"OffsetOutOfRange\"}";
    assert!(value(errors) >= 1.0);
    assert_eq!(value("telpher_topic_records_total"), 3.0);
    let batches = value("telpher_topic_batches_total");
    assert!((1.0..=3.0).contains(&batches));
    assert!(value("telpher_topic_bytes_total") >= 64.0);
    assert!(value("telpher_kafka_received_bytes_total") >= 500.0);
    assert!(value("telpher_kafka_sent_bytes_total") >= 500.0);
    assert!(value("telpher_kafka_fetch_waits_total") >= 0.0);
    assert_eq!(value("telpher_kafka_groups{state=\"empty\"}"), 1.0);
    assert_eq!(value("telpher_kafka_groups{state=\"stable\"}"), 0.0);
    assert!(value("telpher_journal_waiting_segments") >= 0.0);
    node.stop().expect(0);
}

#[test]
fn a_halted_client_neither_produces_nor_consumes() {
    let place = Place::new();
    let node = place.serve("");
    let url = node.url("native").to_owned();
    kcat(&place, &node, "-P -t letters -p 0", "a\n").expect(0);
    let change = |what: &str| {
        let words = format!("quota {what} default --reason test --url {url}");
        place.run(&words).expect(0);
    };
    change("halt");
    let produced = kcat(&place, &node, "-P -t letters -p 0", "b\n");
    let told = produced.stderr.to_lowercase();
    assert!(told.contains("topic authorization failed"), "{told}");
    let words = "-C -t letters -o beginning -e -q -u";
    let consumed = kcat(&place, &node, words, "");
    assert_eq!(consumed.stdout, "");
    let told = consumed.stderr.to_lowercase();
    assert!(told.contains("topic authorization failed"), "{told}");
    change("resume");
    assert_eq!(values(&place, &node, ""), ["a"]);
    node.stop().expect(0);
}
