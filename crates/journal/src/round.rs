//! Appends that one sync is to serve.
//!
//! The line takes what is there when it looks. Were it woken by the first append of many, that one
//! would have a sync to itself and the others would wait for the next. Whoever knows that more is
//! coming, and when that was all, appends in a round: what waits is told when the round ends.

use std::sync::Arc;

use crate::ShardId;
use crate::guard::Guard;
use crate::shared::Shared;

/// See the module's documentation. Nothing that was appended in it is sure to become durable
/// before it is dropped.
#[derive(Debug)]
pub struct Round {
    shared: Arc<Shared>,
}

impl Round {
    pub(crate) fn new(shared: Arc<Shared>) -> Round {
        Round { shared }
    }

    /// Like [`Journal::lock`](crate::Journal::lock); the line is told at the round's end.
    pub fn lock(&self, shard: ShardId, now_ms: u64) -> Guard<'_> {
        Guard::in_round(&self.shared, self.shared.shard(shard), now_ms)
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        self.shared.doorbell.wake_if_rung();
    }
}
