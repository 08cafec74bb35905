//! A simulated connection as an asynchronous byte stream, for HTTP.

use std::io::{ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use net::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection.
pub(crate) struct Io(Stream);

impl Io {
    pub(crate) fn new(stream: Stream) -> Self {
        Self(stream)
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let count = ready!(self.0.source.poll_read(cx, buffer.initialize_unfilled()))?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        loop {
            match self.0.sink.try_write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready!(self.0.sink.poll_writable(cx))?;
                }
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(self.0.sink.try_flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.sink.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        // Unlike `close`, this loses no bytes that are on the way.
        self.0.sink.finish();
    }
}
