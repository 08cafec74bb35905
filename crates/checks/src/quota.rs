//! `bench quota --memory`: memory of a bucket, measured with many of them.
//!
//! Every agent gets one take, so that each has a bucket. The memory per bucket is measured between
//! half of the agents and all of them. The report also shows the growth from an idle server, which
//! includes one-time costs.

use std::thread;
use std::time::Duration;

use bench::workload::error::WorkloadError;
use bench::workload::surroundings::Surroundings;
use bench_quota::Matrix;
use bench_quota::fill::{FilledServer, IN_FLIGHT};
use bench_quota::target::Target;
use serde::Serialize;

/// Result of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MemoryReport {
    /// Memory of each server.
    pub servers: Vec<ServerMemory>,
    /// Peers that are missing from the directory of peers.
    pub left_out: Vec<&'static str>,
}

/// Memory of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServerMemory {
    /// Name in results.
    pub target: &'static str,
    /// Number of agents.
    pub agents: u64,
    /// Size of an agent's name in bytes.
    pub name_bytes: u64,
    /// Takes that were denied although each was the first of its agent.
    pub wrong: u64,
    /// Duration of the takes in seconds.
    pub seconds: f64,
    /// Resident memory of all its processes without buckets.
    pub empty_rss_bytes: u64,
    /// Resident memory with half of the buckets.
    pub half_rss_bytes: u64,
    /// Resident memory with all buckets.
    pub full_rss_bytes: u64,
    /// Growth per bucket from half of them to all.
    pub bytes_each: f64,
    /// Growth per bucket from none to all, including one-time costs.
    pub bytes_each_from_empty: f64,
}

/// Fraction of the agents (1 / `EXPRESS_PART`) used for a server that needs half a millisecond per
/// take.
const EXPRESS_PART: u64 = 20;

/// Sends one take per agent to every server, and waits `rest` before each reading, so that the
/// server releases the memory that it needed to answer.
///
/// # Errors
/// When a process fails.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    agents: u64,
    rest: Duration,
    mut progress: impl FnMut(&str),
) -> Result<MemoryReport, WorkloadError> {
    let mut report = MemoryReport::default();
    let mut targets = vec![(Target::Node, agents)];
    if let Some(directory) = &surroundings.peers {
        let peers = [
            (Target::Throttlecrab, agents),
            (Target::Express, (agents / EXPRESS_PART).max(1)),
        ];
        for (peer, agents) in peers {
            match peer.is_in(directory) {
                true => targets.push((peer, agents)),
                false => report.left_out.push(peer.name()),
            }
        }
    }
    for (run, (target, agents)) in targets.into_iter().enumerate() {
        progress(&format!("{}: {agents} agents", target.name()));
        let found = measure(surroundings, matrix, target, agents, run as u32, rest)?;
        report.servers.push(found);
    }
    Ok(report)
}

fn measure(
    surroundings: &Surroundings,
    matrix: &Matrix,
    target: Target,
    agents: u64,
    run: u32,
    rest: Duration,
) -> Result<ServerMemory, WorkloadError> {
    let mut server = FilledServer::start(surroundings, matrix, target)?;
    // The first takes warm the server up: their memory is not that of the buckets.
    let mut settled = |agents, part| {
        let filled = server.fill(agents, 3 * run + part)?;
        thread::sleep(rest);
        Ok::<_, WorkloadError>((filled, server.rss_bytes()))
    };
    let half = agents / 2;
    let (_, empty_rss_bytes) = settled(IN_FLIGHT, 0)?;
    let (first, half_rss_bytes) = settled(half, 1)?;
    let (second, full_rss_bytes) = settled(agents - half, 2)?;
    let each = |more: u64, less: u64, agents: u64| more.saturating_sub(less) as f64 / agents as f64;
    Ok(ServerMemory {
        target: target.name(),
        agents,
        name_bytes: first.name_bytes,
        wrong: agents.saturating_sub(first.allowed + second.allowed),
        seconds: first.seconds + second.seconds,
        empty_rss_bytes,
        half_rss_bytes,
        full_rss_bytes,
        bytes_each: each(full_rss_bytes, half_rss_bytes, agents - half),
        bytes_each_from_empty: each(full_rss_bytes, empty_rss_bytes, agents),
    })
}
