//! `bench quota --memory`: many buckets, and what each of them takes of memory.
//!
//! Every agent is asked for once, one after the other, so that each has a bucket. Half of them first:
//! what the server takes for the other half is what buckets take. With what it takes beyond that for
//! having anything to do, the whole difference is told too.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::agents::{DIGITS, Order};
use super::matrix::names;
use super::server::{Server, Standing};
use super::suite::drive;
use super::target::Target;
use super::{Limits, LoadSpec, Matrix, Pace, Reuse, Way};
use crate::process::Memory;
use crate::workload::{Surroundings, WorkloadError};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MemoryReport {
    /// Of each server.
    pub servers: Vec<ServerMemory>,
    /// Peers that are not in the directory of peers.
    pub left_out: Vec<&'static str>,
}

/// What one server takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServerMemory {
    /// Its name in results.
    pub target: &'static str,
    /// How many agents were asked for.
    pub agents: u64,
    /// Bytes of an agent's name.
    pub name_bytes: u64,
    /// Takes that were not allowed though each was the first of its agent.
    pub wrong: u64,
    /// What asking took.
    pub seconds: f64,
    /// Resident memory with no bucket, of all its processes.
    pub empty_rss_bytes: u64,
    /// With half of them.
    pub half_rss_bytes: u64,
    /// And with all of them.
    pub full_rss_bytes: u64,
    /// From half of them to all, for each.
    pub bytes_each: f64,
    /// From none of them to all, for each: with what does not grow with them.
    pub bytes_each_from_empty: f64,
}

/// Connections, and what is under way on each.
const CONNECTIONS: u32 = 8;
const PIPELINE: u32 = 16;

/// Where a take costs half a millisecond, fewer agents say as much.
const EXPRESS_PART: u64 = 20;

/// Asks every server for as many agents. Left alone for so long, it puts away what it needed to answer
/// and to keep what it answered.
///
/// # Errors
/// When a process fails.
pub fn run(
    surroundings: &Surroundings,
    matrix: &Matrix,
    agents: u64,
    rest: Duration,
    mut told: impl FnMut(&str),
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
        told(&format!("{}: {agents} agents", target.name()));
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
    let mut server = Server::start(target, surroundings, matrix, Standing::alone(Limits::One))?;
    // Its first answers warm it up: what they need is not the buckets'.
    let mut settled = |agents, part| {
        let asked = ask(surroundings, &mut server, target, agents, 3 * run + part)?;
        thread::sleep(rest);
        Ok::<_, WorkloadError>((asked, rss_bytes(&server)))
    };
    let half = agents / 2;
    let (_, empty_rss_bytes) = settled(u64::from(CONNECTIONS * PIPELINE), 0)?;
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

struct Filled {
    name_bytes: u64,
    allowed: u64,
    seconds: f64,
}

fn ask(
    surroundings: &Surroundings,
    server: &mut Server,
    target: Target,
    agents: u64,
    run: u32,
) -> Result<Filled, WorkloadError> {
    let names = names(
        run,
        u32::try_from(agents).unwrap_or(u32::MAX),
        Order::InTurn,
    );
    let name_bytes = (names.prefix.len() + DIGITS) as u64;
    let way = Way::Written(target.dialect(Limits::One));
    let spec = LoadSpec {
        addresses: server.addresses(way),
        way,
        agents: names,
        pace: Pace::Count {
            connections: CONNECTIONS,
            pipeline: PIPELINE,
            requests: agents,
            reuse: Reuse::Kept,
        },
    };
    let measured = drive(surroundings, server, spec)?;
    Ok(Filled {
        name_bytes,
        allowed: measured.answered.map_or(0, |answered| answered.allowed()),
        seconds: measured.window_ns as f64 / 1e9,
    })
}

/// Of all its processes.
fn rss_bytes(server: &Server) -> u64 {
    let processes = server.processes().into_iter();
    let each = processes.filter_map(|(_, pid)| Some(Memory::of(pid)?.rss_bytes));
    each.sum()
}
