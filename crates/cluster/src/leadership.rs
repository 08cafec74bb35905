//! The leadership of a node over all shards, in which its services are open.
//!
//! Services decide by what they have loaded, so each opening has reigns of its own: services see
//! everything that earlier ones have decided, and write in no other reigns (see
//! [`journal::Journal::in_reigns`]).

use std::sync::Arc;
use std::time::Duration;

use journal::{Reign, ShardId};

use crate::Node;

/// Pause between two looks at reigns that are ending.
const POLL: Duration = Duration::from_millis(2);

/// Time without an answer of a quorum after which a leader closes its services: longer than the lease
/// in which no other is elected.
const QUORUM_MAX: Duration = Duration::from_millis(1500);

/// Interval of looks at the answers of the quorum.
const QUORUM_POLL: Duration = Duration::from_millis(100);

/// The leaderships of a node, one after the other.
pub struct Leadership {
    node: Arc<Node>,
    /// The reigns of the last one.
    led: Vec<(Reign, u64)>,
}

impl Leadership {
    /// Creates the leaderships of a node that has not led since its start.
    pub fn new(node: Arc<Node>) -> Leadership {
        Leadership {
            node,
            led: Vec::new(),
        }
    }

    /// Waits until this node leads all shards and a quorum answers it, in other reigns than those of the
    /// last call. Returns the
    /// reigns by shard, each with its term. Services of earlier reigns must be closed. Nothing is
    /// lost if the future is dropped.
    pub async fn next(&mut self) -> Vec<(Reign, u64)> {
        self.node.renew(&self.led).await;
        while !self.node.has_quorum() {
            tokio::time::sleep(QUORUM_POLL).await;
        }
        loop {
            let reigns = self.node.all_reigns().await;
            if reigns.iter().zip(&self.led).all(|(new, old)| new != old) {
                self.led.clone_from(&reigns);
                return reigns;
            }
            // The end of a reign is on its way.
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Node {
    /// Waits until this node leads all shards.
    async fn all_reigns(&self) -> Vec<(Reign, u64)> {
        let shards = (0..self.shard_count()).map(ShardId);
        let mut receivers: Vec<_> = shards.map(|shard| self.reigns(shard)).collect();
        loop {
            let reigns = receivers.iter_mut().map(|it| *it.borrow_and_update());
            if let Some(all) = reigns.collect::<Option<Vec<_>>>() {
                return all;
            }
            let changes = receivers.iter_mut().map(|it| Box::pin(it.changed()));
            let (changed, ..) = futures_util::future::select_all(changes).await;
            if changed.is_err() {
                // The consensus has ended: this node leads nothing any more.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until one of the reigns of a leadership has ended.
    pub async fn end_of_any(&self, reigns: &[(Reign, u64)]) {
        let ends = (0..).map(ShardId).zip(reigns).map(|(shard, reign)| {
            let mut receiver = self.reigns(shard);
            Box::pin(async move {
                while *receiver.borrow_and_update() == Some(*reign) {
                    if receiver.changed().await.is_err() {
                        return;
                    }
                }
            })
        });
        futures_util::future::select_all(ends).await;
    }

    /// Waits until no quorum has answered this node for so long that another may lead. Its clients
    /// would wait for answers that cannot come.
    pub async fn loss_of_quorum(&self) {
        while self.has_quorum() {
            tokio::time::sleep(QUORUM_POLL).await;
        }
    }

    /// Returns false if this node leads a shard and no quorum answers it any more.
    fn has_quorum(&self) -> bool {
        self.quorum_age().is_none_or(|age| age < QUORUM_MAX)
    }
}
