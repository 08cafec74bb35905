//! Quotas of a node on an in-memory disk with a manual clock.

mod clock;
mod concurrency;
mod holds;
mod persistence;
mod policy_changes;
mod shared_store;
mod usage;
mod waits;

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use journal::disk::SimulatedDisk;
use journal::disk::simulated::Fate;
use journal::{Background, Journal, Line, ShardId, StreamId};
use platform::Durable;
use platform::testing::{ManualClock, journal_on, platform};
use quota::{Cost, Limit, Settled, Subject, Unit};
use store::Store;

use super::{
    By, DecidedTake, Desk, LimitConfig, Options, Outcome, QuotaService, QuotaStreams, Requester,
    SettleOutcome, SharedStore, Take, TakeProgress,
};

/// The quotas of a node.
type Node = Arc<QuotaService>;

/// The shard and the stream of cells.
const STATE: (ShardId, StreamId) = (ShardId(1), StreamId(2));

/// The parts of quotas.
#[derive(Default)]
struct Parts {
    options: Options,
    limits: Vec<Limit>,
    shared: Option<SharedStore>,
    streams: Option<QuotaStreams>,
}

/// The quotas of a node and its clock.
struct World {
    node: Node,
    clock: Arc<ManualClock>,
}

impl World {
    /// Opens quotas when the wall clock shows `unix_ms`.
    fn open(unix_ms: u64, parts: Parts) -> Self {
        let clock = ManualClock::at(unix_ms);
        let platform = platform(clock.clone());
        let service = QuotaService::new(platform, parts.options, parts.shared, parts.streams);
        let node = Arc::new(service);
        node.quotas().restore(parts.limits).unwrap();
        Self { node, clock }
    }

    /// Steps the wall clock.
    fn step_wall_ms(&self, step_ms: i64) {
        self.clock.step_wall_ms(step_ms);
    }

    /// Advances the clock without sweeping.
    fn pass_ns(&self, ns: u64) {
        self.clock.pass_ns(ns);
    }

    /// Advances the clock, with the sweeps that a node makes.
    fn pass_ms(&self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.clock.pass_ns(100_000_000);
            self.node.quotas().sweep();
        }
    }
}

const BY: By<'static> = By {
    who: "root",
    reason: "a test",
};

/// A client that has proven no principal.
const ANYONE: Requester<'static> = Requester {
    principal: None,
    is_admin: false,
};

/// A limit of requests on each agent, as it would be written.
fn bucket(name: &str, capacity: u64, refill: &str) -> LimitConfig {
    LimitConfig {
        name: name.to_owned(),
        pattern: "*/*/*".to_owned(),
        unit: "requests".to_owned(),
        capacity: Some(capacity),
        refill: Some(refill.to_owned()),
        ..LimitConfig::default()
    }
}

fn read(written: &[LimitConfig]) -> Vec<Limit> {
    written.iter().map(|limit| limit.read().unwrap()).collect()
}

/// Starts a node with these limits and without storage.
fn world(limits: &[LimitConfig]) -> World {
    world_at(0, limits)
}

/// Starts a node with these limits and this wall-clock time, without storage.
fn world_at(unix_ms: u64, limits: &[LimitConfig]) -> World {
    World::open(unix_ms, quotas(limits))
}

fn quotas(limits: &[LimitConfig]) -> Parts {
    Parts {
        limits: read(limits),
        ..Parts::default()
    }
}

/// A node with a disk.
struct OnDisk {
    world: World,
    journal: Arc<Journal>,
    line: Line,
    background: Background,
    disk: SimulatedDisk,
    starts: u64,
}

impl OnDisk {
    fn new(limits: &[LimitConfig]) -> Self {
        Self::start(SimulatedDisk::new(1), 1, limits)
    }

    /// Starts the node with this wall-clock time.
    fn new_at(limits: &[LimitConfig], unix_ms: u64) -> Self {
        Self::start_at(SimulatedDisk::new(1), 1, limits, unix_ms)
    }

    fn start(disk: SimulatedDisk, starts: u64, limits: &[LimitConfig]) -> Self {
        Self::start_at(disk, starts, limits, 0)
    }

    fn start_at(disk: SimulatedDisk, starts: u64, limits: &[LimitConfig], unix_ms: u64) -> Self {
        let (journal, line, background) = journal_on(&disk, starts).unwrap();
        let (shard, state) = STATE;
        let streams = QuotaStreams {
            store: Arc::new(Store::open(journal.clone(), 1, 0).unwrap()),
            shard,
            state,
            changes: StreamId(3),
            audit: StreamId(4),
            usage: StreamId(5),
        };
        let parts = Parts {
            streams: Some(streams),
            ..quotas(limits)
        };
        let mut on_disk = Self {
            world: World::open(unix_ms, parts),
            journal,
            line,
            background,
            disk,
            starts,
        };
        on_disk.sync();
        on_disk
    }

