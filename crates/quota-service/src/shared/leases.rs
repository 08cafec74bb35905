//! This node's knowledge of cells in the shared store: leases and recent denials.
//!
//! A cell has an entry while it is in demand. The entries of an organisation are in one shard, so a
//! take reads all its cells under one lock. Nothing here talks to the store: questions and answers
//! are passed as values. Invariant: *everything spent here was granted, and is spent before the
//! lease expires, with its time counted from when it was asked for.*

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};
use quota::{Key, Kind, LimitId, Part, StoreAnswer};

use super::cell_request::CellRequest;
use super::lease_size::Demand;
use crate::cells::SHARDS;
use crate::quota_store::{Lease, RemoteCell, ReturnedLease};

/// Maximum time that a denial is believed, in nanoseconds: credit returned by others is noticed
/// after it.
const BELIEVED_NS: u64 = 1_000_000_000;

/// The entries; see the module docs.
pub(super) struct Leases {
    shards: Box<[Mutex<Shard>]>,
    /// Maximum number of entries per shard.
    entries_max: usize,
    /// Number of nodes that share the cells.
    nodes: u32,
}

/// The entries of some organisations, by the hashes of their cells.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) by_hash: HashMap<u64, Entry>,
}

/// An entry of a cell.
pub(super) struct Entry {
    limit: LimitId,
    name: Box<str>,
    run: Box<str>,
    /// The cell as of the latest request.
    pub(super) cell: RemoteCell,
    pub(super) demand: Demand,
    pub(super) held: Option<HeldLease>,
    denied: Option<RecentDenial>,
    /// The store's last known balance.
    have: Option<i64>,
    /// Start of the lease request in progress, in nanoseconds.
    pub(super) asked_ns: Option<u64>,
    /// Takes that wait for that request.
    pub(super) waiting: Vec<Waker>,
}

/// A lease held by this node.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldLease {
    pub(super) lease: Lease,
    pub(super) spent: u64,
    pub(super) asked_ns: u64,
}

/// Details of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellDenial {
    /// The credit left.
    pub(super) have: i64,
    /// The requested amount.
    pub(super) need: u64,
    /// The time at which it would pass.
    pub(super) at_ns: Option<u64>,
}

#[derive(Clone, Copy)]
struct RecentDenial {
    denied: CellDenial,
    kind: Kind,
    until_ns: u64,
}

/// The result of a local decision.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LeaseDecision {
    /// The take was spent from leases.
    Spent,
    /// The cell of this step had too little credit a moment ago.
    Denied(usize, CellDenial),
    /// The leases do not suffice.
    Nothing,
}

/// Credit spent from a lease, which can be undone while the lease is the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseDebit {
    hash: u64,
    count: u64,
    asked_ns: u64,
    mark: u64,
}

/// Per requested cell: the credit spent from a lease, and the balance afterwards.
pub(super) type LeaseDebits = Vec<Option<(LeaseDebit, StoreAnswer)>>;

impl HeldLease {
    fn until_ns(&self) -> u64 {
        self.asked_ns.saturating_add(self.lease.lasts_ns)
    }

    fn remaining(&self, now_ns: u64) -> u64 {
        match now_ns < self.until_ns() {
            true => self.lease.granted.saturating_sub(self.spent),
            false => 0,
        }
    }

    fn returned(self) -> ReturnedLease {
        ReturnedLease {
            lease: self.lease,
            spent: self.spent,
        }
    }
}

impl Entry {
    fn new(wanted: &CellRequest) -> Self {
        Self {
            limit: wanted.limit,
            name: wanted.name.clone(),
            run: wanted.run.clone(),
            cell: wanted.cell.clone(),
            demand: Demand::default(),
            held: None,
            denied: None,
            have: None,
            asked_ns: None,
            waiting: Vec::new(),
        }
    }

    fn is_of(&self, key: Key<'_>) -> bool {
        self.limit == key.limit && *self.name == *key.prefix.name && *self.run == *key.prefix.run
    }

    /// Returns the credit left in the lease.
    pub(super) fn remaining(&self, now_ns: u64) -> u64 {
        self.held.map_or(0, |held| held.remaining(now_ns))
    }

    fn denied(&self, kind: Kind, count: u64, now_ns: u64) -> Option<CellDenial> {
        let recent = self.denied.as_ref()?;
        let stands = now_ns < recent.until_ns && recent.kind == kind;
        (stands && count >= recent.denied.need).then_some(CellDenial {
            need: count,
            ..recent.denied
        })
    }

