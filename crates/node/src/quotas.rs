//! Quotas: the quota engine's cells behind locks, decided on the caller's thread.
//!
//! Cells are spread over 64 shards, each behind a mutex; a take locks the shards it needs in
//! ascending order, decides, and unlocks them. Changes of a take are written to the journal a
//! moment later in a batch, or before its answer if its limit is `sync` (`kept`). The rules are an
//! immutable value that is replaced as a whole (`admin`); a decision holds their read lock, so a
//! take never sees a change half applied.
//!
//! Lock order: the rules, the shards by number, the queues, the journal's locks.
//!
//! Without any limit, a listener's check costs one atomic read.

mod admin;
mod admission;
mod clock;
mod counts;
mod desk;
mod events;
mod limit_config;
mod outcome;
mod parked;
mod persistence;
mod settle;
mod shared;
mod sketch;
mod take;
#[cfg(test)]
mod tests;
mod top;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use platform::Ports;
use quota::{Holds, Recent, Seed, Table};
use store::Store;

use crate::Node;
use crate::node::Inner;
use crate::ports::quota_store::SharedStore;

pub use admin::{Applied, By, ChangeError};
pub use admission::{ChargeReceipt, HaltNotice, HeldCall, Throttled};
pub(crate) use admission::{Charged, InFlight};
pub use clock::ClockStep;
pub use counts::{BucketCounts, LimitCounts, TakeCounts};
pub use desk::Desk;
pub use events::{Event, EventKind, Watch, Watched};
pub use limit_config::{LimitConfig, parse_factor, parse_refill};
pub use outcome::{DecidedTake, Denial, HoldGrant, Outcome, Take, TakeProgress};
pub use parked::{Attempt, Parked};
pub use persistence::OpenError;
pub use settle::{Requester, SettleOutcome, Settling};
pub use shared::SharedStoreView;
pub use top::{TopBy, TopRow};

pub use platform::{Durable, Unconfirmed};
// Engine types that listeners use.
pub use quota::{
    AMOUNT_MAX, AdminError, Cost, Every, Factor, Halt, HoldId, Kind, Limit, LimitState, Mistake,
    Mode, Override, Policies, Prefix, Refused, Rules, Settled, Subject, SubjectError, Unit, When,
    Zone,
};

/// Capacity limits of quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of buckets, over all limits.
    pub subjects_max: usize,
    /// Maximum number of open holds.
    pub holds_max: usize,
    /// Maximum lifetime of a hold.
    pub hold_max: Duration,
    /// Maximum number of take ids that are remembered.
    pub ids_max: usize,
    /// Minimum time that a take id is remembered, unless there are more than `ids_max`.
    pub id_window: Duration,
    /// Maximum number of waiting takes.
    pub waiting_max: usize,
    /// Number of administrative changes in the audit log.
    pub audit_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            subjects_max: 10_000_000,
            holds_max: 1_000_000,
            hold_max: Duration::from_secs(24 * 3600),
            ids_max: 100_000,
            id_window: Duration::from_secs(600),
            waiting_max: 10_000,
            audit_max: 100_000,
        }
    }
}

const SHARDS: u16 = 64;

/// A shard of the cells, and of the state of whole subjects.
pub(crate) struct Shard {
    pub(crate) table: Table,
    pub(crate) holds: Holds,
    /// Recent takes by subject and id.
    pub(crate) recent: Recent<RecentTake>,
    /// Records of started and ended holds that are not in the journal yet.
    pub(crate) unkept: Vec<(u8, Vec<u8>)>,
}

/// An admitted take with an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentTake {
    pub(crate) hold: Option<HoldGrant>,
    /// Digest of its costs, to compare a repeated take; 0 if unknown.
    pub(crate) cost_digest: u64,
}

/// A locked shard; the engine accesses its table.
pub(crate) struct Locked<'a>(pub(crate) MutexGuard<'a, Shard>);

impl std::ops::Deref for Locked<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0.table
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.0.table
    }
}

/// State of quotas; see the module docs.
pub(crate) struct State {
    /// True if there is any limit or halt.
    is_on: AtomicBool,
    /// True if any limit counts operations at listeners.
    is_at_doors: AtomicBool,
    pub(crate) rules: RwLock<Arc<Rules>>,
    shards: Box<[Mutex<Shard>]>,
    /// The wall-clock time when the node was created, in nanoseconds, and the node's clock at that
    /// moment.
    anchor: (u64, u64),
    options: Options,
    /// The streams of the journal; `None` for a node without storage.
    kept: Option<persistence::QuotaJournal>,
    /// The shared store of the cells, unless they are local.
    elsewhere: Option<shared::SharedCells>,
    /// Serializes changes.
    changing: Mutex<()>,
    /// The earliest deadline of a hold.
    holds_due_ns: AtomicU64,
    /// Sum of the wall clock's steps since the node was created, in nanoseconds.
    calendar_shift_ns: AtomicI64,
    /// True if the sweep is already scheduled.
    is_listed: AtomicBool,
    queues: Mutex<parked::Queues>,
    waiting: AtomicUsize,
    denied: Mutex<sketch::Sketch>,
    events: events::Events,
    counts: counts::Counts,
}

