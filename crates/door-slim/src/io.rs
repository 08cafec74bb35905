//! The byte stream of a SLIM connection, for HTTP: each flush is written in one piece, and the
//! first bytes can be peeked at.
//!
//! Every read is acknowledged at once. SLIM's clients do not turn Nagle's algorithm off: after one
//! small piece (the acknowledgement of a reliable session, a WINDOW_UPDATE) they hold the next one
//! back until the first is acknowledged, which the system delays by 40 ms.
//!
//! Writing never fails. A client that accepts no more data may have sent some before: that is read
//! to its end, and data for the client is dropped.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use door::reading::{poll_count, with_chunk};
use net::{Sink, Source, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client_task::ClientTask;

/// The number of bytes that are collected before a write without a flush.
const HELD_SIZE_MAX: usize = 64 << 10;

/// The largest buffer that an idle connection keeps, in bytes.
const KEPT_SIZE_MAX: usize = 16 << 10;

pub(super) struct Io {
    /// Bytes that were peeked at and not read yet.
    before: BytesMut,
    source: Box<dyn Source>,
    sink: Arc<dyn Sink>,
    held: Vec<u8>,
    /// The number of held bytes that were written.
    written: usize,
    /// The task that the socket wakes instead of the one that polls, if there is one.
    task: Option<Arc<ClientTask>>,
}

impl Io {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            before: BytesMut::new(),
            source: stream.source,
            sink: stream.sink,
            held: Vec::new(),
            written: 0,
            task: None,
        }
    }

    /// Sets the task that the socket wakes from now on, on whichever thread HTTP/2 is polled.
    pub(super) fn set_task(&mut self, task: Arc<ClientTask>) {
        self.task = Some(task);
    }

    /// Returns the first bytes of the stream: at least `count`, unless it ends before.
    pub(super) fn poll_peek(&mut self, cx: &mut Context<'_>, count: usize) -> Poll<&[u8]> {
        while self.before.len() < count {
            let (source, before) = (&mut *self.source, &mut self.before);
            let read = with_chunk(|chunk| {
                let read = poll_count(source, cx, chunk);
                read.map(|read| read.map(|size| before.extend_from_slice(&chunk[..size])))
            });
            if ready!(read).is_none() {
                break;
            }
            self.sink.acknowledge();
        }
        Poll::Ready(&self.before)
    }

    /// Puts bytes back, before the rest of the stream.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        let behind = std::mem::replace(&mut self.before, bytes.into());
        self.before.unsplit(behind);
    }

    /// Passes received bytes to `take`; returns `false` when the client sends no more or is lost.
    pub(super) fn poll_arrived(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]),
    ) -> Poll<bool> {
        if !self.before.is_empty() {
            take(&std::mem::take(&mut self.before));
            return Poll::Ready(true);
        }
        with_chunk(|chunk| {
            let count = ready!(poll_count(&mut *self.source, cx, chunk));
            if let Some(count) = count {
                self.sink.acknowledge();
                take(&chunk[..count]);
            }
            Poll::Ready(count.is_some())
        })
    }

    /// Writes a piece, and removes the written part from it.
    pub(super) fn poll_write_piece(&mut self, cx: &mut Context<'_>, piece: &mut Bytes) -> Poll<()> {
        ready!(self.poll_send(cx));
        poll_write_all(&*self.sink, cx, piece)
    }

    /// Ends the write side.
    pub(super) fn finish(&self) {
        self.sink.finish();
    }

    /// Returns ready when all written bytes were passed to the system.
    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.poll_send(cx));
        loop {
            match self.sink.try_flush() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if ready!(self.sink.poll_writable(cx)).is_err() {
                        return Poll::Ready(());
                    }
                }
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Calls `poll` with the context of the task that the socket wakes.
    fn in_task<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Self, &mut Context<'_>) -> T,
    ) -> T {
        match self.task.clone() {
            Some(task) => task.with_context(cx, |cx| poll(self, cx)),
            None => poll(self, cx),
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut rest = &self.held[self.written..];
        let sent = poll_write_all(&*self.sink, cx, &mut rest);
        self.written = self.held.len() - rest.len();
        ready!(sent);
        self.written = 0;
        self.held.clear();
        self.held.shrink_to(KEPT_SIZE_MAX);
        Poll::Ready(())
    }
}

