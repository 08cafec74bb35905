//! Quotas: the engine's cells behind locks, decided on the thread that asks.
//!
//! Cells lie in 64 shards, each behind a mutex; a take locks those it needs in ascending order,
//! decides and lets go. Nothing is handed to anybody. What a take changed is written to the journal a
//! moment later with everything else that changed, or before its answer if its limit is `sync`
//! (`kept`). Rules are a value that is replaced as a whole (`admin`): whoever decides holds the
//! read lock meanwhile, so a change meets no take half way.
//!
//! Locks, in the order in which they may be held together: the rules, the shards by number, the
//! queues, those of the journal.
//!
//! Without any limit a door asks one atomic.

mod admin;
mod clock;
mod counts;
mod desk;
mod door;
mod elsewhere;
mod events;
mod kept;
mod outcome;
mod parked;
mod settle;
mod sketch;
mod take;
#[cfg(test)]
mod tests;
mod top;
mod written;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use quota::{Holds, Recent, Seed, Table};

use crate::Handle;
use crate::handle::Inner;
use crate::ports::Ports;

pub use admin::{Applied, By, ChangeError};
pub use clock::ClockStep;
pub use counts::{BucketCounts, LimitCounts, TakeCounts};
pub use desk::Desk;
pub use door::{ChargeReceipt, HaltNotice, Throttled};
pub(crate) use door::{Charged, HeldCall, InFlight, Told};
pub use elsewhere::ElsewhereView;
pub use events::{Event, EventKind, Watch, Watched};
pub use kept::OpenError;
pub use outcome::{Begun, Denial, HoldGrant, Outcome, Take, Taken};
pub use parked::{Attempt, Parked};
pub use settle::{Requester, SettleOutcome, Settling};
pub use top::{TopBy, TopRow};
pub use written::{Written, parse_factor, parse_refill};

pub use crate::durable::{Durable, Unconfirmed};
// What doors speak of.
pub use quota::{
    AMOUNT_MAX, AdminError, Cost, Every, Factor, Halt, HoldId, Kind, Limit, Mistake, Mode,
    Override, Policies, Prefix, Refused, Rules, Settled, Standing, Subject, SubjectError, Unit,
    When, Zone,
};

/// How much is kept of quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Buckets at most, over all limits.
    pub subjects_max: usize,
    /// Holds at most.
    pub holds_max: usize,
    /// How long a hold lasts at most.
    pub hold_max: Duration,
    /// Ids of takes that are known at most.
    pub ids_max: usize,
    /// How long the id of a take is known at least, while there are not more than that.
    pub id_window: Duration,
    /// Takes that wait at most.
    pub waiting_max: usize,
    /// Changes that are remembered with who made them.
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

/// A share of the cells, and of what belongs to subjects as a whole.
pub(crate) struct Shard {
    pub(crate) table: Table,
    pub(crate) holds: Holds,
    /// By subject and id.
    pub(crate) recent: Recent<RecentTake>,
    /// Records of what was held and ended since the journal was told.
    pub(crate) unkept: Vec<(u8, Vec<u8>)>,
}

/// A take that was admitted under an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentTake {
    pub(crate) hold: Option<HoldGrant>,
    /// What tells whether another take costs the same; 0 if that is not known.
    pub(crate) cost_digest: u64,
}

/// A shard that is locked; the engine sees its cells.
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

/// See the module's documentation.
pub(crate) struct State {
    /// Whether there is any limit, or anything halted.
    is_on: AtomicBool,
    /// Whether the doors count anything.
    is_at_doors: AtomicBool,
    pub(crate) rules: RwLock<Arc<Rules>>,
    shards: Box<[Mutex<Shard>]>,
    /// Wall time when the node was made, in nanoseconds, and the clock then.
    anchor: (u64, u64),
    options: RwLock<Options>,
    kept: std::sync::OnceLock<kept::Kept>,
    /// The store that cells lie in, unless they lie here.
    elsewhere: std::sync::OnceLock<elsewhere::Elsewhere>,
    /// One change at a time.
    changing: Mutex<()>,
    /// No hold ends by itself before that.
    holds_due_ns: AtomicU64,
    /// Nanoseconds by which the wall clock was stepped since the node was made.
    calendar_shift_ns: AtomicI64,
    /// Whether the shell knows that there is something to look after.
    is_listed: AtomicBool,
    queues: Mutex<parked::Queues>,
    waiting: AtomicUsize,
    denied: Mutex<sketch::Sketch>,
    events: events::Events,
    counts: counts::Counts,
}

