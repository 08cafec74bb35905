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

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use conversation_service::feed::ArchivedRetention;
use node::Node;

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
    pub keep: ArchivedRetention,
}

/// An archive: a port that reads from the database, and the task that archives a node's events.
pub struct Archive {
    address: Address,
    options: Options,
    shared: Arc<Shared>,
    reader: Arc<Reader>,
    reading: Reading,
}

/// The task that serves reads.
type Reading = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Archive {
    /// Creates an archive, which connects when it runs.
    pub fn new(options: Options) -> Result<Self, AddressError> {
        let address = Address::parse(&options.url)?;
        let shared = Arc::new(Shared::default());
        let (reader, reading) = Reader::new(address.clone(), options.read_timeout, shared.clone());
        Ok(Self {
            address,
            options,
            shared,
            reader: Arc::new(reader),
            reading: Box::pin(reading),
        })
    }

    /// Returns the port through which the node reads trimmed messages.
    pub fn reader(&self) -> Arc<dyn conversation_service::archive::Archive> {
        self.reader.clone()
    }

    /// Archives the events of the node's conversations and serves reads, for ever.
    pub async fn run(self, node: Node) {
        let feeder = Feeder::new(node, self.address, self.options, self.shared);
        tokio::join!(feeder.run(), self.reading);
    }
}
