//! `Writer`: the writing half of a connection, owned by its task.
//!
//! Only the task writes, so no lock is needed. Callers queue bytes in their own buffers, and the
//! task hands over one batch per turn. While the peer does not read a batch, the next one stays in
//! those buffers.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use net::Sink;

use crate::connection::buffers;

/// Writes one batch of bytes at a time.
pub(crate) struct Writer {
    sink: Arc<dyn Sink>,
    batch: Vec<u8>,
    /// Number of bytes of the batch that are written.
    written: usize,
    /// True if the sink may buffer bytes itself.
    must_flush: bool,
}

impl Writer {
    pub(crate) fn new(sink: Arc<dyn Sink>) -> Self {
        Self {
            sink,
            batch: Vec::new(),
            written: 0,
            must_flush: false,
        }
    }

    /// True if all bytes are written.
    pub(crate) fn is_clear(&self) -> bool {
        self.batch.is_empty() && !self.must_flush
    }

    /// True if no byte of the current batch is written.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.batch.is_empty() && self.written == 0
    }

    /// Sets the next batch. The writer must be clear.
    pub(crate) fn load(&mut self, batch: Vec<u8>) {
        debug_assert!(self.is_clear(), "one batch at a time");
        self.batch = batch;
        self.written = 0;
    }

    /// Continues writing. Ready when all bytes are written.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_clear() {
            match self.advance() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.sink.poll_writable(cx) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(ready) => ready?,
                    }
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self) -> io::Result<()> {
        if self.written < self.batch.len() {
            let count = self.sink.try_write(&self.batch[self.written..])?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += count;
            self.must_flush = true;
            if self.written < self.batch.len() {
                return Ok(());
            }
            buffers::give(std::mem::take(&mut self.batch));
            self.written = 0;
        }
        self.sink.try_flush()?;
        self.must_flush = false;
        Ok(())
    }

    /// Shuts down the sending direction after the bytes written so far.
    pub(crate) fn finish(&self) {
        self.sink.finish();
    }
}

/// Closes the connection in both directions.
impl Drop for Writer {
    fn drop(&mut self) {
        self.sink.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(writer: &mut Writer) -> Poll<io::Result<()>> {
        writer.poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[tokio::test]
    async fn a_batch_is_written_as_the_peer_takes_it() {
        let (near, mut far) = net::inproc::pair("writer");
        let mut writer = Writer::new(near.sink.clone());
        let size = net::inproc::PIPE_SIZE_MAX + 10;
        writer.load(vec![7; size]);
        assert!(writer.is_untouched());
        assert!(poll(&mut writer).is_pending());
        assert!(!writer.is_clear() && !writer.is_untouched());

        let mut received = 0;
        let mut chunk = vec![0; 64 << 10];
        while received < size {
            let read = std::future::poll_fn(|cx| far.source.poll_read(cx, &mut chunk));
            received += read.await.unwrap();
            let _ = poll(&mut writer).map(Result::unwrap);
        }
        assert!(writer.is_clear() && received == size);
    }

    #[tokio::test]
    async fn writing_to_a_closed_peer_is_an_error() {
        let (near, far) = net::inproc::pair("gone");
        let mut writer = Writer::new(near.sink.clone());
        drop(far);
        writer.load(vec![1]);
        assert!(matches!(poll(&mut writer), Poll::Ready(Err(_))));
        assert!(writer.is_untouched());
    }
}
