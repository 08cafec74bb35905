//! Storage status of a node, and readiness when it cannot write.

use journal::disk::simulated::{Fault, Kind as Calls};
use store::StorageState;

use crate::durable_node::{DurableNode, key, write, writer};

#[tokio::test]
async fn failed_journal_makes_readyz_fail_with_the_reason() {
    let mut durable_node = DurableNode::new();
    let mut agent = writer(&durable_node.bench, "x/y/z").await;
    durable_node.write(&mut agent, 0, key(1)).await;
    assert_eq!(durable_node.bench.node.unready(), None);
    let view = durable_node.bench.node.health().unwrap().view();
    assert_eq!((view.state, view.reason), (StorageState::Serving, None));
    assert!(view.syncs > 0 && view.records > 0 && view.bytes > 0);
    assert_eq!((view.queued_bytes, view.waiting_segments), (0, 0));

    let is_sync = |call: &journal::disk::simulated::Call<'_>| call.kind == Calls::SyncData;
    durable_node.disk.fail_once(Fault::Broken, is_sync);
    write(&mut agent, 1, key(2), b"hi").await;
    durable_node.answer(&mut agent).await;
    let reason = durable_node.bench.node.unready().unwrap();
    assert!(reason.starts_with("the journal has failed: "), "{reason}");
    let view = durable_node.bench.node.health().unwrap().view();
    assert_eq!(view.state, StorageState::Failed);
    assert!(reason.ends_with(&view.reason.unwrap()));
}

#[tokio::test]
async fn a_node_without_storage_is_ready_until_it_drains() {
    let bench = crate::Bench::new();
    assert!(bench.node.health().is_none());
    assert_eq!(bench.node.unready(), None);
    bench.node.messaging().drain(1000);
    assert!(bench.node.unready().is_some());
}
