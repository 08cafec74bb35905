//! `telpher bench journal`, in short runs: that it measures what it says, not how fast.

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
fn every_append_is_acknowledged_and_what_it_cost_is_counted() {
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
        // Four writers wait for a sync, so no sync serves more than four.
        let per_sync = metric(case, "messages_per_sync");
        assert!((0.9..=4.1).contains(&per_sync), "{per_sync}");
        assert!(metric(case, "blocks_per_second") >= metric(case, "syncs_per_second"));
        assert!(metric(case, "write_amplification") > 1.0);
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
fn fewer_writers_than_threads_is_nothing_to_run() {
    let ended = Place::new().run("bench journal --writers 1 --threads 2 --quiet");
    ended.expect(1).tells("nothing to run", "--threads 1");
}
