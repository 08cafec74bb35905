//! The disk floor: N writers wait for one file, and one sync serves all who wait.
//!
//! A writer hands over a message, sleeps until the sync that covers it has returned, and at once
//! hands over the next. One thread takes everything handed over, writes it, syncs, and wakes all
//! with one system call. `--threads T` lets T threads stand for the N writers, N/T messages at a
//! time: with one thread, next to nothing but the disk is left.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use contract::{
    Failure, Flags, Histogram, Outcome, Report, Tally, ZeroedFile, limit, monotonic_ns, pin,
    remove_when_stopped, take_place,
};

/// Measures and prints the result.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let (path, file_size) = take_place(&mut flags)?;
    let writers = flags.number("writers", 128, 1, 1 << 20)? as usize;
    let threads = flags.number("threads", writers as u64, 1, (writers as u64).min(4096))? as usize;
    let size = flags.number("size", 128, 1, 1 << 20)? as usize;
    let window = flags.seconds("seconds")?.unwrap_or_default();
    let warmup = flags
        .seconds("warmup-seconds")?
        .unwrap_or(Duration::from_millis(500));
    if let Some(cpu) = flags.take("cpu")? {
        pin(cpu)?;
    }
    flags.finish()?;
    if window.is_zero() {
        return Err(Failure::usage(
            "the window has no end",
            "give --seconds, more than zero",
        ));
    }
    remove_when_stopped(vec![path.clone()]);
    limit(
        window + warmup + Duration::from_secs(120),
        vec![path.clone()],
    );

    let mut file = ZeroedFile::create(path, file_size)?;
    if !warmup.is_zero() {
        phase(&mut file, writers, threads, size, warmup);
    }
    let (tally, syncs) = phase(&mut file, writers, threads, size, window);
    drop(file);
    let completed = tally.latency.count();
    let notes = format!(
        "{writers} writers on {threads} thread(s), one zero-filled file of {} MiB, one pwrite and \
         one fdatasync per group",
        file_size >> 20
    );
    Report {
        program: "disk-floor",
        mode: "disk",
        in_flight: writers,
        size,
        connections: 1,
        tally: &tally,
        notes: &notes,
        extra: &[
            ("syncs", syncs.count() as f64),
            ("sync_p50_ns", syncs.quantile(0.5) as f64),
            ("sync_p99_ns", syncs.quantile(0.99) as f64),
            ("messages_per_sync", completed as f64 / syncs.count() as f64),
        ],
    }
    .print()
}

/// Runs the writers for `window`. Returns their tally and the nanoseconds of every sync.
fn phase(
    file: &mut ZeroedFile,
    writers: usize,
    threads: usize,
    size: usize,
    window: Duration,
) -> (Tally, Histogram) {
    let line = Line::default();
    line.lock().writing = threads;
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let (line, barrier) = (&line, &barrier);
                let messages = writers / threads + usize::from(thread < writers % threads);
                let message = vec![thread as u8; size];
                scope.spawn(move || {
                    barrier.wait();
                    let tally = line.write(&message, messages, window);
                    line.leave();
                    tally
                })
            })
            .collect();
        let syncs = line.sync(file);
        let tally = threads
            .into_iter()
            .map(|thread| thread.join().expect("a writer panicked"))
            .reduce(|joined, tally| joined.join(&tally))
            .expect("there is at least one writer");
        (tally, syncs)
    })
}

/// Where writers hand over their messages.
#[derive(Default)]
struct Line {
    group: Mutex<Group>,
    filled: Condvar,
    /// The number of the last group that is on disk; writers sleep on it.
    synced: AtomicU32,
}

/// Messages that will share a sync.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    /// How many groups were taken before this one.
    taken: u32,
    /// Threads that may still hand over a message.
    writing: usize,
}

impl Line {
    /// Writes `messages` copies of `message` at a time, over and over, for `window`.
    fn write(&self, message: &[u8], messages: usize, window: Duration) -> Tally {
        let mut tally = Tally::start();
        let mut now_ns = tally.start_ns();
        let end_ns = now_ns + window.as_nanos() as u64;
        while now_ns < end_ns {
            let start_ns = now_ns;
            let group = self.hand_over(message, messages);
            self.wait_for(group);
            now_ns = monotonic_ns();
            for _ in 0..messages {
                tally.latency.record(now_ns - start_ns);
            }
        }
        tally.end(now_ns);
        tally
    }

    /// Adds messages to the gathering group and returns its number.
    fn hand_over(&self, message: &[u8], messages: usize) -> u32 {
        let mut group = self.lock();
        let was_empty = group.bytes.is_empty();
        for _ in 0..messages {
            group.bytes.extend_from_slice(message);
        }
        let number = group.taken.wrapping_add(1);
        drop(group);
        if was_empty {
            self.filled.notify_one();
        }
        number
    }

    /// Sleeps until the group is on disk.
    fn wait_for(&self, group: u32) {
        loop {
            let synced = self.synced.load(Ordering::Acquire);
            if synced.wrapping_sub(group) < u32::MAX / 2 {
                return;
            }
            futex(&self.synced, libc::FUTEX_WAIT, synced);
        }
    }

    /// One thread fewer writes.
    fn leave(&self) {
        self.lock().writing -= 1;
        self.filled.notify_one();
    }

    /// Writes and syncs group after group until nobody writes any more.
    fn sync(&self, file: &mut ZeroedFile) -> Histogram {
        let mut syncs = Histogram::default();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let mut group = self.lock();
            while group.bytes.is_empty() {
                if group.writing == 0 {
                    return syncs;
                }
                group = self
                    .filled
                    .wait(group)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::swap(&mut group.bytes, &mut bytes);
            group.taken = group.taken.wrapping_add(1);
            let number = group.taken;
            drop(group);
            // Writers cannot be released without the sync, so a disk that fails ends the program.
            match file.append(&bytes) {
                Ok(took_ns) => syncs.record(took_ns),
                Err(error) => file.fail(&error),
            }
            self.synced.store(number, Ordering::Release);
            futex(&self.synced, libc::FUTEX_WAKE, i32::MAX as u32);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps while the word is `value`, or wakes up to `value` who sleep.
fn futex(word: &AtomicU32, operation: i32, value: u32) {
    #[expect(
        unsafe_code,
        reason = "std has no way to wake many sleepers with one call"
    )]
    // SAFETY: the word outlives the call, and a null timeout means none. Spurious returns are
    // expected by the caller.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            std::ptr::null::<libc::timespec>(),
        );
    }
}