impl State {
    /// Returns quotas without limits; see [`Quotas::restore`].
    pub(crate) fn open(
        ports: &Ports,
        options: Options,
        shared: Option<SharedStore>,
        store: Option<&Store>,
    ) -> Result<Self, OpenError> {
        let seed = Seed(ports.entropy.next_u64());
        let unix_ms = ports.clock.unix_ms();
        let kept = store.map(|store| persistence::QuotaJournal::find(store, unix_ms));
        let elsewhere = shared.map(|it| shared::SharedCells::new(it, options.subjects_max));
        let shard = |_| {
            Mutex::new(Shard {
                table: Table::new(seed, share(options.subjects_max)),
                holds: Holds::new(share(options.holds_max)),
                recent: recent(&options),
                unkept: Vec::new(),
            })
        };
        Ok(Self {
            is_on: AtomicBool::new(false),
            is_at_doors: AtomicBool::new(false),
            rules: RwLock::new(Arc::new(Rules::new(seed, SHARDS))),
            shards: (0..SHARDS).map(shard).collect(),
            anchor: (unix_ms.saturating_mul(1_000_000), ports.clock.now_ns()),
            kept: kept.transpose()?,
            elsewhere,
            options,
            changing: Mutex::default(),
            holds_due_ns: AtomicU64::new(0),
            calendar_shift_ns: AtomicI64::new(0),
            is_listed: AtomicBool::new(false),
            queues: Mutex::default(),
            waiting: AtomicUsize::new(0),
            denied: Mutex::default(),
            events: events::Events::default(),
            counts: counts::Counts::default(),
        })
    }

    fn shard(&self, table: u16) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(table)].lock()
    }

    /// Returns whether any limit counts operations at listeners.
    pub(crate) fn is_at_doors(&self) -> bool {
        self.is_at_doors.load(Ordering::Relaxed)
    }
}

/// Returns one shard's part of a total.
fn share(count: usize) -> usize {
    count.div_ceil(usize::from(SHARDS)).max(1)
}

fn recent(options: &Options) -> Recent<RecentTake> {
    let window_ns = u64::try_from(options.id_window.as_nanos()).unwrap_or(u64::MAX);
    Recent::new(share(options.ids_max), window_ns)
}

/// The quotas of a node.
#[derive(Clone, Copy)]
pub struct Quotas<'a> {
    pub(crate) inner: &'a Arc<Inner>,
}

impl Node {
    /// Returns the node's quotas.
    pub fn quotas(&self) -> Quotas<'_> {
        Quotas { inner: &self.inner }
    }
}

impl<'a> Quotas<'a> {
    pub(crate) fn state(self) -> &'a State {
        &self.inner.quotas
    }

    /// Returns whether there is anything to check: any limit or halt.
    pub fn is_on(self) -> bool {
        self.state().is_on.load(Ordering::Relaxed)
    }

    /// Returns the current time in nanoseconds since 1970-01-01 UTC: the wall-clock time when the
    /// node was started plus the time its clock has counted since. It never steps.
    pub fn now_ns(self) -> u64 {
        let (unix_ns, clock_ns) = self.state().anchor;
        let passed = self
            .inner
            .platform
            .ports
            .clock
            .now_ns()
            .saturating_sub(clock_ns);
        unix_ns.saturating_add(passed)
    }

    /// Looks up the standing of all limits of a subject, without creating buckets; read the result
    /// from the desk. With a shared store, returns the request to the store: the desk has the
    /// result once that is done and the store was available.
    pub fn peek(self, desk: &mut Desk, subject: &Subject<'_>) -> Option<Parked> {
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        self.look_here(&rules, desk, subject, now_ns);
        self.state().elsewhere.as_ref()?;
        let ask = self.look_elsewhere(&rules, desk, subject)?;
        Some(self.asking_look(subject, ask))
    }

    fn look_here(self, rules: &Arc<Rules>, desk: &mut Desk, subject: &Subject<'_>, now_ns: u64) {
        desk.begin(rules, now_ns);
        rules.plan_look(&mut desk.plan, subject);
        let mut locked = self.lock(&desk.plan);
        quota::look(rules, &mut desk.plan, subject, &mut locked, now_ns);
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
    fn lock(self, plan: &quota::Plan) -> Vec<Locked<'a>> {
        let tables = plan.tables().iter();
        tables
            .map(|table| Locked(self.state().shard(*table)))
            .collect()
    }

    /// Schedules a sweep after a change.
    fn need_sweep(self) {
        let listed = &self.state().is_listed;
        if !listed.load(Ordering::Relaxed) && !listed.swap(true, Ordering::AcqRel) {
            self.inner.platform.need_sweep();
        }
    }

    /// Ends expired holds and writes changes to the journal. Returns whether work remains.
    pub(crate) fn sweep(self) -> bool {
        let state = self.state();
        if !state.is_listed.swap(false, Ordering::AcqRel) {
            return false;
        }
        let holds_left = self.expire_holds();
        let is_left = self.flush() || holds_left;
        if is_left {
            state.is_listed.store(true, Ordering::Release);
        }
        is_left
    }
}
