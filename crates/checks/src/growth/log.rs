//! Steps of the log: write, `kill -9`, start, first reads, compaction.

use std::path::Path;
use std::thread;
use std::time::Duration;

use bench::growth::{Dimension, Growth, LogPoint};
use bench::process::{Role, Usage, Watch};
use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::role::Failure;
use bench::workload::surroundings::{Surroundings, temporary_directory};
use bench_kafka::fetch::{Fetcher, Position};
use bench_kafka::log::Log;
use bench_kafka::session::Session;
use bench_kafka::topic::{self, TopicSettings};
use kafka::list_offsets;
use meter::clock::now_ns;

use super::deadline::Deadline;
use super::plan::Plan;
use super::step::{SETTLE, StepError, first_line, node_error, noisy_host};
use crate::{idle_memory, space};

/// Name of the topic, which has one partition.
const TOPIC: &str = "growth-log";

/// Steps of the log in gigabytes.
const LOG_STEPS: [u64; 5] = [1, 2, 5, 10, 20];

/// Size of a message of [`Log`] in bytes.
const MESSAGE_SIZE: u64 = 4 << 10;

/// Maximum bytes on disk per byte of the log: in the write-ahead log, in its extent, and in the
/// copy made by merging.
const COPIES: u64 = 3;

/// Bytes that are written between two looks at the time limit.
const PART: u64 = 1_000_000_000;

/// Poll interval of the compaction's counters, and how long they must stand still.
const LOOK: Duration = Duration::from_millis(50);
const CALM: Duration = Duration::from_secs(2);

