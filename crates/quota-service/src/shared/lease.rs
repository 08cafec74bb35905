//! Leases a cell from the store: one take asks on behalf of all that want it.
//!
//! The request returns the previous lease. If the asking take is dropped meanwhile, the credit that
//! the store grants is lost, which is safe; a waiting take is woken and asks itself. The same
//! happens if the asking take is not polled for long, since its client may not be reading.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::SharedCells;
use super::cell_request::CellRequest;
use super::leases::{Entry, Leases};
use crate::quota_store::{RemoteCell, ReturnedLease, StoreUnavailable};
use crate::service::Quotas;

/// Time after which another take may ask, in nanoseconds: longer than a store takes to answer.
const TURN_NS: u64 = 10_000_000_000;

/// The take whose turn it is to ask.
enum LeaseTurn {
    Own {
        before: Option<ReturnedLease>,
        want: u64,
    },
    Others,
    /// There is no entry of the cell any more.
    NoEntry,
}

/// Leases a cell, or waits until another take has done so.
pub(super) async fn lease(
    quotas: Quotas<'_>,
    shared: &SharedCells,
    shard: u16,
    wanted: &CellRequest,
) -> Result<(), StoreUnavailable> {
    let leases = &shared.leases;
    let asked_ns = quotas.now_ns();
    let (before, want) = match turn(leases, shard, wanted, asked_ns) {
        LeaseTurn::Own { before, want } => (before, want),
        LeaseTurn::NoEntry => return Ok(()),
        LeaseTurn::Others => {
            wait(quotas, leases, shard, wanted).await;
            return Ok(());
        }
    };
    let _turn = TurnGuard {
        leases,
        shard,
        hash: wanted.hash,
        asked_ns,
    };
    let cell = RemoteCell {
        count: 0,
        ..wanted.cell.clone()
    };
    let lease = shared.store.lease(cell, want, before).await?;
    shared.shares.end(shard);
    let mut shard = leases.shard(shard);
    let entry = shard.of(wanted);
    if let Some(entry) = entry.filter(|entry| entry.asked_ns == Some(asked_ns)) {
        entry.hold(lease, asked_ns, quotas.now_ns());
    }
    Ok(())
}

fn turn(leases: &Leases, shard: u16, wanted: &CellRequest, now_ns: u64) -> LeaseTurn {
    let mut shard = leases.shard(shard);
    let Some(entry) = shard.of(wanted) else {
        return LeaseTurn::NoEntry;
    };
    if is_turn(entry, now_ns) {
        return LeaseTurn::Others;
    }
    entry.asked_ns = Some(now_ns);
    entry.cell.kind = wanted.cell.kind;
    LeaseTurn::Own {
        before: entry.give_back(),
        want: entry.demand.count(now_ns).max(wanted.count()),
    }
}

/// Returns whether a take is asking.
fn is_turn(entry: &Entry, now_ns: u64) -> bool {
    let asked_ns = entry.asked_ns;
    asked_ns.is_some_and(|asked_ns| now_ns < asked_ns.saturating_add(TURN_NS))
}

async fn wait(quotas: Quotas<'_>, leases: &Leases, shard: u16, wanted: &CellRequest) {
    poll_fn(|cx| {
        let mut shard = leases.shard(shard);
        let entry = shard.of(wanted);
        match entry.filter(|entry| is_turn(entry, quotas.now_ns())) {
            None => Poll::Ready(()),
            Some(entry) => {
                let waker = cx.waker();
                if !entry.waiting.iter().any(|known| known.will_wake(waker)) {
                    entry.waiting.push(waker.clone());
                }
                Poll::Pending
            }
        }
    })
    .await;
}

/// A take's turn to ask, for as long as this is held.
pub(super) struct TurnGuard<'a> {
    pub(super) leases: &'a Leases,
    pub(super) shard: u16,
    pub(super) hash: u64,
    pub(super) asked_ns: u64,
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        let mut shard = self.leases.shard(self.shard);
        let entry = shard.by_hash.get_mut(&self.hash);
        let Some(entry) = entry.filter(|entry| entry.asked_ns == Some(self.asked_ns)) else {
            return;
        };
        entry.asked_ns = None;
        let waiting = std::mem::take(&mut entry.waiting);
        drop(shard);
        waiting.into_iter().for_each(Waker::wake);
    }
}
