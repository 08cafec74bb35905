//! `telpher bench journal` in short runs: the figures are plausible.

use serde_json::Value;

use crate::support::Place;

fn case<'a>(results: &'a Value, parameter: &str, value: &str) -> &'a Value {
    let cases = results["cases"].as_array().unwrap();
    let found = cases
        .iter()
        .find(|one| one["case"]["parameters"][parameter] == value);
    found.unwrap_or_else(|| panic!("no case with {parameter} {value}: {results:#}"))
}

fn metric(case: &Value, key: &str) -> f64 {
    let mean = &case["summary"]["metrics"][key]["mean"];
    mean.as_f64()
        .unwrap_or_else(|| panic!("no {key}: {case:#}"))
}

#[test]
fn appends_are_acknowledged_and_measured() {
    let place = Place::new();
    let ended = place.run(
        "bench journal --writers 4 --threads 1,4 --filing on --size 100 --streams 10 \
         --duration 300ms --repeats 1 --json --quiet --dir .",
    );
    let results = ended.expect(0).json();
    for threads in ["1", "4"] {
        let case = case(&results, "threads", threads);
        let (completed, rate) = (
            metric(case, "sender_total_messages"),
            metric(case, "observed_mps"),
        );
        assert!(completed > 0.0 && rate > 0.0);
        assert_eq!(metric(case, "sender_errors"), 0.0);
        // At most four writers wait for a sync, so a sync serves at most four.
        let per_sync = metric(case, "messages_per_sync");
        assert!((0.9..=4.1).contains(&per_sync), "{per_sync}");
        assert!(metric(case, "blocks_per_second") >= metric(case, "syncs_per_second"));
        assert!(
            metric(case, "p50_latency_ms") > 0.0 && metric(case, "node_cpu_us_per_message") > 0.0
        );
    }
    let left = place.path("").read_dir().unwrap();
    let left: Vec<_> = left
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["bench-out"], "the journals are removed");
}

#[test]
fn fewer_writers_than_threads_is_an_error() {
    let ended = Place::new().run("bench journal --writers 1 --threads 2 --quiet");
    ended.expect(1).shows_error("nothing to run", "--threads 1");
}

#[test]
fn bench_kill9_check_finds_every_acked_record() {
    let place = Place::new();
    let line = "bench journal --kill-9-check 4 --json --quiet --size 100 --dir .";
    let found = place.run(line).expect(0).json();
    assert_eq!(found["kills"], 4);
    assert!(found["acked"].as_u64().unwrap() > 0, "{found:#}");
    for wrong in ["lost", "duplicated", "reordered", "reused", "foreign"] {
        assert_eq!(found[wrong], 0, "{wrong}: {found:#}");
    }
}

#[test]
fn appends_through_a_node_are_measured_with_its_cpu_time() {
    let place = Place::new();
    let ended = place.run(
        "bench journal --via door --shape 2x4 --filing on --size 100 --streams 10 --duration 300ms \
         --repeats 1 --json --quiet --dir .",
    );
    let results = ended.expect(0).json();
    let case = case(&results, "via", "door");
    assert!(metric(case, "sender_total_messages") > 0.0 && metric(case, "sender_errors") == 0.0);
    let per_sync = metric(case, "messages_per_sync");
    assert!((0.5..=8.2).contains(&per_sync), "{per_sync}");
    assert!(metric(case, "node_cpu_us_per_message") > 0.0);
}
