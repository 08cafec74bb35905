//! `bench kafka --idle`: cost of many unused partitions and groups, and the start-up time of a node
//! that holds them and a log of a given length, after it was killed.
//!
//! The node is killed directly after the last ack of the log, so that the unfiled part is as large
//! as possible. After the start, every acknowledged message and offset is read back.

mod members;
mod offsets;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use self::members::Members;
use crate::{idle_memory, space};
use bench::measurement::Verification;
use bench::process::Memory;
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::role::Failure;
use bench::workload::surroundings::{Surroundings, temporary_directory};
use bench_kafka::fetch::{Fetcher, Position};
use bench_kafka::log::Log;
use bench_kafka::session::Session;
use bench_kafka::topic::{self, TopicSettings};
use meter::clock::{CpuClock, now_ns};

/// Parameters of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// Number of partitions of the topic.
    pub partitions: u32,
    /// Number of groups with committed offsets.
    pub groups: u32,
    /// Number of further groups with a connected member that sends heartbeats.
    pub members: u32,
    /// Bytes of messages that are written before the node is killed.
    pub log_bytes: u64,
    /// Idle time before memory is read.
    pub rest: Duration,
    /// Period over which idle CPU time is read.
    pub window: Duration,
    /// Directory on the measured disk; the node's directory is created in it.
    pub directory: PathBuf,
}

/// Result of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IdleReport {
    /// Number of partitions.
    pub partitions: u32,
    /// Number of groups with offsets.
    pub groups: u32,
    /// Number of offsets in each group.
    pub offsets: u32,
    /// Number of groups with a member.
    pub members: u32,
    /// Time to create them, in seconds.
    pub make_seconds: f64,
    /// Memory of an empty node.
    pub empty_rss_bytes: u64,
    /// Memory of the idle node with all of them.
    pub idle_rss_bytes: u64,
    /// Period over which CPU time was read, in seconds.
    pub idle_seconds: f64,
    /// CPU time of the node in that period, in which every member sent a heartbeat every three
    /// seconds.
    pub idle_cpu_ms: f64,
    /// Bytes of messages written.
    pub log_bytes: u64,
    /// Time to write them, in seconds.
    pub log_seconds: f64,
    /// Messages of the log that were not acknowledged.
    pub log_failed: u64,
    /// Unfiled bytes when the node was killed.
    pub unfiled_bytes: u64,
    /// Time from the start of the process until its listeners were open.
    pub start_ms: f64,
    /// Time from the start of the process until a fetch was answered.
    pub first_fetch_ms: f64,
    /// Memory after the first fetch.
    pub started_rss_bytes: u64,
    /// Number of offsets read back after the start.
    pub offsets_read: u64,
    /// Number of these offsets that differ from the committed ones.
    pub offsets_wrong: u64,
    /// Result of reading back the messages.
    pub messages: Verification,
    /// Memory of the idle node after the messages were read back.
    pub read_rss_bytes: u64,
    /// Bytes of the node's files at the end.
    pub disk_bytes: u64,
}

impl IdleReport {
    /// Returns true if everything is as it was acknowledged.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.offsets_wrong == 0 && self.log_failed == 0 && self.messages.is_clean()
    }
}

/// Name of the topic with all the partitions.
const TOPIC: &str = "telpher-bench-idle";

/// Maximum bytes on disk per byte of the log: in the write-ahead log, in its extent, and in the
/// copy made by merging.
const COPIES: u64 = 3;

