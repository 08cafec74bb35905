//! `Feeder`: writes events to the archive in batches.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use conversation_service::Conversations;
use conversation_service::feed::{ArchivedRetention, Batch, BatchLimit, Partition, Partitions};
use node::Node;
use tokio::time::Instant;

use super::Options;
use super::address::Address;
use super::failure::Failure;
use super::insert::{BatchResult, Mark, PartitionWriter, marks};
use super::schema::migrate;
use super::session::Session;
use super::state::Shared;

/// Limit of events held in memory.
const LIMIT: BatchLimit = BatchLimit {
    rows: 5_000,
    bytes: 4 << 20,
};

/// First and longest pause between retries.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Maximum time without a check of the connection.
const REST: Duration = Duration::from_secs(5);

/// Number of conversation streams checked for trimming at a time.
const SWEPT_AT_ONCE: u64 = 1_024;

/// Minimum time between two sweeps over all streams.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// The writing task of the archive; see the module documentation.
pub(super) struct Feeder {
    node: Node,
    address: Address,
    options: Options,
    shared: Arc<Shared>,
    partitions: Partitions,
    marks: BTreeMap<u64, Mark>,
    /// Next stream to check for trimming, and start time of the sweep.
    swept: (u64, Instant),
}

/// Result of one pass over all partitions.
#[derive(Default)]
struct Pass {
    /// True if a batch was full, so that there are more events.
    is_more: bool,
    /// True if a partition failed.
    has_failed: bool,
}

impl Feeder {
    pub(super) fn new(node: Node, address: Address, options: Options, shared: Arc<Shared>) -> Self {
        Self {
            node,
            address,
            options,
            shared,
            partitions: Partitions::default(),
            marks: BTreeMap::new(),
            swept: (1, Instant::now()),
        }
    }

    /// Writes events forever; reconnects after errors.
    pub(super) async fn run(mut self) {
        let mut pause = BACK_OFF.0;
        loop {
            let batches = self.shared.view().batches;
            let Err(failure) = self.feed().await;
            self.shared.failed(&failure);
            self.note_lag();
            if self.shared.view().batches > batches {
                pause = BACK_OFF.0;
            }
            // Random pauses spread the reconnects of many nodes.
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
            pause = (pause * 2).min(BACK_OFF.1);
        }
    }

    /// Writes events until the connection fails.
    async fn feed(&mut self) -> Result<std::convert::Infallible, Failure> {
        let session = Session::connect(&self.address, self.options.statement_timeout).await?;
        migrate(&session).await?;
        let journal = self.conversations()?.journal_id();
        self.marks = marks(&session, journal).await?;
        loop {
            let pass = self.pass(&session).await?;
            self.note_lag();
            if !pass.has_failed {
                self.shared.succeeded();
            }
            self.sweep().await?;
            if !pass.is_more {
                if !self.wait_for_events_or_rest().await {
                    // Checks an idle connection.
                    session.run("SELECT 1").await?;
                }
                tokio::time::sleep(self.options.interval).await;
            }
        }
    }

    fn conversations(&self) -> Result<&Conversations, Failure> {
        let nothing = || Failure::Node("this node has no storage".to_owned());
        self.node.conversations().ok_or_else(nothing)
    }

