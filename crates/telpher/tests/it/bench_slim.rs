//! Short benchmarks of the SLIM listener and of SLIM's own node, from `slim-bindings` of PyPI.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::slim_python::python;
use crate::support::Place;

/// Creates a directory of peers that has only `peer-slim`.
fn with_peers() -> Place {
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers/slim/peer_slim.py");
    let program = format!(
        "#!/bin/sh\nexec '{}' '{}' \"$@\"\n",
        python().display(),
        script.display()
    );
    let path = place.path("peers/peer-slim");
    fs::create_dir(place.path("peers")).unwrap();
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn run(place: &Place, line: &str) -> Value {
    let peers = place.path("peers");
    let line = format!(
        "bench agent --protocol slim --peers {} --json --quiet {line}",
        peers.display()
    );
    let ended = place.run(&line);
    ended.expect(0).json()
}

/// The sender, the node and the received messages of a case.
fn case_rows(results: &Value) -> Vec<(String, String, u64)> {
    let cases = results["cases"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |one: &Value| {
        let case = &one["case"];
        let received = one["runs"][0]["measured"]["sink"]["received"].as_u64();
        (
            text(&case["target"]),
            text(&case["parameters"]["applications"]),
            received.unwrap(),
        )
    };
    cases.map(row).collect()
}

#[test]
fn all_available_clients_send_through_both_nodes() {
    let place = with_peers();
    // Slow enough that a busy machine keeps the schedule; late messages at its end are not sent.
    let results = run(
        &place,
        "--mode request-reply --rate 10 --duration 3s --repeats 2",
    );
    let row = |target: &str, applications: &str| (target.to_owned(), applications.to_owned(), 30);
    let rows = [
        row("telpher", "python"),
        row("slim", "python"),
        row("telpher", "raw"),
        row("slim", "raw"),
        row("telpher", "native"),
    ];
    assert_eq!(case_rows(&results), rows);
    // Unreliable sessions of the bindings may lose messages: a session ends without waiting for
    // them.
    let one_way = run(
        &place,
        "--mode fire-and-forget --slim-clients raw,native --oneway-rate 20 --duration 1500ms --repeats 2",
    );
    assert_eq!(case_rows(&one_way), rows[2..]);

    let compared = |subject: &str, metric: &str| {
        let comparisons = results["comparisons"].as_array().unwrap().iter();
        let is_it = |one: &&Value| {
            let key = one["subject"].as_str().unwrap();
            key.contains("request-reply") && key.contains(subject) && one["metric"] == metric
        };
        comparisons.filter(is_it).count()
    };
    assert_eq!(compared("applications=raw", "p50_latency_ms"), 1);
    assert_eq!(compared("applications=native", "mean_latency_ms"), 2);
    assert_eq!(
        compared("applications=native", "total_cpu_us_per_message"),
        2
    );
}

#[test]
fn requests_in_reliable_sessions_are_measured_through_both_nodes() {
    let place = with_peers();
    let line = "--slim-clients python-reliable --mode request-reply,write --rate 0 --duration 500ms --repeats 1";
    let results = run(&place, line);
    let case_rows = case_rows(&results);
    // Writes are supported in all sessions.
    assert_eq!(case_rows.len(), 2);
    for (target, applications, received) in case_rows {
        assert!(received > 0, "{target}");
        assert_eq!(applications, "python-reliable");
    }
}

#[test]
fn raw_clients_send_without_a_rate() {
    let place = with_peers();
    let line = "--slim-clients raw --rate 0 --size 16,16384 --duration 200ms --repeats 1";
    let results = run(&place, line);
    let case_rows = case_rows(&results);
    // Two modes, two sizes, two nodes: without a session no write is acknowledged.
    assert_eq!(case_rows.len(), 8);
    assert!(
        case_rows.iter().all(|(_, _, received)| *received > 0),
        "{case_rows:?}"
    );
}

#[test]
fn memory_per_subscription_is_measured_for_both_nodes() {
    let place = with_peers();
    let found = run(&place, "--subscriptions 40 --connections 4");
    let nodes = found.as_array().unwrap();
    let held = |one: &Value| {
        let names = ["target", "connections", "acknowledged", "reached"];
        names.map(|name| one[name].to_string())
    };
    let expected = |target: &str| [target, "4", "40", "40"].map(str::to_owned);
    assert_eq!(nodes.len(), 2);
    assert_eq!(held(&nodes[0]), expected("\"telpher\""));
    assert_eq!(held(&nodes[1]), expected("\"slim\""));
}

#[test]
fn slim_flags_need_protocol_slim() {
    let place = Place::new();
    for line in ["--subscriptions 5", "--slim-clients raw"] {
        let ended = place.run(&format!("bench agent {line}"));
        ended.expect(2);
        assert!(
            ended.stderr.contains("add --protocol slim"),
            "{}",
            ended.stderr
        );
    }
}