/// Measures all steps on one data directory, until one does not fit.
pub(super) fn measure(
    surroundings: &Surroundings,
    plan: &Plan,
    whole: Deadline,
    growth: &mut Growth,
    progress: &mut impl FnMut(&str),
) -> Result<(), WorkloadError> {
    let scratch = temporary_directory(&plan.directory)?;
    let mut node = start(surroundings, scratch.path())?;
    create(&node).map_err(node_failure)?;
    let mut before = 0;
    let mut steps = log_steps(plan.log_max).into_iter();
    while let Some(step) = steps.next() {
        progress(&format!("log: {step} GB"));
        let run = LogStep {
            surroundings,
            data: scratch.path(),
            bytes_before: before * plan.log_unit,
            bytes: step * plan.log_unit,
            deadline: whole.at_most(plan.step_limit),
        };
        match run.measure(node) {
            Ok((point, started)) => {
                growth.log.push(point);
                (node, before) = (started, step);
            }
            Err(StepError::LeftOut(reason)) => {
                growth.leave_out(Dimension::Log, step, reason);
                for later in steps {
                    growth.leave_out(Dimension::Log, later, "the step before it was left out");
                }
                return Ok(());
            }
            Err(StepError::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}

/// A step of the log.
struct LogStep<'a> {
    surroundings: &'a Surroundings,
    data: &'a Path,
    /// Bytes of messages before and after the step.
    bytes_before: u64,
    bytes: u64,
    deadline: Deadline,
}

impl LogStep<'_> {
    /// Writes to the node, kills it, and returns the started node with the figures.
    fn measure(&self, node: Node) -> Result<(LogPoint, Node), StepError> {
        self.check_space()?;
        let more = self.bytes - self.bytes_before;
        let watch = Watch::start(&[(Role::Node, node.pid())]).map_err(WorkloadError::from)?;
        let written = self.write(&node, more)?;
        let usage = watch.stop();
        let cpu_us = cpu_us(&usage, written / MESSAGE_SIZE)?;
        node.kill();
        let begin_ns = now_ns();
        let node = start(self.surroundings, self.data)?;
        let start_ms = milliseconds_since(begin_ns);
        let read_begin_ms = first_read(&node, 0).map_err(node_failure)?;
        let last = last_offset(&node).map_err(node_failure)?;
        let read_end_ms = first_read(&node, last).map_err(node_failure)?;
        let compaction_ms = await_compaction(&node, begin_ns, self.deadline)?;
        let point = LogPoint {
            bytes: self.bytes,
            cpu_us,
            start_ms,
            read_begin_ms,
            read_end_ms,
            compaction_ms,
            rss_bytes: idle_memory::rss_bytes_within(&node, SETTLE)?,
            disk_bytes: space::used_bytes(self.data).map_err(WorkloadError::Directory)?,
            flags: noisy_host(&usage).into_iter().collect(),
        };
        Ok((point, node))
    }

    /// Writes at least `bytes`, as fast as possible. Returns the bytes of the acknowledged messages.
    fn write(&self, node: &Node, bytes: u64) -> Result<u64, StepError> {
        let mut written = 0;
        while written < bytes {
            self.deadline.check("writing the log")?;
            let log = Log::open(address(node)?, TOPIC).map_err(node_failure)?;
            let part = log
                .fill((bytes - written).min(PART))
                .map_err(node_failure)?;
            if part.failed() > 0 {
                let problem = format!("the node rejects {} messages of the log", part.failed());
                return Err(node_error(&problem).into());
            }
            written += part.bytes();
        }
        Ok(written)
    }

    /// Checks that the disk has space for all copies of the whole log.
    fn check_space(&self) -> Result<(), StepError> {
        let used = space::used_bytes(self.data).map_err(WorkloadError::Directory)?;
        let needed = (self.bytes * COPIES).saturating_sub(used);
        let checked = space::check(self.data, needed);
        checked.map_err(|error| StepError::LeftOut(first_line(&error)))
    }
}

fn start(surroundings: &Surroundings, data: &Path) -> Result<Node, WorkloadError> {
    Ok(Node::start_in(&surroundings.executable, data, &[])?)
}

fn create(node: &Node) -> Result<(), Failure> {
    let settings = TopicSettings {
        partitions: 1,
        replicas: 1,
        configs: &[],
    };
    topic::create(&mut Session::open(address(node)?)?, TOPIC, &settings)
}

/// Returns the time of a fetch from `offset` on a new connection, in milliseconds.
fn first_read(node: &Node, offset: i64) -> Result<f64, Failure> {
    let position = Position {
        partition: 0,
        offset,
    };
    let mut fetcher = Fetcher::open(address(node)?, TOPIC, vec![position])?;
    let begin_ns = now_ns();
    fetcher.ask(0)?;
    match fetcher.take()?.is_empty() {
        true => Err(format!("the node has no record at offset {offset}").into()),
        false => Ok(milliseconds_since(begin_ns)),
    }
}

/// Returns the offset of the last record.
fn last_offset(node: &Node) -> Result<i64, Failure> {
    let request = list_offsets::Request {
        replica_id: -1,
        topics: vec![list_offsets::Topic {
            name: TOPIC.to_owned(),
            partitions: vec![list_offsets::Partition {
                // The offset after the last record.
                timestamp: -1,
                ..list_offsets::Partition::default()
            }],
        }],
        ..list_offsets::Request::default()
    };
    let answer = Session::open(address(node)?)?.ask(&request)?;
    let partition = answer.topics.first().and_then(|one| one.partitions.first());
    let next = partition.ok_or("the response does not contain the partition")?;
    Ok(next.offset - 1)
}

/// Waits until the counters of filing and merging stand still. Returns the time of their last
/// change since `begin_ns`; `None` if there was none.
fn await_compaction(
    node: &Node,
    begin_ns: u64,
    deadline: Deadline,
) -> Result<Option<f64>, StepError> {
    let counters = || COUNTERS.map(|name| node.metric(name));
    let (mut before, mut changed_ns) = (counters(), now_ns());
    // The counters begin at zero with the process: compaction may have begun during the reads.
    let has_begun = before.iter().flatten().any(|count| *count > 0);
    let mut changed_ms = has_begun.then(|| milliseconds_since(begin_ns));
    loop {
        deadline.check("compaction")?;
        thread::sleep(LOOK);
        let now = counters();
        if now.contains(&None) {
            return Err(node_error("the node does not show its journal in /metrics").into());
        }
        if now != before {
            (before, changed_ns) = (now, now_ns());
            changed_ms = Some(milliseconds_since(begin_ns));
        } else if now_ns() - changed_ns >= CALM.as_nanos() as u64 {
            return Ok(changed_ms);
        }
    }
}

/// Counters of the node's compaction: segments that wait, bytes filed, and bytes merged.
const COUNTERS: [&str; 3] = [
    "telpher_journal_waiting_segments",
    "telpher_journal_filed_bytes_total",
    "telpher_journal_merged_bytes_total",
];

fn cpu_us(usage: &Usage, messages: u64) -> Result<f64, WorkloadError> {
    let cpu_ns = usage.roles.first().and_then(|node| node.cpu_ns);
    let cpu_ns = cpu_ns.ok_or_else(|| node_error("the node ended under the load"))?;
    Ok(cpu_ns as f64 / 1e3 / messages.max(1) as f64)
}

fn address(node: &Node) -> Result<&str, WorkloadError> {
    let address = node.kafka_address();
    address.ok_or_else(|| node_error("the node has no Kafka listener"))
}

fn node_failure(failure: Failure) -> WorkloadError {
    node_error(&failure.to_string())
}

fn milliseconds_since(begin_ns: u64) -> f64 {
    (now_ns() - begin_ns) as f64 / 1e6
}

/// Returns the steps of the log in gigabytes, and `max` itself.
fn log_steps(max: u64) -> Vec<u64> {
    let mut steps: Vec<_> = LOG_STEPS.into_iter().filter(|step| *step < max).collect();
    steps.push(max);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_steps_end_with_the_maximum() {
        assert_eq!(log_steps(20), [1, 2, 5, 10, 20]);
        assert_eq!(log_steps(3), [1, 2, 3]);
    }
}
