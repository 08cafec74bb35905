//! Faults of a cluster under load: how long until it acknowledges again, and what is stored.
//!
//! Producers are idempotent and have one batch of one message in flight each. Like the clients of
//! Kafka they repeat it, with its sequence, until it is acknowledged, and look up the leader before
//! each repetition. A fault is injected while all replicas are in sync. The time until the first ack
//! is that of a request which was sent after the fault. At the end all messages are read back.

mod producer;
mod report;
mod shared;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::acknowledged::AckedMessages;
use super::cluster::{Cluster, Leader};
use super::session::Session;
use super::topic::{self, OffsetKind, TopicSettings};
use super::verify;
use bench::measurement::Verification;
use bench::process::Memory;
use bench::workload::error::WorkloadError;
use bench::workload::role::Failure;
use bench::workload::surroundings::Surroundings;
use meter::clock::{CpuClock, now_ns};
use producer::{Produced, Producer};
pub use report::{FaultReport, FaultTimes, IdleNode, Milliseconds};
use shared::Shared;

/// Name of the topic.
const TOPIC: &str = "telpher-bench-faults";

/// Time under load before a fault and after its end.
const REST: Duration = Duration::from_millis(1000);

/// Length of a pause: longer than an election takes.
const PAUSE: Duration = Duration::from_millis(2000);

/// Period over which the CPU time of idle nodes is read.
const IDLE: Duration = Duration::from_secs(5);

/// Time limit for the cluster to acknowledge again, and for all replicas to be in sync.
const RECOVERY_MAX_NS: u64 = 120_000_000_000;

const LOOK: Duration = Duration::from_millis(20);

/// A fault of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No fault, for comparison.
    None,
    /// `kill -9` of the node that leads.
    KillLeader,
    /// `kill -9` of another node.
    KillFollower,
    /// `kill -9` of all nodes at the same time.
    KillAll,
    /// SIGSTOP of the node that leads, and SIGCONT after 2 s.
    Pause,
    /// SIGSTOP of all nodes at the same time, and SIGCONT after 2 s.
    PauseAll,
}

impl Fault {
    /// Returns the name in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::KillLeader => "kill-leader",
            Self::KillFollower => "kill-follower",
            Self::KillAll => "kill-all",
            Self::Pause => "pause",
            Self::PauseAll => "pause-all",
        }
    }
}

/// A run with faults.
#[derive(Debug, Clone)]
pub struct FaultRun {
    /// Nodes of the cluster.
    pub nodes: u32,
    /// Faults, in this order.
    pub faults: Vec<Fault>,
    /// Number of times that the faults are injected.
    pub repeats: u32,
    /// Number of producers.
    pub producers: u32,
    /// Partitions of the topic.
    pub partitions: i32,
    /// Size of a payload in bytes.
    pub size: usize,
    /// Directory on the measured disk, for the data of the nodes.
    pub directory: PathBuf,
}

/// Starts a cluster, injects the faults under load and reads everything back. `step` is called with
/// a description of each step.
///
/// # Errors
/// When the cluster does not start, does not recover from a fault, or cannot be read from.
pub fn run(
    surroundings: &Surroundings,
    run: &FaultRun,
    mut step: impl FnMut(&str),
) -> Result<FaultReport, WorkloadError> {
    step(&format!("starting {} nodes", run.nodes));
    let mut cluster = Cluster::start(surroundings, &run.directory, run.nodes)?;
    inject(&mut cluster, run, &mut step).map_err(|error| WorkloadError::Node(error.to_string()))
}

