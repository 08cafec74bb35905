//! Proposing the blocks of a reign.
//!
//! At most two blocks are under way, and block *n* + 1 is offered only after openraft has taken *n*,
//! that is, after it was handed to the log store. A refused block is offered again until it is taken
//! or the reign is over. So blocks are taken in the order of decisions, without a gap.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use journal::{DecidedBlock, Index, Reign};
use openraft::impls::ProgressResponder;
use openraft::type_config::async_runtime::watch::WatchReceiver;
use tokio::sync::Notify;

use crate::raft::{Block, Raft, ShardLog, Term};

/// Blocks that are offered and not applied.
const BLOCKS_MAX: usize = 2;

/// Pause until a refused block is offered again.
const RETRY: Duration = Duration::from_millis(10);

/// The end of openraft's task: nothing will be taken any more.
struct Stopped;

/// Proposes the blocks of a reign until it is over, or ends it when openraft's task has ended. `bell` is notified when the shard may have a
/// block.
pub(crate) async fn propose(raft: &Raft, log: &ShardLog, bell: &Notify, reign: Reign, term: u64) {
    if let Err(Stopped) = propose_all(raft, log, bell, reign, term).await {
        log.journal.end_reign(log.shard);
    }
}

async fn propose_all(
    raft: &Raft,
    log: &ShardLog,
    bell: &Notify,
    reign: Reign,
    term: u64,
) -> Result<(), Stopped> {
    let mut answers = FuturesUnordered::new();
    // Its sender is dropped at the end of openraft's task.
    let mut server = raft.server_metrics();
    // A block that is not known to be taken.
    let mut offered: Option<DecidedBlock> = None;
    while log.is_current(reign) {
        offered = offered.filter(|block| !has_taken(log, block.index));
        if offered.is_none()
            && answers.len() < BLOCKS_MAX
            && let Some(block) = log.journal.take_closed(log.shard)
        {
            answers.push(offer(raft, term, &block).await?);
            offered = Some(block);
            continue;
        }
        let refused = tokio::select! {
            biased;
            () = log.appended.notified() => None,
            () = bell.notified() => None,
            changed = server.changed() => {
                changed.map_err(|_| Stopped)?;
                None
            }
            Some((index, is_refused)) = answers.next() => is_refused.then_some(index),
        };
        if refused.is_some() {
            log.refused.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(block) = &offered
            && refused == Some(block.index)
            && !has_taken(log, block.index)
        {
            tokio::time::sleep(RETRY).await;
            if log.is_current(reign) {
                answers.push(offer(raft, term, block).await?);
            }
        }
    }
    Ok(())
}

/// Offers a block. The future that is returned says whether it was refused.
async fn offer(
    raft: &Raft,
    term: u64,
    block: &DecidedBlock,
) -> Result<impl Future<Output = (Index, bool)> + use<>, Stopped> {
    let index = block.index;
    let block = Block {
        time_ms: block.time_ms,
        body: block.body.clone(),
    };
    let (responder, answer) = ProgressResponder::complete_only();
    let write = raft.write(block).with_leader(Term::from(term));
    write.responder(responder).await.map_err(|_| Stopped)?;
    Ok(async move {
        let answer: Result<Result<_, _>, _> = answer.await;
        (index, !matches!(answer, Ok(Ok(_))))
    })
}

/// Returns whether openraft has handed a block of the current reign to the log store.
fn has_taken(log: &ShardLog, index: Index) -> bool {
    log.journal.last_taken(log.shard).index >= index
}
