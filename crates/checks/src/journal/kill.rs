//! `bench journal --kill-9-check`: a node under load is repeatedly killed at random moments and
//! restarted. Every acknowledged record must be present exactly once, in order, at its acknowledged
//! offset.
//!
//! Each writer appends records one after the other to a stream of its own. Each record carries a
//! number that the writer never reuses. The records read back are judged by their numbers only.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bench::workload::error::WorkloadError;
use bench::workload::node::Node;
use bench::workload::role::Failure;
use bench::workload::surroundings::Surroundings;
use client::{CallError, Client, RecordStream, Sent};
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::kill::{self, Comparison, KilledLoad, Kills, Violations};

/// Parameters of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillCheck {
    /// The kills.
    pub kills: Kills,
    /// Number of connections.
    pub connections: u32,
    /// Number of writers on each connection.
    pub writers_per_connection: u32,
    /// Size of a record in bytes, at least 16.
    pub size: usize,
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
    /// Records that differ from what was acknowledged.
    #[serde(flatten)]
    pub violations: Violations,
    /// The longest start, in milliseconds.
    pub start_ms_max: u64,
}

impl KillReport {
    /// Returns true if nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
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

type SharedState = Rc<RefCell<WriterState>>;

/// Runs the check.
///
/// # Errors
/// When the node cannot be started, or its records cannot be read.
pub fn run(
    surroundings: &Surroundings,
    check: &KillCheck,
    progress: impl FnMut(u32),
) -> Result<KillReport, WorkloadError> {
    let writers = check.connections * check.writers_per_connection;
    let mut load = Appenders {
        check,
        known: (0..writers).map(|_| SharedState::default()).collect(),
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

/// Writers of all streams.
struct Appenders<'a> {
    check: &'a KillCheck,
    known: Vec<SharedState>,
    report: KillReport,
}

impl KilledLoad for Appenders<'_> {
    async fn start(
        &mut self,
        node: &Node,
        is_over: &Rc<Cell<bool>>,
    ) -> Result<Vec<JoinHandle<()>>, Failure> {
        let mut tasks = Vec::new();
        let per_connection = self.check.writers_per_connection as usize;
        for (connection, shares) in self.known.chunks(per_connection).enumerate() {
            let client = connect(node).await?;
            for (index, known) in shares.iter().enumerate() {
                let writer = connection * per_connection + index;
                tasks.push(tokio::task::spawn_local(append_until(
                    client.stream(&stream_name(writer))?,
                    writer,
                    known.clone(),
                    self.check.size,
                    is_over.clone(),
                )));
            }
        }
        Ok(tasks)
    }

    async fn judge(&mut self, node: &Node) -> Result<(), Failure> {
        let client = connect(node).await?;
        for (writer, known) in self.known.iter().enumerate() {
            let stream = client.stream(&stream_name(writer))?.deadline(READ_LIMIT);
            let found = read_all(&stream, writer, self.check.size).await?;
            compare(&known.borrow(), &found, &mut self.report);
        }
        Ok(())
    }
}

fn stream_name(writer: usize) -> String {
    format!("bench/kill/w{writer}")
}

async fn connect(node: &Node) -> Result<Client, Failure> {
    Ok(Client::builder().connect(&node.native).await?)
}

/// Appends one record after the other until the node is gone.
async fn append_until(
    stream: RecordStream,
    writer: usize,
    known: SharedState,
    size: usize,
    is_over: Rc<Cell<bool>>,
) {
    while !is_over.get() {
        let number = {
            let mut known = known.borrow_mut();
            known.next += 1;
            known.next
        };
        let outcome = stream.append(&[record(writer, number, size)]).await;
        let mut known = known.borrow_mut();
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

/// Makes the content of a record: writer and number, repeated up to the size.
fn record(writer: usize, number: u64, size: usize) -> Vec<u8> {
    let head = [(writer as u64).to_le_bytes(), number.to_le_bytes()].concat();
    head.iter()
        .copied()
        .cycle()
        .take(size.max(head.len()))
        .collect()
}

/// Reads a stream. Returns offsets and numbers in reading order.
async fn read_all(
    stream: &RecordStream,
    writer: usize,
    size: usize,
) -> Result<Vec<(u64, Option<u64>)>, Failure> {
    let mut found = Vec::new();
    let mut from = 0;
    loop {
        let read = stream.read(from).await?;
        let Some(last) = read.records.last() else {
            return Ok(found);
        };
        from = last.offset + 1;
        for one in &read.records {
            found.push((one.offset, number_of(writer, &one.body, size)));
        }
    }
}

/// Returns the number of a record, if its content is exactly what this writer wrote.
fn number_of(writer: usize, body: &[u8], size: usize) -> Option<u64> {
    let number = u64::from_le_bytes(body.get(8..16)?.try_into().ok()?);
    (body == record(writer, number, size)).then_some(number)
}

/// Compares one stream, given as offsets and numbers in reading order.
fn compare(known: &WriterState, found: &[(u64, Option<u64>)], report: &mut KillReport) {
    let sent = |number: &u64| *number <= known.next;
    let found = found
        .iter()
        .map(|(offset, number)| (*offset, number.filter(sent)));
    let compared = Comparison::of(&known.acked, found);
    report.acked += known.acked.len() as u64;
    report.unconfirmed += known.unconfirmed.len() as u64;
    report.violations += compared.violations;
    report.violations.reused += known.reused;
    let is_present = |number: &&u64| compared.present.contains(number);
    report.kept_unconfirmed += known.unconfirmed.iter().filter(is_present).count() as u64;
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
        assert_eq!(judged(&known, &[(0, Some(1))]).violations.lost, 1);
        let twice = judged(&known, &[(0, Some(1)), (1, Some(2)), (2, Some(2))]);
        assert_eq!(
            (twice.violations.duplicated, twice.violations.reordered),
            (1, 0)
        );
        let swapped = judged(&known, &[(0, Some(2)), (1, Some(1))]);
        assert_eq!(
            (swapped.violations.reordered, swapped.violations.reused),
            (1, 2)
        );
        assert_eq!(
            judged(&known, &[(0, Some(1)), (1, None), (2, Some(2))])
                .violations
                .foreign,
            1
        );
        assert_eq!(
            judged(&known, &[(0, Some(1)), (1, Some(2)), (2, Some(77))])
                .violations
                .foreign,
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
