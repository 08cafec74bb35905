//! `telpher bench kafka --idle` with small numbers.

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