    /// Writes one batch of each partition that has new events.
    async fn pass(&mut self, session: &Session) -> Result<Pass, Failure> {
        self.find_partitions();
        let mut pass = Pass::default();
        for index in 0..self.partitions.found.len() {
            let partition = self.partitions.found[index].clone();
            match self.write_batch(session, &partition).await {
                Ok(is_full) => pass.is_more |= is_full,
                Err(failure) if failure.affects_one_partition() => {
                    self.shared.failed(&failure);
                    pass.has_failed = true;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(pass)
    }

    /// Writes a batch of a partition. Returns true if the batch was full.
    async fn write_batch(
        &mut self,
        session: &Session,
        partition: &Partition,
    ) -> Result<bool, Failure> {
        let mark = self.marks.entry(partition.number).or_default().clone();
        self.check_history(partition, &mark)?;
        let conversations = self.conversations()?;
        if mark.next == conversations.reach(partition).end {
            return Ok(false);
        }
        let journal = conversations.journal_id();
        let (batch, proof) = self.read(partition, mark.next).await?;
        if batch.next == mark.next {
            return Ok(false);
        }
        let writing = PartitionWriter {
            session,
            journal,
            partition,
        };
        let written = writing.write(&mark, &batch, proof.clone()).await?;
        let next = batch.next;
        self.marks.insert(partition.number, Mark { next, proof });
        self.count(&written);
        let touched = batch.rows.iter().map(|row| row.conversation);
        self.trim(touched.collect()).await?;
        Ok(batch.events >= LIMIT.rows as u64 || next < self.conversations()?.reach(partition).end)
    }

    /// Checks that the archive's last event is the one in this journal.
    fn check_history(&self, partition: &Partition, mark: &Mark) -> Result<(), Failure> {
        let conversations = self.conversations()?;
        let reach = conversations.reach(partition);
        let last = mark.next.checked_sub(1);
        let known = last.and_then(|last| conversations.proof(partition, last));
        let is_other = match (known, &mark.proof) {
            (Some(known), Some(proof)) => known[..] != proof[..],
            _ => false,
        };
        if mark.next > reach.end || is_other {
            return Err(Failure::OtherHistory {
                partition: partition.name.clone(),
                next: mark.next,
            });
        }
        Ok(())
    }

    /// Reads a batch from disk on a blocking thread.
    async fn read(
        &self,
        partition: &Partition,
        from: u64,
    ) -> Result<(Batch, Option<Vec<u8>>), Failure> {
        let (node, partition) = (self.node.clone(), partition.clone());
        run_blocking(move || {
            let conversations = conversations_of(&node)?;
            let batch = conversations.feed(&partition, from, LIMIT)?;
            let last = batch.next.saturating_sub(1);
            let proof = conversations.proof(&partition, last);
            Ok((batch, proof.map(|proof| proof.to_vec())))
        })
        .await
    }

    fn count(&self, written: &BatchResult) {
        self.shared.change(|view| {
            view.batches += 1;
            view.messages += written.messages;
            view.refused += written.refused;
            view.erased += written.erased;
        });
    }

    fn find_partitions(&mut self) {
        if let Some(conversations) = self.node.conversations() {
            conversations.find_partitions(&mut self.partitions);
        }
    }

    fn note_lag(&mut self) {
        // While the archive is not reachable, no other code finds new partitions.
        self.find_partitions();
        let Ok(conversations) = self.conversations() else {
            return;
        };
        let next = |partition: &Partition| self.next(partition);
        let found = self.partitions.found.iter();
        let lag = conversations.lag(found.map(|partition| (partition, next(partition))));
        let now_ms = self.node.ports().clock.unix_ms();
        self.shared.change(|view| {
            view.lag_events = lag.events;
            view.lag_ms = match lag.events {
                0 => 0,
                _ => now_ms.saturating_sub(lag.oldest_ms),
            };
        });
    }

    fn next(&self, partition: &Partition) -> u64 {
        let mark = self.marks.get(&partition.number);
        mark.map_or(0, |mark| mark.next)
    }

    /// Waits for new events. Returns false after [`REST`] without any.
    async fn wait_for_events_or_rest(&self) -> bool {
        let mut waiting = None;
        let news = poll_fn(|cx| {
            let Ok(conversations) = self.conversations() else {
                return Poll::Pending;
            };
            let next = |partition: &Partition| self.next(partition);
            waiting = conversations.wait_for_events(&self.partitions, next, cx.waker());
            match waiting {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            }
        });
        tokio::time::timeout(REST, news).await.is_ok()
    }

    /// Trims old messages of the next streams.
    async fn sweep(&mut self) -> Result<(), Failure> {
        let (next, begun) = self.swept;
        if self.options.keep.is_everything() || next == 1 && begun.elapsed() < SWEEP_INTERVAL {
            return Ok(());
        }
        let end = self.conversations()?.numbers_end();
        let until = end.min(next + SWEPT_AT_ONCE);
        self.trim((next..until).collect()).await?;
        self.swept = match (next, until >= end) {
            (1, false) => (until, Instant::now()),
            (1, true) => (1, Instant::now()),
            (_, false) => (until, begun),
            (_, true) => (1, begun),
        };
        Ok(())
    }

    async fn trim(&self, numbers: BTreeSet<u64>) -> Result<(), Failure> {
        let keep = self.options.keep;
        if keep.is_everything() {
            return Ok(());
        }
        let next: BTreeMap<u64, u64> = self
            .marks
            .iter()
            .map(|(partition, mark)| (*partition, mark.next))
            .collect();
        let node = self.node.clone();
        let trimmed = run_blocking(move || trim(&node, &numbers, &keep, &next)).await?;
        self.shared.change(|view| view.trimmed += trimmed);
        Ok(())
    }
}

fn trim(
    node: &Node,
    numbers: &BTreeSet<u64>,
    keep: &ArchivedRetention,
    next: &BTreeMap<u64, u64>,
) -> Result<u64, Failure> {
    let conversations = conversations_of(node)?;
    let archived = |partition: u64| next.get(&partition).copied().unwrap_or(0);
    let mut trimmed = 0;
    for number in numbers {
        trimmed += conversations.trim_archived(*number, keep, archived)?;
    }
    Ok(trimmed)
}

fn conversations_of(node: &Node) -> Result<&Conversations, Failure> {
    let nothing = || Failure::Node("this node has no storage".to_owned());
    node.conversations().ok_or_else(nothing)
}

/// Runs blocking disk work on a separate thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Failure::Node(format!("a blocking task failed: {error}"))),
    }
}
