//! The beginning of a cluster on a journal with records, with a crash at any disk call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cluster::{InitState, init_state};
use journal::disk::SimulatedDisk;
use journal::disk::simulated::Fault;
use journal::filing::Step;
use journal::{Commit, Journal, LineStep, Options, ReadLimit, ShardId, SteppedJournal, StreamId};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::agreement::run;
use crate::world::member;

const SHARDS: u16 = 2;
const STREAM: StreamId = StreamId(9);

/// Records of the journal before the cluster.
const RECORDS: u64 = 30;

/// Time limit of a beginning whose disk has failed.
const INIT_MAX: Duration = Duration::from_secs(1);

/// An open journal whose line is a task.
struct Running {
    journal: Arc<Journal>,
    steps: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.steps.abort();
    }
}

fn open_stepped(disk: &SimulatedDisk, entropy: u64, commit: Commit) -> SteppedJournal {
    let options = Options {
        journal_id: 9,
        entropy,
        shard_count: SHARDS,
        segment_size: 16 << 10,
        reserve_size: 0,
        commit,
        ..Options::default()
    };
    Journal::open_stepped(Arc::new(disk.clone()), &options).unwrap()
}

fn open(disk: &SimulatedDisk, entropy: u64) -> Running {
    let opened = open_stepped(disk, entropy, Commit::ByCaller);
    let stepped = Mutex::new((opened.line, opened.background));
    let steps = tokio::spawn(async move {
        for now_ms in 0.. {
            {
                let mut stepped = stepped.lock();
                while stepped.0.step() == LineStep::Worked {}
                while stepped.1.step(now_ms) == Step::Worked {}
            }
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
    });
    Running {
        journal: Arc::new(opened.journal),
        steps,
    }
}

/// Returns a disk with a journal of a node alone, all of it filed.
fn node_alone(seed: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::new(seed);
    let mut opened = open_stepped(&disk, 1, Commit::WithDurable);
    for number in 0..RECORDS {
        let shard = ShardId((number % u64::from(SHARDS)) as u16);
        let mut guard = opened.journal.lock(shard, 1000);
        guard
            .append(STREAM, None, 0, &number.to_le_bytes())
            .unwrap();
    }
    let end = opened.journal.seal();
    for now_ms in 0.. {
        opened.line.step();
        opened.background.step(now_ms);
        if opened.journal.is_filed(end) {
            break;
        }
    }
    disk.kill();
    disk
}

/// Checks that all records from before the cluster are there.
fn check_records(journal: &Journal) {
    let mut found = Vec::new();
    for shard in (0..SHARDS).map(ShardId) {
        let limit = ReadLimit {
            records: usize::MAX,
            bytes: usize::MAX,
        };
        let read = journal.read(shard, STREAM, 0, limit).unwrap();
        let numbers = read.records.iter().map(|it| it.payload.to_vec());
        found.extend(numbers.map(|it| u64::from_le_bytes(it.try_into().unwrap())));
    }
    found.sort_unstable();
    assert_eq!(found, Vec::from_iter(0..RECORDS));
}

/// Begins a cluster on a disk that fails from some call on, and loses what is not synced then.
/// Completes the beginning. Returns the state in between, and whether the disk has failed.
fn begin_with_crash(call: u64, seed: u64) -> (InitState, bool) {
    run_with(async {
        let disk = node_alone(seed);
        let running = open(&disk, 2);
        let first = disk.calls() + call;
        disk.fail_always(Fault::Broken, move |at| at.number >= first);
        let members = [member(1)];
        let begun = timeout(INIT_MAX, cluster::init(&running.journal, &members, 1000)).await;
        let has_failed = disk.calls() >= first;
        let is_begun = matches!(begun, Ok(Ok(())));
        drop(running);
        disk.heal();
        disk.crash(&mut fastrand::Rng::with_seed(seed + call));

        let running = open(&disk, 3);
        let state = init_state(&running.journal).unwrap();
        assert!(!is_begun || state == InitState::Complete, "it was complete");
        check_records(&running.journal);
        if state != InitState::Complete {
            cluster::init(&running.journal, &members, 1000)
                .await
                .unwrap();
        }
        assert_eq!(init_state(&running.journal).unwrap(), InitState::Complete);
        let again = cluster::init(&running.journal, &members, 1000).await;
        assert!(again.is_err(), "a cluster begins once");
        check_records(&running.journal);
        drop(running);
        disk.kill();

        let running = open(&disk, 4);
        let known = cluster::members_on_disk(&running.journal).unwrap();
        assert_eq!(known, members);
        check_records(&running.journal);
        (state, has_failed)
    })
}

fn run_with<T>(test: impl Future<Output = T>) -> T {
    let mut outcome = None;
    run(async { outcome = Some(test.await) });
    outcome.unwrap()
}

#[test]
fn cluster_begins_completely_after_a_crash_at_any_disk_call() {
    let mut states = Vec::new();
    for seed in 0..20 {
        for call in 0.. {
            let begun = catch_unwind(AssertUnwindSafe(|| begin_with_crash(call, seed)));
            let Ok((state, has_failed)) = begun else {
                panic!("seed {seed} failed at call {call}");
            };
            states.push(state);
            if !has_failed {
                assert!(call > 2, "the beginning makes {call} calls");
                break;
            }
        }
    }
    for state in [
        InitState::NotBegun,
        InitState::Interrupted,
        InitState::Complete,
    ] {
        assert!(states.contains(&state), "no world was {state:?}");
    }
}