    /// Spends from the lease and returns the cell's balance for this node.
    fn spend(&mut self, count: u64, now_ns: u64) -> Option<StoreAnswer> {
        let held = self.held.as_mut()?;
        let left = held.remaining(now_ns).checked_sub(count)?;
        held.spent += count;
        Some(StoreAnswer {
            have: i128::from(self.have.unwrap_or(0)) + i128::from(left),
            mark: Some(held.lease.mark),
            touched_ns: None,
            is_shadowed: false,
        })
    }

    /// Returns whether a lease is likely to cover the demand, including that of other takes.
    fn is_worth_a_lease(&self, count: u64, nodes: u32, now_ns: u64) -> bool {
        let have = self
            .have
            .map(|have| u64::try_from(have.max(0)).unwrap_or(0));
        let share =
            have.map(|have| (have + self.remaining(now_ns)) / (4 * u64::from(nodes.max(1))));
        self.demand.is_of_several(now_ns) && share.is_none_or(|share| count <= share.max(1))
    }

    /// Returns whether the entry can be removed: no demand, and no credit to return.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        let is_denied = self.denied.is_some_and(|it| now_ns < it.until_ns);
        let is_used = self.held.is_some() || self.asked_ns.is_some() || !self.waiting.is_empty();
        !is_used && !is_denied && self.demand.count(now_ns) == 0
    }

    /// Ends the lease and returns its remaining credit, to be given back to the store.
    pub(super) fn give_back(&mut self) -> Option<ReturnedLease> {
        self.held.take().map(HeldLease::returned)
    }
}

impl Leases {
    pub(super) fn new(entries_max: usize, nodes: u32) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            entries_max: entries_max.div_ceil(usize::from(SHARDS)).max(1),
            nodes,
        }
    }

    pub(super) fn shard(&self, number: u16) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(number)].lock()
    }

    /// Spends a take from leases, if they cover all of it, and returns the balances of its cells.
    pub(super) fn spend<'p>(
        &self,
        shard: u16,
        parts: impl Iterator<Item = Part<'p>> + Clone,
        now_ns: u64,
        mut tell: impl FnMut(usize, StoreAnswer),
    ) -> LeaseDecision {
        let mut shard = self.shard(shard);
        let mut is_leased = true;
        for (step, part) in parts.clone().enumerate() {
            let count = wanted_count(&part);
            let entry = shard.entry(&part);
            if entry
                .as_ref()
                .is_some_and(|it| it.remaining(now_ns) >= count)
            {
                continue;
            }
            is_leased = false;
            let denied = entry.and_then(|it| it.denied(part.kind, count, now_ns));
            if let Some(denied) = denied.filter(|_| part.is_enforced) {
                return LeaseDecision::Denied(step, denied);
            }
        }
        if !is_leased {
            return LeaseDecision::Nothing;
        }
        for (step, part) in parts.enumerate() {
            let Some(entry) = shard.entry(&part) else {
                continue;
            };
            entry.demand.note(wanted_count(&part), now_ns);
            if let Some(answer) = entry.spend(wanted_count(&part), now_ns) {
                tell(step, answer);
            }
        }
        LeaseDecision::Spent
    }

    /// Notes the demand of a take, so that its cells have entries.
    pub(super) fn note(&self, shard: u16, wanted: &[CellRequest], now_ns: u64) {
        let mut shard = self.shard(shard);
        let has_room = shard.by_hash.len() + wanted.len() <= self.entries_max;
        for wanted in wanted {
            let entry = match shard.by_hash.entry(wanted.hash) {
                MapEntry::Occupied(known) => known.into_mut(),
                MapEntry::Vacant(room) if has_room => room.insert(Entry::new(wanted)),
                MapEntry::Vacant(_) => continue,
            };
            if entry.is_of(wanted.key()) {
                entry.demand.note(wanted.count(), now_ns);
            }
        }
    }

    /// Returns a cell that should be leased before the store is asked.
    pub(super) fn to_lease(
        &self,
        shard: u16,
        wanted: &[CellRequest],
        now_ns: u64,
    ) -> Option<usize> {
        let mut shard = self.shard(shard);
        wanted.iter().position(|wanted| {
            let nodes = self.nodes;
            shard.of(wanted).is_some_and(|entry| {
                let is_short = entry.remaining(now_ns) < wanted.count();
                let is_denied = || {
                    entry
                        .denied(wanted.cell.kind, wanted.count(), now_ns)
                        .is_some()
                };
                is_short
                    && wanted.is_leased()
                    && !is_denied()
                    && (entry.asked_ns.is_some()
                        || entry.is_worth_a_lease(wanted.count(), nodes, now_ns))
            })
        })
    }

    /// Debits each requested cell from its lease. Returns, per cell, the amount debited and the
    /// balance; or the cell that is known to deny.
    pub(super) fn spend_some(
        &self,
        shard: u16,
        wanted: &[CellRequest],
        now_ns: u64,
    ) -> Result<LeaseDebits, (usize, CellDenial)> {
        let mut shard = self.shard(shard);
        for (index, wanted) in wanted.iter().enumerate() {
            let Some(entry) = shard.of(wanted) else {
                continue;
            };
            let is_short = entry.remaining(now_ns) < wanted.count();
            let denied = entry.denied(wanted.cell.kind, wanted.count(), now_ns);
            if let Some(denied) = denied.filter(|_| is_short && wanted.cell.is_enforced) {
                return Err((index, denied));
            }
        }
        let debits = wanted.iter().map(|wanted| {
            let entry = shard.of(wanted)?;
            let answer = entry.spend(wanted.count(), now_ns)?;
            let held = entry.held?;
            let debit = LeaseDebit {
                hash: wanted.hash,
                count: wanted.count(),
                asked_ns: held.asked_ns,
                mark: held.lease.mark,
            };
            Some((debit, answer))
        });
        Ok(debits.collect())
    }

    /// Undoes the spending of a take that was denied, for leases that are still the same.
    pub(super) fn unspend(&self, shard: u16, spent: &[LeaseDebit]) {
        let mut shard = self.shard(shard);
        for debit in spent {
            let held = shard.by_hash.get_mut(&debit.hash);
            let held = held.and_then(|entry| entry.held.as_mut());
            let is_same = |held: &&mut HeldLease| {
                (held.asked_ns, held.lease.mark) == (debit.asked_ns, debit.mark)
            };
            if let Some(held) = held.filter(is_same) {
                held.spent = held.spent.saturating_sub(debit.count);
            }
        }
    }

    /// Notes a cell's balance.
    pub(super) fn note_balance(&self, shard: u16, wanted: &CellRequest, have: i64) {
        if let Some(entry) = self.shard(shard).of(wanted) {
            entry.have = Some(have);
        }
    }

    /// Notes a denial by a cell.
    pub(super) fn note_denied(
        &self,
        shard: u16,
        wanted: &CellRequest,
        denied: CellDenial,
        now_ns: u64,
    ) {
        if let Some(entry) = self.shard(shard).of(wanted)
            && wanted.is_leased()
        {
            entry.have = Some(denied.have);
            entry.deny(denied, now_ns);
        }
    }

    /// Ends the lease of a cell, and returns its remaining credit.
    pub(super) fn give_back(&self, shard: u16, wanted: &CellRequest) -> Option<ReturnedLease> {
        self.shard(shard).of(wanted)?.give_back()
    }

    /// Forgets all denials.
    pub(super) fn forget_denied(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard
                .by_hash
                .values_mut()
                .for_each(|entry| entry.denied = None);
        }
    }
}

