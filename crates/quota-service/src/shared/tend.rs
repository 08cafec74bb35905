//! Background work for the shared store: returns unused leases, renews used ones before they
//! expire, and sends unsent changes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::SharedCells;
use super::lease::TurnGuard;
use super::leases::Entry;
use crate::cells::SHARDS;
use crate::quota_store::{RemoteCell, RemoteTake, ReturnedLease, StoreUnavailable, Verb};
use crate::service::Quotas;

/// Leases that are returned or renewed concurrently.
const AT_ONCE: usize = 64;

/// The leases to end.
#[derive(Clone, Copy)]
enum LeaseSelection {
    /// Unused leases, and those that expire soon.
    Old,
    All,
}

/// A lease to end.
struct EndingLease {
    shard: u16,
    hash: u64,
    cell: RemoteCell,
    returned: ReturnedLease,
    /// The credit to lease instead.
    want: u64,
    asked_ns: u64,
}

impl Quotas<'_> {
    /// Maintains leases and sends unsent changes. Call this at least ten times a second while there
    /// is a store.
    pub async fn tend_store(self) {
        let Some(shared) = &self.state().shared else {
            return;
        };
        // Changes that cannot be sent now are sent the next time.
        let _ = shared.send_unsent().await;
        shared.find_ends().await;
        for shard in 0..SHARDS {
            let ending = shared.ending(shard, self.now_ns(), LeaseSelection::Old);
            self.end_all(shared, ending).await;
        }
    }

    /// Returns all leases and sends all unsent changes. Called last before the store is left.
    pub async fn leave_store(self) -> Result<(), StoreUnavailable> {
        let Some(shared) = &self.state().shared else {
            return Ok(());
        };
        for shard in 0..SHARDS {
            let ending = shared.ending(shard, self.now_ns(), LeaseSelection::All);
            self.end_all(shared, ending).await;
        }
        shared.send_unsent().await
    }

    async fn end_all(self, shared: &SharedCells, ending: Vec<EndingLease>) {
        let mut ending = ending.into_iter();
        loop {
            let some = ending.by_ref().take(AT_ONCE);
            let some: Vec<_> = some.map(|it| self.end_lease(shared, it)).collect();
            match some.is_empty() {
                true => return,
                false => all(some).await,
            }
        }
    }

    async fn end_lease(self, shared: &SharedCells, ending: EndingLease) {
        let (shard, hash, asked_ns) = (ending.shard, ending.hash, ending.asked_ns);
        let leases = &shared.leases;
        let _turn = TurnGuard {
            leases,
            shard,
            hash,
            asked_ns,
        };
        let before = Some(ending.returned);
        let leased = shared.store.lease(ending.cell, ending.want, before).await;
        // Credit that could not be returned counts as spent.
        if let Ok(lease) = leased
            && let Some(entry) = leases.shard(shard).by_hash.get_mut(&hash)
            && entry.asked_ns == Some(asked_ns)
            && ending.want > 0
        {
            entry.hold(lease, asked_ns, self.now_ns());
        }
    }
}

impl SharedCells {
    /// Detects the end of outages while there are no takes.
    async fn find_ends(&self) {
        let probes = self.shares.probes().into_iter();
        let looks = probes.map(async |(shard, cell)| {
            let look = RemoteTake {
                verb: Verb::Look,
                cells: vec![cell],
            };
            if self.store.decide(vec![look]).await.is_ok() {
                self.shares.end(shard);
            }
        });
        all(looks.collect()).await;
    }

    /// Removes and returns the leases to end, and drops the entries of cells without demand.
    fn ending(&self, shard: u16, now_ns: u64, which: LeaseSelection) -> Vec<EndingLease> {
        let mut locked = self.leases.shard(shard);
        locked.by_hash.retain(|_, entry| !entry.is_over(now_ns));
        let entries = locked.by_hash.iter_mut();
        let ending = entries.filter_map(|(hash, entry)| {
            let want = want(entry, now_ns, which)?;
            let returned = entry.give_back()?;
            entry.asked_ns = Some(now_ns);
            Some(EndingLease {
                shard,
                hash: *hash,
                cell: RemoteCell {
                    count: 0,
                    ..entry.cell.clone()
                },
                returned,
                want,
                asked_ns: now_ns,
            })
        });
        ending.collect()
    }
}

/// Returns the credit to lease instead of the held lease; `None` if the lease continues.
fn want(entry: &Entry, now_ns: u64, which: LeaseSelection) -> Option<u64> {
    let held = entry.held.filter(|_| entry.asked_ns.is_none())?;
    let demand = entry.demand.count(now_ns);
    let is_old = now_ns >= held.asked_ns.saturating_add(held.lease.lasts_ns / 2);
    match which {
        LeaseSelection::All => Some(0),
        LeaseSelection::Old if demand == 0 || is_old => Some(demand),
        LeaseSelection::Old => None,
    }
}

/// Waits for all futures.
async fn all(futures: Vec<impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let all = poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        match futures.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    pin!(all).await;
}
