//! Byte streams, each with a bounded queue for writing.
//!
//! A connection is split into a [`Source`], owned by the one task that reads, and a [`Sink`],
//! shared by all writers. An [`Outbox`] queues bytes in front of the sink. The first writer after a
//! flush is told so; it flushes at the end of its turn, on its own thread. So a message never waits
//! until another task is scheduled. Large bytes that others share, and bytes of files, are queued as
//! they are ([`Output`]): the former are written from where they are, the latter are sent by the
//! kernel where the transport allows it (`sendfile`).
//!
//! The crate knows bytes and readiness. It knows no frames, names or clocks. The simulated network
//! (`simulated`, with the feature `simulation`) implements the same traits.

mod address;
mod budget;
mod connect;
mod eager;
mod file_bytes;
pub mod inproc;
mod outbox;
mod output;
#[cfg(feature = "simulation")]
pub mod simulated;
mod stream;
mod tcp;
mod tls;
mod unix;
mod whole;

pub use address::{Address, AddressError};
pub use budget::{Permitted, SocketBudget, SocketPermit};
pub use connect::connect;
pub use file_bytes::FileBytes;
pub use outbox::{Outbox, Pushed, QueuedFiles};
pub use output::Output;
pub use stream::{Following, Sink, Source, Stream};
pub use tcp::{connect_tcp, listen_tcp, split_tcp};
pub use tls::{
    ServerIdentity, SharedSeedTls, TlsError, client_config, load_mutual_client_config,
    load_mutual_server_config, load_server_config, split_tls_accepted, split_tls_connected,
};
pub use unix::{connect_unix, listen_unix, split_unix};
pub use whole::{read, read_exact, write_all};
