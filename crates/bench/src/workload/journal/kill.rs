//! `bench journal --kill-9-check`: a node under load is repeatedly killed at random moments and
//! restarted. Every acknowledged record must be present exactly once, in order, at its acknowledged
//! offset.
//!
//! Each writer appends records one after the other to a stream of its own. Each record carries a
//! number that the writer never reuses. The records read back are judged by their numbers only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client::{CallError, Client, RecordStream, Sent};
use serde::Serialize;

use crate::workload::error::WorkloadError;
use crate::workload::killed_node::{Lifetimes, start};
use crate::workload::node::Node;
use crate::workload::role;
use crate::workload::surroundings::Surroundings;

/// Parameters of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillCheck {
    /// Number of kills.
    pub kills: u32,
    /// Number of connections.
    pub connections: u32,
    /// Number of writers on each connection.
    pub writers_per_connection: u32,
    /// Size of a record in bytes, at least 16.
    pub size: usize,
    /// Seed of the moments of the kills.
    pub seed: u64,
    /// Directory on the tested disk; the node's directory is created in it.
    pub directory: PathBuf,
}

/// Result of the check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KillReport {
    /// Number of kills.
    pub kills: u32,
    /// Seed of the moments of the kills.
    pub seed: u64,
    /// Number of acknowledged appends.
    pub acked: u64,
    /// Appends with unknown outcome: the node was killed before it answered.
    pub unconfirmed: u64,
    /// Unconfirmed appends that are present.
    pub kept_unconfirmed: u64,
    /// Acknowledged records that are missing.
    pub lost: u64,
    /// Records that are present more than once.
    pub duplicated: u64,
    /// Records that come after a later record of the same writer.
    pub reordered: u64,
    /// Offsets that were acknowledged for two records, or that hold a different record.
    pub reused: u64,
    /// Records that were never sent, or have different content.
    pub foreign: u64,
    /// The longest start, in milliseconds.
    pub start_ms_max: u64,
}

impl KillReport {
    /// Returns true if nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let wrong = [
            self.lost,
            self.duplicated,
            self.reordered,
            self.reused,
            self.foreign,
        ];
        wrong.iter().all(|count| *count == 0)
    }
}

/// Time limit for reading back after a restart.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// Knowledge of one writer about its records.
#[derive(Debug, Default)]
struct WriterState {
    /// Number of the last record sent.
    next: u64,
    /// Acknowledged records: offset to number.
    acked: BTreeMap<u64, u64>,
    unconfirmed: Vec<u64>,
    /// Number of offsets acknowledged twice.
    reused: u64,
}

type SharedState = Arc<Mutex<WriterState>>;

/// Runs the check.
///
/// # Errors
/// When the node cannot be started, or its records cannot be read.
pub fn run(
    surroundings: &Surroundings,
    check: &KillCheck,
    mut progress: impl FnMut(u32),
) -> Result<KillReport, WorkloadError> {
    let scratch = tempfile::Builder::new()
        .prefix("telpher-kill-")
        .tempdir_in(&check.directory)
        .map_err(WorkloadError::Directory)?;
    let runtime = role::runtime().map_err(WorkloadError::Directory)?;
    let writers = check.connections * check.writers_per_connection;
    let known: Vec<SharedState> = (0..writers).map(|_| SharedState::default()).collect();
    let mut lives = Lifetimes::of(check.seed);
    let mut report = KillReport {
        seed: check.seed,
        ..KillReport::default()
    };
    for kill in 0..check.kills {
        let node = start(surroundings, scratch.path(), &mut report.start_ms_max)?;
        let written = write_until_killed(node, check, &known, lives.next());
        runtime.block_on(written)?;
        report.kills += 1;
        progress(kill + 1);
    }
    let node = start(surroundings, scratch.path(), &mut report.start_ms_max)?;
    runtime.block_on(judge(&node, &known, check.size, &mut report))?;
    Ok(report)
}

fn stream_name(writer: usize) -> String {
    format!("bench/kill/w{writer}")
}

async fn connect(node: &Node) -> Result<Client, WorkloadError> {
    let connected = Client::builder().connect(&node.native).await;
    connected.map_err(|error| WorkloadError::Node(error.to_string()))
}

async fn write_until_killed(
    node: Node,
    check: &KillCheck,
    known: &[SharedState],
    life: Duration,
) -> Result<(), WorkloadError> {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for (connection, shares) in known
        .chunks(check.writers_per_connection as usize)
        .enumerate()
    {
        let client = connect(&node).await?;
        for (index, share) in shares.iter().enumerate() {
            let writer = connection * check.writers_per_connection as usize + index;
            let stream = client
                .stream(&stream_name(writer))
                .map_err(|error| WorkloadError::Node(error.to_string()))?;
            let (share, is_over) = (share.clone(), is_over.clone());
            tasks.push(tokio::spawn(append_until(
                stream, writer, share, check.size, is_over,
            )));
        }
    }
    tokio::time::sleep(life).await;
    // Appends acknowledged from here on count too.
    node.kill();
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await
            .map_err(|error| WorkloadError::Node(error.to_string()))?;
    }
    Ok(())
}

/// Appends one record after the other until the node is gone.
async fn append_until(
    stream: RecordStream,
    writer: usize,
    known: SharedState,
    size: usize,
    is_over: Arc<AtomicBool>,
) {
    while !is_over.load(Ordering::Relaxed) {
        let number = {
            let mut known = lock(&known);
            known.next += 1;
            known.next
        };
        let outcome = stream.append(&[record(writer, number, size)]).await;
        let mut known = lock(&known);
        match outcome {
            Ok(appended) => {
                if known.acked.insert(appended.first, number).is_some() {
                    known.reused += 1;
                }
            }
            Err(error) => {
                if is_unconfirmed(&error) {
                    known.unconfirmed.push(number);
                }
                return;
            }
        }
    }
}

