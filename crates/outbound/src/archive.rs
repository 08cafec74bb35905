//! Archive of conversations in PostgreSQL.
//!
//! One task writes: it reads the node's events after the mark and inserts them, moving the mark in
//! the same transaction, so that every event is inserted exactly once. Another task reads back
//! messages that the node has trimmed. Each task has its own connection, retries after errors
//! without a limit, and holds at most one batch in memory.
//!
//! Invariant: *every event before the mark is in the database, and no append waits for the
//! archive.*

mod address;
mod failure;
mod feeder;
mod insert;
mod reader;
mod rows;
mod schema;
mod session;
mod state;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use node::conversations::feed::Keep;

use address::Address;
pub use address::AddressError;
use feeder::Feeder;
use reader::Reader;
use state::Shared;

/// Options of the archive.
#[derive(Clone, Debug)]
pub struct Options {
    /// URL of the database, with the password.
    pub url: String,
    /// Interval between writes of new events.
    pub interval: Duration,
    /// Time limit of one SQL statement.
    pub statement_timeout: Duration,
    /// Time limit of a read.
    pub read_timeout: Duration,
    /// Messages that stay on the node's disk.
    pub keep: Keep,
}

/// Archives the events of the node's conversations while the returned future is polled, and serves
/// reads of trimmed messages from the archive.
pub fn keep(
    node: &Node,
    options: Options,
) -> Result<impl Future<Output = ()> + Send + 'static, AddressError> {
    let address = Address::parse(&options.url)?;
    let shared = Arc::new(Shared::default());
    let (reader, reading) = Reader::new(address.clone(), options.read_timeout, shared.clone());
    node.archive_to(Arc::new(reader));
    let feeder = Feeder::new(node.clone(), address, options, shared);
    Ok(async move {
        tokio::join!(feeder.run(), reading);
    })
}
