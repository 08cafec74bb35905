//! A stream as HTTP/2 wants it: what one flush writes goes out in one piece.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use net::{Sink, Source, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// So much is collected before it is written without being asked.
const HELD_SIZE_MAX: usize = 64 << 10;

/// A larger buffer is not kept by a connection that idles.
const KEPT_SIZE_MAX: usize = 16 << 10;

pub(super) struct Io {
    source: Box<dyn Source>,
    sink: Arc<dyn Sink>,
    held: Vec<u8>,
    /// Of what is held.
    written: usize,
}

impl Io {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            source: stream.source,
            sink: stream.sink,
            held: Vec::new(),
            written: 0,
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.held.len() {
            match self.sink.try_write(&self.held[self.written..]) {
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready!(self.sink.poll_writable(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.written = 0;
        self.held.clear();
        self.held.shrink_to(KEPT_SIZE_MAX);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = ready!(self.source.poll_read(cx, buffer.initialize_unfilled()))?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.held.len() >= HELD_SIZE_MAX {
            ready!(self.poll_send(cx))?;
        }
        let count = bytes.len().min(HELD_SIZE_MAX - self.held.len());
        self.held.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        loop {
            match self.sink.try_flush() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready!(self.sink.poll_writable(cx))?;
                }
                flushed => return Poll::Ready(flushed),
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        self.sink.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.sink.close();
    }
}