fn inject(
    cluster: &mut Cluster,
    run: &FaultRun,
    step: &mut impl FnMut(&str),
) -> Result<FaultReport, Failure> {
    create_topic(cluster, run)?;
    step("leaving the nodes idle");
    let idle = measure_idle(cluster)?;
    let shared = Shared::new(cluster.addresses(), TOPIC, now_ns() as u32, run.size);
    let injected = thread::scope(|scope| {
        let start = |lane| {
            let partition = (lane % run.partitions as u32) as i32;
            let shared = &shared;
            scope.spawn(move || Producer::new(shared, lane, partition).run())
        };
        let producers: Vec<_> = (0..run.producers).map(start).collect();
        let times = faults(cluster, run, &shared, step);
        shared.end();
        let joined = producers.into_iter().map(|it| it.join());
        let produced: Result<Vec<Produced>, _> = joined.collect();
        Ok::<_, Failure>((times?, produced.map_err(|_| "a producer has panicked")?))
    });
    let (times, produced) = injected?;
    step("reading everything back");
    let messages = read_back(cluster, run, &shared, &produced)?;
    let mut failures = BTreeMap::new();
    for failure in produced.iter().filter_map(|it| it.failure.clone()) {
        *failures.entry(failure).or_default() += 1;
    }
    Ok(FaultReport {
        nodes: run.nodes,
        producers: run.producers,
        partitions: run.partitions,
        size: run.size,
        idle,
        faults: times,
        retries: shared.retries(),
        failures,
        messages,
    })
}

fn create_topic(cluster: &Cluster, run: &FaultRun) -> Result<(), Failure> {
    let addresses = cluster.addresses();
    let mut session = Session::open(&addresses[0])?;
    let settings = TopicSettings {
        partitions: run.partitions,
        replicas: i16::try_from(run.nodes)?,
        configs: &[],
    };
    topic::create(&mut session, TOPIC, &settings)?;
    topic::layout(&mut session, TOPIC)?;
    Ok(())
}

/// Measures what each node costs while it has the partitions and no clients.
fn measure_idle(cluster: &Cluster) -> Result<Vec<IdleNode>, Failure> {
    wait_in_sync(cluster)?;
    thread::sleep(REST);
    let pids = cluster.pids(&cluster.addresses()[0]);
    let read = || -> Result<Vec<u64>, Failure> {
        let clocks = pids.iter().map(|pid| CpuClock::of(*pid)?.read_ns());
        Ok(clocks.collect::<Result<_, _>>()?)
    };
    let (begin_ns, before) = (now_ns(), read()?);
    thread::sleep(IDLE);
    let (end_ns, after) = (now_ns(), read()?);
    let period_ns = (end_ns - begin_ns) as f64;
    let nodes = pids.iter().zip(before.iter().zip(&after));
    let nodes = nodes.map(|(pid, (before, after))| {
        let memory = Memory::of(*pid).ok_or("a node ended while it was idle")?;
        Ok(IdleNode {
            cpu_percent: 100.0 * (after - before) as f64 / period_ns,
            rss_bytes: memory.rss_bytes,
        })
    });
    nodes.collect()
}

/// Injects all faults and returns their times.
fn faults(
    cluster: &mut Cluster,
    run: &FaultRun,
    shared: &Shared,
    step: &mut impl FnMut(&str),
) -> Result<Vec<FaultTimes>, Failure> {
    let mut times: Vec<(Fault, Vec<FaultTime>)> = Vec::new();
    for repeat in 1..=run.repeats {
        for &fault in &run.faults {
            let time = inject_one(cluster, fault, shared)?;
            step(&format!(
                "{repeat}/{} {}: first ack after {:.0} ms",
                run.repeats,
                fault.name(),
                time.first_ack_ms
            ));
            match times.iter_mut().find(|(known, _)| *known == fault) {
                Some((_, all)) => all.push(time),
                None => times.push((fault, vec![time])),
            }
        }
    }
    let summarized = times.into_iter().map(|(fault, all)| FaultTimes {
        fault: fault.name(),
        count: all.len(),
        first_ack_ms: Milliseconds::of(all.iter().map(|it| it.first_ack_ms).collect()),
        longest_gap_ms: Milliseconds::of(all.iter().map(|it| it.longest_gap_ms).collect()),
        epochs_max: all.iter().map(|it| it.epochs).max().unwrap_or_default(),
    });
    Ok(summarized.collect())
}

