//! Byte streams, and the queue in front of each.
//!
//! A connection is split into a [`Source`], owned by the one task that reads it, and a [`Sink`],
//! shared by everybody who has something for the peer. In front of the sink stands an [`Outbox`]:
//! whoever appends first after it was flushed is told so and flushes it at the end of its turn,
//! from its own thread, so that a message never waits for another task to be scheduled.
//!
//! The crate knows bytes and readiness. It does not know frames, names or clocks; a simulated
//! network implements the same traits.

mod address;
mod budget;
mod eager;
pub mod inproc;
mod outbox;
mod tcp;
mod tls;
mod unix;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use address::{Address, AddressError};
pub use budget::{Permitted, SocketBudget, SocketPermit};
pub use outbox::{Outbox, Pushed};
pub use tcp::{connect_tcp, listen_tcp, split_tcp};
pub use tls::{
    ServerIdentity, TlsError, client_config, load_mutual_client_config, load_mutual_server_config,
    load_server_config, split_tls_accepted, split_tls_connected,
};
pub use unix::{connect_unix, listen_unix, split_unix};

/// The reading half, owned by one task.
pub trait Source: Send {
    /// Reads into `buffer`. `Ok(0)` means that the peer will send no more.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Like [`Source::poll_read`], right after a write that the peer may have answered already: a
    /// socket may be looked at before it is reported readable.
    fn poll_read_answer(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read(cx, buffer)
    }
}

/// The writing half, shared.
pub trait Sink: Send + Sync {
    /// Writes what fits now; `WouldBlock` when nothing does. Callable from any thread.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Hands on what the sink itself still holds back (TLS records); `WouldBlock` when the peer
    /// does not take it now.
    fn try_flush(&self) -> io::Result<()> {
        Ok(())
    }

    /// Ready when a write that would have blocked may be tried again. One task at a time.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Has the peer told now that what it sent has arrived, and not with what is written next: one that
    /// holds back small pieces until then (Nagle's algorithm) goes on.
    fn acknowledge(&self) {}

    /// Ends the own direction after what was written: the peer reads that and then the end.
    fn finish(&self);

    /// Ends the connection in both directions: the peer sees the end, the own source too.
    fn close(&self);
}

/// Both halves of a connection.
pub struct Stream {
    /// The reading half.
    pub source: Box<dyn Source>,
    /// The writing half.
    pub sink: Arc<dyn Sink>,
    /// Where the peer is, for people.
    pub peer: String,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({})", self.peer)
    }
}

/// Opens the address, in plain text or inside TLS as it says.
///
/// `tls` is needed for `tls://` only; see [`client_config`].
pub async fn connect(
    address: &Address,
    tls: Option<Arc<rustls::ClientConfig>>,
) -> io::Result<Stream> {
    match address {
        Address::Tcp { host, port } => split_tcp(connect_tcp(host, *port).await?),
        Address::Unix { path } => split_unix(connect_unix(path).await?),
        Address::Inproc { name } => inproc::connect(name),
        Address::Tls { host, port } => {
            let config = match tls {
                Some(config) => config,
                None => client_config(None).map_err(io::Error::other)?,
            };
            split_tls_connected(connect_tcp(host, *port).await?, host, config).await
        }
    }
}
