//! An in-memory store that counts requests, and can be unavailable, slow or late.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use quota::Kind;

use crate::quota_store::{
    Lease, QuotaStore, QuotaStoreView, RemoteCell, RemoteCellState, RemoteDecision, RemoteTake,
    ReturnedLease, StoreFuture, StoreUnavailable, Verb,
};

pub(super) const SECOND: u64 = 1_000_000_000;

/// The store's behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreMode {
    Answers,
    /// The request fails and has no effect.
    StoreUnavailable,
    /// The request has its effect, and the answer is lost.
    Late,
    /// The request waits until the behaviour changes.
    Slow,
}

#[derive(Clone, Default)]
pub(super) struct Store(Arc<Shared>);

#[derive(Default)]
struct Shared {
    now_ns: AtomicU64,
    nodes: AtomicU64,
    inner: Mutex<Inner>,
}

struct Inner {
    mood: StoreMode,
    cells: BTreeMap<String, Cell>,
    waiting: Vec<Waker>,
    /// Number of decided takes.
    takes: Vec<RemoteTake>,
    leases: u64,
    errors: u64,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            mood: StoreMode::Answers,
            cells: BTreeMap::new(),
            waiting: Vec::new(),
            takes: Vec::new(),
            leases: 0,
            errors: 0,
        }
    }
}

/// Usage of a cell, in units of the period for a bucket, and the time up to which it was counted. A
/// lease reserves its room for as long as it lasts.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    used: i128,
    at_ns: u64,
    leased: u64,
    leased_until_ns: u64,
}

impl Cell {
    fn accrue(&mut self, kind: Kind, now_ns: u64) {
        if let Kind::Bucket(bucket) = kind {
            if now_ns >= self.leased_until_ns {
                self.leased = 0;
            }
            let room = i128::from(self.leased) * i128::from(bucket.period_ns);
            let elapsed = i128::from(now_ns.saturating_sub(self.at_ns));
            let refilled = self.used - elapsed * i128::from(bucket.amount);
            self.used = refilled.max(room.min(self.used));
            self.at_ns = now_ns;
        }
    }

    fn have(&self, kind: Kind) -> i64 {
        let have = match kind {
            Kind::Bucket(bucket) => {
                let full = i128::from(bucket.capacity) * i128::from(bucket.period_ns);
                (full - self.used).div_euclid(i128::from(bucket.period_ns))
            }
            other => i128::from(other.capacity()) - self.used,
        };
        have as i64
    }

    fn debit(&mut self, kind: Kind, count: i64) {
        let unit = match kind {
            Kind::Bucket(bucket) => i128::from(bucket.period_ns),
            _ => 1,
        };
        self.used = (self.used + i128::from(count) * unit).max(0);
    }

    fn retry_ns(&self, kind: Kind, count: i64) -> Option<u64> {
        let Kind::Bucket(bucket) = kind else {
            return None;
        };
        let full = i128::from(bucket.capacity) * i128::from(bucket.period_ns);
        let missing = i128::from(count) * i128::from(bucket.period_ns) - (full - self.used);
        let amount = u128::from(bucket.amount);
        (amount > 0).then(|| (missing.max(0) as u128).div_ceil(amount) as u64)
    }
}

impl Store {
    pub(super) fn shared_by(nodes: u32) -> Self {
        let store = Self::default();
        store.0.nodes.store(u64::from(nodes), Ordering::Relaxed);
        store
    }

