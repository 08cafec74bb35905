//! `bench store --kill-9-check`: a node is repeatedly killed at random moments while messages are
//! appended over its client APIs, and restarted. Every acknowledged message must be present exactly
//! once, in order, under its acknowledged sequence number. A batch that is sent again with the same
//! ids must get the same answer as the first time.
//!
//! Each writer appends batches one after the other to a conversation of its own. Each message
//! carries a number that its writer never reuses, as its id and in its text. The messages read back
//! are judged by their numbers only.

mod writer;
mod writer_state;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::role::Failure;
use bench::workload::surroundings::Surroundings;
use bench_storage::store::Door;
use bench_storage::store::client::Client;
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::kill::{self, KilledLoad, Kills, Violations};
use writer::{append_until, retry};
use writer_state::WriterState;

/// Parameters of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillCheck {
    /// The kills.
    pub kills: Kills,
    /// Client APIs, which the writers use in turn.
    pub doors: Vec<Door>,
    /// Number of writers, each with a conversation and a connection of its own.
    pub writers: u32,
    /// Size of a text in bytes, at least 32.
    pub size: usize,
}

/// Result of the check. Counts are in messages, unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KillReport {
    /// Number of kills.
    pub kills: u32,
    /// Seed of the moments of the kills.
    pub seed: u64,
    /// Acknowledged messages.
    pub acked: u64,
    /// Messages in flight when the node was killed: their outcome was unknown.
    pub unconfirmed: u64,
    /// Unconfirmed messages that were present after the restart.
    pub kept_unconfirmed: u64,
    /// Batches that were sent again after a restart, including acknowledged ones.
    pub retried: u64,
    /// Batches that got another answer than the first time.
    pub answered_otherwise: u64,
    /// Messages that differ from what was acknowledged; positions are sequence numbers.
    #[serde(flatten)]
    pub violations: Violations,
    /// Sequence numbers of a conversation that are skipped.
    pub gaps: u64,
    /// Batches that are only partly present.
    pub torn: u64,
    /// Batches that a running node rejected.
    pub refused: u64,
    /// The longest start, in milliseconds.
    pub start_ms_max: u64,
}

impl KillReport {
    /// Returns true if nothing is wrong. A run without an acknowledged message proves nothing, so
    /// it returns false.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let wrong = [self.answered_otherwise, self.gaps, self.torn, self.refused];
        let is_clean = self.violations.is_empty() && wrong.iter().all(|count| *count == 0);
        self.acked > 0 && is_clean
    }
}

/// A conversation, the client API of its writer, and the writer's knowledge of it.
struct WriterShare {
    conversation: String,
    door: Door,
    known: RefCell<WriterState>,
}

/// Runs the check.
///
/// # Errors
/// When the node cannot be started, or its messages cannot be read.
pub fn run(
    surroundings: &Surroundings,
    check: &KillCheck,
    progress: impl FnMut(u32),
) -> Result<KillReport, WorkloadError> {
    let mut load = Appenders {
        shares: (0..check.writers)
            .map(|writer| share(check, writer))
            .collect(),
        report: KillReport::default(),
    };
    let start_ms_max = kill::run(surroundings, &check.kills, &mut load, progress)?;
    Ok(KillReport {
        kills: check.kills.count,
        seed: check.kills.seed,
        start_ms_max,
        ..load.report
    })
}

fn share(check: &KillCheck, writer: u32) -> Rc<WriterShare> {
    Rc::new(WriterShare {
        conversation: format!("kill-{writer}"),
        door: check.doors[writer as usize % check.doors.len()],
        known: RefCell::new(WriterState::new(writer, check.size)),
    })
}

/// Writers of all conversations.
struct Appenders {
    shares: Vec<Rc<WriterShare>>,
    report: KillReport,
}

impl KilledLoad for Appenders {
    /// Sends again the last acknowledged batch and the one in flight, then writes.
    async fn start(
        &mut self,
        node: &Node,
        is_over: &Rc<Cell<bool>>,
    ) -> Result<Vec<JoinHandle<()>>, Failure> {
        let mut tasks = Vec::new();
        for share in &self.shares {
            let mut client = Client::open(node, share.door).await?;
            retry(&mut client, share, &mut self.report).await?;
            tasks.push(tokio::task::spawn_local(append_until(
                client,
                share.clone(),
                is_over.clone(),
            )));
        }
        Ok(tasks)
    }

    /// Sends batches with unknown outcome again, and reads everything back.
    async fn judge(&mut self, node: &Node) -> Result<(), Failure> {
        for share in &self.shares {
            let mut client = Client::open(node, share.door).await?;
            retry(&mut client, share, &mut self.report).await?;
            let found = client.read_all(&share.conversation).await?;
            share.known.borrow().judge(&found, &mut self.report);
        }
        Ok(())
    }
}