/// Returns true if a failed append may have been executed.
fn is_unconfirmed(error: &CallError) -> bool {
    error.sent != Sent::No
}

fn lock(known: &SharedState) -> std::sync::MutexGuard<'_, WriterState> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the content of a record: writer and number, repeated up to the size.
fn record(writer: usize, number: u64, size: usize) -> Vec<u8> {
    let head = [(writer as u64).to_le_bytes(), number.to_le_bytes()].concat();
    head.iter()
        .copied()
        .cycle()
        .take(size.max(head.len()))
        .collect()
}

/// Reads everything back and compares it.
async fn judge(
    node: &Node,
    known: &[SharedState],
    size: usize,
    report: &mut KillReport,
) -> Result<(), WorkloadError> {
    let client = connect(node).await?;
    for (writer, known) in known.iter().enumerate() {
        let stream = client
            .stream(&stream_name(writer))
            .map_err(|error| WorkloadError::Node(error.to_string()))?
            .deadline(READ_LIMIT);
        let mut found = Vec::new();
        let mut from = 0;
        loop {
            let read = stream.read(from).await;
            let read = read.map_err(|error| WorkloadError::Node(error.to_string()))?;
            let Some(last) = read.records.last() else {
                break;
            };
            from = last.offset + 1;
            for one in &read.records {
                found.push((one.offset, number_of(writer, &one.body, size)));
            }
        }
        compare(&lock(known), &found, report);
    }
    Ok(())
}

/// Returns the number of a record, if its content is exactly what this writer wrote.
fn number_of(writer: usize, body: &[u8], size: usize) -> Option<u64> {
    let number = u64::from_le_bytes(body.get(8..16)?.try_into().ok()?);
    (body == record(writer, number, size)).then_some(number)
}

/// Compares one stream, given as offsets and numbers in reading order.
fn compare(known: &WriterState, found: &[(u64, Option<u64>)], report: &mut KillReport) {
    report.acked += known.acked.len() as u64;
    report.unconfirmed += known.unconfirmed.len() as u64;
    report.reused += known.reused;
    let mut seen = BTreeMap::new();
    let mut last = 0;
    for &(offset, number) in found {
        let Some(number) = number.filter(|number| *number <= known.next) else {
            report.foreign += 1;
            continue;
        };
        if seen.insert(number, offset).is_some() {
            report.duplicated += 1;
        } else if number < last {
            report.reordered += 1;
        }
        last = last.max(number);
        if known
            .acked
            .get(&offset)
            .is_some_and(|acked| *acked != number)
        {
            report.reused += 1;
        }
    }
    let is_lost = |number: &&u64| !seen.contains_key(number);
    report.lost += known.acked.values().filter(is_lost).count() as u64;
    let kept = known
        .unconfirmed
        .iter()
        .filter(|number| seen.contains_key(number));
    report.kept_unconfirmed += kept.count() as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(acked: &[(u64, u64)], unconfirmed: &[u64]) -> WriterState {
        WriterState {
            next: 9,
            acked: acked.iter().copied().collect(),
            unconfirmed: unconfirmed.to_vec(),
            reused: 0,
        }
    }

    fn judged(known: &WriterState, found: &[(u64, Option<u64>)]) -> KillReport {
        let mut report = KillReport::default();
        compare(known, found, &mut report);
        report
    }

    #[test]
    fn acknowledged_records_are_clean_with_or_without_unconfirmed_ones() {
        let known = known(&[(0, 1), (1, 2)], &[3]);
        let without = judged(&known, &[(0, Some(1)), (1, Some(2))]);
        assert!(without.is_clean() && without.kept_unconfirmed == 0);
        let with = judged(&known, &[(0, Some(1)), (1, Some(2)), (2, Some(3))]);
        assert!(with.is_clean() && with.kept_unconfirmed == 1);
        assert_eq!((with.acked, with.unconfirmed), (2, 1));
    }

    #[test]
    fn every_kind_of_error_is_counted() {
        let known = known(&[(0, 1), (1, 2)], &[]);
        assert_eq!(judged(&known, &[(0, Some(1))]).lost, 1);
        let twice = judged(&known, &[(0, Some(1)), (1, Some(2)), (2, Some(2))]);
        assert_eq!((twice.duplicated, twice.reordered), (1, 0));
        let swapped = judged(&known, &[(0, Some(2)), (1, Some(1))]);
        assert_eq!((swapped.reordered, swapped.reused), (1, 2));
        assert_eq!(
            judged(&known, &[(0, Some(1)), (1, None), (2, Some(2))]).foreign,
            1
        );
        assert_eq!(
            judged(&known, &[(0, Some(1)), (1, Some(2)), (2, Some(77))]).foreign,
            1
        );
    }

    #[test]
    fn a_record_is_recognised_only_as_it_was_written() {
        let mut body = record(3, 7, 100);
        assert_eq!((body.len(), number_of(3, &body, 100)), (100, Some(7)));
        assert_eq!(number_of(4, &body, 100), None);
        body[90] ^= 1;
        assert_eq!(number_of(3, &body, 100), None);
        assert_eq!(record(3, 7, 1).len(), 16);
    }
}
