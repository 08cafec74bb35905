//! Eager reads: tries a socket before the reactor reports it readable.
//!
//! If both ends share a CPU, the peer often runs and answers during the write. An immediate read
//! then saves a pass through the reactor. If the peer has a CPU of its own, such a read finds
//! nothing. So reads are tried, and rarely tried after failures.

use std::io::{self, Read};
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{BufMut, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::stream::Source;

/// Consecutive failed tries, after which there are pauses between tries.
const FAILURES_MAX: u32 = 4;

/// Reads between two tries, at first and at most. Each failed try doubles the pause.
const PAUSE_MIN: u32 = 32;
const PAUSE_MAX: u32 = 1024;

/// The reading half `R` of a socket `S`, with eager reads.
pub(crate) struct EagerSource<R, S> {
    read: R,
    eager: Eager,
    socket: PhantomData<fn() -> S>,
}

impl<R, S> EagerSource<R, S> {
    pub(crate) fn new(read: R) -> Self {
        Self {
            read,
            eager: Eager::default(),
            socket: PhantomData,
        }
    }
}

impl<R: AsyncRead + AsRef<S> + Send + Unpin, S: AsFd> Source for EagerSource<R, S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        poll_read(Pin::new(&mut self.read), cx, buffer)
    }

    fn poll_read_answer(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_read(cx, buffer) {
            Poll::Pending => self.eager.poll_read(self.read.as_ref(), buffer),
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
    /// Reads until the next try.
    pause: u32,
}

impl Eager {
    /// Reads from a non-blocking socket that is not reported readable, if a try is worthwhile. The
    /// reading task must be registered with the reactor already, so that data after a failed try
    /// wakes it.
    fn poll_read(&mut self, socket: &impl AsFd, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if !self.is_due_now() {
            return Poll::Pending;
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

    fn is_due_now(&mut self) -> bool {
        let is_due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        is_due
    }

    fn note_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
        if let Some(doubled) = self.failures.checked_sub(FAILURES_MAX) {
            self.pause = PAUSE_MAX.min(PAUSE_MIN << doubled.min(16));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn look(eager: &mut Eager, socket: &UnixStream) -> Option<usize> {
        match eager.poll_read(socket, &mut [0; 8]) {
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
