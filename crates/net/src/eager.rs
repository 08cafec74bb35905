//! Eager reads: tries a socket before the reactor reports it readable.
//!
//! If both ends share a CPU, the peer can run and answer before this thread has to sleep: during the
//! write, or while the thread yields the CPU. An immediate read then saves a pass through the
//! reactor, and neither end is put to sleep and woken. If the peer has a CPU of its own, such a read
//! finds nothing. So reads are tried, and rarely tried after failures.
//!
//! A thread yields only for its one busy socket. With several, the other sockets are to be read
//! before the CPU is given away. A thread also stops to yield if others keep the CPU for long.

use std::cell::Cell;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::stream::Source;

/// Consecutive failed tries, after which there are pauses between tries.
const FAILURES_MAX: u32 = 4;

/// Reads between two tries, at first and at most. Each failed try doubles the pause.
const PAUSE_MIN: u32 = 32;
const PAUSE_MAX: u32 = 1024;

/// Reads of one socket in a row, without a read of another one on the thread, after which the thread
/// yields for it.
const LONE_READS_MIN: u32 = 16;

/// A thread that gets the CPU back later than this shares it with more than the peer.
const YIELD_TIME_MAX: Duration = Duration::from_micros(500);

/// Doublings of the pause after such yields, at most: one yield in 16,384 reads.
const SLOW_YIELDS_MAX: u32 = 9;

/// Counter of sources, for their numbers.
static SOURCES: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// Number of the source that last read on this thread, and its reads in a row.
    static LAST_READER: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

/// The reading half `R` of a socket `S`, with eager reads.
pub(crate) struct EagerSource<R, S> {
    read: R,
    number: u64,
    eager: Eager,
    socket: PhantomData<fn() -> S>,
}

impl<R, S> EagerSource<R, S> {
    pub(crate) fn new(read: R) -> Self {
        Self {
            read,
            number: SOURCES.fetch_add(1, Ordering::Relaxed),
            eager: Eager::default(),
            socket: PhantomData,
        }
    }
}

impl<R: AsyncRead + AsRef<S> + Send + Unpin, S: AsFd> Source for EagerSource<R, S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        note_reader(self.number);
        poll_read(Pin::new(&mut self.read), cx, buffer)
    }

    fn poll_read_answer(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_read(cx, buffer) {
            Poll::Pending => {
                let yield_time_max = is_lone_reader().then_some(YIELD_TIME_MAX);
                self.eager
                    .poll_read(self.read.as_ref(), buffer, yield_time_max)
            }
            ready => ready,
        }
    }

    fn poll_read_behind(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        size_max: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        let mut buffer = buffer.limit(size_max);
        let read = pin!(self.read.read_buf(&mut buffer));
        Some(read.poll(cx))
    }
}

/// Notes that a source reads on this thread.
#[inline]
fn note_reader(number: u64) {
    let (last, count) = LAST_READER.get();
    let count = match last == number {
        true => count.saturating_add(1),
        false => 1,
    };
    LAST_READER.set((number, count));
}

/// Returns true if the last source that read on this thread is the only one for some time.
#[inline]
fn is_lone_reader() -> bool {
    let (_, count) = LAST_READER.get();
    count >= LONE_READS_MIN
}

/// Yields the CPU. Returns true if it came back within `time_max`.
fn yield_briefly(time_max: Duration) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the time is that of the CPU, which no simulation owns"
    )]
    let now = Instant::now;
    let start = now();
    std::thread::yield_now();
    now().duration_since(start) <= time_max
}

/// Calls [`AsyncRead::poll_read`] with a plain slice, and returns a count.
fn poll_read<R: AsyncRead>(
    reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    reader
        .poll_read(cx, &mut buffer)
        .map_ok(|()| buffer.filled().len())
}

/// Success of earlier tries.
#[derive(Debug, Default)]
struct Eager {
    /// Failed tries since the last success.
    failures: u32,
    /// Slow yields since the last brief one.
    slow_yields: u32,
    /// Reads until the next try.
    pause: u32,
}

