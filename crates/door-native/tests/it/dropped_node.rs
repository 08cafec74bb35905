//! A dropped node ends its work and releases its journal.

use std::sync::Arc;
use std::time::Duration;

use wire::Cast;

use crate::durable_node::{DurableNode, key, writer};

#[tokio::test]
async fn a_dropped_node_ends_its_calls_and_releases_the_journal() {
    let mut durable_node = DurableNode::new();
    let mut subscriber = durable_node.bench.subscriber("a/b/c/1").await;
    let mut caller = durable_node.bench.agent("").await;
    caller.bind(1, "a/b/c", Cast::Any).await;
    caller.request(1, 0, b"never answered").await;
    subscriber.next().await;
    let mut writer = writer(&durable_node.bench, "").await;
    durable_node.write(&mut writer, 0, key(1)).await;
    durable_node.bench.node.sweep();
    let DurableNode { bench, journal, .. } = durable_node;
    let held = Arc::downgrade(&journal);
    bench.node.messaging().close_all();
    drop((bench, journal, subscriber, caller, writer));
    let is_over = async {
        while held.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), is_over).await;
    assert_eq!(ended, Ok(()), "somebody holds the journal for ever");
}