/// Writes until nothing is left, or the client accepts no more.
fn poll_write_all(sink: &dyn Sink, cx: &mut Context<'_>, bytes: &mut impl Buf) -> Poll<()> {
    while bytes.has_remaining() {
        let is_there = match sink.try_write(bytes.chunk()) {
            Ok(count) => {
                bytes.advance(count);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ready!(sink.poll_writable(cx)).is_ok()
            }
            Err(_) => false,
        };
        if !is_there {
            bytes.advance(bytes.remaining());
        }
    }
    Poll::Ready(())
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.task.as_ref().is_some_and(|task| task.is_foreign()) {
            // The task itself is registered with the socket already, and reads.
            return Poll::Pending;
        }
        if !self.before.is_empty() {
            let size = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before[..size]);
            self.before.advance(size);
            if self.before.is_empty() {
                self.before = BytesMut::new();
            }
            return Poll::Ready(Ok(()));
        }
        // HTTP/2 offers memory that is not initialized, as much as the rest of a frame needs: to copy
        // what arrives costs less than to clear all of that for each read.
        with_chunk(|chunk| {
            let size = chunk.len().min(buffer.remaining());
            let chunk = &mut chunk[..size];
            let read = self.in_task(cx, |io, cx| io.source.poll_read(cx, chunk));
            let count = ready!(read)?;
            self.sink.acknowledge();
            buffer.put_slice(&chunk[..count]);
            Poll::Ready(Ok(()))
        })
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.held.len() >= HELD_SIZE_MAX {
            ready!(self.in_task(cx, Self::poll_send));
        }
        let count = bytes.len().min(HELD_SIZE_MAX - self.held.len());
        self.held.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.in_task(cx, Self::poll_sent).map(Ok)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.in_task(cx, Self::poll_sent));
        self.sink.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.sink.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;

    use super::*;

    /// A client that has sent one piece.
    struct Sent(Vec<u8>);

    impl Source for Sent {
        fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            buffer[..self.0.len()].copy_from_slice(&self.0);
            Poll::Ready(Ok(self.0.len()))
        }
    }

    /// Counts acknowledgements.
    #[derive(Default)]
    struct Acknowledged(AtomicUsize);

    impl Sink for Acknowledged {
        fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn acknowledge(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn finish(&self) {}

        fn close(&self) {}
    }

    #[test]
    fn every_read_is_acknowledged_at_once() {
        for sent in [vec![7], vec![7; 4096]] {
            let sink = Arc::new(Acknowledged::default());
            let mut io = Io::new(Stream {
                source: Box::new(Sent(sent.clone())),
                sink: sink.clone(),
                peer: String::new(),
            });
            let mut cx = Context::from_waker(Waker::noop());
            let peeked = io.poll_peek(&mut cx, 1).is_ready();
            assert!(peeked);
            assert_eq!(sink.0.load(Ordering::Relaxed), 1);
            let mut space = vec![0; 8192];
            for expected in [1, 2] {
                let mut buffer = ReadBuf::new(&mut space);
                let read = Pin::new(&mut io).poll_read(&mut cx, &mut buffer);
                assert!(matches!(read, Poll::Ready(Ok(()))));
                assert_eq!(buffer.filled(), sent);
                assert_eq!(sink.0.load(Ordering::Relaxed), expected);
            }
            assert!(io.poll_arrived(&mut cx, |_| {}).is_ready());
            assert_eq!(sink.0.load(Ordering::Relaxed), 3);
        }
    }
}
