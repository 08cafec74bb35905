//! `telpher bench store` in short runs: the figures are plausible.

use serde_json::Value;

use crate::support::Place;

const DOORS: [&str; 3] = ["native", "ws", "http"];

/// Returns the mean of a metric over the runs of a case.
fn metric(case: &Value, key: &str) -> f64 {
    let mean = &case["summary"]["metrics"][key]["mean"];
    mean.as_f64()
        .unwrap_or_else(|| panic!("no {key}: {case:#}"))
}

/// Lists the files of a directory.
fn file_names(place: &Place) -> Vec<String> {
    let entries = place.path("").read_dir().unwrap();
    entries
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn messages_over_every_protocol_are_measured() {
    let place = Place::new();
    let line =
        "bench store --vus 3 --pipeline 2 --ramp 100ms --duration 600ms --size 100 --json --quiet";
    let results = place.run(line).expect(0).json();
    let cases = results["cases"].as_array().unwrap();
    let doors: Vec<&Value> = cases
        .iter()
        .map(|one| &one["case"]["parameters"]["door"])
        .collect();
    assert_eq!(doors, DOORS);
    for case in cases {
        assert!(metric(case, "sender_total_messages") > 0.0);
        assert_eq!(metric(case, "sender_errors"), 0.0);
        assert!(
            metric(case, "p50_latency_ms") > 0.0 && metric(case, "node_cpu_us_per_message") > 0.0
        );
        // At most six messages wait for a sync, so a sync serves at most that many.
        let per_sync = metric(case, "messages_per_sync");
        assert!((0.2..=6.3).contains(&per_sync), "{per_sync}");
        let memory = case["runs"][0]["measured"]["memory"].as_array().unwrap();
        assert!(memory.len() > 1, "memory over time: {memory:?}");
    }
    assert_eq!(file_names(&place), ["bench-out"], "the data are removed");
    let out = place
        .path("bench-out")
        .read_dir()
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let report = std::fs::read_to_string(out.join("store_report.md")).unwrap();
    assert!(
        report.contains("| 2025-10-17 |") && report.contains("telpher over ws"),
        "{report}"
    );
    let plots = out.join("plots").read_dir().unwrap();
    let plots: Vec<String> = plots
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        plots.iter().any(|name| name.starts_with("memory-")),
        "{plots:?}"
    );
}

#[test]
fn an_agent_answers_during_the_load() {
    let place = Place::new();
    let line = "bench store --with-agent --vus 2 --pipeline 1 --ramp 0s --duration 3s --door http --json --quiet";
    let results = place.run(line).expect(0).json();
    let case = &results["cases"][0];
    assert!(metric(case, "sender_total_messages") > 0.0);
    assert_eq!(metric(case, "sender_errors"), 0.0);
    let notes = results["setup"]["notes"].to_string();
    let answered = notes
        .split("process; ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(answered.parse::<u64>().unwrap() > 0, "{notes}");
}

#[test]
fn bench_kill9_check_finds_every_acked_record() {
    let place = Place::new();
    let line = "bench store --kill-9-check 4 --door native,http --json --quiet --size 100";
    let found = place.run(line).expect(0).json();
    assert_eq!(found["kills"], 4);
    assert!(found["acked"].as_u64().unwrap() > 0, "{found:#}");
    assert!(found["retried"].as_u64().unwrap() > 0, "{found:#}");
    let wrong = [
        "answered_otherwise",
        "lost",
        "duplicated",
        "reordered",
        "gaps",
        "reused",
        "torn",
        "foreign",
        "refused",
    ];
    for wrong in wrong {
        assert_eq!(found[wrong], 0, "{wrong}: {found:#}");
    }
    assert_eq!(
        file_names(&place),
        Vec::<String>::new(),
        "the data are removed"
    );
}

#[test]
fn idle_conversations_are_measured_and_read_back() {
    let place = Place::new();
    let line = "bench store --idle 500 --idle-messages 3 --idle-rest 0s --door native --size 50 --json --quiet";
    let found = place.run(line).expect(0).json();
    assert_eq!(
        (&found["conversations"], &found["messages"]),
        (&500.into(), &3.into())
    );
    assert_eq!(
        (&found["read_back"], &found["wrong"]),
        (&250.into(), &0.into())
    );
    for figure in [
        "make_seconds",
        "disk_bytes",
        "empty_rss_bytes",
        "idle_rss_bytes",
        "cold_rss_bytes",
    ] {
        assert!(found[figure].as_f64().unwrap() > 0.0, "{figure}: {found:#}");
    }
}

#[test]
fn a_disk_without_space_is_refused_before_writes() {
    let place = Place::new();
    let lines = [
        "bench store --idle 100000000 --size 65536 --quiet",
        "bench store --soak 9999h --size 65536 --quiet",
    ];
    for line in lines {
        place
            .run(line)
            .expect(1)
            .shows_error(" free, the load may need ", "--dir");
    }
    assert_eq!(file_names(&place), Vec::<String>::new());
}
