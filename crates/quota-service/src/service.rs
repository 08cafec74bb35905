//! [`QuotaService`] and its operations, [`Quotas`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};
use platform::Platform;
use quota::{Holds, Rules, Seed, Table};

use super::Options;
use super::cells::{LockedShard, SHARDS, Shard, recent, share};
use super::counts::Counts;
use super::events::Events;
use super::persistence::{QuotaJournal, QuotaStreams};
use super::queues::Queues;
use super::quota_store::SharedStore;
use super::shared::SharedCells;
use super::sketch::Sketch;
use super::usage::spends::Spends;
use super::usage::{Usage, WriteTime};

/// The quotas of a node: everything that outlives a take. See the documentation of the crate.
pub struct QuotaService {
    pub(super) platform: Arc<Platform>,
    /// True if there is any limit or halt.
    pub(super) is_on: AtomicBool,
    /// True if any limit counts operations at listeners.
    pub(super) is_at_doors: AtomicBool,
    pub(super) rules: RwLock<Arc<Rules>>,
    pub(super) shards: Box<[Mutex<Shard>]>,
    /// The wall-clock time when the node was created, in nanoseconds, and the node's clock at that
    /// moment.
    pub(super) anchor: (u64, u64),
    pub(super) options: Options,
    /// The streams of the journal; `None` for a node without storage.
    pub(super) journal: Option<QuotaJournal>,
    /// The shared store of the cells, unless they are local.
    pub(super) shared: Option<SharedCells>,
    /// Serializes changes.
    pub(super) changing: Mutex<()>,
    /// The earliest deadline of a hold.
    pub(super) holds_due_ns: AtomicU64,
    /// Sum of the wall clock's steps since the node was created, in nanoseconds.
    pub(super) calendar_shift_ns: AtomicI64,
    /// True if the sweep is already scheduled.
    pub(super) is_listed: AtomicBool,
    pub(super) queues: Mutex<Queues>,
    pub(super) waiting: AtomicUsize,
    pub(super) denied: Mutex<Sketch>,
    pub(super) events: Events,
    pub(super) counts: Counts,
    pub(super) usage: Usage,
}

impl QuotaService {
    /// Creates quotas without limits; [`Quotas::restore`] loads them. Without `streams` nothing is
    /// stored, and without `shared` the cells are local.
    pub fn new(
        platform: Arc<Platform>,
        options: Options,
        shared: Option<SharedStore>,
        streams: Option<QuotaStreams>,
    ) -> Self {
        let ports = &platform.ports;
        let seed = Seed(ports.entropy.next_u64());
        let (unix_ms, now_ns) = (ports.clock.unix_ms(), ports.clock.now_ns());
        let shard = |_| {
            Mutex::new(Shard {
                table: Table::new(seed, share(options.subjects_max)),
                holds: Holds::new(share(options.holds_max)),
                recent: recent(&options),
                unwritten: Vec::new(),
                spends: Spends::new(options.usage_rows_max),
            })
        };
        Self {
            is_on: AtomicBool::new(false),
            is_at_doors: AtomicBool::new(false),
            rules: RwLock::new(Arc::new(Rules::new(seed, SHARDS))),
            shards: (0..SHARDS).map(shard).collect(),
            anchor: (unix_ms.saturating_mul(1_000_000), now_ns),
            usage: Usage::new(options.usage_rows_max, streams.is_some()),
            journal: streams.map(QuotaJournal::new),
            shared: shared.map(|it| SharedCells::new(it, options.subjects_max)),
            options,
            changing: Mutex::default(),
            holds_due_ns: AtomicU64::new(0),
            calendar_shift_ns: AtomicI64::new(0),
            is_listed: AtomicBool::new(false),
            queues: Mutex::default(),
            waiting: AtomicUsize::new(0),
            denied: Mutex::default(),
            events: Events::default(),
            counts: Counts::default(),
            platform,
        }
    }

    /// Returns the operations on the quotas.
    #[inline]
    pub fn quotas(self: &Arc<Self>) -> Quotas<'_> {
        Quotas { service: self }
    }

    pub(super) fn shard(&self, table: u16) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(table)].lock()
    }
}

/// The quotas of a node.
#[derive(Clone, Copy)]
pub struct Quotas<'a> {
    pub(super) service: &'a Arc<QuotaService>,
}

impl<'a> Quotas<'a> {
    pub(super) fn state(self) -> &'a QuotaService {
        self.service
    }

    /// Returns whether any limit counts operations at listeners, or anything is halted.
    #[inline]
    pub fn is_at_doors(self) -> bool {
        self.service.is_at_doors.load(Ordering::Relaxed)
    }

    /// Returns whether there is anything to check: any limit or halt.
    pub fn is_on(self) -> bool {
        self.state().is_on.load(Ordering::Relaxed)
    }

    /// Returns the current time in nanoseconds since 1970-01-01 UTC: the wall-clock time when the
    /// node was started plus the time its clock has counted since. It never steps.
    pub fn now_ns(self) -> u64 {
        let (unix_ns, clock_ns) = self.state().anchor;
        let passed = self.service.platform.now_ns().saturating_sub(clock_ns);
        unix_ns.saturating_add(passed)
    }

    /// Returns the number of open holds.
    pub fn hold_count(self) -> usize {
        let shards = self.state().shards.iter();
        shards.map(|shard| shard.lock().holds.len()).sum()
    }

    /// Returns the number of waiting takes.
    pub fn waiting_count(self) -> usize {
        self.state().waiting.load(Ordering::Relaxed)
    }

    /// Locks the shards that a plan needs, in order.
    pub(super) fn lock(self, plan: &quota::Plan) -> Vec<LockedShard<'a>> {
        let tables = plan.tables().iter();
        tables
            .map(|table| LockedShard(self.state().shard(*table)))
            .collect()
    }

    /// Schedules a sweep after a change.
    pub(super) fn need_sweep(self) {
        let listed = &self.state().is_listed;
        if !listed.load(Ordering::Relaxed) && !listed.swap(true, Ordering::AcqRel) {
            self.service.platform.need_sweep();
        }
    }

    /// Ends expired holds, writes changes to the journal, and removes old usage. Returns whether
    /// work remains.
    pub fn sweep(self) -> bool {
        self.expire_usage();
        let state = self.state();
        if !state.is_listed.swap(false, Ordering::AcqRel) {
            return false;
        }
        let holds_left = self.expire_holds();
        let is_left = self.flush(WriteTime::WhenDue) || holds_left;
        if is_left {
            state.is_listed.store(true, Ordering::Release);
        }
        is_left
    }
}