/// Creates topic and groups, measures the idle node, writes the log, kills the node and restarts
/// it.
///
/// # Errors
/// When the disk has too little space, or the node fails.
pub fn run(
    surroundings: &Surroundings,
    idle: &Idle,
    mut progress: impl FnMut(&str),
) -> Result<IdleReport, WorkloadError> {
    space::check(&idle.directory, idle.log_bytes.saturating_mul(COPIES))?;
    let scratch = temporary_directory(&idle.directory)?;
    let start = || Node::start_in(&surroundings.executable, scratch.path(), &[]);
    let node = start()?;
    let mut report = IdleReport {
        partitions: idle.partitions,
        groups: idle.groups,
        offsets: offsets::of_each(idle.partitions),
        members: idle.members,
        empty_rss_bytes: idle_memory::rss_bytes(&node)?,
        ..IdleReport::default()
    };
    progress("making partitions and groups");
    let begin_ns = now_ns();
    let members = make(&node, idle).map_err(node_error)?;
    report.make_seconds = seconds_since(begin_ns);
    progress("leaving them alone");
    report.measure_idle(&node, idle, members)?;
    progress("writing the log");
    let log = Log::open(address(&node)?, TOPIC).map_err(node_error)?;
    let begin_ns = now_ns();
    let log = log.fill(idle.log_bytes).map_err(node_error)?;
    report.log_seconds = seconds_since(begin_ns);
    report.log_bytes = log.bytes();
    report.log_failed = log.failed();
    report.unfiled_bytes = node.metric("telpher_journal_unfiled_bytes").unwrap_or(0);
    node.kill();
    progress("starting with all of them");
    let begin_ns = now_ns();
    let node = start()?;
    report.start_ms = 1e3 * seconds_since(begin_ns);
    fetch(address(&node)?).map_err(node_error)?;
    report.first_fetch_ms = 1e3 * seconds_since(begin_ns);
    report.started_rss_bytes = rss_bytes(&node)?;
    progress("reading everything back");
    let committed = offsets::read_back(address(&node)?, TOPIC, idle.groups, idle.partitions);
    (report.offsets_read, report.offsets_wrong) = committed.map_err(node_error)?;
    report.messages = log.read_back(address(&node)?).map_err(node_error)?;
    report.read_rss_bytes = idle_memory::rss_bytes(&node)?;
    report.disk_bytes = space::used_bytes(scratch.path()).map_err(WorkloadError::Directory)?;
    Ok(report)
}

impl IdleReport {
    /// Measures memory and CPU of the idle node with all members.
    fn measure_idle(
        &mut self,
        node: &Node,
        idle: &Idle,
        members: Members,
    ) -> Result<(), WorkloadError> {
        let staying = members.stay();
        thread::sleep(idle.rest);
        self.idle_rss_bytes = idle_memory::rss_bytes(node)?;
        let clock = CpuClock::of(node.pid()).map_err(node_ended)?;
        let (begin_ns, before_ns) = (now_ns(), clock.read_ns().map_err(node_ended)?);
        thread::sleep(idle.window);
        let used_ns = clock.read_ns().map_err(node_ended)? - before_ns;
        self.idle_seconds = seconds_since(begin_ns);
        self.idle_cpu_ms = used_ns as f64 / 1e6;
        staying.end().map_err(node_error)
    }
}

fn make(node: &Node, idle: &Idle) -> Result<Members, Failure> {
    let address = node.kafka_address().ok_or(NO_DOOR)?;
    let making = TopicSettings {
        partitions: i32::try_from(idle.partitions)?,
        replicas: 1,
        configs: &[],
    };
    topic::create(&mut Session::open(address)?, TOPIC, &making)?;
    offsets::commit(address, TOPIC, idle.groups, idle.partitions)?;
    Members::join(address, TOPIC, idle.members)
}

/// Fetches the first partition from its beginning, as a consumer with a known position.
fn fetch(address: &str) -> Result<(), Failure> {
    let positions = vec![Position {
        partition: 0,
        offset: 0,
    }];
    let mut fetcher = Fetcher::open(address, TOPIC, positions)?;
    fetcher.ask(0)?;
    fetcher.take().map(drop)
}

const NO_DOOR: &str = "the node has no Kafka listener";

fn address(node: &Node) -> Result<&str, WorkloadError> {
    let address = node.kafka_address();
    address.ok_or_else(|| WorkloadError::Node(NO_DOOR.to_owned()))
}

fn seconds_since(begin_ns: u64) -> f64 {
    (now_ns() - begin_ns) as f64 / 1e9
}

fn rss_bytes(node: &Node) -> Result<u64, WorkloadError> {
    let memory = Memory::of(node.pid()).ok_or_else(|| node_ended("no memory in /proc"))?;
    Ok(memory.rss_bytes)
}

fn node_ended(error: impl std::fmt::Display) -> WorkloadError {
    WorkloadError::Node(format!("the node ended during the measurement: {error}"))
}

fn node_error(failure: Failure) -> WorkloadError {
    WorkloadError::Node(failure.to_string())
}