impl Eager {
    /// Reads from a non-blocking socket that is not reported readable, if a try is worthwhile. The
    /// thread yields the CPU first if that may take a time. The reading task must be registered with
    /// the reactor already, so that data after a failed try wakes it.
    fn poll_read(
        &mut self,
        socket: &impl AsFd,
        buffer: &mut [u8],
        yield_time_max: Option<Duration>,
    ) -> Poll<io::Result<usize>> {
        if !self.is_due_now() {
            return Poll::Pending;
        }
        if let Some(time_max) = yield_time_max {
            self.yield_cpu(time_max);
        }
        match (&*SockRef::from(socket)).read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.note_failure();
                Poll::Pending
            }
            outcome => {
                self.failures = 0;
                Poll::Ready(outcome)
            }
        }
    }

    fn yield_cpu(&mut self, time_max: Duration) {
        match yield_briefly(time_max) {
            true => self.slow_yields = 0,
            false => {
                self.slow_yields = SLOW_YIELDS_MAX.min(self.slow_yields + 1);
                self.pause = PAUSE_MIN << self.slow_yields;
            }
        }
    }

    fn is_due_now(&mut self) -> bool {
        let is_due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        is_due
    }

    fn note_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
        if let Some(doubled) = self.failures.checked_sub(FAILURES_MAX) {
            let pause = PAUSE_MAX.min(PAUSE_MIN << doubled.min(16));
            self.pause = self.pause.max(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn look(eager: &mut Eager, socket: &UnixStream) -> Option<usize> {
        match eager.poll_read(socket, &mut [0; 8], None) {
            Poll::Pending => None,
            Poll::Ready(outcome) => Some(outcome.unwrap()),
        }
    }

    #[test]
    fn eager_read_returns_bytes_and_the_end() {
        let (near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut eager = Eager::default();
        assert_eq!(look(&mut eager, &near), None);
        far.write_all(b"abc").unwrap();
        assert_eq!(look(&mut eager, &near), Some(3));
        drop(far);
        assert_eq!(look(&mut eager, &near), Some(0));
    }

    #[test]
    fn a_thread_yields_for_its_only_reader_after_some_reads() {
        let (one, other) = (u64::MAX, u64::MAX - 1);
        let reads = |number: u64, count: u32| {
            (0..count).for_each(|_| note_reader(number));
            is_lone_reader()
        };
        assert!(!reads(one, LONE_READS_MIN - 1));
        assert!(reads(one, 1));
        assert!(!reads(other, 1));
        assert!(!reads(one, LONE_READS_MIN - 1));
        assert!((0..100).all(|_| !reads(other, 1) && !reads(one, 1)));
        assert!(reads(one, LONE_READS_MIN));
    }

    #[test]
    fn a_yield_reads_bytes_and_a_slow_one_pauses_the_tries() {
        let (near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut eager = Eager::default();
        let read = |eager: &mut Eager, time_max| {
            let poll = eager.poll_read(&near, &mut [0; 8], Some(time_max));
            matches!(poll, Poll::Ready(Ok(1)))
        };
        far.write_all(b"a").unwrap();
        assert!(read(&mut eager, Duration::MAX));
        assert_eq!(eager.pause, 0);
        // Every yield takes longer than no time.
        for doublings in 1..=SLOW_YIELDS_MAX + 1 {
            far.write_all(b"b").unwrap();
            assert!(read(&mut eager, Duration::ZERO));
            let pause = eager.pause;
            assert_eq!(pause, PAUSE_MIN << doublings.min(SLOW_YIELDS_MAX));
            far.write_all(b"c").unwrap();
            assert!((0..pause).all(|_| !read(&mut eager, Duration::MAX)));
            assert_eq!(eager.pause, 0);
            let mut byte = [0];
            (&near).read_exact(&mut byte).unwrap();
        }
        far.write_all(b"d").unwrap();
        assert!(read(&mut eager, Duration::MAX));
        assert_eq!((eager.pause, eager.slow_yields), (0, 0));
    }

    #[test]
    fn failed_eager_reads_become_rare_until_one_succeeds() {
        let (near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut eager = Eager::default();
        let mut looks = 0;
        for _ in 0..10 * PAUSE_MAX {
            looks += u32::from(eager.pause == 0);
            assert_eq!(look(&mut eager, &near), None);
        }
        assert!((FAILURES_MAX..30).contains(&looks), "{looks} looks");
        far.write_all(b"a").unwrap();
        let found = (0..=PAUSE_MAX).find_map(|_| look(&mut eager, &near));
        assert_eq!(found, Some(1));
        far.write_all(b"b").unwrap();
        assert_eq!(look(&mut eager, &near), Some(1));
    }
}
