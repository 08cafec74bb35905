//! The archive of conversations in PostgreSQL.
//!
//! One task writes: it asks the node what happened behind its mark and brings that there, the mark
//! moving in the same transaction, so that every event is there once whatever fails when. Another
//! reads back what the node has trimmed. Each has a connection of its own, tries again after a
//! while for as long as there is trouble, and holds one batch at most.
//!
//! Invariant: *what the mark has passed is in the database, and nobody waited for it to get there.*

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

use node::Handle;
use node::conversations::feed::Keep;

use address::Address;
pub use address::AddressError;
use feeder::Feeder;
use reader::Reader;
use state::Shared;

/// How the archive is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it is, with the password.
    pub url: String,
    /// How often what is new is written.
    pub interval: Duration,
    /// How long one statement may take.
    pub statement_timeout: Duration,
    /// How long whoever reads waits.
    pub read_timeout: Duration,
    /// What stays on the node's disk.
    pub keep: Keep,
}

/// Has everything that happens in the node's conversations written to the archive, for as long as
/// the future is polled, and what is trimmed read back from there.
pub fn keep(
    node: &Handle,
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
