//! A crash between any two calls to the disk.
//!
//! The steps of a script are single changes of the log. After a crash the log must be as it was
//! after one of them, and not before the last one that was reported to be on disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use journal::disk::SimulatedDisk;
use journal::disk::simulated::Fault;
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use tokio::time::timeout;

use super::blank;
use super::disk::{Running, run};
use crate::raft::{Entry, Store, Types, Vote, log_id};

#[derive(Clone, Debug)]
enum Step {
    Append(Entry),
    /// Voids the entries from an index on, which is above 0.
    Cut(u64),
    Vote(Vote),
}

/// The log and the vote after some steps.
#[derive(Clone, Debug, Default, PartialEq)]
struct Expected {
    entries: Vec<Entry>,
    vote: Option<Vote>,
}

impl Expected {
    fn apply(&mut self, step: &Step) {
        match step {
            Step::Append(entry) => self.entries.push(entry.clone()),
            Step::Cut(first) => self.entries.truncate(*first as usize),
            Step::Vote(vote) => self.vote = Some(*vote),
        }
    }
}

fn script() -> Vec<Step> {
    let mut steps = vec![Step::Vote(Vote::new(1, 2))];
    steps.extend((0..6).map(|index| Step::Append(blank(1, index))));
    steps.push(Step::Vote(Vote::new_committed(2, 1)));
    steps.push(Step::Cut(4));
    steps.extend((4..8).map(|index| Step::Append(blank(2, index))));
    steps.push(Step::Cut(5));
    steps.push(Step::Vote(Vote::new(3, 3)));
    steps.push(Step::Append(blank(3, 5)));
    steps
}

/// Runs the script until the disk fails. Returns the number of steps that were begun, and of those
/// that are known to be on disk. Appends are under way together, so that syncs cover several.
async fn run_script(running: &Running) -> (usize, usize) {
    let mut store = Store::new(running.log());
    let (mut begun, mut durable) = (0, 0);
    let mut appends = Vec::new();
    for (number, step) in script().into_iter().enumerate() {
        begun = number + 1;
        let is_done = match step {
            Step::Append(entry) => {
                let (sender, receiver) = Types::oneshot();
                let appended = store.append([entry], IOFlushed::signal(sender)).await;
                appends.push((begun, receiver));
                if number % 3 == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                appended.is_ok()
            }
            Step::Cut(first) => {
                let last = store.get_log_reader().await;
                let last = { last }.try_get_log_entries(first - 1..first).await;
                let last = last.ok().and_then(|entries| Some(entries.first()?.log_id));
                last.is_some() && store.truncate_after(last).await.is_ok()
            }
            Step::Vote(vote) => {
                let saved = timeout(Duration::from_secs(1), store.save_vote(&vote)).await;
                let is_saved = matches!(saved, Ok(Ok(())));
                durable = if is_saved { begun } else { durable };
                is_saved
            }
        };
        if !is_done {
            break;
        }
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    for (step, mut receiver) in appends {
        let flushed: Option<Result<(), std::io::Error>> = receiver.try_recv().ok();
        if matches!(flushed, Some(Ok(()))) {
            durable = durable.max(step);
        }
    }
    (begun, durable)
}

async fn check_after_crash(running: &Running, begun: usize, durable: usize) {
    let mut reader = Store::new(running.log()).get_log_reader().await;
    let found = Expected {
        entries: reader.try_get_log_entries(..).await.unwrap(),
        vote: reader.read_vote().await.unwrap(),
    };
    let mut expected = Expected::default();
    let mut possible = vec![expected.clone()];
    for step in script().iter().take(begun) {
        expected.apply(step);
        possible.push(expected.clone());
    }
    let possible = possible.split_off(durable);
    assert!(
        possible.contains(&found),
        "{durable} of {begun} steps were on disk, but found {found:?}"
    );
    let last = found.entries.last();
    let last = last.map_or(log_id(4, 0), |entry| log_id(4, entry.log_id.index + 1));
    let next = Entry {
        log_id: last,
        ..blank(4, 0)
    };
    running.log().append([next]).unwrap();
}

/// Runs the script on a disk whose calls fail from some call on, and then loses unsynced changes.
/// Returns false if the script ended before that call.
fn run_with_crash(call: u64, seed: u64) -> bool {
    run(async {
        let disk = Arc::new(SimulatedDisk::new(seed));
        let mut rng = fastrand::Rng::with_seed(seed);
        let running = Running::open(&disk, 1);
        let last = disk.calls() + call;
        disk.fail_always(Fault::Broken, move |at| at.number >= last);
        let (begun, durable) = run_script(&running).await;
        let is_over = disk.calls() < last;
        drop(running);
        disk.heal();
        disk.crash(&mut rng);
        let running = Running::open(&disk, 2);
        check_after_crash(&running, begun, durable).await;
        !is_over
    })
}

#[test]
fn log_is_whole_after_a_crash_between_any_two_disk_calls() {
    for seed in 0..20 {
        for call in 0.. {
            let ran = catch_unwind(AssertUnwindSafe(|| run_with_crash(call, seed)));
            match ran {
                Ok(true) => {}
                Ok(false) if call > 10 => break,
                Ok(false) => panic!("the script makes only {call} calls"),
                Err(_) => panic!("seed {seed} failed at call {call}"),
            }
        }
    }
}
