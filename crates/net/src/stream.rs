//! The two halves of a connection, as traits that every transport implements.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;

use crate::file_bytes::{self, FileBytes};

/// Whether more bytes follow those of a write at once, so that a transport may wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// Nothing is known of further bytes.
    Nothing,
    /// The next write follows at once.
    More,
}

/// The reading half of a connection, owned by one task.
pub trait Source: Send {
    /// Reads into `buffer`. `Ok(0)` means that the peer will send no more.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Reads like [`Source::poll_read`], right after a write that the peer may have answered
    /// already. It may try the socket before it is reported readable.
    fn poll_read_answer(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read(cx, buffer)
    }

    /// Reads like [`Source::poll_read`], at most `size_max` bytes, which must not be 0, behind those
    /// of `buffer`. Its memory is not filled before. `None` if the transport cannot do that.
    fn poll_read_behind(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        size_max: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        let _ = (cx, buffer, size_max);
        None
    }
}

/// The writing half of a connection, shared by several tasks.
pub trait Sink: Send + Sync {
    /// Writes as many bytes as possible now; `WouldBlock` if that is none. Callable from any
    /// thread.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Writes like [`Sink::try_write`] from several buffers, in order, none of which is empty.
    fn try_write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        following: Following,
    ) -> io::Result<usize> {
        let _ = following;
        self.try_write(buffers.first().map_or(&[], |first| first))
    }

    /// Writes like [`Sink::try_write`] the bytes of a file from `at` on. They are read and then
    /// written, unless the transport can send them from the file.
    fn try_send_file(&self, file: &dyn FileBytes, at: usize) -> io::Result<usize> {
        file_bytes::copy(file, at, |bytes| self.try_write(bytes))
    }

    /// Writes bytes that the sink has buffered itself (TLS records); `WouldBlock` if the peer does
    /// not take them now.
    fn try_flush(&self) -> io::Result<()> {
        Ok(())
    }

    /// Becomes ready when a blocked write can be retried. For one task at a time.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Acknowledges received bytes now instead of with the next write. A peer that delays small
    /// writes until then (Nagle's algorithm) continues.
    fn acknowledge(&self) {}

    /// Ends this direction after the bytes written so far: the peer reads them and then the end.
    fn finish(&self);

    /// Ends both directions: the peer and the own source see the end.
    fn close(&self);
}

/// Both halves of a connection.
pub struct Stream {
    /// The reading half.
    pub source: Box<dyn Source>,
    /// The writing half.
    pub sink: Arc<dyn Sink>,
    /// Address of the peer, for people.
    pub peer: String,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({})", self.peer)
    }
}
