//! `telpher bench kafka --idle` and `--cluster` with small numbers.

use crate::support::Place;

#[test]
fn idle_partitions_are_measured_and_complete_after_a_kill() {
    let place = Place::new();
    let line = "bench kafka --idle 12 --idle-groups 30 --idle-members 3 --idle-log 3MiB --idle-rest 0s --idle-window 200ms --json --quiet";
    let found = place.run(line).expect(0).json();
    let made = ["partitions", "groups", "offsets", "members"].map(|one| found[one].as_u64());
    assert_eq!(made, [12, 30, 10, 3].map(Some), "{found:#}");
    assert_eq!(found["log_bytes"], 3 << 20, "{found:#}");
    assert_eq!(found["messages"]["acked"], (3 << 20) / 4096, "{found:#}");
    assert_eq!(found["messages"]["found"], found["messages"]["acked"]);
    assert_eq!(found["offsets_read"], 300);
    for wrong in ["offsets_wrong", "log_failed"] {
        assert_eq!(found[wrong], 0, "{found:#}");
    }
    for wrong in ["lost", "duplicated", "moved", "damaged"] {
        assert_eq!(found["messages"][wrong], 0, "{found:#}");
    }
    assert!(found["idle_seconds"].as_f64().unwrap() >= 0.2, "{found:#}");
    assert!(
        found["unfiled_bytes"].as_u64().unwrap() > 3 << 20,
        "{found:#}"
    );
    assert!(found["idle_cpu_ms"].as_f64().unwrap() > 0.0, "{found:#}");
    let start = ["start_ms", "first_fetch_ms"].map(|one| found[one].as_f64().unwrap());
    assert!(0.0 < start[0] && start[0] <= start[1], "{found:#}");
    let left = place.path("").read_dir().unwrap().count();
    assert_eq!(left, 0, "the data are removed");
}

#[test]
fn faults_of_a_cluster_are_measured_and_lose_nothing() {
    let place = Place::new();
    let line = "bench kafka --cluster 3 --fault none,kill-leader,kill-all -c 4 -p 2 --json --quiet";
    let found = place.run(line).expect(0).json();
    let idle = found["idle"].as_array().unwrap();
    assert_eq!(idle.len(), 3, "{found:#}");
    assert!(
        idle.iter()
            .all(|it| it["cpu_percent"].as_f64().unwrap() > 0.0)
    );
    let faults = found["faults"].as_array().unwrap();
    let names: Vec<_> = faults
        .iter()
        .map(|it| it["fault"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["none", "kill-leader", "kill-all"], "{found:#}");
    for fault in faults {
        assert_eq!(fault["count"], 1, "{found:#}");
        assert!(
            fault["first_ack_ms"]["max"].as_f64().unwrap() > 0.0,
            "{found:#}"
        );
    }
    assert!(
        found["messages"]["acked"].as_u64().unwrap() > 100,
        "{found:#}"
    );
    assert!(
        found["retries"]["connection-lost"].as_u64().unwrap() > 0,
        "{found:#}"
    );
    for wrong in ["lost", "duplicated", "moved", "damaged"] {
        assert_eq!(found["messages"][wrong], 0, "{found:#}");
    }
    let left = place.path("").read_dir().unwrap().count();
    assert_eq!(left, 0, "the data are removed");
}

#[test]
fn a_cluster_is_measured_beside_one_node() {
    let place = Place::new();
    let line = "bench kafka --cluster 3 -c 8,16 -d 300ms -w 50ms --acks all --quiet --json";
    let found = place.run(line).expect(0).json();
    let cases = found["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4, "{found:#}");
    for case in cases {
        let roles = case["runs"][0]["measured"]["usage"]["roles"]
            .as_array()
            .unwrap();
        let nodes = roles.iter().filter(|it| it["role"] == "node").count();
        let expected = case["case"]["parameters"]["nodes"].as_str().unwrap();
        assert_eq!(nodes.to_string(), expected, "{found:#}");
        assert_eq!(
            case["runs"][0]["measured"]["streamed"]["verified"]["lost"],
            0
        );
    }
    assert!(!found["comparisons"].as_array().unwrap().is_empty());
}