    /// Simulates a power failure: unsynced data is lost.
    fn crash(self, limits: &[LimitConfig]) -> Self {
        self.crash_to(limits, 0)
    }

    /// Like [`OnDisk::crash`], with this wall-clock time afterwards.
    fn crash_to(self, limits: &[LimitConfig], unix_ms: u64) -> Self {
        let Self {
            world,
            journal,
            line,
            background,
            disk,
            starts,
        } = self;
        drop((world, journal, line, background));
        disk.crash_with(|_| Fate::Lost);
        Self::start_at(disk, starts + 1, limits, unix_ms)
    }

    fn node(&self) -> &Node {
        &self.world.node
    }

    fn sync(&mut self) {
        for _ in 0..20 {
            self.line.step();
            self.background.step(0);
        }
    }
}

fn take(node: &Node, subject: &str, costs: &[Cost]) -> DecidedTake {
    take_with(node, subject, costs, None, None)
}

fn take_with(
    node: &Node,
    subject: &str,
    costs: &[Cost],
    hold: Option<Duration>,
    id: Option<&str>,
) -> DecidedTake {
    let subject = Subject::parse(subject).unwrap();
    let take = Take {
        subject,
        costs,
        hold,
        id,
        principal: None,
    };
    decided(node.quotas().take(&mut Desk::new(), &take))
}

/// Returns the decision of a node without a shared store.
fn decided(begun: TakeProgress) -> DecidedTake {
    match begun {
        TakeProgress::Done(taken) => taken,
        TakeProgress::Asks(parked) => panic!("there is no store to ask: {parked:?}"),
    }
}

/// Takes one request and returns whether it is admitted.
fn is_admitted(node: &Node, subject: &str) -> bool {
    let taken = take(node, subject, &[(Unit::REQUESTS, 1)]);
    matches!(taken.outcome, Outcome::Admitted { .. })
}

/// Takes `count` requests, which must be admitted.
fn spend(node: &Node, subject: &str, count: u64) {
    let taken = take(node, subject, &[(Unit::REQUESTS, count)]);
    assert!(
        matches!(taken.outcome, Outcome::Admitted { .. }),
        "{taken:?}"
    );
}

fn drain(node: &Node, subject: &str) -> u64 {
    (0..).find(|_| !is_admitted(node, subject)).unwrap()
}

/// Returns the credit left, by limit.
fn remaining(node: &Node, subject: &str) -> Vec<i128> {
    let mut desk = Desk::new();
    let asked = node
        .quotas()
        .peek(&mut desk, &Subject::parse(subject).unwrap());
    assert!(asked.is_none(), "there is no store to ask");
    desk.limit_states().map(|state| state.have).collect()
}

fn is_durable(durable: &Durable) -> Option<bool> {
    match durable.poll_durable(Waker::noop()) {
        std::task::Poll::Pending => None,
        std::task::Poll::Ready(outcome) => Some(outcome.is_ok()),
    }
}

#[test]
fn without_limits_all_takes_pass_and_no_bucket_exists() {
    let world = world(&[]);
    assert!(!world.node.quotas().is_on());
    assert!(is_admitted(&world.node, "a/b/c"));
    assert_eq!(world.node.quotas().bucket_counts().buckets, 0);
}

#[test]
fn refilled_buckets_are_evicted_on_a_node_without_storage() {
    let parts = Parts {
        options: Options {
            subjects_max: 64,
            ..Options::default()
        },
        ..quotas(&[bucket("agent", 1_000, "1/s")])
    };
    let world = World::open(0, parts);
    let take_all = |mut of: std::ops::Range<u32>| {
        of.all(|number| is_admitted(&world.node, &format!("a/b/{number}")))
    };
    assert!(take_all(0..200));
    assert_eq!(world.node.quotas().bucket_counts().evicted, 0);
    world.pass_ms(1_000_000);
    world.node.quotas().sweep();
    assert!(take_all(200..400));
    assert!(world.node.quotas().bucket_counts().evicted > 0);
}

#[test]
fn denial_names_the_limit_remaining_credit_and_retry_time() {
    let world = world(&[bucket("agent", 10, "2/s")]);
    let ten = take(&world.node, "a/b/c", &[(Unit::REQUESTS, 9)]);
    assert!(matches!(ten.outcome, Outcome::Admitted { .. }));
    let Outcome::Denied(denial) = take(&world.node, "a/b/c", &[(Unit::REQUESTS, 4)]).outcome else {
        panic!("there is one left");
    };
    assert_eq!(
        (&*denial.limit.name, denial.would_pass(), denial.need),
        ("agent", 1, 4)
    );
    assert_eq!(denial.retry_after_ns, Some(1_500_000_000));
    assert!(!denial.is_exhausted());
    world.pass_ms(1_500);
    let then = take(&world.node, "a/b/c", &[(Unit::REQUESTS, 4)]);
    assert!(matches!(then.outcome, Outcome::Admitted { .. }));
}

