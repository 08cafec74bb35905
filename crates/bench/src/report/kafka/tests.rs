use super::*;
use crate::measurement::Measurement;
use crate::model::{Case, Environment, SCHEMA_VERSION, Setup};
use crate::tally::Tally;

fn measured(verified: Option<Verification>) -> Measurement {
    let mut tally = Tally::new();
    for number in 0..1_000 {
        tally.sent();
        tally.answered(0, 1_000_000 + number);
    }
    tally.sent();
    tally.failed("not-leader-or-follower");
    Measurement {
        streamed: Some(TopicTraffic {
            requests: Some(100),
            bytes: 256_000,
            verified,
        }),
        ..tally.over(500_000_000)
    }
}

fn results(verified: Verification) -> Results {
    let produce = Case::new("telpher", Area::Kafka, Mode::PRODUCE)
        .in_flight(128)
        .size(256)
        .parameter("acks", "all")
        .parameter("durability", "disk");
    let consume = Case::new("kafka", Area::Kafka, Mode::CONSUME).size(1024);
    let consumed = Measurement {
        service: None,
        errors: std::collections::BTreeMap::new(),
        ..measured(None)
    };
    let result = |case: Case, measured| {
        let run = Run::of(&case, 1, 1, measured);
        CaseResult::of(case, vec![run])
    };
    Results {
        schema_version: SCHEMA_VERSION,
        name: "kafka".to_owned(),
        generated: "2026-06-26 08:01:47".to_owned(),
        environment: Environment::default(),
        setup: Setup::default(),
        cases: vec![
            result(produce, measured(Some(verified))),
            result(consume, consumed),
        ],
        comparisons: Vec::new(),
        sweeps: Vec::new(),
    }
}

const CLEAN: Verification = Verification {
    acked: 1_500,
    found: 1_500,
    lost: 0,
    duplicated: 0,
    moved: 0,
    damaged: 0,
};

#[test]
fn rows_include_those_of_the_published_report() {
    let text = chronik(&results(CLEAN));
    for expected in [
        "| produce | Chronik as published | 1 | 1 × 128, 256 B | 309,590 msg/s |",
        "| produce | telpher, durability disk | all | 1 × 128, 256 B | 2,000 msg/s |",
        "| consume | kafka |",
        "| produce | telpher, durability disk | all | 1,500 | 0 | 0 | 0 | 0 | pass |",
        "1,001 μs (1.00 ms)",
    ] {
        assert!(text.contains(expected), "{expected} is missing:\n{text}");
    }
}

#[test]
fn kafka_latency_is_relative_to_a_sync_plus_two_round_trips() {
    let case = |target: &str, mode| Case::new(target, Area::Kafka, mode).in_flight(1);
    let result = |case: Case, latency_ns: u64| {
        let mut tally = Tally::new();
        tally.sent();
        tally.answered(0, latency_ns);
        let run = Run::of(&case, 1, 1, tally.over(1_000_000_000));
        CaseResult::of(case, vec![run])
    };
    let cases = [
        result(
            case("telpher", Mode::END_TO_END).parameter("acks", "all"),
            300_000,
        ),
        result(case("disk-floor", Mode::APPEND), 80_000),
        result(case("floor", Mode::APPEND), 10_000),
    ];
    let all: Vec<&CaseResult> = cases.iter().collect();
    let text = end_to_end(&all).markdown();
    assert!(text.contains("| telpher | all | 3.00 × |"), "{text}");
    assert!(end_to_end(&all[..2]).is_empty());
}

#[test]
fn lost_messages_fail_the_verdict() {
    let lost = Verification { lost: 1, ..CLEAN };
    let text = chronik(&results(lost));
    assert!(text.contains("| 1,500 | 1 | 0 | 0 | 0 | FAIL |"), "{text}");
}

#[test]
fn results_without_topics_have_no_such_tables() {
    assert_eq!(current(&crate::fixture::results()), "");
}

#[test]
fn the_files_have_the_columns_and_fields_of_chronik_bench() {
    let results = results(CLEAN);
    let csv = csv(&results);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0][..3], ["timestamp", "mode", "duration_secs"]);
    assert_eq!(
        lines[1][1..9],
        [
            "produce", "0.500", "1000", "1", "256000", "2000.00", "0.49", "99.90"
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&json(&results).unwrap()).unwrap();
    assert_eq!(json[0]["total_messages"], 1_000);
    assert_eq!(json[0]["duration"]["nanos"], 500_000_000);
    assert_eq!(
        (&json[1]["mode"], &json[1]["latency_p50_us"]),
        (&"consume".into(), &0.into())
    );
}
