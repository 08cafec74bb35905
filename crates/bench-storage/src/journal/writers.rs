//! Role that opens a journal and appends to it from its own threads.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use journal::disk::RealDisk;
use journal::{AppendError, Journal, Options, ShardId, Status, StreamId, Ticket};

use super::{WriterCounts, WritersSpec};
use bench::measurement::Storage;
use bench::process;
use bench::tally::Tally;
use bench::workload::role::{Failure, Ready, read_line, write_line};
use bench::workload::spare_segments;
use meter::clock::now_ns;

/// Duration of the warm-up.
const WARM_UP: Duration = Duration::from_millis(300);

/// Plays the role.
///
/// # Errors
/// When the journal cannot be opened, or does not become idle before the window.
pub fn write(spec: &WritersSpec) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let options = Options {
        journal_id: fresh(),
        entropy: fresh(),
        segment_size: spec.segment_size,
        ..Options::default()
    };
    let disk = Arc::new(RealDisk::new(&spec.directory));
    let (journal, _) = Journal::open(disk, &options, now_ms)?;
    spare_segments::wait(Path::new(&spec.directory))?;
    append_for(&journal, spec, WARM_UP)?;
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        write_line(&measure(&journal, spec)?)?;
    }
    // The suite reads this process's memory before it ends.
    read_line()?;
    Ok(())
}

fn measure(journal: &Journal, spec: &WritersSpec) -> Result<WriterCounts, Failure> {
    let disk = Path::new(&spec.directory);
    let (stats, bytes) = (journal.stats(), process::written_bytes(disk));
    let begin_ns = now_ns();
    let tally = append_for(journal, spec, Duration::from_nanos(spec.window_ns))?;
    let window_ns = now_ns() - begin_ns;
    let (stats_after, bytes_after) = (journal.stats(), process::written_bytes(disk));
    let storage = Storage {
        syncs: stats_after.syncs - stats.syncs,
        blocks: Some(stats_after.blocks - stats.blocks),
        written_bytes: bytes.zip(bytes_after).map(|(before, after)| after - before),
        payload_bytes: tally.completed_count() * spec.size as u64,
        sync_p50_ns: None,
    };
    Ok(WriterCounts {
        tally,
        window_ns,
        storage,
    })
}

/// Returns a number that differs from run to run. It need not be unpredictable.
#[must_use]
pub fn fresh() -> u64 {
    now_ns() ^ u64::from(std::process::id()).rotate_left(32)
}

/// Returns the milliseconds of the monotonic clock. The journal only uses it for ages, which this
/// role does not read.
#[must_use]
pub fn now_ms() -> u64 {
    now_ns() / 1_000_000
}

/// Appends from all threads for the given time. All threads begin together.
fn append_for(journal: &Journal, spec: &WritersSpec, window: Duration) -> Result<Tally, Failure> {
    let threads = spec.threads.min(spec.writers).max(1);
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let append = |thread: u32| {
            // Each thread runs a share of the writers.
            let share = spec.writers / threads + u32::from(thread < spec.writers % threads);
            let first = u64::from(thread) * u64::from(spec.writers) / u64::from(threads);
            let barrier = &barrier;
            scope.spawn(move || {
                let mut thread = WriterThread::new(journal, spec, share, first);
                barrier.wait();
                thread.run(window)
            })
        };
        let threads: Vec<_> = (0..threads).map(append).collect();
        let mut tally = Tally::new();
        for thread in threads {
            tally.merge(thread.join().map_err(|_| "a writer panicked")?);
        }
        Ok(tally)
    })
}

/// Writers of one thread, which append together and wait together.
struct WriterThread<'a> {
    journal: &'a Journal,
    payload: Vec<u8>,
    share: u32,
    streams: u64,
    /// Stream of the next append.
    next: u64,
    /// Last block to wait for, by shard.
    tickets: Vec<Option<Ticket>>,
}

impl<'a> WriterThread<'a> {
    fn new(journal: &'a Journal, spec: &WritersSpec, share: u32, first: u64) -> Self {
        Self {
            journal,
            payload: vec![first as u8; spec.size],
            share,
            streams: spec.streams.max(1),
            next: first,
            tickets: vec![None; usize::from(journal.shard_count())],
        }
    }

    fn run(&mut self, window: Duration) -> Tally {
        let mut tally = Tally::new();
        let mut start_ns = now_ns();
        let end_ns = start_ns + window.as_nanos() as u64;
        while start_ns < end_ns {
            let taken = (0..self.share).filter(|_| self.append(&mut tally)).count();
            let durable = self.wait();
            let done_ns = now_ns();
            for _ in 0..taken {
                match durable {
                    true => tally.answered(start_ns, done_ns),
                    false => tally.failed("unconfirmed"),
                }
            }
            start_ns = done_ns;
        }
        tally
    }

    /// Makes one append of one writer. Returns true if the journal accepted it.
    fn append(&mut self, tally: &mut Tally) -> bool {
        tally.sent();
        let stream = self.next % self.streams;
        self.next += 1;
        let shard = (stream % self.tickets.len() as u64) as u16;
        let mut guard = self.journal.lock(ShardId(shard), now_ms());
        let appended = guard.append(StreamId(stream), None, 0, &self.payload);
        drop(guard);
        match appended {
            Ok(appended) => {
                self.tickets[usize::from(shard)] = Some(appended.ticket);
                true
            }
            Err(error) => {
                tally.failed(error_name(&error));
                false
            }
        }
    }

    /// Waits until all appends are on disk. Returns false if that is uncertain.
    fn wait(&mut self) -> bool {
        let tickets = self.tickets.iter_mut().filter_map(Option::take);
        let journal = self.journal;
        tickets.fold(true, |durable, ticket| {
            (journal.wait(ticket) == Status::Durable) & durable
        })
    }
}

fn error_name(error: &AppendError) -> &'static str {
    match error {
        AppendError::TooLarge { .. } => "too_large",
        AppendError::Conflict { .. } => "conflict",
        AppendError::Full => "full",
        AppendError::Moved => "moved",
        AppendError::DiskFull => "disk_full",
        AppendError::Failed => "failed",
    }
}