impl State {
    pub(crate) fn new(ports: &Ports) -> Self {
        let seed = Seed(ports.entropy.next_u64());
        let options = Options::default();
        let shard = |_| {
            Mutex::new(Shard {
                table: Table::new(seed, share(options.subjects_max)),
                holds: Holds::new(share(options.holds_max)),
                recent: recent(&options),
                unkept: Vec::new(),
            })
        };
        let unix_ns = ports.clock.unix_ms().saturating_mul(1_000_000);
        Self {
            is_on: AtomicBool::new(false),
            is_at_doors: AtomicBool::new(false),
            rules: RwLock::new(Arc::new(Rules::new(seed, SHARDS))),
            shards: (0..SHARDS).map(shard).collect(),
            anchor: (unix_ns, ports.clock.now_ns()),
            options: RwLock::new(options),
            kept: std::sync::OnceLock::new(),
            elsewhere: std::sync::OnceLock::new(),
            changing: Mutex::default(),
            holds_due_ns: AtomicU64::new(0),
            calendar_shift_ns: AtomicI64::new(0),
            is_listed: AtomicBool::new(false),
            queues: Mutex::default(),
            waiting: AtomicUsize::new(0),
            denied: Mutex::default(),
            events: events::Events::default(),
            counts: counts::Counts::default(),
        }
    }

    fn set_options(&self, options: Options) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.table.set_cells_max(share(options.subjects_max));
            shard.holds.set_count_max(share(options.holds_max));
            shard.recent = recent(&options);
        }
        *self.options.write() = options;
    }

    fn shard(&self, table: u16) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(table)].lock()
    }

    /// Whether any limit counts what passes the doors.
    pub(crate) fn is_at_doors(&self) -> bool {
        self.is_at_doors.load(Ordering::Relaxed)
    }
}

/// Of what there is in all, what one shard has.
fn share(count: usize) -> usize {
    count.div_ceil(usize::from(SHARDS)).max(1)
}

fn recent(options: &Options) -> Recent<RecentTake> {
    let window_ns = u64::try_from(options.id_window.as_nanos()).unwrap_or(u64::MAX);
    Recent::new(share(options.ids_max), window_ns)
}

/// A node's quotas.
#[derive(Clone, Copy)]
pub struct Quotas<'a> {
    pub(crate) inner: &'a Arc<Inner>,
}

impl Handle {
    /// The node's quotas.
    pub fn quotas(&self) -> Quotas<'_> {
        Quotas { inner: &self.inner }
    }
}

impl<'a> Quotas<'a> {
    pub(crate) fn state(self) -> &'a State {
        &self.inner.quotas
    }

    /// Whether there is anything to decide: any limit, or anything halted.
    pub fn is_on(self) -> bool {
        self.state().is_on.load(Ordering::Relaxed)
    }

    /// Now, in nanoseconds since 1970-01-01 UTC: wall time when the node was started, and what its
    /// clock counted since. It never steps.
    pub fn now_ns(self) -> u64 {
        let (unix_ns, clock_ns) = self.state().anchor;
        let passed = self.inner.ports.clock.now_ns().saturating_sub(clock_ns);
        unix_ns.saturating_add(passed)
    }

    /// How everything stands that bounds a subject: ask the desk. Makes nothing. What lies in a store
    /// the desk knows when it was asked: as soon as what is returned is done, and was not unavailable.
    pub fn peek(self, desk: &mut Desk, subject: &Subject<'_>) -> Option<Parked> {
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        self.look_here(&rules, desk, subject, now_ns);
        self.state().elsewhere.get()?;
        let ask = self.look_elsewhere(&rules, desk, subject)?;
        Some(self.asking_look(subject, ask))
    }

    fn look_here(self, rules: &Arc<Rules>, desk: &mut Desk, subject: &Subject<'_>, now_ns: u64) {
        desk.begin(rules, now_ns);
        rules.plan_look(&mut desk.plan, subject);
        let mut locked = self.lock(&desk.plan);
        quota::look(rules, &mut desk.plan, subject, &mut locked, now_ns);
    }

    /// Holds that have not ended.
    pub fn hold_count(self) -> usize {
        let shards = self.state().shards.iter();
        shards.map(|shard| shard.lock().holds.len()).sum()
    }

    /// Takes that wait until they pass.
    pub fn waiting_count(self) -> usize {
        self.state().waiting.load(Ordering::Relaxed)
    }

    /// Locks what a plan needs, in its order.
    fn lock(self, plan: &quota::Plan) -> Vec<Locked<'a>> {
        let tables = plan.tables().iter();
        tables
            .map(|table| Locked(self.state().shard(*table)))
            .collect()
    }

    /// Has the shell look after what was changed.
    fn need_sweep(self) {
        let listed = &self.state().is_listed;
        if !listed.load(Ordering::Relaxed) && !listed.swap(true, Ordering::AcqRel) {
            self.inner.need_sweep();
        }
    }

    /// Ends holds that are over and tells the journal what has changed. True as long as there is
    /// something to look after soon.
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
