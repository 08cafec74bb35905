//! The memory that unpacked batches of readers take, all of them together.
//!
//! A compressed batch may be many times as large when it is unpacked, and a reader keeps it until its
//! client has taken all of it. So all readers of a node share one budget: memory is reserved before a
//! batch is unpacked, and a reader waits where there is none left. A batch that was not read from for a
//! while is let go of; its reader unpacks it again if its client ever goes on. Readers of the same batch
//! share it.
//!
//! Invariant: *what all readers hold unpacked is never above the limit, and a client that does not read
//! holds nothing for long.*

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;
use recordbatch::codecs::unpacked_size_max;
use recordbatch::{Batch, Header};

use crate::topics::TopicId;

/// Bytes that the records of a batch may have when they are unpacked.
pub(super) const UNPACKED_SIZE_MAX: usize = 64 << 20;

/// How long a batch is kept that is not read from.
const IDLE_NS_MAX: u64 = 1_000_000_000;

/// A batch: its topic, its partition and the offset of its first record.
pub(super) type Key = (TopicId, u32, i64);

/// The budget of a node. See the module's documentation.
#[derive(Debug)]
pub(crate) struct Unpacked {
    limit: u64,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    reserved: u64,
    /// Batches that are held, by what they are.
    leases: HashMap<Key, Weak<Lease>>,
    /// Readers that wait for memory.
    waiting: Vec<Waker>,
}

/// Memory that a batch may take while it is unpacked. Dropped, it is free again.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<Unpacked>,
    bytes: u64,
}

/// An unpacked batch that one or more readers walk.
#[derive(Debug)]
pub(super) struct Lease {
    header: Header,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    /// The records, and the memory that they take; `None` once they were let go of.
    payload: Option<(Bytes, Reservation)>,
    used_ns: u64,
}

impl Unpacked {
    /// A budget of at most `limit` bytes, and of as much as one batch may take.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(UNPACKED_SIZE_MAX as u64),
            inside: Mutex::default(),
        })
    }

    /// Bytes that unpacked batches take, and those that are being unpacked may take.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.inside.lock().reserved
    }

    /// The batch, if a reader has it unpacked.
    pub(super) fn find(&self, key: &Key) -> Option<Arc<Lease>> {
        let lease = self.inside.lock().leases.get(key)?.upgrade()?;
        let is_held = lease.held.lock().payload.is_some();
        is_held.then_some(lease)
    }

    /// Reserves what a batch may take when it is unpacked. Where there is not so much left, batches that are
    /// not read from are let go of; if that is not enough, `None`, and the waker is woken once there may be.
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

    /// Keeps an unpacked batch; if a reader has it already, that one is shared.
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
            held: Mutex::new(Held {
                payload: Some((payload.into(), reservation)),
                used_ns: now_ns,
            }),
        });
        let mut inside = self.inside.lock();
        inside.leases.insert(key, Arc::downgrade(&lease));
        lease
    }

    /// Lets go of the batches that were not read from for a while; whether readers wait for memory.
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
    /// Gives back what was not needed.
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
    /// The header of the batch.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// The records, which are used now; `None` if they were let go of.
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
        // Others are woken by that, and nothing is locked meanwhile.
        drop(gone);
    }
}

#[cfg(test)]
mod tests;