/// Times and effect of one injected fault.
struct FaultTime {
    /// Time until the first ack.
    first_ack_ms: f64,
    /// Longest time without an ack.
    longest_gap_ms: f64,
    /// Growth of the leader epoch.
    epochs: i32,
}

/// Injects a fault and waits until all replicas are in sync again.
fn inject_one(cluster: &mut Cluster, fault: Fault, shared: &Shared) -> Result<FaultTime, Failure> {
    let before = wait_in_sync(cluster)?;
    thread::sleep(REST);
    let count = cluster.count();
    let follower = (before.node + 1) % count;
    let hit: Vec<usize> = match fault {
        Fault::None => Vec::new(),
        Fault::KillLeader | Fault::Pause => vec![before.node],
        Fault::KillFollower => vec![follower],
        Fault::KillAll | Fault::PauseAll => (0..count).collect(),
    };
    let is_pause = matches!(fault, Fault::Pause | Fault::PauseAll);
    let signal = match is_pause {
        true => Signal::STOP,
        false => Signal::KILL,
    };
    for node in &hit {
        cluster.signal(*node, signal)?;
    }
    shared.fault_begins();
    if fault == Fault::KillAll {
        for node in &hit {
            cluster.restart(*node)?;
        }
    }
    if is_pause {
        thread::sleep(PAUSE);
        for node in &hit {
            cluster.signal(*node, Signal::CONT)?;
        }
    }
    let limit_ns = now_ns() + RECOVERY_MAX_NS;
    let first_ack_ms = loop {
        match shared.first_ack_ms() {
            Some(first_ack_ms) => break first_ack_ms,
            None if now_ns() > limit_ns => {
                return Err(format!("no message is acknowledged after {}", fault.name()).into());
            }
            None => thread::sleep(LOOK),
        }
    };
    if matches!(fault, Fault::KillLeader | Fault::KillFollower) {
        thread::sleep(REST);
        for node in &hit {
            cluster.restart(*node)?;
        }
    }
    wait_in_sync(cluster)?;
    thread::sleep(REST);
    let after = wait_in_sync(cluster)?;
    Ok(FaultTime {
        first_ack_ms,
        longest_gap_ms: shared.fault_ends_gap_ms(),
        epochs: after.epoch - before.epoch,
    })
}

/// Waits until all replicas of all partitions are in sync, and returns the node that leads.
fn wait_in_sync(cluster: &Cluster) -> Result<Leader, Failure> {
    let limit_ns = now_ns() + RECOVERY_MAX_NS;
    loop {
        match cluster.leader(TOPIC) {
            Ok(Some(leader)) => return Ok(leader),
            Err(error) if now_ns() > limit_ns => return Err(error),
            Ok(None) if now_ns() > limit_ns => {
                return Err("a replica does not get in sync".into());
            }
            _ => thread::sleep(LOOK),
        }
    }
}

fn read_back(
    cluster: &Cluster,
    run: &FaultRun,
    shared: &Shared,
    produced: &[Produced],
) -> Result<Verification, Failure> {
    let leader = wait_in_sync(cluster)?;
    let address = &cluster.addresses()[leader.node];
    let layout = topic::layout(&mut Session::open(address)?, TOPIC)?;
    let begin = topic::offsets(&layout, TOPIC, OffsetKind::First)?;
    let mut acked = AckedMessages::default();
    for (lane, one) in (0..).zip(produced) {
        for &(number, offset) in &one.acked {
            acked.note(lane, number, 1, offset);
        }
    }
    let read = verify::ReadBackRun {
        topic: TOPIC,
        layout: &layout,
        tag: shared.tag,
        size: run.size,
    };
    let numbers = |lane: u32| Some(produced.get(lane as usize)?.numbers);
    verify::read_back(&read, begin, &acked, numbers)
}