    pub(super) fn set_mode(&self, mood: StoreMode) {
        let mut inner = self.0.inner.lock();
        inner.mood = mood;
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Advances the store's clock.
    pub(super) fn pass_ns(&self, ns: u64) {
        self.0.now_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Returns the number of takes decided since the last call.
    pub(super) fn takes(&self) -> Vec<RemoteTake> {
        std::mem::take(&mut self.0.inner.lock().takes)
    }

    pub(super) fn lease_count(&self) -> u64 {
        self.0.inner.lock().leases
    }

    /// Returns the usage of all cells; for buckets, without any refill.
    pub(super) fn used(&self, kind: Kind) -> i64 {
        let inner = self.0.inner.lock();
        let have = inner.cells.values().map(|cell| cell.have(kind));
        have.map(|have| kind.capacity() as i64 - have).sum()
    }

    /// Waits until the behaviour permits an answer.
    fn answer<T: Send + 'static>(
        &self,
        mut ask: impl FnMut(&mut Inner, u64) -> T + Send + 'static,
    ) -> StoreFuture<T> {
        let shared = self.0.clone();
        Box::pin(poll_fn(move |cx| {
            let mut inner = shared.inner.lock();
            let now_ns = shared.now_ns.load(Ordering::Relaxed);
            let away = |may_be_done| StoreUnavailable {
                may_be_done,
                reason: "it is away".to_owned(),
            };
            match inner.mood {
                StoreMode::Answers => Poll::Ready(Ok(ask(&mut inner, now_ns))),
                StoreMode::Slow => {
                    inner.waiting.push(cx.waker().clone());
                    Poll::Pending
                }
                StoreMode::StoreUnavailable => {
                    inner.errors += 1;
                    Poll::Ready(Err(away(false)))
                }
                StoreMode::Late => {
                    inner.errors += 1;
                    ask(&mut inner, now_ns);
                    Poll::Ready(Err(away(true)))
                }
            }
        }))
    }
}

impl Inner {
    fn decide(&mut self, take: &RemoteTake, now_ns: u64) -> RemoteDecision {
        self.takes.push(take.clone());
        let (mut denied, mut states) = (None, Vec::new());
        for (place, cell) in take.cells.iter().enumerate() {
            let stored = self.cells.entry(cell.key.clone()).or_default();
            stored.accrue(cell.kind, now_ns);
            let is_short = take.verb == Verb::Take && stored.have(cell.kind) < cell.count;
            if is_short && cell.is_enforced {
                denied = Some((place, stored.retry_ns(cell.kind, cell.count)));
            }
            states.push(RemoteCellState {
                is_short,
                mark: 7,
                ..RemoteCellState::default()
            });
        }
        for (cell, state) in take.cells.iter().zip(&mut states) {
            let stored = self.cells.entry(cell.key.clone()).or_default();
            match take.verb {
                Verb::Reset => *stored = Cell::default(),
                Verb::Grant => {
                    let Kind::Bucket(bucket) = cell.kind else {
                        continue;
                    };
                    stored.used -= i128::from(cell.count) * i128::from(bucket.period_ns);
                }
                Verb::Take | Verb::Force if denied.is_none() && !state.is_short => {
                    stored.debit(cell.kind, cell.count);
                }
                _ => {}
            }
            state.have = stored.have(cell.kind);
        }
        RemoteDecision {
            denied_by: denied.map(|(place, _)| place),
            retry_after_ns: denied.and_then(|(_, retry)| retry),
            cells: states,
        }
    }

    fn lease(
        &mut self,
        cell: &RemoteCell,
        want: u64,
        before: Option<ReturnedLease>,
        nodes: u64,
        now_ns: u64,
    ) -> Lease {
        self.leases += 1;
        let stored = self.cells.entry(cell.key.clone()).or_default();
        stored.accrue(cell.kind, now_ns);
        if let Some(ReturnedLease { lease, spent }) = before
            && lease.mark > now_ns
        {
            stored.leased = stored.leased.saturating_sub(lease.granted);
            stored.debit(cell.kind, -((lease.granted - spent) as i64));
        }
        let have = stored.have(cell.kind).max(0) as u64;
        let granted = want.min((have / (4 * nodes)).max(1)).min(have);
        stored.debit(cell.kind, granted as i64);
        stored.leased += granted;
        stored.leased_until_ns = now_ns + 2 * SECOND;
        Lease {
            granted,
            mark: now_ns + SECOND,
            lasts_ns: SECOND,
            have: stored.have(cell.kind),
            retry_after_ns: stored.retry_ns(cell.kind, 1),
        }
    }
}

impl QuotaStore for Store {
    fn decide(&self, takes: Vec<RemoteTake>) -> StoreFuture<Vec<RemoteDecision>> {
        self.answer(move |inner, now_ns| {
            let decided = takes.iter().map(|take| inner.decide(take, now_ns));
            decided.collect()
        })
    }

    fn lease(
        &self,
        cell: RemoteCell,
        want: u64,
        before: Option<ReturnedLease>,
    ) -> StoreFuture<Lease> {
        let nodes = self.0.nodes.load(Ordering::Relaxed).max(1);
        self.answer(move |inner, now_ns| inner.lease(&cell, want, before, nodes, now_ns))
    }

    fn probe(&self) -> StoreFuture<String> {
        self.answer(|_, _| "1".to_owned())
    }

    fn view(&self) -> QuotaStoreView {
        let inner = self.0.inner.lock();
        QuotaStoreView {
            is_connected: inner.mood == StoreMode::Answers,
            errors: inner.errors,
            ..QuotaStoreView::default()
        }
    }
}
