//! openraft's conformance suite.
//!
//! The suite asks for more than openraft does of a running node: logs that begin after index 0,
//! purging beyond the end of the log, and a state machine that applies entries that are in no log.
//! [`SuiteStore`] adds the missing entries, and the state machine has a journal of its own. The
//! suite's transfer of a snapshot is left out: see `snapshot_of_a_peer_is_refused`.

use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use journal::disk::SimulatedDisk;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::TypeConfigExt;
use openraft::{OptionalSend, StorageError};
use parking_lot::Mutex;

use super::blank;
use super::disk::{Running, run};
use crate::raft::{Entry, LogId, Machine, Store, Types, Vote};

/// Whether the process restarts before each call of the suite.
#[derive(Clone, Copy, PartialEq)]
enum Restart {
    Never,
    /// The process ends and starts again.
    Always,
}

/// A journal that may be opened again between calls.
struct Current {
    running: Option<Running>,
    restart: Restart,
    starts: u64,
    /// The last purged entry. Purging is not durable: at a start the log begins where filing ended.
    purged: Option<LogId>,
}

#[derive(Clone)]
struct SuiteStore(Arc<Mutex<Current>>);

impl SuiteStore {
    /// Returns the store for the next call.
    fn store(&self) -> Store {
        let mut current = self.0.lock();
        if current.restart == Restart::Always {
            let mut running = current.running.take().unwrap();
            running.settle();
            current.starts += 1;
            let running = running.reopen(current.starts);
            if let Some(purged) = current.purged {
                running.log().purge(purged).unwrap();
            }
            current.running = Some(running);
        }
        Store::new(current.running.as_ref().unwrap().log())
    }

    /// Appends entries without records up to `end`, which is exclusive, on disk.
    async fn fill(&self, term: u64, end: u64) -> Result<(), io::Error> {
        let mut store = self.store();
        let last = store.get_log_state().await?.last_log_id;
        let entries: Vec<_> = (last.map_or(0, |last| last.index + 1)..end)
            .map(|index| blank(term, index))
            .collect();
        let (sender, receiver) = Types::oneshot();
        store.append(entries, IOFlushed::signal(sender)).await?;
        let flushed: Result<Result<(), io::Error>, _> = receiver.await;
        flushed.unwrap()
    }
}

impl RaftLogReader<Types> for SuiteStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let mut reader = self.store().get_log_reader().await;
        reader.try_get_log_entries(range).await
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, io::Error> {
        let mut reader = self.store().get_log_reader().await;
        reader.limited_get_log_entries(start, end).await
    }

    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl stream::Stream<Item = Result<Entry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let mut reader = self.store().get_log_reader().await;
        let entries: Vec<_> = reader.entries_stream(range).await.collect().await;
        stream::iter(entries)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        self.store().get_log_reader().await.read_vote().await
    }
}

impl RaftLogStorage<Types> for SuiteStore {
    type LogReader = SuiteStore;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        self.store().get_log_state().await
    }

    async fn get_log_reader(&mut self) -> SuiteStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.store().save_vote(vote).await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<_> = entries.into_iter().collect();
        let first = entries[0].log_id;
        if self.get_log_state().await?.last_log_id.is_none() && first.index > 0 {
            self.fill(first.leader_id.term, first.index).await?;
        }
        self.store().append(entries, callback).await
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.store().truncate_after(last).await
    }

    async fn purge(&mut self, last: LogId) -> Result<(), io::Error> {
        let end = self.get_log_state().await?.last_log_id;
        if end.is_none_or(|end| end.index < last.index) {
            self.fill(last.leader_id.term, last.index + 1).await?;
        }
        self.store().purge(last).await?;
        self.0.lock().purged = Some(last);
        Ok(())
    }
}

struct Builder(Restart);

impl StoreBuilder<Types, SuiteStore, Machine, Running> for Builder {
    async fn build(&self) -> Result<(Running, SuiteStore, Machine), StorageError<Types>> {
        // Nothing is committed, so one segment has to do.
        let open = |id| Running::open_with(&Arc::new(SimulatedDisk::new(id)), id, 1 << 20);
        let machine = open(2);
        let store = SuiteStore(Arc::new(Mutex::new(Current {
            running: Some(open(1)),
            restart: self.0,
            starts: 10,
            purged: None,
        })));
        let applied = Machine::new(machine.log());
        Ok((machine, store, applied.unwrap()))
    }
}

type Tests = Suite<Types, SuiteStore, Machine, Builder, Running>;

/// Runs tests of the suite, each on new disks.
macro_rules! run_suite {
    ($restart:expr, $($test:ident),* $(,)?) => {
        $({
            let builder = Builder($restart);
            run(async {
                let (_running, store, machine) = builder.build().await.unwrap();
                if let Err(error) = Tests::$test(store, machine).await {
                    panic!("{}: {error}", stringify!($test));
                }
            });
        })*
    };
}

fn run_all(restart: Restart) {
    run_suite!(
        restart,
        last_membership_in_log_initial,
        last_membership_in_log,
        last_membership_in_log_multi_step,
        get_membership_initial,
        get_membership_from_log_and_empty_sm,
        get_membership_from_empty_log_and_sm,
        get_membership_from_log_le_sm_last_applied,
        get_membership_from_log_gt_sm_last_applied_1,
        get_membership_from_log_gt_sm_last_applied_2,
        get_initial_state_without_init,
        get_initial_state_membership_from_empty_log_and_sm,
        get_initial_state_membership_from_sm_inlog_is_smaller,
        get_initial_state_membership_from_log_insm_is_smaller,
        get_initial_state_with_state,
        get_initial_state_last_log_gt_sm,
        get_initial_state_last_log_lt_sm,
        get_initial_state_inverted_log_order,
        get_initial_state_conflict_at_same_index,
        get_initial_state_log_ids,
        get_initial_state_re_apply_committed,
        save_vote,
        get_log_entries,
        limited_get_log_entries,
        leader_bounded_stream,
        entries_stream,
        try_get_log_entry,
        log_reader_reads_new_entries,
        initial_logs,
        get_log_state,
        get_log_id,
        last_id_in_log,
        last_applied_state,
        purge_logs_upto_0,
        purge_logs_upto_5,
        purge_logs_upto_20,
        delete_logs_after_11,
        delete_logs_after_5,
        delete_logs_after_0,
        delete_logs_after_none,
        append_to_log,
        snapshot_meta,
        snapshot_meta_optional,
        apply_single,
        apply_multiple,
    );
}

#[test]
fn store_passes_openrafts_suite() {
    run_all(Restart::Never);
}

#[test]
fn store_passes_openrafts_suite_with_a_restart_before_each_call() {
    run_all(Restart::Always);
}
