//! Filling a server with buckets: one take for each of many agents.

use bench::process::Memory;
use bench::workload::error::WorkloadError;
use bench::workload::surroundings::Surroundings;

use super::agents::{DIGITS, Order};
use super::matrix::names;
use super::server::{NodeSetup, Server};
use super::suite::drive;
use super::target::Target;
use super::{Limits, LoadSpec, Matrix, Pace, Reuse, TakeClient};

/// Number of connections, and requests in flight on each.
const CONNECTIONS: u32 = 8;
const PIPELINE: u32 = 16;

/// Number of takes that are in flight at a time.
pub const IN_FLIGHT: u64 = (CONNECTIONS * PIPELINE) as u64;

/// A server that gets buckets.
pub struct FilledServer<'a> {
    surroundings: &'a Surroundings,
    target: Target,
    server: Server,
}

/// Counts of one fill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillResult {
    /// Size of an agent's name in bytes.
    pub name_bytes: u64,
    /// Number of allowed takes.
    pub allowed: u64,
    /// Duration of the takes in seconds.
    pub seconds: f64,
}

impl<'a> FilledServer<'a> {
    /// Starts a server without buckets.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(
        surroundings: &'a Surroundings,
        matrix: &Matrix,
        target: Target,
    ) -> Result<Self, WorkloadError> {
        let setup = NodeSetup::alone(Limits::One);
        Ok(Self {
            surroundings,
            target,
            server: Server::start(target, surroundings, matrix, setup)?,
        })
    }

    /// Sends one take for each of this number of agents. The agents differ from those of every other
    /// `run`.
    ///
    /// # Errors
    /// When a process fails.
    pub fn fill(&mut self, agents: u64, run: u32) -> Result<FillResult, WorkloadError> {
        let names = names(
            run,
            u32::try_from(agents).unwrap_or(u32::MAX),
            Order::InTurn,
        );
        let name_bytes = (names.prefix.len() + DIGITS) as u64;
        let client = TakeClient::Written(self.target.dialect(Limits::One));
        let spec = LoadSpec {
            addresses: self.server.addresses(client),
            client,
            agents: names,
            pace: Pace::Count {
                connections: CONNECTIONS,
                pipeline: PIPELINE,
                requests: agents,
                reuse: Reuse::Kept,
            },
        };
        let measured = drive(self.surroundings, &mut self.server, spec)?;
        Ok(FillResult {
            name_bytes,
            allowed: measured.answered.map_or(0, |answered| answered.allowed()),
            seconds: measured.window_ns as f64 / 1e9,
        })
    }

    /// Returns the resident memory of all its processes.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        let processes = self.server.processes().into_iter();
        let each = processes.filter_map(|(_, pid)| Some(Memory::of(pid)?.rss_bytes));
        each.sum()
    }
}
