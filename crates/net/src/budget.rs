//! The limit on sockets that all listeners of a process share.
//!
//! Every accepted socket costs a file descriptor, for any protocol, before and after
//! authentication. A listener takes a [`SocketPermit`] right after `accept` and holds it until the
//! socket is closed. The limit is below the process limit, so that the journal can always open
//! files.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{Source, Stream};

/// Counts the open sockets of all listeners against one limit. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SocketBudget(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    limit: AtomicUsize,
    open: AtomicUsize,
    refused: AtomicU64,
}

impl SocketBudget {
    /// Creates a budget of `limit` sockets.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Counts {
            limit: AtomicUsize::new(limit),
            open: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }))
    }

    /// Creates a budget without a limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Counts an accepted socket. `None` if the budget is used up: the caller must close the
    /// socket, which counts as refused.
    #[must_use]
    pub fn admit(&self) -> Option<SocketPermit> {
        let limit = self.limit();
        let admitted = self
            .0
            .open
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                (open < limit).then_some(open + 1)
            });
        match admitted {
            Ok(_) => Some(SocketPermit(self.0.clone())),
            Err(_) => {
                self.0.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// Changes the limit. Open sockets stay open.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::Release);
    }

    /// Returns the limit on open sockets.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Acquire)
    }

    /// Returns the number of open sockets.
    #[must_use]
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::Acquire)
    }

    /// Returns the number of sockets refused since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }
}

/// Counts one socket until it is dropped.
#[derive(Debug)]
pub struct SocketPermit(Arc<Counts>);

impl Drop for SocketPermit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A socket, or a stream above one, together with its permit.
#[derive(Debug)]
pub struct Permitted<I> {
    io: I,
    _permit: SocketPermit,
}

impl<I> Permitted<I> {
    /// Binds `permit` to the lifetime of `io`.
    pub fn new(io: I, permit: SocketPermit) -> Self {
        Self {
            io,
            _permit: permit,
        }
    }
}

impl Stream {
    /// Binds `permit` to the lifetime of the reading half.
    #[must_use]
    pub fn with_permit(self, permit: SocketPermit) -> Self {
        let source = Box::new(Permitted::new(self.source, permit));
        Self { source, ..self }
    }
}

impl Source for Permitted<Box<dyn Source>> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.io.poll_read(cx, buffer)
    }

    fn poll_read_answer(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_read_answer(cx, buffer)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Permitted<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Permitted<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_count_until_they_are_dropped() {
        let budget = SocketBudget::new(2);
        let first = budget.admit().unwrap();
        let second = budget.admit().unwrap();
        assert!(budget.admit().is_none());
        assert_eq!((budget.open(), budget.refused()), (2, 1));
        drop(first);
        let third = budget.admit().unwrap();
        budget.set_limit(1);
        drop(third);
        assert!(budget.admit().is_none(), "the limit is 1");
        drop(second);
        assert!(budget.admit().is_some());
        assert_eq!((budget.open(), budget.refused()), (0, 2));
    }
}
