//! The metrics of the journal.

use crate::support::{Place, eventually};

#[test]
fn journal_metrics_include_state_and_sync_durations() {
    let place = Place::new();
    let node = place.serve("");
    let url = node.url("native").to_owned();
    assert_eq!(node.metric("telpher_journal_state{state=\"serving\"}"), 1);
    assert_eq!(node.metric("telpher_journal_state{state=\"failed\"}"), 0);
    let before = node.metric("telpher_journal_records_total");
    place
        .run(&format!("append acme/demo/log hello --url {url}"))
        .expect(0);
    assert!(node.metric("telpher_journal_records_total") > before);
    let syncs = node.metric("telpher_journal_syncs_total");
    assert!(syncs > 0 && node.metric("telpher_journal_blocks_total") >= syncs);
    assert!(node.metric("telpher_journal_bytes_total") > 0);
    // Every counted sync was timed; one may be in progress.
    eventually("syncs are timed", || {
        node.metric("telpher_journal_sync_seconds_count") >= syncs
    });
    let all = node.metric("telpher_journal_sync_seconds_bucket{le=\"+Inf\"}");
    assert!(all >= syncs);
    assert!(node.metric("telpher_journal_unfiled_bytes") > 0);
    for gauge in [
        "queued_bytes",
        "waiting_segments",
        "extents",
        "extent_bytes",
        "dead_bytes",
    ] {
        node.metric(&format!("telpher_journal_{gauge}"));
    }
}
