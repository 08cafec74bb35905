//! The limit on sockets that all listeners of a process share.
//!
//! Every accepted socket costs a file descriptor, for any protocol, before and after
//! authentication. A listener takes a [`SocketPermit`] right after `accept` and holds it until the
//! socket is closed. The limit is below the process limit, so that the journal can always open
//! files.
//!
//! A few sockets of the limit are a reserve. Only a listener that answers health checks may use
//! them, so that a node without free sockets still answers health checks.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::{Source, Stream};

/// The limit divided by the size of the reserve.
const RESERVE_SHARE: usize = 8;

/// Maximum number of sockets in the reserve.
const RESERVE_MAX: usize = 32;

/// Counts the open sockets of all listeners against one limit. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SocketBudget {
    counts: Arc<Counts>,
    may_use_reserve: bool,
}

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
        let counts = Arc::new(Counts {
            limit: AtomicUsize::new(limit),
            open: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        });
        Self {
            counts,
            may_use_reserve: false,
        }
    }

    /// Creates a budget without a limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// This budget for a listener that may use the reserve.
    #[must_use]
    pub fn with_reserve(&self) -> Self {
        Self {
            counts: self.counts.clone(),
            may_use_reserve: true,
        }
    }

    /// Counts a socket that was accepted. `None` if the budget is used up: the socket must be
    /// closed, and counts as refused.
    #[must_use]
    pub fn admit(&self) -> Option<SocketPermit> {
        let limit = self.usable();
        let admitted = self
            .counts
            .open
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                (open < limit).then_some(open + 1)
            });
        match admitted {
            Ok(open) => Some(SocketPermit {
                counts: self.counts.clone(),
                is_of_reserve: open >= Self::shared(self.limit()),
            }),
            Err(_) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// Whether [`admit`](Self::admit) has a permit at the moment.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.open() < self.usable()
    }

    /// Sockets of a limit that are not of the reserve: every listener may use them.
    #[must_use]
    pub fn shared(limit: usize) -> usize {
        limit - (limit / RESERVE_SHARE).min(RESERVE_MAX)
    }

    /// Sockets that this listener and the others may open together.
    fn usable(&self) -> usize {
        let limit = self.limit();
        match self.may_use_reserve {
            true => limit,
            false => Self::shared(limit),
        }
    }

    /// Changes the limit, and the reserve with it. Sockets that are open already stay.
    pub fn set_limit(&self, limit: usize) {
        self.counts.limit.store(limit, Ordering::Release);
    }

    /// Sockets that may be open at the same time, those of the reserve included.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.counts.limit.load(Ordering::Acquire)
    }

    /// Returns the number of open sockets.
    #[must_use]
    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::Acquire)
    }

    /// Returns the number of sockets refused since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Ordering::Relaxed)
    }
}

/// Counts one socket until it is dropped.
#[derive(Debug)]
pub struct SocketPermit {
    counts: Arc<Counts>,
    is_of_reserve: bool,
}

impl SocketPermit {
    /// Whether only sockets of the reserve were left when the socket was admitted.
    #[must_use]
    pub fn is_of_reserve(&self) -> bool {
        self.is_of_reserve
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::AcqRel);
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

    fn poll_read_behind(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        size_max: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        self.io.poll_read_behind(cx, buffer, size_max)
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

    #[test]
    fn reserve_is_for_listeners_that_may_use_it() {
        let budget = SocketBudget::new(16);
        let health = budget.with_reserve();
        let held: Vec<_> = std::iter::from_fn(|| budget.admit()).collect();
        assert_eq!((held.len(), SocketBudget::shared(16)), (14, 14));
        assert!(!held[13].is_of_reserve());
        assert!(health.has_room() && !budget.has_room());
        let reserve: Vec<_> = std::iter::from_fn(|| health.admit()).collect();
        assert_eq!(reserve.len(), 2);
        assert!(reserve.iter().all(SocketPermit::is_of_reserve));
        drop(held);
        assert!(!health.admit().unwrap().is_of_reserve());
        let limits = [1, 96, 20_000].map(SocketBudget::shared);
        assert_eq!(limits, [1, 84, 19_968]);
    }
}
