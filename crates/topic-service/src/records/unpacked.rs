//! The memory budget for decompressed batches of all readers.
//!
//! A compressed batch can be many times larger when it is decompressed, and a reader holds it until
//! its client has read all of it. So all readers of a node share one budget: memory is reserved
//! before a batch is decompressed, and a reader waits if none is left. The memory of a batch that
//! was not read from for a while is reclaimed; its reader decompresses it again if its client
//! continues. Readers of the same batch share it.
//!
//! Invariant: *the decompressed data of all readers never exceeds the limit, and a client that does
//! not read holds no memory for long.*

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;
use recordbatch::codecs::unpacked_size_max;
use recordbatch::{Batch, Header};

use topics::TopicId;

/// Maximum size of a decompressed batch, in bytes.
pub(super) const UNPACKED_SIZE_MAX: usize = 64 << 20;

/// Time without reads after which the memory of a batch can be reclaimed, in nanoseconds.
const IDLE_NS_MAX: u64 = 1_000_000_000;

/// Identifies a batch: its topic, its partition and the offset of its first record.
pub(super) type Key = (TopicId, u32, i64);

/// The memory budget of a node.
#[derive(Debug)]
pub(crate) struct Unpacked {
    limit: u64,
    inside: Mutex<BudgetState>,
}

#[derive(Debug, Default)]
struct BudgetState {
    reserved: u64,
    /// The decompressed batches.
    leases: HashMap<Key, Weak<Lease>>,
    /// The wakers of readers that wait for memory.
    waiting: Vec<Waker>,
}

/// Reserved memory; it is released when dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<Unpacked>,
    bytes: u64,
}

/// A decompressed batch, shared by its readers.
#[derive(Debug)]
pub(super) struct Lease {
    header: Header,
    held: Mutex<LeaseState>,
}

#[derive(Debug)]
struct LeaseState {
    /// The records and their memory; `None` once it was reclaimed.
    payload: Option<(Bytes, Reservation)>,
    used_ns: u64,
}

impl Unpacked {
    /// Creates a budget of `limit` bytes, but at least enough for one batch.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(UNPACKED_SIZE_MAX as u64),
            inside: Mutex::default(),
        })
    }

    /// Returns the reserved memory: of decompressed batches, and of those being decompressed.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.inside.lock().reserved
    }

    /// Returns the batch if a reader holds it decompressed.
    pub(super) fn find(&self, key: &Key) -> Option<Arc<Lease>> {
        let lease = self.inside.lock().leases.get(key)?.upgrade()?;
        let is_held = lease.held.lock().payload.is_some();
        is_held.then_some(lease)
    }

    /// Reserves memory for decompressing a batch, and reclaims idle batches if necessary. If that
    /// is not enough, returns `None`, and the waker is woken when there may be memory.
    pub(super) fn reserve(
        self: &Arc<Self>,
        batch: &Batch<'_>,
        now_ns: u64,
        waker: &Waker,
    ) -> Option<Reservation> {
        let bytes = unpacked_size_max(batch).min(UNPACKED_SIZE_MAX) as u64;
        if !self.take(bytes) {
            self.let_go(now_ns);
            if !self.take(bytes) {
                let mut inside = self.inside.lock();
                if !inside.waiting.iter().any(|it| it.will_wake(waker)) {
                    inside.waiting.push(waker.clone());
                }
                return None;
            }
        }
        let budget = self.clone();
        Some(Reservation { budget, bytes })
    }

    fn take(&self, bytes: u64) -> bool {
        let mut inside = self.inside.lock();
        let has_room = inside.reserved.saturating_add(bytes) <= self.limit;
        if has_room {
            inside.reserved += bytes;
        }
        has_room
    }

    fn give_back(&self, bytes: u64) {
        let waiting = {
            let mut inside = self.inside.lock();
            inside.reserved = inside.reserved.saturating_sub(bytes);
            std::mem::take(&mut inside.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Stores a decompressed batch. If another reader already holds it, that one is returned.
    pub(super) fn hold(
        &self,
        key: Key,
        header: Header,
        payload: Vec<u8>,
        mut reservation: Reservation,
        now_ns: u64,
    ) -> Arc<Lease> {
        if let Some(lease) = self.find(&key) {
            return lease;
        }
        reservation.shrink(payload.capacity() as u64);
        let lease = Arc::new(Lease {
            header,
            held: Mutex::new(LeaseState {
                payload: Some((payload.into(), reservation)),
                used_ns: now_ns,
            }),
        });
        let mut inside = self.inside.lock();
        inside.leases.insert(key, Arc::downgrade(&lease));
        lease
    }

    /// Reclaims the memory of idle batches. Returns whether readers wait for memory.
    pub(crate) fn let_go(&self, now_ns: u64) -> bool {
        let leases: Vec<_> = {
            let mut inside = self.inside.lock();
            inside.leases.retain(|_, lease| lease.strong_count() > 0);
            inside.leases.values().filter_map(Weak::upgrade).collect()
        };
        for lease in leases {
            lease.let_go_if_idle(now_ns);
        }
        !self.inside.lock().waiting.is_empty()
    }
}

impl Reservation {
    /// Releases the memory above `bytes`.
    fn shrink(&mut self, bytes: u64) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        self.budget.give_back(spare);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

impl Lease {
    /// Returns the header of the batch.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the records and marks them as used; `None` if they were reclaimed.
    pub(super) fn payload(&self, now_ns: u64) -> Option<Bytes> {
        let mut held = self.held.lock();
        held.used_ns = now_ns;
        held.payload.as_ref().map(|(payload, _)| payload.clone())
    }

    fn let_go_if_idle(&self, now_ns: u64) {
        let mut held = self.held.lock();
        let is_idle = now_ns.saturating_sub(held.used_ns) >= IDLE_NS_MAX;
        let gone = held.payload.take_if(|_| is_idle);
        drop(held);
        // Dropping it wakes other readers, so it happens without the lock.
        drop(gone);
    }
}

#[cfg(test)]
mod tests;
