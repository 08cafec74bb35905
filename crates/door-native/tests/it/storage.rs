//! Storage status of a node, and readiness when it cannot write.

use journal::disk::simulated::{Fault, Kind as Calls};
use store::StorageState;

use crate::kept::{Kept, key, write, writer};

#[tokio::test]
async fn a_failed_journal_makes_the_node_unready_and_says_why() {
    let mut kept = Kept::new();
    let mut agent = writer(&kept.bench, "x/y/z").await;
    kept.write(&mut agent, 0, key(1)).await;
    assert_eq!(kept.bench.node.unready(), None);
    let view = kept.bench.node.health().unwrap().view();
    assert_eq!((view.state, view.reason), (StorageState::Serving, None));
    assert!(view.syncs > 0 && view.records > 0 && view.bytes > 0);
    assert_eq!((view.queued_bytes, view.waiting_segments), (0, 0));

    let is_sync = |call: &journal::disk::simulated::Call<'_>| call.kind == Calls::SyncData;
    kept.disk.fail_once(Fault::Broken, is_sync);
    write(&mut agent, 1, key(2), b"hi").await;
    kept.answer(&mut agent).await;
    let reason = kept.bench.node.unready().unwrap();
    assert!(reason.starts_with("the journal has failed: "), "{reason}");
    let view = kept.bench.node.health().unwrap().view();
    assert_eq!(view.state, StorageState::Failed);
    assert!(reason.ends_with(&view.reason.unwrap()));
}

#[tokio::test]
async fn a_node_without_storage_is_ready_until_it_drains() {
    let bench = crate::Bench::new();
    assert!(bench.node.health().is_none());
    assert_eq!(bench.node.unready(), None);
    bench.node.drain(1000);
    assert!(bench.node.unready().is_some());
}