#[test]
fn batched_takes_are_decided_in_order() {
    let world = world(&[bucket("agent", 3, "1/s")]);
    let costs = [(Unit::REQUESTS, 1)];
    let takes = ["a/b/c", "a/b/c", "a/b/d", "a/b/c", "a/b/c"].map(|subject| Take {
        subject: Subject::parse(subject).unwrap(),
        costs: &costs,
        hold: None,
        id: None,
        principal: None,
    });
    let mut told = Vec::new();
    world
        .node
        .quotas()
        .take_batch(&mut Desk::new(), takes, |desk, begun| {
            let taken = decided(begun);
            let remaining = desk.limit_states().next().map(|state| state.have);
            told.push((matches!(taken.outcome, Outcome::Admitted { .. }), remaining));
        });
    let expected = [(true, 2), (true, 1), (true, 2), (true, 0), (false, 0)];
    assert_eq!(
        told,
        expected.map(|(admitted, remaining)| (admitted, Some(remaining)))
    );
}

#[test]
fn repeated_take_id_takes_nothing_and_returns_the_first_answer() {
    let world = world(&[bucket("agent", 10, "1/s")]);
    let hold = Some(Duration::from_secs(90));
    let mut told = Vec::new();
    for subject in ["a/b/c", "a/b/c", "a/b/d"] {
        let taken = take_with(
            &world.node,
            subject,
            &[(Unit::REQUESTS, 4)],
            hold,
            Some("x"),
        );
        let Outcome::Admitted { hold, is_repeat } = taken.outcome else {
            panic!("there is enough: {taken:?}");
        };
        told.push((hold, is_repeat));
    }
    assert_eq!(told[0].0, told[1].0);
    assert_ne!(told[0].0, told[2].0);
    assert_eq!([told[0].1, told[1].1, told[2].1], [false, true, false]);
    assert_eq!(remaining(&world.node, "a/b/c"), [6]);
}

#[test]
fn hold_is_settled_once_or_expires() {
    let world = world(&[bucket("agent", 100, "0/s")]);
    let node = &world.node;
    let mut desk = Desk::new();
    let hold = || {
        let lasting = Some(Duration::from_secs(1));
        match take_with(node, "a/b/c", &[(Unit::REQUESTS, 30)], lasting, None).outcome {
            Outcome::Admitted { hold, .. } => hold.unwrap().id,
            other => panic!("there is enough: {other:?}"),
        }
    };
    let (first, _second) = (hold(), hold());
    let costs = [(Unit::REQUESTS, 10)];
    let settled = node
        .quotas()
        .settle(&mut desk, first, Settled::Cost(&costs), ANYONE);
    assert_eq!(settled.outcome, SettleOutcome::Settled);
    assert!(settled.failed.is_none());
    let again = node
        .quotas()
        .settle(&mut desk, first, Settled::Cancelled, ANYONE);
    assert_eq!(again.outcome, SettleOutcome::Ended);
    assert_eq!(
        (remaining(node, "a/b/c"), node.quotas().hold_count()),
        (vec![60], 1)
    );
    world.pass_ms(1_200);
    // The cost was as reserved.
    assert_eq!(
        (remaining(node, "a/b/c"), node.quotas().hold_count()),
        (vec![60], 0)
    );
}

#[test]
fn slot_needs_a_hold_and_is_freed_when_it_expires() {
    let slots = LimitConfig {
        unit: "concurrency".to_owned(),
        refill: None,
        ..bucket("slots", 2, "")
    };
    let world = world(&[slots]);
    let costs = [(Unit::CONCURRENCY, 1)];
    let bare = take(&world.node, "a/b/c", &costs).outcome;
    assert!(matches!(
        bare,
        Outcome::Refused(quota::Refused::HoldNeeded { .. })
    ));
    let lasting = Some(Duration::from_secs(1));
    let held = || take_with(&world.node, "a/b/c", &costs, lasting, None).outcome;
    assert!(matches!(held(), Outcome::Admitted { .. }));
    assert!(matches!(held(), Outcome::Admitted { .. }));
    let Outcome::Denied(denial) = held() else {
        panic!("both are in use");
    };
    assert_eq!(
        (denial.retry_after_ns, denial.is_exhausted()),
        (None, false)
    );
    world.pass_ms(1_200);
    assert_eq!(remaining(&world.node, "a/b/c"), [2]);
}