impl Entry {
    fn deny(&mut self, denied: CellDenial, now_ns: u64) {
        let believed_ns = now_ns.saturating_add(BELIEVED_NS);
        self.denied = Some(RecentDenial {
            denied,
            kind: self.cell.kind,
            until_ns: denied
                .at_ns
                .map_or(believed_ns, |at_ns| at_ns.min(believed_ns)),
        });
    }

    /// Stores a new lease.
    pub(super) fn hold(&mut self, lease: Lease, asked_ns: u64, now_ns: u64) {
        self.have = Some(lease.have);
        self.held = Some(HeldLease {
            lease,
            spent: 0,
            asked_ns,
        })
        .filter(|_| lease.granted > 0);
        if lease.granted == 0 {
            let at_ns = lease
                .retry_after_ns
                .map(|after_ns| now_ns.saturating_add(after_ns));
            let (have, need) = (lease.have, 1);
            self.deny(CellDenial { have, need, at_ns }, now_ns);
        }
    }
}

impl Shard {
    fn entry(&mut self, part: &Part<'_>) -> Option<&mut Entry> {
        let entry = self.by_hash.get_mut(&part.hash)?;
        entry.is_of(part.key).then_some(entry)
    }

    /// Returns the entry of a cell.
    pub(super) fn of(&mut self, wanted: &CellRequest) -> Option<&mut Entry> {
        let entry = self.by_hash.get_mut(&wanted.hash)?;
        entry.is_of(wanted.key()).then_some(entry)
    }
}

fn wanted_count(part: &Part<'_>) -> u64 {
    u64::try_from(part.count).unwrap_or(0)
}
