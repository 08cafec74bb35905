//! `bench store --kill-9-check`: a node is killed at random moments while messages are appended over
//! its doors, and started again, over and over. Whatever it acknowledged must be there, once, in order,
//! at the number it was acknowledged with; and what is sent again with the same ids must be answered as
//! it was the first time.
//!
//! A writer appends to a conversation of its own, one batch after the other. Each message carries a
//! number that its writer never uses twice, as its id and in its text: what is read back is judged by
//! that alone.

mod known;
mod writer;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use tokio::task::LocalSet;

use super::client::Client;
use super::matrix::Door;
use crate::workload::mortal::{Lives, start};
use crate::workload::node::Node;
use crate::workload::role::{self, Failure};
use crate::workload::{Surroundings, WorkloadError, place};
use known::Known;
use writer::{append_until, retry};

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillCheck {
    /// How often the node is killed.
    pub kills: u32,
    /// Through which is written, in turn.
    pub doors: Vec<Door>,
    /// Writers, each with a conversation and a connection of its own.
    pub writers: u32,
    /// Bytes of a text, at least 32.
    pub size: usize,
    /// The moments of the kills follow from it.
    pub seed: u64,
    /// A directory on the disk that is used; the node's own is made in it.
    pub directory: PathBuf,
}

/// What was found. Counted are messages, unless it says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KillReport {
    /// How often the node was killed.
    pub kills: u32,
    /// The seed of the moments.
    pub seed: u64,
    /// Acknowledged.
    pub acked: u64,
    /// Under way when the node was killed: their outcome was not known.
    pub unconfirmed: u64,
    /// Of those, how many were there after the restart.
    pub kept_unconfirmed: u64,
    /// Batches that were sent again after a restart, acknowledged ones among them.
    pub retried: u64,
    /// Batches that were then answered otherwise than the first time.
    pub answered_otherwise: u64,
    /// Acknowledged and not there.
    pub lost: u64,
    /// There more than once.
    pub duplicated: u64,
    /// There behind a later one of the same writer.
    pub reordered: u64,
    /// Numbers of a conversation that were left out.
    pub gaps: u64,
    /// Numbers that were acknowledged for two messages, or that hold another than was acknowledged.
    pub reused: u64,
    /// Batches of which only a part was there.
    pub torn: u64,
    /// There and never sent, or not as they were sent.
    pub foreign: u64,
    /// Batches that a living node refused.
    pub refused: u64,
    /// The longest start, in milliseconds.
    pub start_ms_max: u64,
}

impl KillReport {
    /// Whether everything is as it must be. Where nothing was acknowledged, nothing was shown.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let wrong = [
            self.answered_otherwise,
            self.lost,
            self.duplicated,
            self.reordered,
            self.gaps,
            self.reused,
            self.torn,
            self.foreign,
            self.refused,
        ];
        self.acked > 0 && wrong.iter().all(|count| *count == 0)
    }
}

/// A conversation, through which door it is written to, and what is known of it.
struct Share {
    conversation: String,
    door: Door,
    known: RefCell<Known>,
}

/// Runs the check.
///
/// # Errors
/// When the node cannot be started, or what it holds cannot be read.
pub fn run(
    surroundings: &Surroundings,
    check: &KillCheck,
    mut progress: impl FnMut(u32),
) -> Result<KillReport, WorkloadError> {
    let place = place(&check.directory)?;
    let runtime = role::runtime().map_err(WorkloadError::Directory)?;
    let shares: Vec<Rc<Share>> = (0..check.writers)
        .map(|writer| share(check, writer))
        .collect();
    let mut lives = Lives::of(check.seed);
    let mut report = KillReport {
        seed: check.seed,
        ..KillReport::default()
    };
    for kill in 0..check.kills {
        let node = start(surroundings, place.path(), &mut report.start_ms_max)?;
        let lived = live_and_die(node, &shares, lives.next(), &mut report);
        LocalSet::new().block_on(&runtime, lived).map_err(broken)?;
        report.kills += 1;
        progress(kill + 1);
    }
    let node = start(surroundings, place.path(), &mut report.start_ms_max)?;
    LocalSet::new()
        .block_on(&runtime, judge(&node, &shares, &mut report))
        .map_err(broken)?;
    Ok(report)
}

fn share(check: &KillCheck, writer: u32) -> Rc<Share> {
    Rc::new(Share {
        conversation: format!("kill-{writer}"),
        door: check.doors[writer as usize % check.doors.len()],
        known: RefCell::new(Known::new(writer, check.size)),
    })
}

fn broken(failure: Failure) -> WorkloadError {
    WorkloadError::Node(failure.to_string())
}

/// Sends again what was under way, and what was acknowledged last; then writes until the node is killed.
async fn live_and_die(
    node: Node,
    shares: &[Rc<Share>],
    life: Duration,
    report: &mut KillReport,
) -> Result<(), Failure> {
    let is_over = Rc::new(Cell::new(false));
    let mut tasks = Vec::new();
    for share in shares {
        let mut client = Client::open(&node, share.door).await?;
        retry(&mut client, share, report).await?;
        tasks.push(tokio::task::spawn_local(append_until(
            client,
            share.clone(),
            is_over.clone(),
        )));
    }
    tokio::time::sleep(life).await;
    // What is acknowledged from here on was acknowledged all the same.
    node.kill();
    is_over.set(true);
    for task in tasks {
        task.await?;
    }
    Ok(())
}

/// Sends again what is unknown, and reads everything back.
async fn judge(node: &Node, shares: &[Rc<Share>], report: &mut KillReport) -> Result<(), Failure> {
    for share in shares {
        let mut client = Client::open(node, share.door).await?;
        retry(&mut client, share, report).await?;
        let found = client.read_all(&share.conversation).await?;
        share.known.borrow().judge(&found, report);
    }
    Ok(())
}
